package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store/column"
)

// Pass is the position of a maintenance pass, which looks at all rows of a table, one batch per
// transaction. It is stored in table cursors, so that any process can do the next batch.
type Pass struct {
	Place []byte     `json:"place,omitempty"` // key of the last row looked at, nil at the start
	Since *time.Time `json:"since,omitempty"` // time of that row, where the order is by time
	Bytes int64      `json:"bytes,omitempty"` // added up so far
	Spare int64      `json:"spare,omitempty"` // bytes still to be dropped
	// Rest is the pause before the next batch, set by the last batch of a pass. It is not read back.
	Rest time.Duration `json:"-"`
}

// Begun returns Since, or the zero time at the start of the pass.
func (p Pass) Begun() time.Time { return column.TimeOf(p.Since) }

// RunNext executes the next batch of a maintenance pass in one transaction. It reports whether
// another batch may follow at once: not before a pause, nor while another process works on the
// pass. batch changes the position, which is stored when it returns nil. When the process ends in between, the same
// batch is done again from the same position.
func (db *DB) RunNext(ctx context.Context, name string, batch func(context.Context, pgx.Tx, *Pass) error) (more bool,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, DocumentTimeout)
	defer cancel()
	if _, err := db.pool.Exec(ctx, `
		insert into cursors (job, due) select $1, now()
		where not exists (select from cursors where job = $1 and chain_id = 0 and part = 0) on conflict do nothing`, name); err != nil {
		return false, Failed("begin maintenance pass", err)
	}
	err = db.InTx(ctx, pgx.TxOptions{}, "maintenance pass: "+name, func(tx pgx.Tx) error {
		var p Pass
		err := tx.QueryRow(ctx, `
			select state from cursors where job = $1 and chain_id = 0 and part = 0 and due <= now() for update skip locked`, name).Scan(&p)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if err := batch(ctx, tx, &p); err != nil {
			return err
		}
		more = p.Rest == 0
		_, err = tx.Exec(ctx,
			"update cursors set state = $2, due = now() + $3::interval where job = $1 and chain_id = 0 and part = 0",
			name, p, p.Rest)
		return err
	})
	return more && err == nil, err
}

// DocumentTimeout bounds one SaveDocuments, which writes a change for every agent that shares
// a URI. A million agents take half a minute.
const DocumentTimeout = 30 * time.Second
