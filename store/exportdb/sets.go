package exportdb

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"repute"
	"repute/store/column"
	"repute/store/docdb"
)

// raw receives bytes of a row that are valid until the next row: they are copied once, as text.
type raw = pgtype.DriverBytes

// Agents returns the set of agents.
func Agents() *Set[Agent] {
	return &Set[Agent]{name: "agents", keys: tokenKeys, scan: scanAgent, statement: `
		select s.token_id::text, s.owner, s.wallet, s.approved, u.uri, ` + docdb.DeniedDocument("u", "s") + ` is not null,
			a.registered_block, a.registered_log, e.tx_hash, b.time, coalesce(n.live, 0), coalesce(n.revoked, 0), coalesce(n.clients, 0)
		from (
			select * from agent_states where chain_id = $1 and token_id > $4::text::numeric and token_id <= $5::text::numeric
				and from_block <= $2 and (to_block is null or to_block > $2) order by token_id limit $3) s
		join agents a on (a.chain_id, a.token_id) = (s.chain_id, s.token_id)
		join uris u on u.id = s.uri_id
		left join lateral (
			select count(*) filter (where l.live) as live, count(*) filter (where not l.live) as revoked,
				count(distinct l.client) filter (where l.live) as clients
			from (
				select client, revoked_block is null or revoked_block > $2 as live from feedback f
				where f.chain_id = s.chain_id and f.token_id = s.token_id and f.block <= $2) l) n on true
		left join events e on (e.chain_id, e.block, e.log_index) = (a.chain_id, a.registered_block, a.registered_log)
		left join blocks b on (b.chain_id, b.number) = (a.chain_id, a.registered_block)
		order by s.token_id`}
}

// scanAgent reads a row of Agents.
func scanAgent(s Snapshot, rows pgx.Rows) (a Agent, key string, text int, err error) {
	var owner, wallet, approved, uri, tx raw
	err = rows.Scan(&a.TokenID, &owner, &wallet, &approved, &uri, &a.URIDenied, &a.RegisteredAt, &a.RegisteredLog, &tx,
		&a.RegisteredTime, &a.Feedback, &a.Revoked, &a.Clients)
	a.ChainID, a.Registry = s.ChainID, hexutil.Encode(s.Registry[:])
	a.Owner, a.Wallet, a.Approved, a.RegisteredTx = hexOf(owner), hexOf(wallet), hexOf(approved), hexOf(tx)
	a.URI, a.RegisteredTime = shownURI(uri, a.URIDenied), inUTC(a.RegisteredTime)
	return a, a.TokenID, len(a.URI), err
}

// Ratings returns the set of ratings.
func Ratings() *Set[Feedback] {
	return &Set[Feedback]{name: "feedback", keys: ratingKeys, scan: scanFeedback, statement: `
		select f.token_id::text, f.client, f.idx, f.value::text, f.decimals, t1.value, t2.value, f.endpoint, u.uri,
			` + docdb.DeniedDocument("u", "f") + ` is not null, f.hash, f.block, f.log_index, e.tx_hash, b.time,
			case when f.revoked_block <= $2 then f.revoked_block end, case when f.revoked_block <= $2 then f.revoked_log end, re.tx_hash
		from (
			select * from feedback where chain_id = $1 and (token_id, client, idx) > ($4::text::numeric, $5::bytea, $6::bigint)
				and (token_id, client, idx) <= ($7::text::numeric, $8::bytea, $9::bigint) and block <= $2
			order by token_id, client, idx limit $3) f
		join tags t1 on t1.id = f.tag1
		join tags t2 on t2.id = f.tag2
		join uris u on u.id = f.uri_id
		left join events e on (e.chain_id, e.block, e.log_index) = (f.chain_id, f.block, f.log_index)
		left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
		left join events re on f.revoked_block <= $2
			and (re.chain_id, re.block, re.log_index) = (f.chain_id, f.revoked_block, f.revoked_log)
		order by f.token_id, f.client, f.idx`}
}

// scanFeedback reads a row of Ratings.
func scanFeedback(s Snapshot, rows pgx.Rows) (f Feedback, key string, text int, err error) {
	var client, tag1, tag2, endpoint, uri, hash, tx, revoked raw
	err = rows.Scan(&f.TokenID, &client, &f.Index, &f.Value, &f.Decimals, &tag1, &tag2, &endpoint, &uri, &f.URIDenied,
		&hash, &f.Block, &f.LogIndex, &tx, &f.Time, &f.RevokedBlock, &f.RevokedLog, &revoked)
	f.ChainID, f.Client = s.ChainID, hexutil.Encode(client)
	f.Tag1, f.Tag2, f.Endpoint = plain(tag1), plain(tag2), plain(endpoint)
	f.URI, f.Hash, f.TxHash, f.RevokedTxHash = shownURI(uri, f.URIDenied), hexOf(hash), hexOf(tx), hexOf(revoked)
	f.Time = inUTC(f.Time)
	return f, f.TokenID + "/" + f.Client + "/" + strconv.FormatUint(f.Index, 10),
		len(f.Tag1) + len(f.Tag2) + len(f.Endpoint) + len(f.URI), err
}

