package store

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Reindex rebuilds histories and current rows from the events.
func (db *DB) Reindex(ctx context.Context, chainID uint64, decode func(types.Log) (repute.Event, error)) error {
	return errTODO
}
