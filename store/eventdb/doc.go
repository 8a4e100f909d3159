// Package eventdb writes the index: it stores batches of events, folds them into histories and
// current rows, takes back blocks that a reorganization removed, and exports, imports, merges and
// rebuilds. A batch is one transaction, fenced by a lease and by the chain's cursor.
package eventdb
