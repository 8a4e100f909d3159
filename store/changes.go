package store

import (
	"context"
	"encoding/json"
	"time"

	"repute"
)

// Change is one row of the outbox.
type Change struct {
	Cursor   string // opaque; pass it as since to go on behind this row
	ChainID  uint64
	Kind     string
	Block    uint64
	LogIndex uint64
	TokenID  *repute.TokenID // nil when no single agent is concerned
	Data     json.RawMessage
	Retracts string // cursor of the change this one undoes, "" when none
	At       time.Time
}

// Changes reads the feed.
func (db *DB) Changes(ctx context.Context, since string, limit int) ([]Change, error) {
	return nil, errTODO
}

// PruneChanges forgets old changes.
func (db *DB) PruneChanges(ctx context.Context, olderThan time.Duration) (int64, error) {
	return 0, errTODO
}
