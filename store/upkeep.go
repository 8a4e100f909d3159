package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// pass is where one stands that looks at all rows of something, some at a time. It goes
// on in whichever process comes next.
type pass struct {
	place []byte     // done up to here, nil at the start
	since *time.Time // the same, where the order is by time
	bytes int64      // added up so far
	spare int64      // still to be dropped
	rest  time.Duration
}

// begun is the place in an order by time, in front of all others at the start.
func (p pass) begun() time.Time { return timeOf(p.since) }

// goOn has step do the next portion of a pass in one transaction, and tells whether
// another one may follow at once: not after the last before a rest, nor while another
// process is at it.
func (db *DB) goOn(ctx context.Context, name string, step func(context.Context, pgx.Tx, *pass) error) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	if _, err := db.pool.Exec(ctx, "insert into upkeep (pass) select $1 where not exists (select from upkeep where pass = $1) on conflict do nothing", name); err != nil {
		return false, failed("begin upkeep", err)
	}
	err = db.inTx(ctx, pgx.TxOptions{}, "keep up: "+name, func(tx pgx.Tx) error {
		var p pass
		err := tx.QueryRow(ctx, "select place, since, bytes, spare from upkeep where pass = $1 and next <= now() for update skip locked", name).
			Scan(&p.place, &p.since, &p.bytes, &p.spare)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if err := step(ctx, tx, &p); err != nil {
			return err
		}
		more = p.rest == 0
		_, err = tx.Exec(ctx, `
			update upkeep set place = $2, since = $3, bytes = $4, spare = $5, next = now() + $6::interval where pass = $1`,
			name, p.place, p.since, p.bytes, p.spare, p.rest)
		return err
	})
	return more && err == nil, err
}
