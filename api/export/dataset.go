package export

import (
	"context"
	"io"

	"repute/store"
	"repute/store/exportdb"
)

// dataset is a set with the way to write its rows.
type dataset interface {
	Name() string
	CheckKey(field, key string) error
	// write writes the file of a range to w: its first part, or with whole all of it.
	write(ctx context.Context, s source, r exportdb.Range, whole bool, w io.Writer) (piece, error)
}

// source is what a file is made of.
type source struct {
	db       *store.DB
	snapshot exportdb.Snapshot
	format   string
	reading  chan struct{} // holds an item while a part is read
}

// piece says what a file has.
type piece struct {
	rows int64
	last string // key of the last row
	more bool   // rows may follow
}

// sets returns all sets by their names.
func sets() map[string]dataset {
	out := map[string]dataset{}
	for _, d := range []dataset{set[exportdb.Agent]{exportdb.Agents()}, set[exportdb.Feedback]{exportdb.Ratings()},
		set[exportdb.Event]{exportdb.Events()}, set[exportdb.Score]{exportdb.Scores()},
		set[exportdb.Change]{exportdb.Changes()}} {
		out[d.Name()] = d
	}
	return out
}

// Sets returns the names of the sets.
func Sets() []string { return []string{"agents", "feedback", "events", "scores", "changes"} }

// set is a dataset of rows of type R.
type set[R any] struct{ *exportdb.Set[R] }

// write implements dataset. A part is read before any of it is written, so that a slow reader of w keeps no statement
// open.
func (s set[R]) write(ctx context.Context, from source, r exportdb.Range, whole bool,
	w io.Writer) (p piece, err error) {
	enc := newEncoder[R](from.format, w)
	for p.last, p.more = r.After, true; p.more; {
		rows, last, more, err := s.read(ctx, from, exportdb.Range{After: p.last, To: r.To})
		if err == nil {
			err = enc.Write(rows)
		}
		if err != nil {
			return p, err
		}
		p.rows, p.last, p.more = p.rows+int64(len(rows)), last, more
		if !whole {
			break
		}
	}
	return p, enc.Close()
}

// read reads a part when it is its turn.
func (s set[R]) read(ctx context.Context, from source, r exportdb.Range) (rows []R, last string, more bool, err error) {
	select {
	case from.reading <- struct{}{}:
		defer func() { <-from.reading }()
	case <-ctx.Done():
		return nil, "", false, ctx.Err()
	}
	return s.Part(ctx, from.db, from.snapshot, r)
}
