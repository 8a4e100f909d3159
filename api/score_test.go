package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
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
		births = append(births, repute.MetadataSet{TokenID: token(n), Key: "agentWallet", Value: addr(600 + int(n)).Bytes()})
	}
	l.add(births...)
}

// rate is a block: roots, wallets of agents and strangers rate, some of it does not
// count. Agent 11 is left alone.
func rate(rng *rand.Rand, given map[string]uint64) (events []repute.Event) {
	for range 1 + rng.IntN(4) {
		agent := rng.IntN(scoredAgents - 1)
		client := []int{firstRoot + rng.IntN(chainRoots), firstRoot + rng.IntN(chainRoots), 600 + rng.IntN(scoredAgents),
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
			r.Errorf("agent %d%s: parts add up to %d, the score is %s, stored %s\n%s", agent, q, sum, e.Score, stored.Score,
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
	without := as[wire.ExplainAnswer](t, get(t, s, scoredPath(3, "/explain"+query("without", strings.Join(raters, ",")))))
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

// rootsQuery asks for a score by addresses.
func rootsQuery(numbers ...int) string {
	parts := make([]string, len(numbers))
	for i, n := range numbers {
		parts[i] = addr(firstRoot + n).Hex()
	}
	return "?roots=" + url.QueryEscape(strings.Join(parts, ","))
}

// The caller's roots score as the chain's would if they were the chain's.
func TestScoresByRootsOfTheCaller(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	same := 0
	for agent := range scoredAgents {
		stored := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "")))
		given := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, rootsQuery(7, 6, 5, 4, 3, 2, 1, 0))))
		if stored.Scorer != nil && given.Standing != stored.Standing || *given.Roots != "given" ||
			given.Summary.Count != stored.Summary.Count {
			t.Errorf("agent %d: %+v, by the same roots %+v", agent, stored.Scored, given.Scored)
		}
		named := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "?roots=friends")))
		two := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, strings.ToLower(rootsQuery(1, 0)))))
		if named.Standing != two.Standing || *named.Roots != "friends" {
			t.Errorf("agent %d: %+v, by the same addresses %+v", agent, named.Scored, two.Scored)
		}
		if named.Standing == stored.Standing {
			same++
		}
		nobody := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "?roots="+addr(1).Hex())))
		if nobody.Status != "unrated" || nobody.Score != 0 || nobody.Reason == nil || *nobody.Finality != "provisional" {
			t.Errorf("agent %d by a root that rated nobody: %+v", agent, nobody.Scored)
		}
		if r := byGraphQL(t, s, agent, "friends"); r.Standing != named.Standing || *r.Scored.Roots != "friends" {
			t.Errorf("agent %d: GraphQL %+v, REST %+v", agent, r, named.Scored)
		}
		if stored.OwnRoots != nil || *given.OwnRoots != (wire.OwnRoots{Given: chainRoots, Known: chainRoots}) ||
			*nobody.OwnRoots != (wire.OwnRoots{Given: 1}) {
			t.Errorf("agent %d: roots counted %v, %v, %v", agent, stored.OwnRoots, given.OwnRoots, nobody.OwnRoots)
		}
		if agent < scoredAgents-1 && !strings.Contains(*nobody.Reason, "none of these roots ever rated anybody") {
			t.Errorf("agent %d: %s", agent, *nobody.Reason)
		}
	}
	if same > scoredAgents/2 {
		t.Errorf("%d of %d agents have the same score whoever the roots are", same, scoredAgents)
	}
}

// Whoever asks by roots of his own learns why, by the same roots and the same way.
func TestExplanationsByRootsOfTheCaller(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	ends := map[string]bool{}
	for agent := range scoredAgents {
		said := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "?roots=friends")))
		answer := get(t, s, scoredPath(agent, "/explain"+query("roots", "friends", "without", addr(firstRoot).Hex())))
		e, numbers := as[wire.ExplainAnswer](t, answer), as[exact](t, answer)
		sum := int64(0)
		for i, c := range e.Contributions {
			sum += thousandths(t, numbers.Contributions[i].Points)
			if len(c.Path) > 0 {
				ends[string(c.Path[0])] = true
			}
		}
		if e.Standing != said.Standing || sum != thousandths(t, numbers.Score) || *e.Roots != "friends" ||
			*e.OwnRoots != *said.OwnRoots ||
			e.Hashes.Roots != said.Hashes.Roots || e.Hashes.Evidence != nil || len(e.Counterfactuals) == 0 &&
			agent < scoredAgents-1 || e.AsOf.Block != said.AsOf.Block {
			t.Errorf("agent %d: %+v, parts %d, explained %.300s", agent, said.Standing, sum, answer.body)
		}
		a := ask(t, s, `query($id: ID!) { agent(id: $id) { explain(roots: "friends") { score low high confidence status tier roots ownRoots { given known } } } }`,
			map[string]any{"id": fmt.Sprintf("%d:%d", scoredChain, agent)})
		if g := data[struct{ Agent struct{ Explain wire.Scored } }](t, a).Agent.Explain; g.Standing != e.Standing ||
			*g.Roots != "friends" || *g.OwnRoots != *e.OwnRoots {
			t.Errorf("agent %d: GraphQL %+v, REST %+v", agent, g, e.Scored)
		}
	}
	for root := range ends {
		if root != addr(firstRoot).Hex() && root != addr(firstRoot+1).Hex() {
			t.Errorf("a path begins at %s, who is no friend", root)
		}
	}
	if len(ends) != 2 {
		t.Errorf("paths begin at %v", ends)
	}
}

