package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/trust/engine"
	"repute/trust/explain"
	"repute/trust/replay"
	"repute/trust/source"
)

// policyWith is the policy of the tests with one text in place of another.
func policyWith(t *testing.T, old, instead string) *source.Policy {
	t.Helper()
	text := strings.Replace(testPolicy, old, instead, 1)
	if text == testPolicy {
		t.Fatalf("%q is no part of the policy", old)
	}
	p, err := source.Parse([]byte(text))
	ok(t, err)
	return p
}

// credentialsOf are the stored credentials of a run.
func credentialsOf(t *testing.T, db *store.DB, run scoredb.Run) []source.Credential {
	t.Helper()
	body, err := scoredb.ReadInput(t.Context(), db, run.Credentials)
	ok(t, err)
	list, err := source.Decode(body)
	ok(t, err)
	return list
}

// Two engines with different policies, as in a rolling upgrade, do not make runs against each other: the one that was
// started last decides, and both make the next epoch's run by its policy.
func TestTwoEnginesOfDifferentSources(t *testing.T) {
	t.Parallel()
	l, db, c := clubbed(t)
	first := settle(t, db, 9, 10)
	other := policyWith(t, "usd: 50", "usd: 60")
	startWith(t, db, engine.EngineOptions{Exact: true, Sources: other, Ask: c})
	await(t, "a run by the other policy", func() bool {
		run, err := scoredb.ReadRun(t.Context(), db, 9, 0)
		ok(t, err)
		return run.Sources == other.Hash()
	})
	time.Sleep(300 * time.Millisecond) // both engines have looked by then
	if run := settle(t, db, 9, 10); run.Run != first.Run+1 || run.Sources != other.Hash() {
		t.Errorf("run %d by policy %s", run.Run, run.Sources)
	}
	if run := advance(t, l, db, 20); run.Run != first.Run+2 || run.Sources != other.Hash() {
		t.Errorf("run %d by policy %s at the next epoch", run.Run, run.Sources)
	}
	if s := final(t, db, 0); s.Sources != other.Hash() || s.Credentials == (common.Hash{}) {
		t.Errorf("the score names %s and %s", s.Sources, s.Credentials)
	}
	replayAll(t, db)
}

// final is the final score of an agent.
func final(t *testing.T, db *store.DB, agent uint64) repute.Score {
	t.Helper()
	s, _, err := query.ScoreOf(t.Context(), db, newestID(agent), repute.At{Finality: repute.Finalized})
	ok(t, err)
	return s
}

// A changed policy is named by the final scores that are computed by it, also where nothing else changes in them, and
// pins of either are made again.
func TestScoresAcrossPolicies(t *testing.T) {
	t.Parallel()
	_, db, c := clubbedWith(t, engine.EngineOptions{})
	run := settle(t, db, 9, 10)
	before := final(t, db, 0)
	stopEngines(t, db, c)
	other := policyWith(t, "usd: 50", "usd: 60")
	startWith(t, db, engine.EngineOptions{Sources: other, Ask: c})
	await(t, "a closed run by the other policy", func() bool {
		closed, err := scoredb.ReadClosedRun(t.Context(), db, 9)
		ok(t, err)
		return closed.Run > run.Run
	})
	after := final(t, db, 0)
	if before.Sources == after.Sources || after.Sources != other.Hash() || before.Score != after.Score {
		t.Errorf("%s by %s before, %s by %s after", before.Score, before.Sources, after.Score, after.Sources)
	}
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	for _, s := range []repute.Score{before, after} {
		pin := query.ScorePin{Agent: s.Agent, Block: s.Block.Number, Params: s.Params, Tags: s.Tags, Roots: s.Roots,
			Links: s.Links, Sources: s.Sources, Credentials: s.Credentials, Evidence: s.Evidence,
			Outcome: replay.HashInput(s.Result), VerifiedTo: s.VerifiedTo}
		if again, err := r.ReplayPinned(t.Context(), pin); err != nil || again.Run != s.Run ||
			again.Sources != s.Sources {
			t.Errorf("run %d, made again %d: %v", s.Run, again.Run, err)
		}
		pin.Credentials = common.Hash{1}
		if _, err := r.ReplayPinned(t.Context(), pin); !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("pinned with other credentials: %v", err)
		}
	}
}

