package store

import (
	"context"
	"io"
)

// Dump writes the canonical dump.
func (db *DB) Dump(ctx context.Context, w io.Writer, chainID uint64) error { return errTODO }
