package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/rootdb"
	"repute/trust/engine"
)

// The devnet's epochs have twenty blocks.
const scoredChain = 31337

const (
	scoredAgents = 12
	firstRoot    = 300
	chainRoots   = 8
)

// scoredWorld is a chain with roots whose agents were scored by an engine that has
// stopped: epochs ended at blocks 20 and 40, the tip is beyond.
func scoredWorld(t *testing.T, limits httpapi.Limits, queryCost ...int) (*httptest.Server, *ledger) {
	t.Helper()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, scoredChain)
	l.addRoots(repute.DefaultRoots, chainRoots)
	l.addRoots("friends", 2)
	l.crowd()
	rng, given := rand.New(rand.NewPCG(7, 1)), map[string]uint64{}
	for _, epoch := range []uint64{20, 40} {
		for l.tip.Number < epoch+8 {
			l.add(rate(rng, given)...)
		}
		if err := chaindb.SetHead(t.Context(), db, scoredChain, store.Lease{},
			chaindb.Head{Head: l.tip.Number, Safe: epoch + 5, Finalized: epoch + 1, SeenAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		runEngine(t, db, epoch)
	}
	o := api.Options{DB: db, Tools: newTools(t)}
	for _, most := range queryCost {
		o.QueryCost = most
	}
	return serve(t, o, httpapi.ServerOptions{Limits: limits}), l
}

func (l *ledger) addRoots(set string, n int) {
	l.t.Helper()
	roots := make([]repute.TrustRoot, n)
	for i := range roots {
		roots[i] = repute.TrustRoot{Address: addr(firstRoot + i), Weight: repute.RootUnit, Reason: "test"}
	}
	if err := rootdb.AddRoots(context.Background(), l.db, l.chain.ID, set, roots, false); err != nil {
		l.t.Fatal(err)
	}
}

func (l *ledger) crowd() {
	var births []repute.Event
	for n := range uint64(scoredAgents) {
		births = append(births, mint(n, addr(500+int(n)), "")...)
		births = append(births, repute.MetadataSet{TokenID: token(n), Key: "agentWallet",
			Value: addr(600 + int(n)).Bytes()})
	}
	l.add(births...)
}

// rate is a block: roots, wallets of agents and strangers rate, some of it does not
// count. Agent 11 is left alone.
func rate(rng *rand.Rand, given map[string]uint64) (events []repute.Event) {
	for range 1 + rng.IntN(4) {
		agent := rng.IntN(scoredAgents - 1)
		client := []int{firstRoot + rng.IntN(chainRoots), firstRoot + rng.IntN(chainRoots),
			600 + rng.IntN(scoredAgents),
			400 + rng.IntN(30), 500 + agent}[rng.IntN(5)]
		value, tag := int64(70+rng.IntN(31)), "starred"
		switch rng.IntN(12) {
		case 0:
			tag = "mood"
		case 1:
			value = 1000
		case 2, 3:
			value = int64(rng.IntN(20))
		}
		key := fmt.Sprint(agent, client)
		given[key]++
		events = append(events, ratingOf(uint64(agent), client, given[key], value, 0, tag, ""))
	}
	return events
}

// runEngine keeps scores until all are of the newest state and the epoch's are final.
func runEngine(t *testing.T, db *store.DB, boundary uint64) {
	t.Helper()
	runEngineBy(t, db, nil, boundary)
}

// runEngineBy is runEngine with these parameters, nil for the package's.
func runEngineBy(t *testing.T, db *store.DB, params []byte, boundary uint64) {
	t.Helper()
	e, err := engine.New(db, engine.EngineOptions{Params: params, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	defer func() { stop(); <-done }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var quiet bool
		err := db.Pool().QueryRow(t.Context(), `
			select not exists (select from trust_stale) and not exists (select from trust_marks)
			and exists (select from trust_runs where boundary = $1 and closed_at is not null)`, boundary).Scan(&quiet)
		if err == nil && quiet {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("scores do not settle: %v", err)
		}
	}
}

// thousandths reads points exactly.
func thousandths(t testing.TB, n json.Number) int64 {
	t.Helper()
	r, valid := new(big.Rat).SetString(n.String())
	if !valid {
		t.Fatalf("%s is no number", n)
	}
	r.Mul(r, big.NewRat(1000, 1))
	if !r.IsInt() {
		t.Fatalf("%s has more than three digits", n)
	}
	return r.Num().Int64()
}

// exact are the numbers of an explanation as they are written.
type exact struct {
	Score         json.Number
	Contributions []struct{ Points json.Number }
}

func scoredPath(agent int, rest string) string {
	return fmt.Sprintf("/agents/%d:%d/reputation%s", scoredChain, agent, rest)
}

// Whatever is asked, the points listed add up to the score that the reputation has.
func TestExplanationsAddUp(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	rated, final := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		agent := rapid.IntRange(0, scoredAgents-1).Draw(r, "agent")
		at := rapid.SampledFrom([]string{"latest", "safe", "finalized", "20", "39", "40", "41"}).Draw(r, "at")
		q := query("at", at, "limit", fmt.Sprint(rapid.IntRange(1, 100).Draw(r, "limit")),
			"without", addr(firstRoot+rapid.IntRange(0, chainRoots).Draw(r, "without")).Hex())
		answer := get(t, s, scoredPath(agent, "/explain"+q))
		e := as[exact](t, answer)
		sum := int64(0)
		for _, c := range e.Contributions {
			sum += thousandths(t, c.Points)
		}
		reputation := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, query("at", at))))
		stored := as[exact](t, get(t, s, scoredPath(agent, query("at", at))))
		if sum != thousandths(t, e.Score) || e.Score != stored.Score {
			r.Errorf("agent %d%s: parts add up to %d, the score is %s, stored %s\n%s", agent, q, sum, e.Score,
				stored.Score,
				answer.body)
		}
		full := as[wire.ExplainAnswer](t, answer)
		if full.Standing != reputation.Standing || full.AsOf.Block != reputation.AsOf.Block {
			r.Errorf("agent %d%s: %+v, stored %+v", agent, q, full.Scored, reputation.Scored)
		}
		checkSentence(t, full)
		if full.Status == "rated" {
			rated++
		}
		if full.Finality != nil && *full.Finality == "final" {
			final++
		}
	})
	if rated == 0 || final == 0 {
		t.Errorf("%d rated, %d final", rated, final)
	}
}

