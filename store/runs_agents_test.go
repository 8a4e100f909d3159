package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// runRegistries are registries of agents in tests of their runs.
func runRegistries() []common.Address { return []common.Address{{0x80, 4}, {0x80, 5}} }

// TestRunsOfAgents: an agent on the chain has the runs of all task agents that have its identity, the newest first and
// each once, whatever the pages; others have none of them.
func TestRunsOfAgents(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	zero := time.Unix(1_700_000_000, 0).UTC()
	rapid.Check(t, func(rt *rapid.T) {
		_, err := db.Pool().Exec(ctx, `truncate tasks, runs, modules cascade`)
		ok(t, err)
		identity := map[string]repute.AgentID{}
		for _, slug := range []string{"a", "b", "c", "d"} {
			m := repute.Module{Slug: slug, Manifest: json.RawMessage(`{}`)}
			if n := rapid.IntRange(0, 4).Draw(rt, "identity of "+slug); n > 0 {
				id := repute.AgentID{ChainID: 7, Registry: runRegistries()[n%2], TokenID: repute.TokenID{uint64(n / 3)}}
				m.Agent, identity[slug] = &id, id
			}
			ok(t, rundb.SaveModule(ctx, db, m))
		}
		type made struct {
			id, slug string
			at       time.Time
		}
		var all []made
		for n := range rapid.IntRange(0, 12).Draw(rt, "runs") {
			r := made{fmt.Sprint("r", n), rapid.SampledFrom([]string{"a", "b", "c", "d", "gone"}).Draw(rt, "slug"),
				zero.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "second")) * time.Second)}
			all = append(all, r)
			_, err := db.Pool().Exec(ctx, `
				with t as (insert into tasks (id, goal, input, coordinator, terms, asked_by, status)
					values ($1, 'g', 'null', 'a', '{}', 'ann', 'running'))
				insert into runs (id, task_id, root_id, slug, goal, input, max_steps, max_tool_calls, max_writes, max_runtime_ms, created_at)
				values ($1, $1, $1, $2, 'g', 'null', 1, 1, 1, 1, $3)`, r.id, r.slug, r.at)
			ok(t, err)
		}
		slices.SortFunc(all, func(x, y made) int {
			if c := y.at.Compare(x.at); c != 0 {
				return c
			}
			return strings.Compare(y.id, x.id)
		})
		var refs []repute.AgentRef
		for _, registry := range runRegistries() {
			refs = append(refs, repute.AgentRef{ChainID: 7, Registry: &registry},
				repute.AgentRef{ChainID: 7, Registry: &registry,
					TokenID: repute.TokenID{1}})
		}
		refs = append(refs, repute.AgentRef{ChainID: 7}, repute.AgentRef{ChainID: 8})
		want := make([][]string, len(refs))
		for i, ref := range refs {
			for _, r := range all {
				id, has := identity[r.slug]
				if has && id.ChainID == ref.ChainID && id.TokenID == ref.TokenID &&
					(ref.Registry == nil || *ref.Registry == id.Registry) {
					want[i] = append(want[i], r.id)
				}
			}
		}
		most := rapid.IntRange(1, 5).Draw(rt, "most")
		for i, ref := range refs { // page after page
			var got []string
			for f, more := (rundb.RunFilter{}), true; more; {
				page, err := rundb.AgentRuns(ctx, db, []repute.AgentRef{ref}, f, most)
				ok(t, err)
				for _, r := range page[0] {
					got = append(got, r.ID)
					f.Before, f.BeforeID = r.Created, r.ID
				}
				more = len(page[0]) == most
			}
			if !slices.Equal(got, want[i]) {
				rt.Fatalf("agent %d: %v, want %v", i, got, want[i])
			}
		}
		pages, err := rundb.AgentRuns(ctx, db, refs, rundb.RunFilter{}, most) // all at once
		ok(t, err)
		for i := range refs {
			var got []string
			for _, r := range pages[i] {
				got = append(got, r.ID)
			}
			if !slices.Equal(got, want[i][:min(most, len(want[i]))]) {
				rt.Fatalf("agent %d: %v, want %v", i, got, want[i])
			}
		}
	})
}

