package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/trust/explain"
	"repute/trust/rating"
)

// surely are the package's parameters with a surer prior: nobody's own.
func surely() []byte {
	params, _ := rating.DefaultFiles()
	return []byte(strings.Replace(string(params), `"baseVariance": 0.25`, `"baseVariance": 0.16`, 1))
}

// guardedWorld is a chain whose engine has parameters that its API does not know. Agent 0
// is surely bad, agent 1 a new one of the same owner that roots praise, 2 the same of
// another owner, and nobody judged 3.
func guardedWorld(t *testing.T) *ledgerAPI {
	t.Helper()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, scoredChain)
	l.addRoots(repute.DefaultRoots, chainRoots)
	var births []repute.Event
	for n, owner := range []int{500, 500, 501, 502} {
		births = append(births, mint(uint64(n), addr(owner), "")...)
	}
	l.add(births...)
	for i := range chainRoots {
		l.add(ratingOf(0, firstRoot+i, 1, 0, 0, "starred", ""), ratingOf(1, firstRoot+i, 1, 95, 0, "starred", ""),
			ratingOf(2, firstRoot+i, 1, 95, 0, "starred", ""))
	}
	for l.tip.Number < 25 {
		l.add()
	}
	if err := chaindb.SetHead(t.Context(), db, scoredChain, store.Lease{},
		chaindb.Head{Head: l.tip.Number, Safe: 22, Finalized: 21, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	runEngineBy(t, db, surely(), 20)
	return &ledgerAPI{t, func(path string) reply { return get(t, serve(t, api.Options{DB: db}), path) },
		func(query string) answer {
			return ask(t, serve(t, api.Options{DB: db}), query, nil)
		}, db}
}

type ledgerAPI struct {
	t   *testing.T
	get func(path string) reply
	ask func(query string) answer
	db  *store.DB
}

// views are what REST, GraphQL and both explanations say of an agent's score.
func (l *ledgerAPI) views(agent int) map[string]wire.Scored {
	l.t.Helper()
	const fields = `score low high confidence status tier sentence reason guard { agent score share } gates { id direction passed lacks { what } }`
	graph := data[struct {
		Agent struct {
			Reputation struct{ Scored wire.Scored }
			Explain    wire.Scored
		}
	}](l.t, l.ask(fmt.Sprintf(`{ agent(id: "%d:%d") { reputation { scored { %s } } explain { %s } } }`, scoredChain,
		agent, fields, fields))).Agent
	return map[string]wire.Scored{
		"REST": as[wire.ReputationAnswer](l.t, l.get(scoredPath(agent, ""))).Scored, "GraphQL": graph.Reputation.Scored,
		"explain":           as[wire.ExplainAnswer](l.t, l.get(scoredPath(agent, "/explain"))).Scored,
		"GraphQL's explain": graph.Explain,
	}
}

// Everybody who shows a score shows what limits it, why, and how unsure it is.
func TestGuardAndUnjudgedEverywhere(t *testing.T) {
	t.Parallel()
	w := guardedWorld(t)
	bad := as[wire.ReputationAnswer](t, w.get(scoredPath(0, "")))
	if bad.High >= -10 || bad.Guard != nil || bad.Status != "rated" {
		t.Fatalf("agent 0: %+v", bad.Scored)
	}
	for how, s := range w.views(1) {
		if s.Guard == nil || s.Guard.Agent != bad.Agent || s.Guard.Score > bad.Score ||
			s.Guard.Score <= bad.Score-0.5 /* in steps of half a point */ || s.Reason == nil ||
			!strings.Contains(*s.Reason, string(bad.Agent)) ||
			s.High > bad.Score || s.Score > bad.Score {
			t.Errorf("%s of the bad agent's kin: %+v", how, s)
		}
	}
	for how, s := range w.views(2) {
		if s.Guard != nil || s.Reason != nil || s.Low <= 0 || s.Status != "rated" {
			t.Errorf("%s of another owner's: %+v", how, s)
		}
	}
	for how, s := range w.views(3) {
		if s.Status != "unrated" || s.Score != 0 || s.Tier != 0 || s.Low != -17.889 || s.High != 17.889 ||
			s.Guard != nil ||
			s.Reason == nil || len(s.Gates) != 5 {
			t.Errorf("%s of one that nobody judged: %+v", how, s)
		}
	}
}

// What is said of an agent without a score is by the parameters of the run, whatever the
// reader's own are.
func TestUnjudgedIsExplainedByTheRun(t *testing.T) {
	t.Parallel()
	w := guardedWorld(t)
	r, err := explain.NewReader(w.db, explain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	account, err := r.Explain(t.Context(), repute.AgentID{ChainID: scoredChain, TokenID: token(3)},
		repute.At{Finality: repute.Latest}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if account.Result.Low != account.Score.Low || account.Result.Params != account.Score.Params ||
		account.Score.Low != -17_889 {
		t.Errorf("explained %s by %s, stored %s by %s", account.Result.Low, account.Result.Params, account.Score.Low,
			account.Score.Params)
	}
	if _, err := w.db.Pool().Exec(t.Context(), "delete from trust_inputs where hash = $1",
		account.Score.Params[:]); err != nil {
		t.Fatal(err)
	}
	if p := problemOf(t, w.get(scoredPath(3, "/explain"))); p.Status != 410 ||
		!strings.Contains(p.Detail, "input pruned") {
		t.Errorf("%+v", p)
	}
}
