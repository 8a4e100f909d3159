package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// fillBatch is how many documents FillSearch reads at once.
const fillBatch = 200

// FillSearch makes the search rows of documents that have none, or one of another form than this
// program's. It is for a database that an older program wrote, before the API answers from it.
func (db *DB) FillSearch(ctx context.Context) error {
	last := []byte{}
	for last != nil {
		var err error
		if last, err = db.fillSearchable(ctx, last); err != nil {
			return failed("make documents searchable", err)
		}
	}
	return nil
}

// fillSearchable makes up to fillBatch of the rows after a document. It returns the last document
// it looked at, nil at the end, so that each is looked at once.
func (db *DB) fillSearchable(ctx context.Context, after []byte) (last []byte, err error) {
	rows, err := db.pool.Query(ctx, `
		select distinct on (p.sha256) p.sha256, p.parser_version, p.errors, p.registration from parses p
		where p.sha256 > $3 and not exists (select from searchable s where s.sha256 = p.sha256 and s.form = $1)
		order by p.sha256, p.parser_version desc limit $2`, searchForm, fillBatch, after)
	if err != nil {
		return nil, err
	}
	var made []searchable
	var sum, registration []byte
	var version, worst int
	_, err = pgx.ForEachRow(rows, []any{&sum, &version, &worst, &registration}, func() error {
		r, err := decodeRegistration(registration)
		last = slices.Clone(sum)
		made = append(made, searchableOf(last, version, worst, r))
		return err
	})
	if err != nil || made == nil {
		return nil, err
	}
	_, err = db.pool.Exec(ctx, upsertSearchable, made)
	return last, err
}
