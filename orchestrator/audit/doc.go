// Package audit checks the stored decisions about a task: their chain of hashes, and whether the
// results and statuses of phases and runs follow from them. It reads what store/rundb hands it
// and changes nothing.
package audit
