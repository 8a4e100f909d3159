package store

import (
	"context"

	"repute"
)

// ImportResult says what an import did.
type ImportResult struct {
	Events     int            // new logs stored
	Duplicates int            // logs that were stored already
	Agents     int            // agents the chain has after the import
	Applied    map[string]int // records of this import that took effect, by event name
	Pending    int            // stored events of the chain that still wait for another one
}

// Import merges recorded logs into an imported chain, all or nothing.
func (db *DB) Import(ctx context.Context, c repute.Chain, records []repute.Record, blocks []repute.Block, covered []repute.BlockRange) (ImportResult, error) {
	return ImportResult{}, errTODO
}
