package query

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
)

// wholeAgents returns the columns of one agent. For many agents at once listedAgents bounds what
// leaves the database, because a registrant chooses how long its texts are.
func wholeAgents() string {
	return columnsOfAgents("u.uri", "content", "jsonb_path_query_array(problems, '$[0 to 100]')")
}

// listedAgents returns the columns of agents in lists, shortened.
func listedAgents() string {
	return columnsOfAgents(fmt.Sprintf("substring(u.uri for %d)", column.MaxListed), briefRegistration,
		"jsonb_path_query_array(problems, '$[0 to 9]')")
}

// briefRegistration selects content, a parsed registration file, without unknown members, and
// shortened when the rest is still long. Member partial says that something is missing. It is shortened in the
// database, because a page of whole files would be hundreds of megabytes. What is not an object is left as it is: its
// problems say so.
const briefRegistration = `(
	select case
		when jsonb_typeof(content) <> 'object' then content
		when octet_length(s.slim::text) > 16384 then jsonb_build_object(
			'type', content->'type', 'name', content->'name', 'image', content->'image',
			'description', left(content->>'description', 1000),
			'x402', content->'x402', 'active', content->'active', 'partial', true)
		when s.slim = content then content
		else s.slim || '{"partial": true}'
		end
	from (
		select case when jsonb_typeof(content) = 'object' then (content - 'extra') || case
			when content ? 'services' then jsonb_build_object('services', (
				select coalesce(jsonb_agg(e - 'extra' order by n), '[]')
				from jsonb_array_elements(content->'services') with ordinality as e(e, n)))
			else '{}' end
		end as slim) s)`

// columnsOfAgents returns the statement that reads agents from a relation a with the columns of
// table agents, joined with what scanAgent needs besides. Each join is by primary key. The order of the columns is that
// of scanAgent.
func columnsOfAgents(uri, registration, problems string) string {
	return `
	select a.chain_id, c.identity, a.token_id, a.owner, a.claimed, a.wallet, a.approved, ` + uri + `, octet_length(u.uri),
		a.registered_block, a.registered_log, re.tx_hash, rb.time,
		a.updated_block, a.updated_log, ue.tx_hash, ub.time,
		a.feedback, a.revoked, a.clients, a.responses, a.validations,
		u.source, u.sha256, d.size, u.fetched_at, u.reason, u.detail, u.next_due, u.dead, ` + docdb.DeniedDocument("u", "a") + `,
		p.content, p.problems, p.problem_count, p.errors, d.size is not null and d.body is null
	from a
	join chains c on c.chain_id = a.chain_id
	join uris u on u.id = a.uri_id
	left join documents d on d.sha256 = u.sha256
	left join lateral (
		select ` + registration + ` as content, ` + problems + ` as problems,
			jsonb_array_length(problems) as problem_count, errors
		from parses where parses.sha256 = u.sha256 and kind = 'registration' order by parser_version desc limit 1) p on true
	left join events re on (re.chain_id, re.block, re.log_index) = (a.chain_id, a.registered_block, a.registered_log)
	left join blocks rb on (rb.chain_id, rb.number) = (a.chain_id, a.registered_block)
	left join events ue on (ue.chain_id, ue.block, ue.log_index) = (a.chain_id, a.updated_block, a.updated_log)
	left join blocks ub on (ub.chain_id, ub.number) = (a.chain_id, a.updated_block)`
}

// pointRow receives a repute.Point whose event and block may be unknown. block and log are nil when there is no event;
// tx and time are zero when the event or its block is not stored.
type pointRow struct {
	block *int64
	log   *int64
	tx    column.Hash
	time  column.Time
}

// into returns where to scan the columns of a point.
func (p *pointRow) into() []any { return []any{&p.block, &p.log, &p.tx, &p.time} }

// point returns nil when the event did not happen.
func (p *pointRow) point() *repute.Point {
	if p.block == nil {
		return nil
	}
	return &repute.Point{
		Block: uint64(*p.block), LogIndex: uint64(*p.log),
		TxHash: common.Hash(p.tx), Time: time.Time(p.time),
	}
}