// TestExplanation looks at what is listed.
func TestExplanation(t *testing.T) {
	t.Parallel()
	s, l := scoredWorld(t, httpapi.Limits{Rate: -1})
	reasons := map[string]bool{}
	paths := 0
	for agent := range scoredAgents - 1 {
		e := as[wire.ExplainAnswer](t, get(t, s, scoredPath(agent, "/explain?limit=100")))
		if e.Finality == nil || *e.Finality != "provisional" || *e.Scorer != engine.EngineVersion || *e.Epoch != 2 ||
			len(e.Gates) == 0 {
			t.Errorf("agent %d: %+v", agent, e.Scored)
		}
		for _, g := range e.Gates {
			if g.Passed != (len(g.Lacks) == 0) {
				t.Errorf("agent %d: %+v", agent, g)
			}
		}
		for _, c := range e.Contributions {
			for _, row := range c.Rows {
				checkRow(t, row)
			}
			if len(c.Path) > 0 {
				paths++
				checkPath(t, l, c)
			}
		}
		for _, x := range e.Excluded {
			checkRow(t, x.Row)
			reasons[x.Reason] = true
		}
		counted := 0
		for _, r := range e.ExcludedByReason {
			counted += int(r.Count)
		}
		if counted != len(e.Excluded) {
			t.Errorf("agent %d: %d excluded, %d listed", agent, counted, len(e.Excluded))
		}
	}
	if paths == 0 || !reasons["self"] || !reasons["unknown-tag"] || !reasons["out-of-range"] {
		t.Errorf("%d paths, reasons %v", paths, reasons)
	}
	alone := as[wire.ExplainAnswer](t, get(t, s, scoredPath(scoredAgents-1, "/explain")))
	if alone.Status != "unrated" || alone.Score != 0 || alone.Reason == nil || len(alone.Counterfactuals) != 0 ||
		alone.AsOf.Block != Long(l.tip.Number) {
		t.Errorf("%+v", alone)
	}
	past := as[wire.ExplainAnswer](t, get(t, s, scoredPath(0, "/explain?at=39")))
	if *past.Finality != "final" || *past.Epoch != 1 || past.ScoredAt.Block > 20 || past.AsOf.Block != 39 {
		t.Errorf("%+v %+v", past.Scored, past.AsOf)
	}
	first := get(t, s, scoredPath(0, "/explain"))
	if again := get(t, s, scoredPath(0, "/explain"), "If-None-Match", first.header.Get("ETag")); again.status != 304 {
		t.Errorf("status %d, ETag %s", again.status, first.header.Get("ETag"))
	}
}

