// Package journal has the form in which the orchestrator keeps what it did: values as JSON, digests of them, ids, the
// keys by which transactions are journaled in each attempt, and texts of a bounded length. The rows are written by
// store/rundb and store/walletdb.
//
// Stored rows are compared with these forms after a crash and years later: a change of Digest, AttemptKey or of how a
// type is encoded makes calls that were journaled before look like others, which would be made again.
//
// ErrRuntime marks errors that are no fault of a run, so that its phase is repeated.
package journal