type graphReputation struct {
	wire.Standing
	Scored       struct{ Roots *string }
	Independence wire.Independence
}

func byGraphQL(t *testing.T, s *httptest.Server, agent int, roots string) graphReputation {
	t.Helper()
	a := ask(t, s, `query($id: ID!, $roots: String) { agent(id: $id) { reputation(roots: $roots) { score low high confidence status tier
		scored { roots } independence { ratings raters clusters oneAgentShare burstiness } } } }`,
		map[string]any{"id": fmt.Sprintf("%d:%d", scoredChain, agent), "roots": roots})
	return data[struct {
		Agent struct{ Reputation graphReputation }
	}](t, a).Agent.Reputation
}

// Roots that cannot be meant are refused, never replaced by the chain's.
func TestHostileRoots(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	root := addr(firstRoot).Hex()
	many := make([]string, 101)
	for i := range many {
		many[i] = addr(i).Hex()
	}
	mixed := "0x8004A169FB4a3325136EB29fA0ceB6D2e539A432" // the last letter should be small
	for name, roots := range map[string]string{
		"twice": root + "," + root, "twice in other capitals": root + "," + strings.ToLower(root),
		"too many": strings.Join(many, ","),
		"empty":    "", "comma": ",", "open end": root + ",", "zero": common.Address{}.Hex(), "short": root[:41],
		"long":   root + "00",
		"no hex": "0x" + strings.Repeat("g", 40), "bad checksum": mixed, "unknown set": "enemies",
		"set and address": "friends," + root,
		"no name":         "'; drop table agents; --", "NUL": "a\x00b", "long name": strings.Repeat("a", 5000),
	} {
		for path, field := range map[string]string{"": "reputation(roots: $r) { score }",
			"/explain": "explain(roots: $r) { score }"} {
			r := get(t, s, scoredPath(0, path+query("roots", roots)))
			p := problemOf(t, r)
			if r.status != 400 || len(p.Errors) != 1 || p.Errors[0].Field != "roots" || len(r.body) > 2000 {
				t.Errorf("%s%s: %d %s", name, path, r.status, r.body)
			}
			a := ask(t, s, `query($r: String) { agent(id: "31337:0") { `+field+` } }`, map[string]any{"r": roots})
			if len(a.Errors) != 1 || a.Errors[0].Extensions["field"] != "roots" {
				t.Errorf("%s: GraphQL %s %+v", name, field, a)
			}
		}
	}
	for _, rest := range []string{"?at=20", "?at=finalized", "?signed=1", "/explain?at=20", "/explain?at=safe"} {
		if r := get(t, s, scoredPath(0, rest+"&roots=friends")); r.status != 400 {
			t.Errorf("%s: %d %s", rest, r.status, r.body)
		}
	}
	if a := ask(t, s, `query { agent(id: "31337:0", at: "20") { explain(roots: "friends") { score } } }`,
		nil); len(a.Errors) != 1 || a.Errors[0].Extensions["field"] != "roots" {
		t.Errorf("GraphQL at a block: %+v", a)
	}
	for how, variable := range map[string]string{`query { agent(id: "31337:0") { explain(roots: ["0x12"]) { score } } }`: "", `query($r: String) { agent(id: "31337:0") { reputation(roots: $r) { score } } }`: "r"} {
		a := ask(t, s, how, map[string]any{variable: []string{"0x12"}})
		if len(a.Errors) == 0 || strings.Contains(a.Errors[0].Message, "interface") || variable != "" &&
			a.Errors[0].Message != "a variable is a list where a text belongs" {
			t.Errorf("a list: %+v", a)
		}
	}
	for path, want := range map[string]int{"?roots=friends&sources=default": 200, "?roots=friends&sources=none": 200,
		"?roots=friends&sources=all": 400, "?sources=default": 400, "?sources=none": 400, "/explain?sources=default": 400,
		"/explain?roots=friends&sources=default": 200} {
		r := get(t, s, scoredPath(0, path))
		if r.status != want || want == 400 && problemOf(t, r).Errors[0].Field != "sources" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	for _, field := range []string{"reputation(sources: \"default\") { score }", "explain(roots: \"friends\", sources: \"all\") { score }"} {
		if a := ask(t, s, `query { agent(id: "31337:0") { `+field+` } }`, nil); len(a.Errors) != 1 ||
			a.Errors[0].Extensions["field"] != "sources" {
			t.Errorf("GraphQL %s: %+v", field, a)
		}
	}
	if r := get(t, s, "/agents/31337:99/reputation?roots=friends"); r.status != 404 {
		t.Errorf("no such agent: %d %s", r.status, r.body)
	}
}

// Walks have a limit of their own; what was asked before is free.
func TestWalksAreLimited(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: 1000, Burst: 1000})
	limited := reply{}
	for n := range 40 {
		r := get(t, s, scoredPath(0, "?roots="+addr(n).Hex()))
		if r.status == 429 {
			limited = r
			break
		}
		if r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	if limited.header.Get("Retry-After") == "" {
		t.Fatalf("forty walks: %d %s", limited.status, limited.body)
	}
	for path, want := range map[string]int{"?roots=" + addr(0).Hex(): 200, "": 200} {
		if r := get(t, s, scoredPath(1, path)); r.status != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
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
	if r.Status != "unrated" || r.Reason == nil || !strings.Contains(*r.Reason, "the chain has neither roots nor sources") {
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
