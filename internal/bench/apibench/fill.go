package apibench

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/bench/harness"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/hourdb"
)

// chainID belongs to no public network.
const chainID = 8_004_454

// Shape of the index, besides its sizes.
const (
	perBlock  = 5       // events of a block
	tags      = 50      // different tags
	documents = 40_000  // at most; agents beyond this number share them
	genesis   = 1.769e9 // seconds of the first block
)

// size is how much the index has. heavy is at most ratings.
type size struct {
	agents, ratings int
	heavy           int // ratings of agent 0
}

// blocks is the number of the last block: registrations and ratings follow each other, perBlock in each.
func (s size) blocks() int { return (s.agents+s.ratings)/perBlock + 1 }

// chain returns the chain of the index.
func chain() repute.Chain {
	return repute.Chain{ID: chainID, Name: "bench", StartBlock: 1,
		Identity:   common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"),
		Reputation: common.HexToAddress("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63")}
}

// fill writes an index: agents that are registered one after the other, then ratings. Agent 0 gets the first s.heavy
// ratings, three by each client. Each other rating is from a client of its own. The database makes all rows, which
// takes a fraction of the time of indexing the same events and gives the same tables.
func fill(ctx context.Context, d *harness.Database, db *store.DB, s size) error {
	if err := chaindb.AddChain(ctx, db, chain()); err != nil {
		return err
	}
	for _, sql := range fillStatements() {
		if _, err := d.Exec(ctx, fmt.Sprintf(sql, chainID, s.agents, s.ratings, s.heavy, s.blocks(), perBlock, tags,
			min(documents, s.agents), int64(genesis))); err != nil {
			return fmt.Errorf("fill: %.60s: %w", sql, err)
		}
	}
	if err := fillHours(ctx, db); err != nil {
		return fmt.Errorf("fill hours: %w", err)
	}
	for _, sql := range []string{"drop table given", "vacuum analyze", "checkpoint"} {
		if _, err := d.Exec(ctx, sql); err != nil {
			return fmt.Errorf("fill: %s: %w", sql, err)
		}
	}
	return nil
}

// fillHours adds up what happened in each hour, with the function by which the store counts them anew.
func fillHours(ctx context.Context, db *store.DB) error {
	return db.InTx(ctx, pgx.TxOptions{}, "fill", func(tx pgx.Tx) error {
		var agents string
		err := tx.QueryRow(ctx, "select array_agg(token_id order by token_id)::text from agents where chain_id = $1",
			chainID).Scan(&agents)
		if err != nil {
			return err
		}
		return hourdb.Recount(ctx, tx, chainID, agents)
	})
}

