// Package docstats counts the queue of documents for operators: by rank and host, with outcomes, and whether some
// process works on it.
package docstats
