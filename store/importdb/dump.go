package importdb

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// dumpTables are the parts of a canonical dump, in order. Each query returns one JSON object per
// row. Tags and URIs appear as their bytes, rows are ordered by natural key, and ids and times of
// the database appear nowhere. JSON members are in the order of the query, and numbers beyond 53 bits are texts. A new
// column of a table MUST be added here, or tests do not see a rewind that forgets it.
var dumpTables = []struct{ name, sql string }{
	{"events", `
		select json_build_object('table', 'events', 'chain', e.chain_id, 'block', e.block, 'log', e.log_index, 'tx_index',
			e.tx_index,
			'hash', encode(b.hash, 'hex'), 'time', extract(epoch from b.time)::bigint, 'kind', e.kind, 'address',
				encode(e.address, 'hex'),
			'tx', encode(e.tx_hash, 'hex'), 'agent', e.token_id::text, 'topics', encode(e.topics, 'hex'), 'data', encode(e.data, 'hex'))::text
		from events e left join blocks b on b.chain_id = e.chain_id and b.number = e.block
		where $1::bigint in (0, e.chain_id) order by e.chain_id, e.block, e.log_index`},
	{"treasury_events", `
		select json_build_object('table', 'treasury_events', 'chain', chain_id, 'block', block, 'log', log_index, 'address',
			encode(address, 'hex'), 'tx', encode(tx_hash, 'hex'), 'kind', kind, 'agent', encode(agent_key, 'hex'),
			'run', encode(run_key, 'hex'), 'task', encode(task_key, 'hex'), 'fields', fields)::text
		from treasury_events where $1::bigint in (0, chain_id) order by chain_id, block, log_index`},
	{"pending", `
		select json_build_object('table', 'pending', 'chain', chain_id, 'block', block, 'log', log_index, 'agent',
			token_id::text, 'reason', reason)::text
		from pending where $1::bigint in (0, chain_id) order by chain_id, block, log_index`},
	{"agent_states", `
		select json_build_object('table', 'agent_states', 'chain', s.chain_id, 'agent', s.token_id::text, 'from',
			s.from_block, 'to', s.to_block,
			'owner', encode(s.owner, 'hex'), 'claimed', s.claimed, 'wallet', encode(s.wallet, 'hex'), 'approved', encode(s.approved, 'hex'),
			'uri', encode(u.uri, 'hex'))::text
		from agent_states s join uris u on u.id = s.uri_id
		where $1::bigint in (0, s.chain_id) order by s.chain_id, s.token_id, s.from_block`},
	{"metadata", `
		select json_build_object('table', 'metadata', 'chain', chain_id, 'agent', token_id::text, 'key', encode(key,
			'hex'), 'from', from_block,
			'to', to_block, 'log', log_index, 'value', encode(value, 'hex'))::text
		from metadata where $1::bigint in (0, chain_id) order by chain_id, token_id, key_hash, from_block`},
	{"operators", `
		select json_build_object('table', 'operators', 'chain', chain_id, 'owner', encode(owner, 'hex'), 'operator',
			encode(operator, 'hex'),
			'from', from_block, 'to', to_block)::text
		from operators where $1::bigint in (0, chain_id) order by chain_id, owner, operator, from_block`},
	{"feedback", `
		select json_build_object('table', 'feedback', 'chain', f.chain_id, 'agent', f.token_id::text, 'client',
			encode(f.client, 'hex'), 'index', f.idx,
			'block', f.block, 'log', f.log_index, 'value', f.value::text, 'decimals', f.decimals, 'tag1', encode(t1.value, 'hex'),
			'tag2', encode(t2.value, 'hex'), 'uri', encode(u.uri, 'hex'), 'endpoint', encode(f.endpoint, 'hex'), 'hash', encode(f.hash, 'hex'),
			'revoked_block', f.revoked_block, 'revoked_log', f.revoked_log, 'payer', encode(f.payer, 'hex'))::text
		from feedback f join tags t1 on t1.id = f.tag1 join tags t2 on t2.id = f.tag2 join uris u on u.id = f.uri_id
		where $1::bigint in (0, f.chain_id) order by f.chain_id, f.token_id, f.client, f.idx`},
	{"responses", `
		select json_build_object('table', 'responses', 'chain', r.chain_id, 'agent', r.token_id::text, 'client',
			encode(r.client, 'hex'), 'index', r.idx,
			'block', r.block, 'log', r.log_index, 'responder', encode(r.responder, 'hex'), 'uri', encode(u.uri, 'hex'), 'hash', encode(r.hash, 'hex'))::text
		from responses r join uris u on u.id = r.uri_id
		where $1::bigint in (0, r.chain_id) order by r.chain_id, r.token_id, r.client, r.idx, r.block, r.log_index`},
	{"validation_requests", `
		select json_build_object('table', 'validation_requests', 'chain', r.chain_id, 'contract', encode(r.contract, 'hex'),
			'request', encode(r.request_hash, 'hex'), 'agent', r.token_id::text, 'validator', encode(r.validator, 'hex'),
			'uri', encode(u.uri, 'hex'), 'block', r.block, 'log', r.log_index)::text
		from validation_requests r join uris u on u.id = r.uri_id
		where $1::bigint in (0, r.chain_id) order by r.chain_id, r.contract, r.request_hash`},
	{"validation_responses", `
		select json_build_object('table', 'validation_responses', 'chain', r.chain_id, 'contract', encode(r.contract, 'hex'),
			'request', encode(r.request_hash, 'hex'), 'block', r.block, 'log', r.log_index, 'response', r.response,
			'uri', encode(u.uri, 'hex'), 'hash', encode(r.hash, 'hex'), 'tag', encode(t.value, 'hex'))::text
		from validation_responses r join uris u on u.id = r.uri_id join tags t on t.id = r.tag
		where $1::bigint in (0, r.chain_id) order by r.chain_id, r.contract, r.request_hash, r.block, r.log_index`},
	{"agents", `
		select json_build_object('table', 'agents', 'chain', a.chain_id, 'agent', a.token_id::text, 'owner',
			encode(a.owner, 'hex'),
			'claimed', a.claimed, 'wallet', encode(a.wallet, 'hex'), 'approved', encode(a.approved, 'hex'), 'uri', encode(u.uri, 'hex'),
			'registered_block', a.registered_block, 'registered_log', a.registered_log, 'updated_block', a.updated_block, 'updated_log', a.updated_log,
			'feedback', a.feedback, 'revoked', a.revoked, 'clients', a.clients, 'responses', a.responses, 'validations', a.validations)::text
		from agents a join uris u on u.id = a.uri_id
		where $1::bigint in (0, a.chain_id) order by a.chain_id, a.token_id`},
	{"sums", `
		select json_build_object('table', 'sums', 'chain', s.chain_id, 'agent', s.token_id::text, 'client',
			encode(s.client, 'hex'),
			'tag1', encode(t1.value, 'hex'), 'tag2', encode(t2.value, 'hex'), 'decimals', s.decimals, 'n', s.n, 'sum', s.sum::text)::text
		from sums s join tags t1 on t1.id = s.tag1 join tags t2 on t2.id = s.tag2
		where $1::bigint in (0, s.chain_id) order by s.chain_id, s.token_id, s.client, t1.hash, t2.hash, s.decimals`},
	{"votes", `
		select json_build_object('table', 'votes', 'chain', v.chain_id, 'agent', v.token_id::text, 'tag1', encode(t.value,
			'hex'),
			'client', encode(v.client, 'hex'), 'index', v.idx, 'value', v.value::text, 'decimals', v.decimals)::text
		from votes v join tags t on t.id = v.tag1
		where $1::bigint in (0, v.chain_id) order by v.chain_id, v.token_id, t.hash, v.client`},
}

// Dump writes the canonical dump of one chain, or of all for chainID 0: one JSON object per line
// for events, histories and current rows. Two indexes of the same chains have the same dump,
// however they were built. It reads one snapshot of the database and holds one row in memory. An error leaves an
// incomplete file.
func Dump(ctx context.Context, db *store.DB, w io.Writer, chainID uint64) error {
	out := bufio.NewWriterSize(w, 1<<16)
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := db.InTx(ctx, options, "dump", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
			return err
		}
		for _, table := range dumpTables {
			if err := dumpTable(ctx, tx, out, table.sql, chainID); err != nil {
				return fmt.Errorf("%s: %w", table.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// dumpTable writes the rows of one query.
func dumpTable(ctx context.Context, tx pgx.Tx, w *bufio.Writer, sql string, chainID uint64) error {
	rows, _ := tx.Query(ctx, sql, int64(chainID))
	var line []byte
	_, err := pgx.ForEachRow(rows, []any{&line}, func() error {
		if _, err := w.Write(line); err != nil {
			return err
		}
		return w.WriteByte('\n')
	})
	return err
}