// fillStatements returns the statements, in the order that references between tables need, with these arguments: 1
// chain, 2 agents, 3 ratings, 4 ratings of agent 0, 5 last block, 6 events of a block, 7 tags, 8 documents, 9 time of
// the first block.
func fillStatements() []string {
	return []string{
		`insert into blocks select %[1]d, n, sha256(n::text::bytea), sha256((n - 1)::text::bytea), to_timestamp(%[9]d + 2 * n)
			from generate_series(1, %[5]d) n`,
		`update chains set cursor_block = %[5]d, cursor_hash = sha256(%[5]d::text::bytea),
			cursor_time = to_timestamp(%[9]d + 2 * %[5]d), head_block = %[5]d, head_seen_at = now(),
			covered = int8multirange(int8range(1, %[5]d + 1)) where chain_id = %[1]d`,
		`insert into tags (hash, value) select sha256(i::text::bytea), ('tag' || i)::bytea from generate_series(1, %[7]d) i`,
		`insert into uris (hash, uri, kind, host, sha256)
			select sha256(i::text::bytea), ('https://h' || i %% 1000 || '.example/' || i)::bytea, 'https', 'h' || i %% 1000 || '.example',
				case when i <= %[8]d then sha256(i::text::bytea) end
			from generate_series(1, greatest(%[8]d, 1000)) i`,
		`insert into documents (sha256, body, media_type, first_seen, parsed)
			select sha256(i::text::bytea), '{}', 'application/json', now(), 1 from generate_series(1, %[8]d) i`,
		`insert into parses select sha256(i::text::bytea), 'registration', 1, jsonb_build_object('name', 'Agent ' || i,
				'description', 'does work number ' || i, 'active', true, 'supportedTrust', '["reputation"]'::jsonb,
				'services', jsonb_build_array(
					jsonb_build_object('name', 'MCP', 'endpoint', 'https://h' || i %% 1000 || '.example/mcp', 'version', '2025-06-18',
						'skills', '[]'::jsonb, 'domains', '[]'::jsonb, 'tools', '["search", "fetch"]'::jsonb),
					jsonb_build_object('name', 'A2A', 'endpoint', 'https://h' || i %% 1000 || '.example/card', 'version', '0.3.0',
						'skills', '["work"]'::jsonb, 'domains', '[]'::jsonb),
					jsonb_build_object('name', 'web', 'endpoint', 'https://h' || i %% 1000 || '.example',
						'skills', '[]'::jsonb, 'domains', '[]'::jsonb))), '[]', 0
			from generate_series(1, %[8]d) i`,
		`insert into searchable (sha256, form, version, errors, name, words, title, vector, places, alike, services, skills, domains, trust)
			select sha256(i::text::bytea), 9, 1, 0, w.n, w.n, w.n, setweight(to_tsvector('english', w.n), 'A'),
				array['h' || i %% 1000 || '.example'], i, array['mcp'], '{}', '{}', array['reputation']
			from generate_series(1, %[8]d) i,
				lateral (select 'agent ' || substr(md5((i %% 5000)::text), 1, 9) || ' ' || substr(md5((i %% 500)::text), 1, 9) as n) w`,
		`insert into domains select sha256(i::text::bytea), 'h' || i %% 1000 || '.example', null from generate_series(1, %[8]d) i`,
		`insert into manifests (domain, state, due_at, checked_at, fetched_at, body, sha256, parser, format, declared, verified)
			select distinct 'h' || i %% 1000 || '.example', 'ok', now() + interval '1 day', now(), now(), '{}'::bytea, sha256('{}'), 1,
				'agent-json', 1, 1 from generate_series(1, %[8]d) i`,
		`insert into manifest_intents (domain, name, position, description, method, url, parameters, price, protocols, networks, terms,
				words, vector)
			select m.domain, w.n, k, 'does ' || w.n, 'POST', 'https://' || m.domain || '/' || k, '{}', (1 + length(w.n) * k %% 97) / 100.0,
				array['x402'], array['base'], '{}', w.n, setweight(to_tsvector('english', w.n), 'A')
			from manifests m, generate_series(1, least(3, %[2]d)) k,
				lateral (select 'work ' || substr(md5(m.domain || k), 1, 9) as n) w`,
		`insert into events select %[1]d, 1 + i / %[6]d, i %% %[6]d, 0, 2, '\x8004A169FB4a3325136EB29fA0ceB6D2e539a432',
				sha256(i::text::bytea), i, '', '' from generate_series(0, %[2]d - 1) i`,
		`create temporary table given as
			select i, t.token, case when i < %[4]d then i / 3 else i end as client, case when i < %[4]d then 1 + i %% 3 else 1 end as idx,
				1 + (%[2]d + i) / %[6]d as block, (%[2]d + i) %% %[6]d as log, 1 + i %% %[7]d as tag
			from generate_series(0, %[3]d - 1) i,
				lateral (select case when i < %[4]d or %[2]d = 1 then 0 else 1 + (i::bigint * 7919) %% (%[2]d - 1) end as token) t`,
		`insert into events select %[1]d, block, log, 0, 6, '\x8004BAa17C55a88189AE136b182e5fdA19dE9b63',
				sha256((%[2]d + i)::text::bytea), token, '', '' from given`,
		`insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id, endpoint, hash)
			select %[1]d, token, substr(sha256(client::text::bytea), 1, 20), idx, block, log, i %% 101, 0, tag, 1, 1, '', '' from given`,
		`insert into sums select chain_id, token_id, client, tag1, tag2, decimals, count(*), sum(value)
			from feedback where chain_id = %[1]d group by 1, 2, 3, 4, 5, 6`,
		`insert into votes select distinct on (chain_id, token_id, tag1, client) chain_id, token_id, tag1, client, idx, value, decimals
			from feedback where chain_id = %[1]d order by chain_id, token_id, tag1, client, idx desc`,
		`insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
				updated_block, updated_log, feedback, clients)
			select %[1]d, i, substr(sha256(('owner' || i / 3)::bytea), 1, 20), false, substr(sha256(('wallet' || i)::bytea), 1, 20), '',
				1 + i %% greatest(%[8]d, 1000), 1 + i / %[6]d, i %% %[6]d, coalesce(f.block, 1 + i / %[6]d), coalesce(f.log, i %% %[6]d),
				coalesce(f.n, 0), coalesce(f.clients, 0)
			from generate_series(0, %[2]d - 1) i
			left join (select token, count(*) n, count(distinct client) clients, max(block) block,
				(max(array[block, log]))[2] log from given group by token) f on f.token = i`,
		`insert into agent_states select chain_id, token_id, registered_block, null, owner, false, wallet, '', uri_id
			from agents where chain_id = %[1]d`,
		`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links, weights,
				identities, edges, unjudged_low, unjudged_high, unjudged, closed_at)
			values (%[1]d, 1, 1, 1, 1, sha256('1'), '1', sha256('p'), sha256('t'), sha256('r'), '', sha256('w'), 0, 0,
				-22361, 22361, '{"gates":[]}', now())`,
		`insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean,
				confidence, tier, result)
			select chain_id, token_id, 1, updated_block, sha256(updated_block::text::bytea), sha256('e'), 'rated', s, s - 9000, s + 9000, s,
				700000, (token_id %% 5)::int, convert_to('{"gates":[{"id":"service","direction":"admits","passed":false,"lacks":'
					|| '[{"what":"low","have":1,"need":50}]}],"rows":3,"trustedFor":2}', 'UTF8')
			from agents, lateral (select (token_id * 7919 %% 180000)::int - 90000 as s) v where chain_id = %[1]d and feedback > 0`,
	}
}

// tip returns the newest block of the index.
func tip(ctx context.Context, db *store.DB) (repute.Block, error) {
	return chaindb.Cursor(ctx, db, chainID)
}

// after returns the block after another one. Its hash is made of its number alone: a chain of the benchmark is never
// reorganized.
func after(b repute.Block) repute.Block {
	n := b.Number + 1
	return repute.Block{Number: n, Parent: b.Hash, Hash: common.BytesToHash(fmt.Appendf(nil, "block %d", n)),
		Time: b.Time.Add(2 * time.Second)}
}