// Scores that stay over several epochs, because age alone changes them little, say how the sources were read for the
// newest one, and a final score of the past how they were read for that epoch.
func TestKeptScoresTellOfSourcesNow(t *testing.T) {
	t.Parallel()
	l, db, c := clubbedWith(t, engine.EngineOptions{})
	first := settle(t, db, 9, 10)
	check := func(what string, s repute.Score, want source.Status) {
		t.Helper()
		if states := statesOf(t, scoredb.Run{Readings: s.Readings}); s.Run != first.Run || states[0].Status != want {
			t.Errorf("%s score of run %d: sources %s, want %s", what, s.Run, s.Readings, want)
		}
	}
	c.set(func(c *club) { c.fails = errors.New("no route to it") })
	asked := c.times()
	l.pad(20)
	l.store(t, db, 20)
	await(t, "the first question", func() bool { return c.times() > asked })
	advance(t, l, db, 30)
	check("newest", newest(t, db, 0), source.StatusIncomplete)
	check("final", final(t, db, 0), source.StatusIncomplete)
	c.set(func(c *club) { c.fails = nil })
	advance(t, l, db, 40)
	check("newest", newest(t, db, 0), source.StatusOK)
	check("final", final(t, db, 0), source.StatusOK)
	then, _, err := query.ScoreOf(t.Context(), db, newestID(0), repute.At{Block: 30})
	ok(t, err)
	check("earlier final", then, source.StatusIncomplete)
}

// While an epoch waits for sources, events are scored by the last run's weights, also by an engine that starts in the
// meantime; and a restart does not prolong the wait.
func TestRestartWhileWaiting(t *testing.T) {
	t.Parallel()
	l, db, c := clubbedWith(t, engine.EngineOptions{Exact: true})
	before := settle(t, db, 9, 10)
	c.set(func(c *club) { c.fails = errors.New("no route to it") })
	asked := c.times()
	l.pad(20)
	l.store(t, db, 20)
	await(t, "the first question", func() bool { return c.times() > asked })
	stopEngines(t, db, c)
	startWith(t, db, engine.EngineOptions{Exact: true, Sources: policyWith(t, "usd: 50", "usd: 50.0"), Ask: c})
	s := l.state()
	l.mine(s, s.rate(0, person(31), 10))
	l.store(t, db, 20)
	await(t, "the event's score", func() bool { return newest(t, db, 0).Block.Number == 21 })
	if run, err := scoredb.ReadRun(t.Context(), db, 9, 0); err != nil || run.Run != before.Run {
		t.Fatalf("run %d, %v: the epoch did not wait", run.Run, err)
	}
	run := advance(t, l, db, 30)
	if state := statesOf(t, run)[0]; state.Status != source.StatusIncomplete ||
		state.Complete != uint64(before.Block.Time.Unix()) ||
		state.Kept != 4 {
		t.Errorf("readings %+v", state)
	}
	replayAll(t, db)
}

// A reading that is missing, stands twice, or is about raters and sources that nobody asked about is none: the last
// credentials stay, and the run says why.
func TestForeignReadings(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]source.Reading) []source.Reading{
		"missing": func([]source.Reading) []source.Reading { return nil },
		"twice":   func(r []source.Reading) []source.Reading { return append(r, r...) },
		"foreign source": func(r []source.Reading) []source.Reading {
			r[0].Source = "other"
			return r
		},
		"foreign credential": func(r []source.Reading) []source.Reading {
			r[0].Credentials = []source.Credential{{Source: "other", Version: 1, Rater: person(31)}}
			return r
		},
		"foreign rater": func(r []source.Reading) []source.Reading {
			r[0].Credentials = []source.Credential{{Source: "club", Version: 1, Rater: person(99)}}
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, db, c := clubbed(t)
			settle(t, db, 9, 10)
			score := newest(t, db, 0)
			c.set(func(c *club) { c.change = change })
			l.pad(30) // two epochs at once do not wait
			l.store(t, db, 30)
			run := settle(t, db, 9, 30)
			state := statesOf(t, run)[0]
			if state.Source != "club" || state.Status != source.StatusIncomplete || state.Reason == "" ||
				state.Kept != 4 {
				t.Errorf("readings %s", run.Readings)
			}
			if now := newest(t, db, 0); now.Status != repute.Rated || score.Score-now.Score > 1000 {
				t.Errorf("%s %s, %s before", now.Status, now.Score, score.Score)
			}
		})
	}
}

// What a proxy delegated to when it was seen first is told to the reader for ever, also after an epoch without
// sources and one whose credentials are gone.
func TestPinsAreKept(t *testing.T) {
	t.Parallel()
	l, db, c := clubbedWith(t, engine.EngineOptions{Exact: true})
	pin := common.Address{0xaa}
	c.set(func(c *club) { c.implements = pin })
	settle(t, db, 9, 10)
	advance(t, l, db, 20)
	stopEngines(t, db, c)
	stop := startWith(t, db, engine.EngineOptions{Exact: true}) // without sources
	run := advance(t, l, db, 30)
	if run.Readings != "" || newest(t, db, 0).Status != repute.Unrated {
		t.Errorf("an epoch without sources has readings %s", run.Readings)
	}
	stop()
	c.set(func(c *club) { c.before = nil })
	startWith(t, db, engine.EngineOptions{Exact: true, Sources: policyWith(t, "usd: 50", "usd: 50.0"), Ask: c})
	advance(t, l, db, 40)
	c.set(func(c *club) {
		if len(c.before) != 1 || c.before[0].Implementations["club"] != pin {
			t.Errorf("the reader was told %+v", c.before)
		}
	})
}

