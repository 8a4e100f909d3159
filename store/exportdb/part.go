package exportdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Bounds of a part. They bound the memory of a reader, and are part of what makes parts deterministic: a part ends at
// the row that reaches one of them, whatever the format.
const (
	// PartRows is the most rows: one row group of a Parquet file, and large enough for readers of columns.
	PartRows = 1 << 16
	// PartText is how many bytes the texts of a part may have before it ends. The last row may exceed it.
	PartText = 16 << 20
	// pageRows is how many rows one statement reads, so that it takes much less than the timeout of statements, and
	// that little is read in vain where texts end a part.
	pageRows = 8192
)

// Range selects rows by their keys: those after After, up to To. An empty After is before the first row, an empty To
// behind the last one.
type Range struct{ After, To string }

// Set is a set of rows of a chain. The methods of the variables' types are safe for concurrent use.
type Set[R any] struct {
	name string
	// statement reads rows in the order of their keys. $1 is the chain, $2 the block, $3 the most rows, the rest the
	// two keys of the range.
	statement string
	// ofRun says that $2 is the run of the trust engine.
	ofRun bool
	keys  keyForm
	// scan reads a row, its key, and how many bytes its texts have.
	scan func(s Snapshot, rows pgx.Rows) (row R, key string, text int, err error)
}

// Name returns the name of the set.
func (s *Set[R]) Name() string { return s.name }

// CheckKey returns repute.ErrInvalid for a text that is no key of the set.
func (s *Set[R]) CheckKey(field, key string) error {
	if _, err := s.keys(key, true); err != nil {
		return repute.Invalid(field, fmt.Sprintf("%.80q is no key of %s", key, s.name), "a key as the manifest has it")
	}
	return nil
}

// Part reads the rows of a range up to the bounds of a part. last is the key of the last row. more reports whether rows
// of the range may follow it.
func (s *Set[R]) Part(ctx context.Context, db *store.DB, snap Snapshot, r Range) (part []R, last string, more bool,
	err error) {
	last = r.After
	text := 0
	for len(part) < PartRows && text < PartText {
		read, full, err := s.page(ctx, db, snap, Range{last, r.To}, min(pageRows, PartRows-len(part)),
			func(row R, key string, size int) bool {
				part, last = append(part, row), key
				text += size
				return text < PartText
			})
		if err != nil {
			return nil, "", false, err
		}
		if more = full; !full || read == 0 {
			return part, last, false, nil
		}
	}
	return part, last, more, nil
}

// page reads up to limit rows with one statement, and stops early when each returns false. full reports whether rows
// may follow.
func (s *Set[R]) page(ctx context.Context, db *store.DB, snap Snapshot, r Range, limit int,
	each func(row R, key string, text int) bool) (read int, full bool, err error) {
	args, err := s.args(snap, r, limit)
	if err != nil {
		return 0, false, err
	}
	err = chaindb.View(ctx, db, "export "+s.name, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			row, key, text, err := s.scan(snap, rows)
			if err != nil {
				return err
			}
			if read++; !each(row, key, text) {
				full = true
				return nil
			}
		}
		full = read == limit
		return rows.Err()
	})
	return read, full, err
}

// args returns the parameters of the statement.
func (s *Set[R]) args(snap Snapshot, r Range, limit int) ([]any, error) {
	after, err := s.keys(r.After, true)
	if err != nil {
		return nil, err
	}
	to, err := s.keys(r.To, false)
	if err != nil {
		return nil, err
	}
	at := snap.Block
	if s.ofRun {
		at = snap.Run
	}
	args := []any{int64(snap.ChainID), int64(at), limit}
	return append(append(args, after...), to...), nil
}
