package manifestdb

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
)

// How says what joins a manifest to an agent.
type How string

// Ways in which a manifest is joined to an agent, the strongest first.
const (
	// HowDomain: the domain's agent-registration.json names the agent. It is always proven.
	HowDomain How = "domain"
	// HowWallet: the payout address is the agent's wallet or owner. It is proven where the agent's file names the
	// domain too: anybody can write the address of another.
	HowWallet How = "wallet"
	// HowRegistration: the agent's file names the domain. Alone it proves nothing about the domain.
	HowRegistration How = "registration"
)

// maxLinks is the most agents of one manifest that are read.
const maxLinks = 100

// Link joins a manifest to an agent.
type Link struct {
	Agent  repute.AgentID
	How    How
	Proven bool
	// OtherWallet is the agent's wallet where its file names the domain and the manifest pays another address; zero
	// otherwise.
	OtherWallet common.Address
}

// Summary is the manifest of an agent in short.
type Summary struct {
	Domain             string
	Declared, Verified int
	Intents            int64
	// Price is the lowest known one of the usable manifests of all domains that the agent's file names, a decimal; nil
	// for none. A manifest that only pays the agent's wallet gives none: anybody can write the address of another.
	Price  *string
	How    How
	Proven bool
	Named  bool // the agent's file names the domain
}

// linkRow is what links a manifest and an agent, as read by statements whose columns are pairColumns, two conditions
// (named, confirmed), and endColumns.
type linkRow struct {
	chain            uint64
	registry         []byte
	token            column.TokenNum
	domain           string
	owner, wallet    []byte
	payout           []byte
	named, confirmed bool
	declared         int
	verified         int
	intents          int64
}

func (l *linkRow) into() []any {
	return []any{&l.chain, &l.registry, &l.token, &l.domain, &l.owner, &l.wallet, &l.payout, &l.named, &l.confirmed,
		&l.declared, &l.verified, &l.intents}
}

func (l *linkRow) id() repute.AgentID {
	return repute.AgentID{ChainID: l.chain, Registry: common.BytesToAddress(l.registry),
		TokenID: repute.TokenID(l.token)}
}

// links returns the ways in which a row joins manifest and agent, the strongest first.
func (l *linkRow) links(shared []string) (out []Link) {
	add := func(how How, proven bool) { out = append(out, Link{Agent: l.id(), How: how, Proven: proven}) }
	if l.confirmed && !slices.Contains(shared, l.domain) {
		add(HowDomain, true)
	}
	paid := l.payout != nil && (string(l.payout) == string(l.wallet) || string(l.payout) == string(l.owner))
	if paid {
		add(HowWallet, l.named && l.verified > 0)
	}
	if l.named {
		add(HowRegistration, false)
		if !paid && l.payout != nil && len(l.wallet) > 0 {
			out[len(out)-1].OtherWallet = common.BytesToAddress(l.wallet)
		}
	}
	return out
}

// pairColumns are the columns of linkRow, of manifest m, agent a and its chain c.
const pairColumns = `a.chain_id, c.identity, a.token_id, m.domain, a.owner, a.wallet, m.payout, `

// endColumns are the last columns of linkRow.
const endColumns = `, m.declared, m.verified, (select count(*) from manifest_intents i where i.domain = m.domain)`

// lowestPrice is the SQL of the lowest known price of the manifests m that are read of agent a.
const lowestPrice = `(min((select min(i.price) from manifest_intents i where i.domain = m.domain))
	over (partition by a.chain_id, a.token_id))::text`

