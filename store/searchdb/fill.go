package searchdb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/docjson"
	"repute/store/searchtext"
)

// fillBatch is how many documents FillSearch reads at once.
const fillBatch = 200

// FillSearch creates the search rows of documents that have none, or one of an older form. It is
// for a database that an older program wrote, and runs before the API answers from it.
func FillSearch(ctx context.Context, db *store.DB) error {
	last := []byte{}
	for last != nil {
		var err error
		if last, err = fillSearchable(ctx, db, last); err != nil {
			return store.Failed("make documents searchable", err)
		}
	}
	return nil
}

// fillSearchable creates up to fillBatch rows of documents after one. It returns the last document
// that it read, nil at the end. The offset has each document looked up: right after rows were made, the planner takes
// hardly any for one of the form, and compares all documents with all rows.
func fillSearchable(ctx context.Context, db *store.DB, after []byte) (last []byte, err error) {
	rows, _ := db.Pool().Query(ctx, `
		select distinct on (p.sha256) p.sha256, p.parser_version, p.errors, p.content from parses p
		where p.kind = 'registration' and p.sha256 > $3 and not exists (select from searchable s where s.sha256 = p.sha256
			and s.form = $1 offset 0)
		order by p.sha256, p.parser_version desc limit $2`, searchtext.SearchForm, fillBatch, after)
	var made []searchtext.Searchable
	var sum, registration []byte
	var version, worst int
	_, err = pgx.ForEachRow(rows, []any{&sum, &version, &worst, &registration}, func() error {
		r, err := docjson.DecodeRegistration(registration)
		last = slices.Clone(sum)
		made = append(made, searchtext.SearchableOf(last, version, worst, r))
		return err
	})
	if err != nil || made == nil {
		return nil, err
	}
	_, err = db.Pool().Exec(ctx, searchtext.UpsertSearchable, made)
	return last, err
}