// TestReadDetailsRuns: what a run paid, called and was found to be worth is of that run and its present attempt alone,
// and texts beside it that Postgres cannot hold do no harm.
func TestReadDetailsRuns(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	run, lease := heldRun(t, db)
	none, err := rundb.ReadDetails(ctx, db, []repute.Run{run})
	if ok(t, err); none["r"].LastCall != nil || none["r"].Purchases != 0 || none["r"].Verified != nil ||
		none["r"].Trust != "" {
		t.Errorf("before: %+v", none["r"])
	}
	now := time.Now()
	trust := decision(1)
	trust.Kind, trust.Effect = repute.DecisionTrust, "require_approval"
	ok(t, rundb.SavePhase(ctx, db, lease, rundb.PhaseOutcome{Run: run.ID, Status: repute.RunRunning,
		Decisions: []rundb.Decision{trust, decision(2)},
		RunPhase: repute.RunPhase{Attempt: 1, Phase: repute.PhaseVerify, Status: repute.PhaseOK, Started: now,
			Ended:  now,
			Result: json.RawMessage(`{"checks":[{"name":"\u0000\"score\":1"}],"score":0.25}`)}}, nil))
	for _, key := range []string{"1/a", "1/b"} {
		_, _, err := rundb.BeginCall(ctx, db, lease,
			repute.Receipt{Run: run.ID, Step: "s", Key: key, Kind: repute.CallTool, Ref: key},
			rundb.Charge{MostOfRun: 9})
		ok(t, err)
	}
	for id, p := range map[string]walletdb.Purchase{
		"mine":    {Task: "t", Call: "r/s/1/a", Worth: 10_000},
		"again":   {Task: "t", Call: "r/s/1/b", Worth: 20_000},
		"refused": {Task: "t", Call: "r/s/1/c", Worth: 40_000, Refused: "too much"},
		"other": {Task: "t", Call: "r2/s/1/a",
			Worth: 80_000}, // of another run of the task, whose id begins with this one's
		"nobody": {Worth: 160_000},
	} {
		p.ID, p.By, p.ChainID, p.Host, p.Expires = id, "ann", 1, "shop.example", now
		_, err := walletdb.AddPurchase(ctx, db, p, walletdb.Caps{Host: 1 << 40, Day: 1 << 40, Task: 1 << 40})
		ok(t, err)
	}
	all, err := rundb.ReadDetails(ctx, db, []repute.Run{run})
	ok(t, err)
	d := all["r"]
	if d.Trust != "require_approval" || d.Verified == nil || *d.Verified != 0.25 || d.Purchases != 30_000 ||
		d.LastCall == nil ||
		d.LastCall.Ref != "1/b" || d.LastCall.Done {
		t.Errorf("%+v, newest call %+v", d, d.LastCall)
	}
	for _, wrong := range []string{`status = 'failed'`, `result = '{"score":5}'`, `result = '{"score":-0.5}'`} {
		sqlExec(t, db, `update run_phases set status = 'ok', result = '{"score":0.25}'`)
		sqlExec(t, db, `update run_phases set `+wrong)
		if all, err = rundb.ReadDetails(ctx, db, []repute.Run{run}); all["r"].Verified != nil {
			t.Errorf("%s: verified %v, %v", wrong, *all["r"].Verified, err)
		}
	}
	run.Attempt = 2
	if all, err = rundb.ReadDetails(ctx, db, []repute.Run{run}); all["r"].Trust != "" || all["r"].Verified != nil {
		t.Errorf("another attempt: %+v %v", all["r"], err)
	}
}

