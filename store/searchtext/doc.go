// Package searchtext turns documents and what callers search for into the words, hosts and
// paths that are compared. It has no SQL but the statement that stores a document's row.
package searchtext
