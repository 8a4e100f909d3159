// Package statsdb answers questions about all agents at once: who reviews, who validates, which tags are in use, and
// which agents lead. Every answer is read on one snapshot at the newest block and carries that block for each chain.
//
// Lists are ordered by use, so that a page has to count everything that it may list. Each is one statement, which
// counts by an index where there is one and joins details to the rows of the page alone.
//
// It only reads; the tables belong to other packages.
package statsdb
