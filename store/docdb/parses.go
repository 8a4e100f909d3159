package docdb

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/column"
	"repute/store/docjson"
	"repute/store/searchtext"
)

// parsedBody is the result of parsing the bytes of one hash.
type parsedBody struct {
	sum []byte
	Parsed
}

// saveParses stores parses with what follows from a registration: the agents it names, its domains
// and its search row. Each table is written by one statement, because batches are small and many.
func saveParses(ctx context.Context, tx pgx.Tx, bodies []parsedBody, proofs map[string]int64) error {
	slices.SortStableFunc(bodies, func(a, b parsedBody) int { return bytes.Compare(a.sum, b.sum) })
	places, err := insertParses(ctx, tx, bodies)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	var found []searchtext.Searchable
	var links linkRows
	var domains domainRows
	var written []byte // hash of the last body with rows; equal bodies follow each other
	for i, body := range bodies {
		at := places[i]
		if body.FileOnly || at.outdated {
			continue
		}
		if at.fresh && !bytes.Equal(body.sum, written) {
			if at.replaces {
				queueForget(b, body)
			}
			found = append(found, searchtext.SearchableOf(body.sum, body.ParserVersion,
				repute.CountSeverity(body.Problems, repute.SeverityError),
				body.Registration))
			links.add(body)
			written = body.sum
		}
		domains.add(body, proofs)
	}
	if found != nil {
		b.Queue(searchtext.UpsertSearchable, found)
	}
	links.queue(b)
	domains.queue(b)
	return tx.SendBatch(ctx, b).Close()
}

// parsePlace says how a parse relates to stored parses of the same bytes and kind.
type parsePlace struct {
	fresh    bool // it was not stored before
	replaces bool // one of an older parser is stored
	outdated bool // one of a newer parser is stored
}

// kindRegistration is the kind of a parse as a registration file; other kinds are of repute.DocumentKind.
const kindRegistration = "registration"

// parseRows are rows of table parses, one slice per column.
type parseRows struct {
	bodies, versions, errors  []int // bodies: index of the body that the row belongs to
	sums                      [][]byte
	kinds, contents, problems []string
}

// add appends the row of what a body is as a file of one kind.
func (r *parseRows) add(i int, body parsedBody, kind string, content []byte, problems []repute.Problem) error {
	p, err := docjson.EncodeProblems(problems)
	if err != nil {
		return err
	}
	r.bodies, r.versions, r.errors = append(r.bodies, i), append(r.versions, body.ParserVersion),
		append(r.errors, repute.CountSeverity(problems, repute.SeverityError))
	r.sums, r.kinds = append(r.sums, body.sum), append(r.kinds, kind)
	r.contents, r.problems = append(r.contents, string(content)), append(r.problems, string(p))
	return nil
}

// parseRowsOf returns the rows of all kinds that bodies were read as.
func parseRowsOf(bodies []parsedBody) (r parseRows, err error) {
	for i, body := range bodies {
		if !body.FileOnly {
			content, err := docjson.EncodeRegistration(body.Registration)
			if err == nil {
				err = r.add(i, body, kindRegistration, content, body.Problems)
			}
			if err != nil {
				return r, err
			}
		}
		for _, f := range body.Files {
			content, err := f.stored()
			if err == nil {
				err = r.add(i, body, string(f.Kind), content, f.Problems)
			}
			if err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// insertParses stores the parses that are new. It returns for each body how its parse as a
// registration file relates to stored ones; the zero value where there is none.
func insertParses(ctx context.Context, tx pgx.Tx, bodies []parsedBody) ([]parsePlace, error) {
	places := make([]parsePlace, len(bodies))
	r, err := parseRowsOf(bodies)
	if err != nil || r.sums == nil {
		return places, err
	}
	rows, _ := tx.Query(ctx, `
		with given as materialized (
			select * from unnest($1::int[], $2::bytea[], $3::text[], $4::int[], $5::text[], $6::text[], $7::int[])
				as u(i, sum, kind, version, content, problems, errors)),
		fresh as (
			insert into parses (sha256, kind, parser_version, content, problems, errors)
			select sum, kind, version, content::jsonb, problems::jsonb, errors from given
			on conflict do nothing returning sha256, kind)
		select g.i, exists (select from fresh f where (f.sha256, f.kind) = (g.sum, g.kind)),
			exists (select from parses p where (p.sha256, p.kind) = (g.sum, g.kind) and p.parser_version < g.version),
			exists (select from parses p where (p.sha256, p.kind) = (g.sum, g.kind) and p.parser_version > g.version)
		from given g where g.kind = 'registration'`, r.bodies, r.sums, r.kinds, r.versions, r.contents, r.problems, r.errors)
	var i int
	var p parsePlace
	_, err = pgx.ForEachRow(rows, []any{&i, &p.fresh, &p.replaces, &p.outdated},
		func() error { places[i] = p; return nil })
	return places, err
}

// queueForget deletes what an older parse of a body stored and the new one does not.
func queueForget(b *pgx.Batch, body parsedBody) {
	names := []string{}
	for _, d := range body.Domains {
		names = append(names, d.Name)
	}
	b.Queue("delete from links where sha256 = $1", body.sum)
	b.Queue("delete from domains where sha256 = $1 and domain <> all($2)", body.sum, names)
}

// linkRows are rows of links: agents that registrations claim to belong to.
type linkRows struct {
	sums, registries [][]byte
	chains           []uint64
	tokens           []column.TokenNum
}

// add appends the agents that a body names in a readable way.
func (l *linkRows) add(body parsedBody) {
	if body.Registration == nil {
		return
	}
	for _, r := range body.Registration.Registrations {
		// Capitals are a checksum that is often wrong.
		registry, err := repute.ParseAccount(strings.ToLower(r.Registry))
		if r.TokenID == nil || err != nil {
			continue
		}
		l.sums, l.registries = append(l.sums, body.sum), append(l.registries, registry.Address.Bytes())
		l.chains, l.tokens = append(l.chains, registry.ChainID), append(l.tokens, column.TokenNum(*r.TokenID))
	}
}

// queue stores the rows.
func (l *linkRows) queue(b *pgx.Batch) {
	if l.sums == nil {
		return
	}
	b.Queue(`
		insert into links (sha256, chain_id, registry, token_id)
		select * from unnest($1::bytea[], $2::bigint[], $3::bytea[], $4::numeric[])
		on conflict do nothing`, l.sums, l.chains, l.registries, l.tokens)
}

// domainRows are rows of domains: domains of registrations with the URIs of their proofs.
type domainRows struct {
	sums  [][]byte
	names []string
	ids   []*int64
}

// add appends the domains of a body; proofs are the ids of the proofs' URIs.
func (r *domainRows) add(body parsedBody, proofs map[string]int64) {
	for _, d := range body.Domains {
		var proof *int64
		if id, known := proofs[d.Proof]; known {
			proof = &id
		}
		r.sums, r.names, r.ids = append(r.sums, body.sum), append(r.names, d.Name), append(r.ids, proof)
	}
}

// queue stores the rows. A proof that is stored already stays.
func (r *domainRows) queue(b *pgx.Batch) {
	if r.sums == nil {
		return
	}
	b.Queue(`
		insert into domains (sha256, domain, uri_id)
		select sum, domain, min(id) from unnest($1::bytea[], $2::text[], $3::bigint[]) as u(sum, domain, id)
		group by sum, domain order by sum, domain
		on conflict (sha256, domain) do update set uri_id = excluded.uri_id
			where domains.uri_id is null and excluded.uri_id is not null`, r.sums, r.names, r.ids)
}