// An address that was bound to one person first keeps it, epoch after epoch, where the policy says so.
func TestKeepFirstThroughTheEngine(t *testing.T) {
	t.Parallel()
	policy := policyWith(t, `(bool member)
          arguments: [rater]
          holds: [{value: member, equals: ["true"]}]`, `(uint256 member)
          arguments: [rater]
          holds: [{value: member, notZero: true}]
      person: member
      keepFirst: true`)
	l, db, c := clubbedWith(t, engine.EngineOptions{Exact: true, Sources: policy})
	first := credentialsOf(t, db, settle(t, db, 9, 10))
	c.set(func(c *club) { c.person = common.Hash{1} }) // all were bound again, to one person
	now := credentialsOf(t, db, advance(t, l, db, 20))
	if len(first) != 4 || len(now) != 4 {
		t.Fatalf("%d and %d credentials", len(first), len(now))
	}
	for i := range now {
		if now[i].Subject != first[i].Subject || now[i].Subject == c.person {
			t.Errorf("%s was bound to %s, now to %s", now[i].Rater, first[i].Subject, now[i].Subject)
		}
	}
}

// What the newest runs name of sources is never pruned, and scores are made again from it.
func TestCredentialsAreNotPruned(t *testing.T) {
	t.Parallel()
	l, db, _ := clubbed(t)
	run := settle(t, db, 9, 10)
	ok(t, scoredb.KeepInputs(t.Context(), db, []byte("no run names it")))
	prune(t, db, 0)
	if _, err := scoredb.ReadInput(t.Context(), db, replay.HashInput([]byte("no run names it"))); !errors.Is(err,
		repute.ErrNotFound) {
		t.Errorf("nothing was pruned: %v", err)
	}
	if len(credentialsOf(t, db, run)) != 4 {
		t.Error("credentials are gone")
	}
	advance(t, l, db, 20)
	replayAll(t, db)
	if err := scoredb.RenewInputs(t.Context(), db, common.Hash{1}); !errors.Is(err, repute.ErrGone) {
		t.Errorf("credentials that nobody stored were renewed: %v", err)
	}
}

// Scores by a caller's roots leave the chain's sources out unless they are asked for.
func TestPersonalWithSources(t *testing.T) {
	t.Parallel()
	_, db, _ := clubbed(t)
	settle(t, db, 9, 10)
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	by := explain.Own{Roots: []repute.TrustRoot{{Address: person(77), Weight: repute.RootUnit}}}
	for range 2 { // the second time from the cache
		for _, sourced := range []bool{false, true} {
			by.Sources = sourced
			p, err := r.Personal(t.Context(), newestID(0), by, func() error { return nil })
			ok(t, err)
			if (p.Result.Status == repute.Rated) != sourced || p.Sourced != sourced ||
				(p.Result.Sourced != nil) != sourced {
				t.Errorf("with sources %v: %s, %+v", sourced, p.Result.Status, p.Result.Sourced)
			}
		}
	}
	stored := newest(t, db, 0)
	by.Sources = true
	account, err := r.ExplainPersonal(t.Context(), newestID(0), by, nil, func() error { return nil })
	if ok(t, err); account.Personal.Result.Score != stored.Score {
		t.Errorf("sources alone give %s, beside a root that knows nobody %s", stored.Score,
			account.Personal.Result.Score)
	}
}

// late is a club that answers in time at first, and then only when the time for reading is over.
type late struct {
	*club
	slow atomic.Bool
}

// Read is engine.SourceReader.
func (l *late) Read(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source,
	raters []common.Address,
	past source.Past) ([]source.Reading, error) {
	if l.slow.Load() {
		<-ctx.Done()
	}
	return l.club.Read(ctx, chain, at, sources, raters, past)
}

// What was read until the time for reading sources is over is stored, and the epoch is scored by it.
func TestReadingsAfterTheLimitAreStored(t *testing.T) {
	t.Parallel()
	l, db, c := clubbed(t)
	settle(t, db, 9, 10)
	stopEngines(t, db, c)
	slow := &late{club: c}
	slow.slow.Store(true)
	c.set(func(c *club) { c.members = persons(31, 34) })
	startWith(t, db, engine.EngineOptions{Exact: true, Sources: policyWith(t, "usd: 50", "usd: 50.0"), Ask: slow,
		AskLimit: 50 * time.Millisecond})
	run := advance(t, l, db, 20)
	if held := credentialsOf(t, db, run); len(held) != 3 || statesOf(t, run)[0].Status != source.StatusOK {
		t.Errorf("%d credentials, readings %s", len(held), run.Readings)
	}
}
