package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
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

func (a *abroad) Read(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source, raters []common.Address,
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
			ok(t, trustdb.AddRoots(t.Context(), db, l.chain.ID, repute.DefaultRoots, nil, true)) // none
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