// TestRunsOfAgentsUseIndexes: no statement reads a whole table, and their number does not depend on how many agents and
// runs there are.
func TestRunsOfAgentsUseIndexes(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	db, ctx := store.OpenTraced(t, pgtest.New(t), r), ctxOf(t)
	for _, sql := range []string{
		`insert into tasks (id, goal, input, coordinator, terms, asked_by, status)
			select 't' || i, 'g', 'null', 'a', '{}', 'ann', 'completed' from generate_series(1, 20000) i`,
		`insert into runs (id, task_id, root_id, slug, goal, input, max_steps, max_tool_calls, max_writes, max_runtime_ms, created_at)
			select 'r' || i, 't' || i, 'r' || i, 'agent-' || i % 50, 'g', 'null', 1, 1, 1, 1, now() - i * interval '1 second'
			from generate_series(1, 20000) i`,
		`insert into modules (slug, url, chain_id, registry, token_id, dry_run, manifest)
			select 'agent-' || i, '', 7, '\x8004000000000000000000000000000000000000', i, false, '{}' from generate_series(0, 5000) i`,
		`insert into run_calls (run_id, step_id, key, kind, ref, summary, chain_id, domain, done, request)
			select 'r' || i, '', '', 'tool', 'x', '', 0, '', true, 'null' from generate_series(1, 20000) i`,
		`insert into run_phases select 'r' || i, 1, 7, 'ok', '{"score":1}', '', now(), now() from generate_series(1, 20000) i`,
		`insert into run_decisions (run_id, attempt, subject, effect, reasons, policy, input, root_id, number, phase, kind, previous, hash)
			select 'r' || i, 1, 'trust', 'allow', '[]', '', '{}', 'r' || i, 1, 3, 'trust', '', '' from generate_series(1, 20000) i`,
		`insert into acts (id, kind, asked_by, chain_id, agent, request, decision, transactions)
			select i, 'purchase', 'ann', 1, 'a', json_build_object('task', 't' || i, 'call', 'r' || i || '/s/1', 'worth', 5), '{}', '[]'
			from generate_series(1, 20000) i`,
		`analyze`,
	} {
		_, err := db.Pool().Exec(ctx, sql)
		if err != nil {
			t.Fatalf("%v: %s", err, sql)
		}
	}
	count := func(agents, most int) []statement {
		t.Helper()
		var refs []repute.AgentRef
		for n := range agents {
			refs = append(refs, repute.AgentRef{ChainID: 7, Registry: &runRegistries()[0],
				TokenID: repute.TokenID{uint64(n)}})
		}
		r.take()
		pages, err := rundb.AgentRuns(ctx, db, refs, rundb.RunFilter{Before: time.Now(), BeforeID: "x"}, most)
		ok(t, err)
		var all []repute.Run
		for _, p := range pages {
			if len(p) != most {
				t.Fatalf("%d runs, want %d", len(p), most)
			}
			all = append(all, p...)
		}
		details, err := rundb.ReadDetails(ctx, db, all)
		ok(t, err)
		for _, run := range all {
			if d := details[run.ID]; d.Purchases != 5 || d.LastCall == nil || d.Verified == nil || d.Trust != "allow" {
				t.Fatalf("%s: %+v", run.ID, d)
			}
		}
		return r.take()
	}
	few, many := count(1, 1), count(20, 20)
	if len(few) != len(many) || len(few) != 3 {
		t.Errorf("%d statements for a run, %d for many", len(few), len(many))
	}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		var plans strings.Builder
		for _, s := range few {
			plan := explain(t, db, mode, s)
			checkPlan(t, "runs of agents, "+mode, plan, s.sql)
			plans.WriteString(plan + "\n")
		}
		for _, index := range []string{"runs_agent", "modules_agent", "run_calls_run", "run_decisions_run",
			"acts_task"} {
			if !strings.Contains(plans.String(), index) {
				t.Errorf("%s: no %s in\n%s", mode, index, plans.String())
			}
		}
	}
}
