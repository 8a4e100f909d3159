package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust/engine"
	"repute/trust/explain"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/source"
)

// testPolicy has one source, which is read on the chain of the tests.
const testPolicy = `
version: "1"
multicall: "0xcA11bde05977b3631167028862bE2a173976CA11"
classes:
  A: {weight: 0.5, praise: 6, blame: 3}
  B: {weight: 0.5, praise: 3, blame: 2}
  C: {weight: 0.1, inAll: true, praise: 1, blame: 0.5}
all: {praise: 7, blame: 3}
budget: {agents: 20, days: 90}
defaults: [{chain: 9, sources: [club]}]
sources:
  - id: club
    version: 1
    name: Club
    issuer: Club
    meaning: is a member of the club
    class: A
    weight: 0.5
    price: {usd: 50, date: "2026-01-01", reference: "the test"}
    maturityDays: 1
    ageDays: 0
    keepDays: 1
    bounds: {praise: 3, blame: 2}
    homes: [{chain: 9, contracts: {club: {address: "0x00000000000000000000000000000000000000c1"}}}]
    read:
      calls:
        - contract: club
          function: isMember(address) returns (bool member)
          arguments: [rater]
          holds: [{value: member, equals: ["true"]}]
`

// club answers for its members.
type club struct {
	mu         sync.Mutex
	members    []common.Address
	fails      error
	status     source.Status
	asked      []repute.Block
	before     []source.State                          // that it was told last
	change     func([]source.Reading) []source.Reading // nil: nothing
	person     common.Hash                             // of all members; zero: each is one
	implements common.Address
	stop       func() // ends the engine of clubbedWith
}

