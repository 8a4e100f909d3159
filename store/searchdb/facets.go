package searchdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Facet is one value and how many of the matching agents have it.
type Facet struct {
	Value string
	Count int64
}

// Facets count the matching agents by what they offer. Each list holds the maxFacets values that
// most agents have. Where Total.AtLeast is set, only the first agents were counted.
type Facets struct {
	Total                                            Count
	Services, Skills, Domains, Trust, Chains, Status []Facet
	// X402 and Active have the values true and false, of those that say either.
	X402, Active []Facet
	AsOf         []repute.AsOf
	Match        Match // how the text was matched, "" without one and where no agent matches
}

// maxFacets is the most values of one facet.
const maxFacets = 30

// SearchFacets counts the agents that a search finds by what they offer. Cursor and limit of the
// filter are ignored, and near-identical agents count one by one. as is how a page of the same search was matched;
// with "" the ways to match are tried as for a page. It fails as Agents does.
func SearchFacets(ctx context.Context, db *store.DB, f AgentFilter, as Match) (out Facets, err error) {
	if err := f.check(); err != nil {
		return out, err
	}
	modes := matches(f.Text)
	if as != "" {
		modes = []Match{as}
	}
	err = searching(ctx, db, f, func(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView) error {
		asOf := chaindb.LatestOf(chains)
		deadline := time.Now().Add(timeouts(db).Search)
		ctx, cancel := context.WithDeadline(ctx, deadline.Add(searchGrace))
		defer cancel()
		for _, mode := range modes {
			if err := boundStatements(ctx, tx, time.Until(deadline)); err != nil {
				return err
			}
			q, err := f.query(ctx, tx, mode)
			if err != nil {
				return err
			}
			out = Facets{AsOf: asOf, Match: mode}
			err = out.read(ctx, tx, q, chains)
			if err == nil && out.Total.Value == 0 && q.match.widen() {
				out = Facets{AsOf: asOf, Match: mode}
				err = out.read(ctx, tx, q, chains)
			}
			if err != nil || out.Total.Value > 0 || q.late && out.Total.AtLeast {
				return err
			}
		}
		out.Match = ""
		return nil
	})
	return out, err
}

// read executes the statement and adds its rows.
func (f *Facets) read(ctx context.Context, tx pgx.Tx, q *agentQuery, chains []*chaindb.ChainView) error {
	rows, _ := tx.Query(ctx, q.facets(), q.withArgs(chains)...)
	var kind string
	var facet Facet
	_, err := pgx.ForEachRow(rows, []any{&kind, &facet.Value, &facet.Count}, func() error {
		f.add(kind, facet)
		return nil
	})
	return err
}

// add adds a value to the list of its kind.
func (f *Facets) add(kind string, facet Facet) {
	lists := map[string]*[]Facet{"services": &f.Services, "skills": &f.Skills, "domains": &f.Domains, "trust": &f.Trust,
		"chain": &f.Chains, "status": &f.Status, "x402": &f.X402, "active": &f.Active}
	switch kind {
	case "total":
		f.Total = Count{Value: facet.Count}
	case "total of hits":
		f.Total = f.Total.bounded(int(facet.Count))
	default:
		*lists[kind] = append(*lists[kind], facet)
	}
}

// facets returns the statement, which counts at most maxCounted agents and one more that shows that
// there are others.
func (q *agentQuery) facets() string {
	q.documents = true
	with, from := q.source(false)
	where := q.where
	switch {
	case q.scoredAlone(): // the scores have applied the only condition
		with, where = "with ts as materialized ("+q.scores("ts.chain_id, ts.token_id")+"), ", ""
		from = "ts join agents a using (chain_id, token_id)" + q.joins()
	case with == "":
		with = "with "
	default:
		with += ", "
	}
	sql := fmt.Sprintf(`%s m as materialized (
			select a.chain_id, x.denied, s.services, s.skills, s.domains, s.trust, s.x402, s.active, %s as status
			from %s where a.chain_id = any($1::bigint[])%s limit %d),
		counted as (
			select 'total' as kind, '' as value, count(*) as n from m
			union all select 'total of hits', '', %s
			union all select 'chain', chain_id::text, count(*) from m group by chain_id
			union all select 'x402', x402::text, count(*) from m where denied is null and x402 is not null group by x402
			union all select 'active', active::text, count(*) from m where denied is null and active is not null group by active
			union all select 'status', status, count(*) from m group by status`, with, documentStatus, from, where, maxCounted+1, q.hitCount())
	for _, list := range []string{"services", "skills", "domains", "trust"} {
		sql += fmt.Sprintf(`
			union all (select '%[1]s', v, sum(l.n)::bigint from (
				select %[1]s as list, count(*) as n from m where denied is null group by 1) l, unnest(l.list) v
				group by v order by 3 desc, v limit %[2]d)`, list, maxFacets)
	}
	return sql + `) select kind, value, n from counted order by kind, n desc, value`
}