// Long is shorter here.
type Long = wire.Long

// checkRow compares a row's transaction with the one that the ledger gave that log.
func checkRow(t *testing.T, r wire.Row) {
	t.Helper()
	want := common.BigToHash(new(big.Int).SetUint64(uint64(r.Block)<<16 | uint64(r.LogIndex))).Hex()
	if r.Tx == nil || string(*r.Tx) != want || r.Index == 0 {
		t.Errorf("%+v, want tx %s", r, want)
	}
}

// checkPath wants a root first.
func checkPath(t *testing.T, l *ledger, c wire.Contribution) {
	t.Helper()
	roots, err := rootdb.Roots(t.Context(), l.db, scoredChain, repute.DefaultRoots)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(roots, func(r repute.TrustRoot) bool { return r.Address.Hex() == string(c.Path[0]) }) ||
		c.Weight <= 0 {
		t.Errorf("%+v", c)
	}
}

// What would be without the raters is the score of an agent that they did not rate.
func TestCounterfactuals(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	whole := as[wire.ExplainAnswer](t, get(t, s, scoredPath(3, "/explain?limit=100")))
	var raters []string
	for _, c := range whole.Contributions {
		for _, r := range c.Raters {
			raters = append(raters, string(r))
		}
	}
	without := as[wire.ExplainAnswer](t, get(t, s,
		scoredPath(3, "/explain"+query("without", strings.Join(raters, ",")))))
	nothing := without.Counterfactuals[0]
	if len(nothing.Without) != len(raters) || nothing.Status != "unrated" || nothing.Score != 0 ||
		nothing.Confidence != 0 {
		t.Errorf("%+v", nothing)
	}
	if len(without.Counterfactuals) != 5 || without.Standing != whole.Standing {
		t.Errorf("%+v", without.Counterfactuals)
	}
	for _, c := range whole.Counterfactuals {
		asked := as[wire.ExplainAnswer](t,
			get(t, s, scoredPath(3, "/explain"+query("without", joined(c.Without))))).Counterfactuals[0]
		if asked.Standing != c.Standing || c.Standing == whole.Standing {
			t.Errorf("%+v, asked for %+v", c, asked)
		}
	}
}

func joined(list []wire.Address) string {
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = string(a)
	}
	return strings.Join(parts, ",")
}

// Without roots nobody is rated, and the answer says that this is why.
func TestWithoutRoots(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, scoredChain)
	l.crowd()
	rng, given := rand.New(rand.NewPCG(7, 1)), map[string]uint64{}
	for l.tip.Number < 28 {
		l.add(rate(rng, given)...)
	}
	if err := chaindb.SetHead(t.Context(), db, scoredChain, store.Lease{},
		chaindb.Head{Head: l.tip.Number, Safe: 25, Finalized: 21, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	runEngine(t, db, 20)
	r := as[wire.ReputationAnswer](t, get(t, serve(t, api.Options{DB: db}), scoredPath(0, "")))
	if r.Status != "unrated" || r.Reason == nil ||
		!strings.Contains(*r.Reason, "the chain has neither roots nor sources") {
		t.Errorf("%+v, %v", r.Standing, r.Reason)
	}
}

// checkSentence holds the sentence of a score against what the explanation computes.
func checkSentence(t *testing.T, a wire.ExplainAnswer) {
	t.Helper()
	switch {
	case a.Status == "unrated":
		if a.Reason == nil || a.Sentence != "unrated: "+*a.Reason {
			t.Errorf("an unrated agent's sentence is %q", a.Sentence)
		}
		return
	case !strings.HasPrefix(a.Sentence, strconv.FormatFloat(math.Round(a.Score*10)/10, 'f', -1, 64)+": "):
		t.Errorf("score %g: %q", a.Score, a.Sentence)
	case a.Reason != nil:
		return
	}
	for _, g := range a.Gates {
		for _, l := range g.Lacks {
			if g.ID != "service" || l.What != "low" || l.Units == nil {
				continue
			}
			want := fmt.Sprintf("full service needs about %.0f more trusted clients", math.Ceil(*l.Units))
			if *l.Units > 1 && !strings.HasSuffix(a.Sentence, want) {
				t.Errorf("%q, want %q", a.Sentence, want)
			}
		}
	}
}
