package manifestdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute/store/docdb"
)

// AgentsOfDomains returns the agents that some domains stand for: those whose files name a domain, and those that the
// domain's manifest pays. Links of one agent follow each other, the strongest first. Of each domain at most limit
// agents that name it are read, the confirmed ones first, and as many that are paid. It is one statement.
func AgentsOfDomains(ctx context.Context, tx pgx.Tx, shared, domains []string, limit int) (map[string][]Link, error) {
	rows, _ := tx.Query(ctx, `
		select a.chain_id, c.identity, a.token_id, k.domain, a.owner, a.wallet, m.payout, x.named, x.confirmed,
			coalesce(m.declared, 0), coalesce(m.verified, 0), 0::bigint
		from unnest($1::text[]) as k(domain)
		left join manifests m on m.domain = k.domain and m.state = 'ok' and `+denied+` is null
		cross join lateral (
			select chain_id, token_id, bool_or(named) as named, bool_or(confirmed) as confirmed from (
				(select a.chain_id, a.token_id, true as named, `+docdb.ProvenDomain("p", "w.domain")+` as confirmed
					from domains w
					join uris u on u.sha256 = w.sha256
					join agents a on a.uri_id = u.id
					join chains c on c.chain_id = a.chain_id
					left join uris p on p.id = w.uri_id
					where w.domain = k.domain and `+docdb.DeniedDocument("u", "a")+` is null
					order by confirmed desc, a.chain_id, a.token_id limit $2)
				union all
				(select a.chain_id, a.token_id, `+namesDomain+`, false
					from chains c join agents a on a.chain_id = c.chain_id and a.wallet = m.payout and a.wallet <> '\x'
					order by 1, 2 limit $2)
				union all
				(select a.chain_id, a.token_id, `+namesDomain+`, false
					from chains c join agents a on a.chain_id = c.chain_id and a.owner = m.payout
					order by 1, 2 limit $2)) found
			group by chain_id, token_id) x
		join agents a on (a.chain_id, a.token_id) = (x.chain_id, x.token_id)
		join chains c on c.chain_id = a.chain_id
		order by k.domain, x.confirmed desc, a.chain_id, a.token_id`, domains, limit)
	out := map[string][]Link{}
	var l linkRow
	_, err := pgx.ForEachRow(rows, l.into(), func() error {
		out[l.domain] = append(out[l.domain], l.links(shared)...)
		return nil
	})
	return out, err
}

// namesDomain is the SQL of whether the file of agent a names the domain of row k.
const namesDomain = `exists (select from uris u join domains w on w.sha256 = u.sha256
	where u.id = a.uri_id and w.domain = k.domain)`

// Price is what one intent of a manifest costs.
type Price struct {
	Intent string
	// USD is the lowest price of one unit in USD or a coin of one USD, nil where only the service's answer tells.
	USD      *string
	Networks []string
}

// PricesOf returns the intents of some domains with their prices: of each domain the first, up to limit, in the order
// of its manifest.
func PricesOf(ctx context.Context, tx pgx.Tx, domains []string, limit int) (map[string][]Price, error) {
	rows, _ := tx.Query(ctx, `
		select k.domain, i.name, i.price::text, i.networks
		from unnest($1::text[]) as k(domain)
		cross join lateral (select * from manifest_intents i where i.domain = k.domain order by i.position limit $2) i
		order by k.domain, i.position`, domains, limit)
	out := map[string][]Price{}
	var domain string
	var p Price
	_, err := pgx.ForEachRow(rows, []any{&domain, &p.Intent, &p.USD, &p.Networks}, func() error {
		out[domain] = append(out[domain], p)
		p = Price{}
		return nil
	})
	return out, err
}
