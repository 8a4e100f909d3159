package store_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/scoredb"
	"repute/store/trustdb"
)

// grow adds agents from one to another to chain 1, each with ten ratings and a score.
func grow(t *testing.T, db *store.DB, from, to int) {
	t.Helper()
	between := fmt.Sprintf("generate_series(%d, %d) i", from, to-1)
	for _, sql := range []string{
		`insert into blocks select 1, 100 + i, sha256(i::text::bytea), '', to_timestamp(i) from ` + between,
		`insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
			updated_block, updated_log, feedback)
			select 1, i, substr(sha256(i::text::bytea), 1, 20), false, '', '', 1, 100 + i, 0, 100 + i, 1, 10 from ` + between,
		`insert into agent_states select chain_id, token_id, registered_block, null, owner, false, wallet, '', uri_id
			from agents where token_id >= ` + fmt.Sprint(from),
		`insert into events select 1, 100 + i, 0, 0, 1, '', sha256(i::text::bytea), i, '', '' from ` + between,
		`insert into feedback
			select 1, i, substr(sha256(n::text::bytea), 1, 20), 1, 100 + i, n, 90, 0, 1, 1, 1, '', '', null, null
			from ` + between + `, generate_series(1, 10) n`,
		`insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean,
			confidence, tier, result) select 1, i, 1, 100, '', '', 'rated', 0, 0, 0, 0, 0, 0, '' from ` + between,
		`insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier, facts,
			result) select 1, i, 1, '', 'rated', 0, 0, 0, 0, 0, 0, '', '' from ` + between,
		`insert into trust_stale (chain_id, token_id, cause, final) select 1, i, 0, false from ` + between,
	} {
		sqlExec(t, db, sql)
	}
}

// executed is how a statement that was prepared on a connection is executed now.
type executed struct {
	sql, plan string
	pages     int
}

// planned are statements that PlanOnce begins, on one connection.
type planned struct {
	conn *pgx.Conn
	list []statement
}

// execute executes the statements, and takes back what they write.
func (p *planned) execute(t *testing.T) (out []executed) {
	t.Helper()
	ctx := t.Context()
	tx, err := p.conn.Begin(ctx)
	ok(t, err)
	defer func() { ok(t, tx.Rollback(ctx)) }()
	_, err = tx.Exec(ctx, store.PlanOnce)
	ok(t, err)
	for i, s := range p.list {
		name := fmt.Sprint("s", i)
		d, err := p.conn.Prepare(ctx, name, s.sql)
		ok(t, err)
		args := make([]string, len(s.args))
		for n, arg := range s.args {
			text, err := p.conn.TypeMap().Encode(d.ParamOIDs[n], pgx.TextFormatCode, arg, nil)
			ok(t, err)
			if args[n] = "'" + string(text) + "'"; text == nil {
				args[n] = "null"
			}
		}
		sql := "explain (analyze, buffers, format json) execute " + name
		if len(args) > 0 {
			sql += "(" + strings.Join(args, ", ") + ")"
		}
		var raw []byte
		ok(t, tx.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol).Scan(&raw))
		var plans []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		ok(t, json.Unmarshal(raw, &plans))
		out = append(out, executed{s.sql, string(raw), plans[0].Plan.Hit + plans[0].Plan.Read})
	}
	return out
}

// eventStatements returns the statements of an event of one agent, on a connection of their own, and a database with so
// many agents, which is analyzed.
func eventStatements(t *testing.T, agents int) (*planned, *store.DB) {
	t.Helper()
	ctx, url, r := t.Context(), pgtest.New(t), &recorder{}
	db := store.OpenTraced(t, url, r)
	ok(t, chaindb.AddChain(ctx, db, newWorld(1, 100, 0).chain))
	ok(t, scoredb.AddRun(ctx, db, scoredb.Run{ChainID: 1, Run: 1, Scorer: "test"}))
	sqlExec(t, db, `insert into tags (hash, value) values (sha256(''), '')`)
	sqlExec(t, db, `insert into uris (hash, uri, kind, host) values (sha256(''), '', 'empty', '')`)
	grow(t, db, 0, agents)
	sqlExec(t, db, "analyze")
	r.take()
	tokens := []repute.TokenID{tokenID(4)}
	_, err := trustdb.ReadSubjects(ctx, db, 1, tokens, nil, nil)
	ok(t, err)
	_, _, err = trustdb.ReadGrowth(ctx, db, 1, tokens[0], trustdb.Known{Block: 104}, nil)
	ok(t, err)
	score := &scoredb.AgentScore{Score: repute.Score{Status: repute.Thin, Result: []byte("{}")}}
	ok(t, scoredb.SaveScores(ctx, db, 1, 1, []scoredb.ScoredAgent{{StaleAgent: scoredb.StaleAgent{TokenID: tokens[0],
		Final: true}, Current: score, Last: score}}, scoredb.Identities{}))
	conn, err := pgx.Connect(ctx, url)
	ok(t, err)
	t.Cleanup(func() { conn.Close(ctx) })
	p := &planned{conn: conn}
	for _, s := range r.take() {
		if !strings.Contains(s.sql, "set_config") {
			p.list = append(p.list, s)
		}
	}
	return p, db
}

// The statements of an event were planned for a connection while the chain was new. They still read few pages when it
// has grown, though nothing analyzed its tables since. Once they are analyzed, no statement is planned for each event
// again.
func TestPlansOfAnEventFollowGrowth(t *testing.T) {
	t.Parallel()
	p, db := eventStatements(t, 20)
	p.execute(t)
	grow(t, db, 20, 12_000)
	for _, s := range p.execute(t) {
		if s.pages > 100 {
			t.Errorf("%d pages by\n%s\n%s", s.pages, s.sql, s.plan)
		}
	}
	sqlExec(t, db, "analyze")
	for _, s := range p.execute(t) {
		if s.pages > 100 {
			t.Errorf("%d pages after analyze by\n%s\n%s", s.pages, s.sql, s.plan)
		}
		if strings.Contains(s.plan, "token_id = '4'::numeric") || strings.Contains(s.plan, "'{4}'") {
			t.Errorf("planned for one agent:\n%s\n%s", s.sql, s.plan)
		}
	}
}

// The statements of an event were planned for a connection while no agent was stale and none had a penalty. They still
// read few pages when very many are and have, before these tables are analyzed again.
func TestPlansOfAnEventFollowQueues(t *testing.T) {
	t.Parallel()
	p, db := eventStatements(t, 12_000)
	sqlExec(t, db, "truncate trust_stale")
	sqlExec(t, db, "vacuum analyze")
	p.execute(t)
	sqlExec(t, db, `insert into trust_stale (chain_id, token_id, cause, final) select 1, i, 1, false
		from generate_series(0, 50000) i`)
	sqlExec(t, db, `insert into trust_penalties (chain_id, final, token_id, identity, owner, score, high, tier, run, known)
		select 1, f, i, sha256(i::text::bytea), '', 0, 0, 0, 1, '' from generate_series(0, 50000) i, (values (false), (true)) v(f)`)
	for _, s := range p.execute(t) {
		if s.pages > 200 {
			t.Errorf("%d pages by\n%s\n%s", s.pages, s.sql, s.plan)
		}
	}
}