// Events returns the set of events. Those of treasuries are the operator's and not among them. Data that holds a
// document whose bytes are denied, and that of denied agents, is withheld.
func Events() *Set[Event] {
	return &Set[Event]{name: "events", keys: logKeys, scan: scanEvent, statement: fmt.Sprintf(`
		with banned as materialized (
			select u.uri from denied d join uris u on u.sha256 = case d.kind when 'sha256' then decode(d.value, 'hex') end
			where d.kind = 'sha256' and u.kind in ('data', 'json')),
		banned_agents as materialized (
			select split_part(value, ':', 2)::numeric as token_id from denied
			where kind = 'agent' and split_part(value, ':', 1) = $1::bigint::text)
		select e.block, e.log_index, e.tx_index, e.kind, e.address, e.tx_hash, b.hash, b.time, e.token_id::text, e.topics,
			case when (e.token_id in (select token_id from banned_agents)) is not true
				and not exists (select from banned where position(uri in e.data) > 0) then e.data end
		from (
			select * from events where chain_id = $1 and (block, log_index) > ($4::bigint, $5::bigint)
				and (block, log_index) <= ($6::bigint, $7::bigint) and block <= $2 and kind <> %d
			order by block, log_index limit $3) e
		left join blocks b on (b.chain_id, b.number) = (e.chain_id, e.block)
		order by e.block, e.log_index`, repute.KindTreasuryEvent)}
}

// scanEvent reads a row of Events.
func scanEvent(s Snapshot, rows pgx.Rows) (e Event, key string, text int, err error) {
	var kind repute.EventKind
	var address, tx, hash, topics, data raw
	err = rows.Scan(&e.Block, &e.LogIndex, &e.TxIndex, &kind, &address, &tx, &hash, &e.Time, &e.TokenID, &topics, &data)
	e.ChainID, e.Name, e.Address = s.ChainID, kind.String(), hexutil.Encode(address)
	e.TxHash, e.BlockHash = hexutil.Encode(tx), hexOf(hash)
	const topic = 32
	for i, to := range []**string{&e.Topic0, &e.Topic1, &e.Topic2, &e.Topic3} {
		if len(topics) >= topic*(i+1) {
			*to = hexOf(topics[topic*i : topic*(i+1)])
		}
	}
	if data != nil {
		shown := hexutil.Encode(data)
		e.Data = &shown
		text = len(shown)
	}
	e.Time = inUTC(e.Time)
	return e, fmt.Sprintf("%d-%d", e.Block, e.LogIndex), text, err
}

// Scores returns the set of final scores.
func Scores() *Set[Score] {
	return &Set[Score]{name: "scores", ofRun: true, keys: tokenKeys, scan: scanScore, statement: `
		select s.token_id::text, s.run, r.block, s.status, s.score, s.low, s.high, s.mean, s.confidence, s.tier, s.guarded, s.evidence
		from (
			select distinct on (token_id) * from trust_finals
			where chain_id = $1 and token_id > $4::text::numeric and token_id <= $5::text::numeric and run <= $2
			order by token_id, run desc limit $3) s
		join trust_runs r on (r.chain_id, r.run) = (s.chain_id, s.run)
		order by s.token_id`}
}

// scanScore reads a row of Scores.
func scanScore(s Snapshot, rows pgx.Rows) (out Score, key string, text int, err error) {
	var evidence raw
	err = rows.Scan(&out.TokenID, &out.Run, &out.Block, &out.Status, &out.Score, &out.Low, &out.High, &out.Mean,
		&out.Confidence, &out.Tier, &out.Limited, &evidence)
	out.ChainID, out.Evidence = s.ChainID, hexutil.Encode(evidence)
	return out, out.TokenID, 0, err
}

// Changes returns the set of changes of blocks; those that belong to none are left out. Only those below the oldest
// open transaction are read, as by the feed, so that no change with an earlier cursor can come later. What was pruned
// from the feed is not among them.
func Changes() *Set[Change] {
	return &Set[Change]{name: "changes", keys: changeKeys, scan: scanChange, statement: `
		select c.xid::text || '-' || c.seq, c.kind, c.block, c.log_index, c.token_id::text, c.data::text, c.created_at
		from changes c
		where c.chain_id = $1 and (c.xid, c.seq) > ($4::text::xid8, $5::bigint) and (c.xid, c.seq) <= ($6::text::xid8, $7::bigint)
			and c.xid < pg_snapshot_xmin(pg_current_snapshot()) and c.block between 1 and $2 and c.kind not in ('retracted', 'rewound')
			and not exists (select from changes r where r.chain_id = c.chain_id and r.block = c.block and r.retracts = c.seq)
		order by c.xid, c.seq limit $3`}
}

// scanChange reads a row of Changes.
func scanChange(s Snapshot, rows pgx.Rows) (c Change, key string, text int, err error) {
	err = rows.Scan(&c.Cursor, &c.Kind, &c.Block, &c.LogIndex, &c.TokenID, &c.Data, (*column.Time)(&c.At))
	c.ChainID = s.ChainID
	return c, c.Cursor, len(c.Data), err
}

// plain returns a text of the chain as UTF-8.
func plain(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// shownURI returns a URI as UTF-8, without its content where that is denied.
func shownURI(uri []byte, denied bool) string {
	if denied {
		return column.WithoutContent(plain(uri))
	}
	return plain(uri)
}

// inUTC returns a time in UTC, so that its text does not depend on the machine.
func inUTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	utc := t.UTC()
	return &utc
}