// set changes what it says.
func (c *club) set(change func(*club)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// times is how often it was asked.
func (c *club) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// Reaches is engine.SourceReader.
func (c *club) Reaches(uint64) bool { return true }

// Read is engine.SourceReader.
func (c *club) Read(_ context.Context, chain uint64, at repute.Block, sources []*source.Source, raters []common.Address,
	past source.Past) ([]source.Reading, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.before = append(c.asked, at), past.States
	if c.fails != nil {
		return nil, c.fails
	}
	r := source.Reading{State: source.State{Source: sources[0].ID, Chain: chain, Status: source.StatusOK,
		Block: at.Number,
		Hash:  at.Hash, Time: uint64(at.Time.Unix())}}
	if c.implements != (common.Address{}) {
		r.Implementations = map[string]common.Address{"club": c.implements}
	}
	if c.status != "" {
		r.Status, r.Reason = c.status, "as the test has it"
	}
	for _, a := range raters {
		if slices.Contains(c.members, a) {
			subject := common.BytesToHash(a[:])
			if c.person != (common.Hash{}) {
				subject = c.person
			}
			r.Credentials = append(r.Credentials,
				source.Credential{Source: "club", Version: 1, Class: source.ClassA, Rater: a,
					Subject: subject, Weight: sources[0].Weight, Issued: uint64(at.Time.Unix()) - 86400, Chain: chain,
					Block: at.Number, Hash: at.Hash, Read: uint64(at.Time.Unix())})
		}
	}
	if c.change != nil {
		return c.change([]source.Reading{r}), nil
	}
	return []source.Reading{r}, nil
}

// clubbed is a chain without roots, whose agent 0 four members of a club praised.
func clubbed(t *testing.T) (*ledger, *store.DB, *club) {
	t.Helper()
	return clubbedWith(t, engine.EngineOptions{Exact: true})
}

// stopEngines ends the engine that clubbedWith started.
func stopEngines(t *testing.T, db *store.DB, c *club) {
	t.Helper()
	c.stop()
	_, err := db.Pool().Exec(t.Context(),
		"update trust_stale set claimed = '-infinity'") // as its claims end in a minute
	ok(t, err)
}

// clubbedWith is clubbed with an engine that has these options, and the policy of the tests where they have none.
func clubbedWith(t *testing.T, o engine.EngineOptions) (*ledger, *store.DB, *club) {
	t.Helper()
	if o.Sources == nil {
		policy, err := source.Parse([]byte(testPolicy))
		ok(t, err)
		o.Sources = policy
	}
	l := newLedger(31)
	db, _ := l.fresh(t)
	ok(t, rootdb.AddRoots(t.Context(), db, l.chain.ID, repute.DefaultRoots, nil, true)) // none
	c := &club{members: persons(30, 34)}
	s := l.state()
	l.mine(s, s.mint(person(20))...)
	l.mine(s, s.rate(0, person(30), 90), s.rate(0, person(40), 90))
	l.mine(s, s.rate(0, person(31), 80))
	l.mine(s, s.rate(0, person(32), 95))
	l.mine(s, s.rate(0, person(33), 100))
	l.pad(10)
	l.store(t, db, 10)
	o.Ask = c
	c.stop = startWith(t, db, o)
	return l, db, c
}

func persons(from, to int) (out []common.Address) {
	for n := from; n < to; n++ {
		out = append(out, person(n))
	}
	return out
}

// advance brings the chain to a block and waits for its epoch.
func advance(t *testing.T, l *ledger, db *store.DB, block uint64) scoredb.Run {
	t.Helper()
	l.pad(int(block))
	l.store(t, db, block)
	return settle(t, db, l.chain.ID, block)
}

// A chain without any root rates an agent that holders of credentials praised, says on what that rests, and makes the
// same again from what is stored. Who loses its credential loses its weight at the next epoch.
func TestSourcesRateWithoutRoots(t *testing.T) {
	t.Parallel()
	l, db, c := clubbed(t)
	run := settle(t, db, 9, 10)
	first := newest(t, db, 0)
	if first.Status != repute.Rated || run.Credentials == (common.Hash{}) || run.Sources == (common.Hash{}) {
		t.Fatalf("%s by credentials %s", first.Status, run.Credentials)
	}
	chains, err := query.Chains(t.Context(), db)
	ok(t, err)
	if got := chains[0].Scoring.Coverage; got.BySource["club"] != 4 || got.Records.Counted != 4 ||
		got.Left["no-weight"] != 1 {
		t.Errorf("coverage %+v", got)
	}
	reader, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	account, err := reader.Explain(t.Context(), newestID(0), repute.At{Finality: repute.Latest}, nil)
	ok(t, err)
	if account.Result.Sourced == nil || account.Result.Sourced.Raters != 4 ||
		account.Contributions[0].Sources[0] != "club" {
		t.Errorf("it rests on %+v: %+v", account.Result.Sourced, account.Contributions[0])
	}
	c.set(func(c *club) { c.members = persons(31, 34) })
	advance(t, l, db, 20)
	if now := newest(t, db, 0); now.Score >= first.Score {
		t.Errorf("%s after one lost its credential, %s before", now.Score, first.Score)
	}
	replayAll(t, db)
}

// While a source does not answer the epoch waits, no longer than to the end of the next one. Then what it said before
// counts for as long as it allows, and silence is never "no".
func TestEpochWaitsForSources(t *testing.T) {
	t.Parallel()
	l, db, c := clubbed(t)
	before := settle(t, db, 9, 10)
	score := newest(t, db, 0)
	c.set(func(c *club) { c.fails = errors.New("no route to it") })
	asked := c.times()
	l.pad(20)
	l.store(t, db, 20)
	await(t, "the next question", func() bool { return c.times() > asked })
	time.Sleep(100 * time.Millisecond)
	if r, err := scoredb.ReadRun(t.Context(), db, 9, 0); err != nil || r.Run != before.Run || c.times() != asked+1 {
		t.Fatalf("run %d, %v after %d questions: the epoch did not wait", r.Run, err, c.times()-asked)
	}
	run := advance(t, l, db, 30)
	if states := statesOf(t, run); states[0].Status != source.StatusIncomplete || states[0].Reason != "no route to it" {
		t.Errorf("readings %+v", states)
	}
	if now := newest(t, db, 0); now.Status != repute.Rated || score.Score-now.Score > 1000 {
		t.Errorf("%s %s by the last readings, %s before", now.Status, now.Score, score.Score)
	}
	l.later = 48 * time.Hour // longer than keepDays
	advance(t, l, db, 40)
	advance(t, l, db, 50)
	if now := newest(t, db, 0); now.Status != repute.Unrated {
		t.Errorf("%s by readings that are too old", now.Status)
	}
	c.set(func(c *club) { c.fails = nil })
	run = advance(t, l, db, 60)
	if now := newest(t, db, 0); now.Status != repute.Rated || statesOf(t, run)[0].Status != source.StatusOK {
		t.Errorf("%s after the source answers again", now.Status)
	}
	replayAll(t, db)
}

// statesOf is how the readings of a run went.
func statesOf(t *testing.T, run scoredb.Run) (states []source.State) {
	t.Helper()
	ok(t, json.Unmarshal([]byte(run.Readings), &states))
	return states
}

// A source that is not what was declared gives nothing, at once.
func TestSourceThatIsOff(t *testing.T) {
	t.Parallel()
	l, db, c := clubbed(t)
	settle(t, db, 9, 10)
	c.set(func(c *club) { c.status = source.StatusOff })
	run := advance(t, l, db, 20)
	if now := newest(t, db, 0); now.Status != repute.Unrated || statesOf(t, run)[0].Reason != "as the test has it" {
		t.Errorf("%s with readings %s", now.Status, run.Readings)
	}
	replayAll(t, db)
}

// Without a policy of sources reviewed writers are bounded as class B is in the policy that this project comes with.
func TestBoundsOfWritersWithoutAPolicy(t *testing.T) {
	t.Parallel()
	p, err := source.Default()
	ok(t, err)
	var none *graph.Credits
	writer := repute.TrustRoot{Address: person(1), Class: repute.ReviewedWriter, Weight: 1}
	rules := none.WithReviewedWriters([]repute.TrustRoot{writer}).Rules
	b := p.Classes[source.ClassB]
	for name, got := range map[string]flow.SourceBounds{"class": rules.Classes[0].SourceBounds,
		"source": rules.Sources[0].SourceBounds} {
		if source.Bounds(got) != b.Bounds {
			t.Errorf("%s %+v, want %+v", name, got, b.Bounds)
		}
	}
	if source.Bounds(rules.All) != p.All || rules.Classes[0].Rater != b.Weight {
		t.Errorf("all %+v, rater %v, want %+v, %v", rules.All, rules.Classes[0].Rater, p.All, b.Weight)
	}
}
