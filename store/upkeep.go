package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pass is where one stands that looks at all rows of something, some at a time. It goes
// on in whichever process comes next.
type Pass struct {
	Place []byte     // done up to here, nil at the start
	Since *time.Time // the same, where the order is by time
	Bytes int64      // added up so far
	Spare int64      // still to be dropped
	Rest  time.Duration
}

// Begun is the place in an order by time, in front of all others at the start.
func (p Pass) Begun() time.Time { return TimeOf(p.Since) }

// GoOn has step do the next portion of a pass in one transaction, and tells whether
// another one may follow at once: not after the last before a rest, nor while another
// process is at it.
func (db *DB) GoOn(ctx context.Context, name string, step func(context.Context, pgx.Tx, *Pass) error) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, DocumentTimeout)
	defer cancel()
	if _, err := db.pool.Exec(ctx, "insert into upkeep (pass) select $1 where not exists (select from upkeep where pass = $1) on conflict do nothing", name); err != nil {
		return false, Failed("begin upkeep", err)
	}
	err = db.InTx(ctx, pgx.TxOptions{}, "keep up: "+name, func(tx pgx.Tx) error {
		var p Pass
		err := tx.QueryRow(ctx, "select place, since, bytes, spare from upkeep where pass = $1 and next <= now() for update skip locked", name).
			Scan(&p.Place, &p.Since, &p.Bytes, &p.Spare)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if err := step(ctx, tx, &p); err != nil {
			return err
		}
		more = p.Rest == 0
		_, err = tx.Exec(ctx, `
			update upkeep set place = $2, since = $3, bytes = $4, spare = $5, next = now() + $6::interval where pass = $1`,
			name, p.Place, p.Since, p.Bytes, p.Spare, p.Rest)
		return err
	})
	return more && err == nil, err
}

// DocumentTimeout bounds one SaveDocuments, which writes a change for every agent that shares
// a URI. A million agents take half a minute.
const DocumentTimeout = 30 * time.Second
