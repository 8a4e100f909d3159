package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/rootdb"
	"repute/trust/engine"
	"repute/trust/source"
)

// abroad is a club on another chain, which can be asked or not. It keeps what it was told of the past.
type abroad struct {
	*club
	reaches map[uint64]bool
	past    chan source.Past
}

func (a *abroad) Reaches(chain uint64) bool { return a.reaches[chain] }

func (a *abroad) Read(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source,
	raters []common.Address,
	past source.Past) ([]source.Reading, error) {
	select {
	case a.past <- past:
	default:
	}
	return a.club.Read(ctx, chain, at, sources, raters, past)
}

// A source whose home is another chain counts where that chain and the scored one can be asked, and the reader is told
// what the last run found.
func TestSourceOfAnotherChain(t *testing.T) {
	t.Parallel()
	policy, err := source.Parse([]byte(strings.Replace(testPolicy, "homes: [{chain: 9", "homes: [{chain: 77", 1)))
	ok(t, err)
	for name, reaches := range map[string]map[uint64]bool{"home": {77: true}, "none": {}, "both": {9: true, 77: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(32)
			db, _ := l.fresh(t)
			ok(t, rootdb.AddRoots(t.Context(), db, l.chain.ID, repute.DefaultRoots, nil, true)) // none
			s := l.state()
			l.mine(s, s.mint(person(20))...)
			for i := range 4 {
				l.mine(s, s.rate(0, person(30+i), 90))
			}
			l.pad(10)
			l.store(t, db, 10)
			a := &abroad{club: &club{members: persons(30, 34)}, reaches: reaches, past: make(chan source.Past, 9)}
			startWith(t, db, engine.EngineOptions{Exact: true, Sources: policy, Ask: a})
			run := settle(t, db, 9, 10)
			asked := run.Sources != common.Hash{}
			if asked != (name == "both") || (newest(t, db, 0).Status == repute.Rated) != asked {
				t.Fatalf("asked %t, %s", asked, newest(t, db, 0).Status)
			}
			if !asked {
				return
			}
			advance(t, l, db, 20)
			first, second := <-a.past, <-a.past
			if len(first.Credentials) != 0 || len(second.Credentials) != 4 || len(second.States) != 1 {
				t.Errorf("told %+v and %+v", first, second)
			}
		})
	}
}

// An engine without an endpoint of the home keeps what an engine with one found, for as long as the policy allows.
func TestEngineWithoutEndpointOfTheHome(t *testing.T) {
	t.Parallel()
	policy, err := source.Parse([]byte(strings.Replace(testPolicy, "homes: [{chain: 9", "homes: [{chain: 77", 1)))
	ok(t, err)
	found := func(r []source.Reading) []source.Reading {
		for i := range r {
			r[i].Chain = 77
			for j := range r[i].Credentials {
				r[i].Credentials[j].Chain = 77
			}
		}
		return r
	}
	l, db, c := clubbed(t)
	stopEngines(t, db, c)
	c.set(func(c *club) { c.change = found })
	start := func(reaches map[uint64]bool) func() {
		a := &abroad{club: c, reaches: reaches, past: make(chan source.Past, 9)}
		return startWith(t, db, engine.EngineOptions{Exact: true, Sources: policy, Ask: a})
	}
	c.stop = start(map[uint64]bool{9: true, 77: true})
	if held := credentialsOf(t, db, advance(t, l, db, 20)); len(held) != 4 {
		t.Fatalf("%d credentials", len(held))
	}
	stopEngines(t, db, c)
	c.stop = start(map[uint64]bool{9: true})
	asked := c.times()
	run := advance(t, l, db, 40) // two epochs at once do not wait
	if state := statesOf(t, run)[0]; len(credentialsOf(t, db, run)) != 4 || state.Kept != 4 || state.Chain != 77 ||
		state.Status != source.StatusIncomplete || !strings.Contains(state.Reason, "no endpoint of chain 77") {
		t.Errorf("readings %s", run.Readings)
	}
	if newest(t, db, 0).Status != repute.Rated || c.times() != asked {
		t.Errorf("%s after %d questions", newest(t, db, 0).Status, c.times()-asked)
	}
	replayAll(t, db)
	l.later = 48 * time.Hour // longer than keepDays
	if run = advance(t, l, db, 60); run.Sources != policy.Hash() || newest(t, db, 0).Status != repute.Unrated {
		t.Errorf("%s after keepDays", newest(t, db, 0).Status)
	}
}
