package docdb

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
)

// idleProof returns the SQL of whether proof u was not needed for some time, so that its next read
// may be a month away. An agent that names its domain now should not wait so long.
func idleProof(u string) string {
	return `(` + u + `.rank = 2 and not ` + u + `.dead and ` + u + `.tried_at < now() - interval '1 day' and ` + u +
		`.next_due > now() + interval '2 days')`
}

// internProofs returns the ids of the URIs that prove domains, by URI. URIs that were never read as
// proofs, or not for long, become due.
func internProofs(ctx context.Context, db *store.DB, results []FetchResult) (map[string]int64, error) {
	urls := map[string]bool{}
	for _, r := range results {
		if r.denied {
			continue
		}
		for _, d := range r.Domains {
			urls[d.Proof] = true
		}
	}
	if len(urls) == 0 {
		return nil, nil
	}
	return planProofs(ctx, db, slices.Sorted(maps.Keys(urls)))
}

// planProofs is internProofs for a sorted list of URIs.
func planProofs(ctx context.Context, db *store.DB, urls []string) (map[string]int64, error) {
	words := make([]word, len(urls))
	for i, u := range urls {
		words[i] = word{column.SHA256(u), u}
	}
	slices.SortFunc(words, func(a, b word) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	kinds, hosts := classifyAll(db, words)
	_, err := db.Pool().Exec(ctx, `
		with planned as (
			insert into uris (hash, uri, kind, host, rank, next_due)
			select hash, uri, kind, host, 2, now() from unnest($1::bytea[], $2::bytea[], $3::text[], $4::text[]) u(hash, uri,
				kind, host)
			where not exists (select from uris x where x.hash = u.hash and x.rank <= 2 and not `+idleProof("x")+`)
			on conflict (hash) do update set next_due = excluded.next_due, rank = 2, attempts = 0,
				failures = 0, dead = false, etag = '', last_modified = '' where uris.rank > 2 or `+idleProof("uris")+`
			returning host, rank)`+ScheduleHosts("planned"), hashesOf(words), valuesOf(words), kinds, hosts)
	if err != nil {
		return nil, err
	}
	found, err := findURIs(ctx, db, words)
	out := make(map[string]int64, len(words))
	for _, w := range words {
		if id, ok := found[w.hash]; ok {
			out[w.value] = id
		}
	}
	return out, err
}

// ListUnparsed returns up to limit documents that only parsers before version read, with their
// bytes, for SaveParsed.
func ListUnparsed(ctx context.Context, db *store.DB, version, limit int) ([]Unparsed, error) {
	rows, _ := db.Pool().Query(ctx, `
		select d.sha256, d.body, coalesce(u.registration, false), coalesce(u.agents, false)
		from documents d
		cross join lateral (
			select bool_or(u.rank < 3) as registration, bool_or(u.rank < 2) as agents
			from (select rank from uris where sha256 = d.sha256 order by rank limit 1000) u) u
		where d.parsed < $1 and d.body is not null and `+deniedBytes("d.sha256")+` is null
		order by d.parsed limit $2`, version, limit)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u Unparsed, err error) {
		var sum []byte
		err = row.Scan(&sum, &u.Body, &u.Registration, &u.Agents)
		copy(u.SHA256[:], sum)
		return u, err
	})
	return out, store.Failed("list documents to parse", err)
}

// Unparsed is a document that a newer parser has not read yet.
type Unparsed struct {
	SHA256       [32]byte
	Body         []byte
	Registration bool // an agent's file or a proof, not a file of feedback and the like
	Agents       bool // an agent's file
}

// SaveParsed stores the result of a newer parser for a document. Agents that show it get a change
// when what they show changed.
func SaveParsed(ctx context.Context, db *store.DB, u Unparsed, p Parsed) error {
	ctx, cancel := context.WithTimeout(ctx, store.DocumentTimeout)
	defer cancel()
	proofs, err := internProofs(ctx, db, []FetchResult{{Domains: p.Domains}})
	if err != nil {
		return store.Failed("plan proofs", err)
	}
	keccak := column.Keccak(string(u.Body))
	return db.InTx(ctx, pgx.TxOptions{}, "save parse", func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, "select id from uris where sha256 = $1 order by id", u.SHA256[:])
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		before, err := readShown(ctx, tx, ids)
		if err != nil {
			return err
		}
		if err := saveParses(ctx, tx, []parsedBody{{u.SHA256[:], p}}, proofs); err != nil {
			return err
		}
		if err := saveClaims(ctx, tx, ids, p.Files); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "update documents set parsed = greatest(parsed, $2), keccak = $3 where sha256 = $1",
			u.SHA256[:], p.ParserVersion, keccak[:])
		if err != nil {
			return err
		}
		return addVisibleChanges(ctx, tx, ids, before)
	})
}
