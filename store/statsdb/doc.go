// Package statsdb answers questions about all agents at once: who reviews (Client), who validates (Validators), which
// tags are in use (Tags), and which agents lead (Leaders). Every answer is read on one snapshot at the newest block and
// carries that block for each chain.
//
// Lists are ordered by use, so that a page has to count everything that it may list. Each is one statement, which
// counts by an index where there is one and joins details to the rows of the page alone. The position of a page is the
// count of its last row and what tells rows with equal counts apart. Counts change while somebody turns pages: a row
// whose count changed meanwhile may be missing or come again.
//
// ClientInto and ValidatorInto read their part of a page of package query, on the snapshot of the page.
//
// It only reads; the tables belong to other packages.
package statsdb
