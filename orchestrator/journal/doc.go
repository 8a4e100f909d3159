// Package journal has the form in which runs keep what they did: values as JSON, digests of
// them, the keys by which transactions are journaled in each attempt, and texts of a bounded
// length. The rows themselves are written by store/rundb.
package journal
