// Package eventdb writes the index: it stores batches of events, folds them into histories and
// current rows, and takes back blocks that a reorganization removed. A batch is one transaction,
// fenced by a lease and by the chain's cursor.
package eventdb