// linksOf returns how a domain's manifest is joined to agents, at most maxLinks agents that name the domain and as many
// that are paid at its payout address. It reads within a transaction, for a consistent answer.
func linksOf(ctx context.Context, tx pgx.Tx, shared []string, domain string) ([]Link, error) {
	rows, _ := tx.Query(ctx, `
		with m as materialized (select * from manifests where domain = $1 and body is not null),
		named as materialized (
			select a.chain_id, a.token_id, `+docdb.ProvenDomain("p", "m.domain")+` as confirmed
			from m join domains w on w.domain = m.domain
			join uris u on u.sha256 = w.sha256
			join agents a on a.uri_id = u.id
			join chains c on c.chain_id = a.chain_id
			left join uris p on p.id = w.uri_id
			where `+docdb.DeniedDocument("u", "a")+` is null
			order by confirmed desc, a.chain_id, a.token_id limit $2),
		paid as materialized (
			(select a.chain_id, a.token_id from m cross join chains c
				join agents a on a.chain_id = c.chain_id and a.wallet = m.payout and a.wallet <> '\x'
				order by 1, 2 limit $2)
			union (select a.chain_id, a.token_id from m cross join chains c
				join agents a on a.chain_id = c.chain_id and a.owner = m.payout order by 1, 2 limit $2))
		select `+pairColumns+`n.chain_id is not null, coalesce(n.confirmed, false)`+endColumns+`
		from m cross join (select chain_id, token_id from named union select chain_id, token_id from paid) k
		join agents a on (a.chain_id, a.token_id) = (k.chain_id, k.token_id)
		join chains c on c.chain_id = a.chain_id
		left join named n on (n.chain_id, n.token_id) = (k.chain_id, k.token_id)
		order by coalesce(n.confirmed, false) desc, a.chain_id, a.token_id`, domain, maxLinks)
	out := []Link{}
	var l linkRow
	_, err := pgx.ForEachRow(rows, l.into(), func() error {
		out = append(out, l.links(shared)...)
		return nil
	})
	return out, err
}

// OfAgents returns the manifest of each of some agents in short: a proven one before others, then one whose domain the
// agent's file names, then the one of the highest verified tier. It is one statement. Agents without a usable manifest
// are absent.
func OfAgents(ctx context.Context, db *store.DB, ids ...repute.AgentID) (out map[repute.AgentID]Summary, err error) {
	err = chaindb.View(ctx, db, "read manifests of agents", func(ctx context.Context, tx pgx.Tx) error {
		out, err = ReadOfAgents(ctx, tx, db.Options().SharedHosts, ids)
		return err
	})
	return out, err
}

// ReadOfAgents is OfAgents within the transaction of a snapshot. Hosts in shared confirm no agent.
func ReadOfAgents(ctx context.Context, tx pgx.Tx, shared []string, ids []repute.AgentID) (map[repute.AgentID]Summary,
	error) {
	chains, tokens := column.KeyColumns(ids)
	rows, _ := tx.Query(ctx, `
		with k as materialized (
			select a.* from unnest($1::bigint[], $2::numeric[]) as x(chain_id, token_id)
			join agents a on (a.chain_id, a.token_id) = (x.chain_id, x.token_id))
		select `+pairColumns+`true, `+docdb.ProvenDomain("p", "m.domain")+endColumns+`, `+lowestPrice+`
		from k a
		join chains c on c.chain_id = a.chain_id
		join uris u on u.id = a.uri_id
		join domains w on w.sha256 = u.sha256
		join manifests m on m.domain = w.domain and m.state = 'ok' and `+denied+` is null
		left join uris p on p.id = w.uri_id
		where `+docdb.DeniedDocument("u", "a")+` is null
		union all
		select `+pairColumns+`false, false`+endColumns+`, null::text
		from k a
		join chains c on c.chain_id = a.chain_id
		join manifests m on m.payout = a.wallet and m.state = 'ok' and m.verified > 0 and `+denied+` is null
		where not exists (select from uris u join domains w on w.sha256 = u.sha256
			where u.id = a.uri_id and w.domain = m.domain)
		order by 4`, chains, tokens)
	out := map[repute.AgentID]Summary{}
	var l linkRow
	var price *string
	_, err := pgx.ForEachRow(rows, append(l.into(), &price), func() error {
		if links := l.links(shared); len(links) > 0 {
			keepBest(out, l.id(), Summary{Domain: l.domain, Declared: l.declared, Verified: l.verified,
				Intents: l.intents, Price: price, How: links[0].How, Proven: links[0].Proven, Named: l.named})
		}
		return nil
	})
	return out, err
}

// keepBest replaces the manifest of an agent if s is better: proven before unproven, then named by the agent's file,
// then of the higher verified tier.
func keepBest(out map[repute.AgentID]Summary, id repute.AgentID, s Summary) {
	old, known := out[id]
	if known && s.Proven == old.Proven && s.Named == old.Named {
		known = s.Verified <= old.Verified
	} else if known {
		known = old.Proven || !s.Proven && old.Named // what is proven is named too
	}
	if !known {
		out[id] = s
	}
}