// scanAgent reads a row of columnsOfAgents. A URI that was shortened ends with a whole character.
func scanAgent(row pgx.CollectableRow) (a repute.Agent, err error) {
	var uri []byte
	var registered, updated pointRow
	var d docdb.DocumentRow
	var dropped bool
	into := slices.Concat(
		[]any{&a.ID.ChainID, (*column.Address)(&a.ID.Registry), (*column.TokenNum)(&a.ID.TokenID),
			(*column.Address)(&a.Owner), &a.OwnerClaimed, (*column.Address)(&a.Wallet), (*column.Address)(&a.Approved),
			&uri, &a.URISize},
		registered.into(), updated.into(),
		[]any{&a.Counts.Feedback, &a.Counts.Revoked, &a.Counts.Clients, &a.Counts.Responses, &a.Counts.Validations},
		d.Into(), []any{&dropped})
	if err := row.Scan(into...); err != nil {
		return a, err
	}
	if a.URI = string(uri); int64(len(uri)) < a.URISize {
		a.URI = wholeRunes(a.URI)
	}
	a.Registered, a.Updated = *registered.point(), *updated.point()
	a.Document, err = d.Document(a.URISize == 0)
	a.Document.Dropped = dropped && a.Document.Status != repute.DocumentDenied
	if a.Document.Status == repute.DocumentDenied {
		a.URI = column.WithoutContent(a.URI)
	}
	return a, err
}

// wholeRunes removes a partial character from the end of s; other bytes stay. It is for texts that were cut at a byte.
// A URI may have any bytes, so that invalid ones are kept.
func wholeRunes(s string) string {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if tail := s[len(s)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return s[:len(s)-n]
			}
			break
		}
	}
	return s
}

// currentAgents is the SQL of relation a: the current rows of the keys.
const currentAgents = `
	with k as (select * from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)),
	a as (select a.* from k join agents a on (a.chain_id, a.token_id) = (k.chain_id, k.token_id))`

// ReadAgents reads agents with one statement, however many there are, and their scores with another
// one of the same message. whole says whether texts are complete or shortened as in lists. Agents that are not indexed
// are absent.
func ReadAgents(ctx context.Context, tx pgx.Tx, ids []repute.AgentID, whole bool) (map[column.AgentKey]*repute.Agent,
	error) {
	columns := listedAgents()
	if whole {
		columns = wholeAgents()
	}
	chains, tokens := column.KeyColumns(ids)
	var agents []repute.Agent
	var scores map[column.AgentKey]repute.Score
	err := send(ctx, tx, func(b *pgx.Batch) {
		b.Queue(currentAgents+columns, chains, tokens).Query(func(rows pgx.Rows) (err error) {
			agents, err = pgx.CollectRows(rows, scanAgent)
			return err
		})
		scores = queueScores(b, ids, whole)
	})
	out := make(map[column.AgentKey]*repute.Agent, len(agents))
	for i := range agents {
		k := column.KeyOf(agents[i].ID)
		agents[i].Score = scores[k]
		agents[i].Score.Agent = agents[i].ID // ids may come from rows without their registry
		out[k] = &agents[i]
	}
	return out, err
}

// AgentsByID returns the newest state of agents by id, shortened as in a list. Unknown ones are
// absent; an id without registry is found under the id with it.
func AgentsByID(ctx context.Context, db *store.DB, ids []repute.AgentID) (map[repute.AgentID]repute.Agent, error) {
	out := make(map[repute.AgentID]repute.Agent, len(ids))
	err := chaindb.View(ctx, db, "read agents", func(ctx context.Context, tx pgx.Tx) error {
		agents, err := ReadAgents(ctx, tx, ids, false)
		for _, a := range agents {
			out[a.ID] = *a
		}
		return err
	})
	return out, err
}

// AddressAgents returns the agents of a chain that addresses own or that have them as wallet, by
// address: at most most for each address and role. The texts are for people. It reads without a snapshot.
func AddressAgents(ctx context.Context, db *store.DB, chainID uint64, of []common.Address,
	most int) (map[common.Address][]string, error) {
	rows, _ := db.Readers().Query(ctx, `
		select k.a, x.role, x.token_id from unnest($2::bytea[]) as k(a) cross join lateral (
			(select 'wallet' as role, token_id from agents where chain_id = $1 and wallet = k.a and wallet <> '' order by
				token_id limit $3)
			union all
			(select 'owner', token_id from agents where chain_id = $1 and owner = k.a order by token_id limit $3)) x`,
		int64(chainID), column.AddressColumn(of), most)
	out := map[common.Address][]string{}
	var a common.Address
	var role string
	var token repute.TokenID
	_, err := pgx.ForEachRow(rows, []any{(*column.Address)(&a), &role, (*column.TokenNum)(&token)}, func() error {
		out[a] = append(out[a], fmt.Sprintf("%s of agent %d:%s", role, chainID, token.Dec()))
		return nil
	})
	return out, store.Failed("read names of addresses", err)
}
