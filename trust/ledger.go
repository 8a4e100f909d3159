package trust

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"repute"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Ledger holds the records of all agents of a chain as of one block, in about twenty bytes
// a row, so that all can be scored in one pass. Adding is for one goroutine; scoring only
// reads and may run many times.
type Ledger struct {
	w      *flow.Weights
	l      *accountBuilder
	block  repute.Block
	agents []page
	// Accounts are cut into pages of one list: millions of small lists would cost more
	// than what is in them.
	records [][]rating.Record
}

// page is one agent's place in a ledger.
type page struct {
	agent      repute.AgentID
	owner      flow.Node
	excluded   uint32
	list       uint32 // of Ledger.records
	first, end uint32 // in the list
}

// NewLedger makes an empty ledger as of a block.
func NewLedger(w *flow.Weights, at repute.Block, p *rating.Params) *Ledger {
	return &Ledger{w: w, l: newAccountBuilder(w, p), block: at}
}

// listSize is how many records are in one list; a longer account has one of its own.
const listSize = 1 << 20

// Add adds an agent. The evidence's block and weights are replaced by those of the ledger;
// it has no related agents.
func (l *Ledger) Add(e Evidence) {
	e.Block = l.block
	a := l.l.build(&e)
	last := len(l.records) - 1
	if last < 0 || len(l.records[last])+len(a.records) > cap(l.records[last]) {
		l.records = append(l.records, make([]rating.Record, 0, max(listSize, len(a.records))))
		last++
	}
	first := len(l.records[last])
	l.records[last] = append(l.records[last], a.records...)
	l.agents = append(l.agents, page{e.Agent, a.owner, uint32(a.excluded), uint32(last), uint32(first),
		uint32(len(l.records[last]))})
}

// account is the evidence about the i-th agent.
func (l *Ledger) account(i int) account {
	p := &l.agents[i]
	return account{owner: p.owner, records: l.records[p.list][p.first:p.end], excluded: int(p.excluded)}
}

// Score evaluates every agent, on as many goroutines as there are processors: each result
// is that of the function Score with the same evidence without related agents. use is called once for each agent, from
// several goroutines and in no particular order; the result's lists are only valid until it returns. Score ends early
// with ctx's error.
func (l *Ledger) Score(ctx context.Context, use func(*Result)) error {
	const share = 256 // how many agents a goroutine takes at a time
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			s := NewScorer(l.w, l.l.p)
			var r Result
			for ctx.Err() == nil {
				first := int(next.Add(share)) - share
				if first >= len(l.agents) {
					return
				}
				for i := first; i < min(first+share, len(l.agents)); i++ {
					s.evaluate(l.account(i), l.block, nil)
					s.lacking = s.lacking[:0]
					s.result(&r)
					r.Agent = l.agents[i].agent
					use(&r)
				}
			}
		})
	}
	group.Wait()
	return ctx.Err()
}
