package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"repute"
	"repute/internal/bench/harness"
	"repute/internal/chainserver"
	"repute/internal/synth"
)

// Run is one indexing of one history, from the start of the process to the moment
// when the last event is visible in the database.
type Run struct {
	Seconds        float64 `json:"seconds"`
	EventsPerS     float64 `json:"events_per_second"`
	MicrosPerEvent float64 `json:"microseconds_per_event"`
	// Transactions are those that stored blocks of the past, counted by the feed's changes of kind backfilled.
	Transactions int              `json:"transactions"`
	Requests     int64            `json:"requests"` // over HTTP
	Limited      int64            `json:"requests_refused"`
	Calls        map[string]int64 `json:"calls"` // by method, each one of a batch
	// CallsPer2000 leaves out the headers of blocks with logs, which HeadersPer2000 counts:
	// they prove the logs and their times, one a block, fifty in a request.
	CallsPer2000   float64 `json:"calls_per_2000_events"`
	HeadersPer2000 float64 `json:"headers_per_2000_events"`
	AnswersMB      float64 `json:"answers_mb"` // bodies of the node's answers, in 10^6 bytes
	harness.Usage
	SettleSeconds float64 `json:"settle_seconds"` // from then on until nothing was missing or waiting; 0: not waited
	Exact         bool    `json:"dump_equal"`
	Difference    string  `json:"difference,omitempty"`
}

// indexing is what one run needs. The same value makes several runs; keepRows and compare are switched off after the
// first.
type indexing struct {
	*indexBench
	// verifyRate is how many calls a second the index may make to compare itself
	// with the chain, 0 for the product's own limit.
	verifyRate int
	history    *synth.History
	mode       string // of the node: its flag, or clean
	timeout    time.Duration
	settle     time.Duration // how long holes may take to be repaired; 0: there are none
	keepRows   bool          // capture the rows that result
	compare    bool          // with the history's own dump
}

// run indexes the history into a fresh database. captured is nil unless keepRows is set; its caller removes it. The
// dump is compared after the product has ended, so that comparing takes nothing from it.
func (x *indexing) run(ctx context.Context) (r Run, captured *rows, err error) {
	d, err := x.server.Fresh(ctx)
	if err != nil {
		return r, nil, err
	}
	n, err := startNode(x.o.Node, x.o.Dir, x.history, x.mode)
	if err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if err := x.index(ctx, d, n, &r); err != nil {
		return r, nil, err
	}
	if x.compare {
		if r.Difference, err = compareDump(ctx, d, x.history); err != nil {
			return r, nil, err
		}
		r.Exact = r.Difference == ""
	}
	if x.keepRows {
		captured, err = capture(ctx, d)
	}
	return r, captured, err
}

// index runs the product until everything is stored and nothing is missing. The clock stops when the newest event is
// visible; what the node and Postgres did is read right after that, before the waiting for repairs adds to it. The
// processor time and memory of the product are those of its whole life, since the system tells them at its end.
func (x *indexing) index(ctx context.Context, d *harness.Database, n *node, r *Run) (err error) {
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	p, err := d.Serve(ctx, x.o.Program, x.config(d, n))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	// Looking costs the database a little: less often where it takes long.
	every := min(25*time.Millisecond, max(2*time.Millisecond, time.Duration(x.history.Events())*100*time.Nanosecond))
	if err := p.Await(ctx, every, x.stored(d)); err != nil {
		return err
	}
	r.took(time.Since(p.Started), x.history.Events())
	stats, err := n.stats(ctx)
	if err != nil {
		return err
	}
	r.answered(stats, x.history.Events())
	if err := p.Count(ctx, &r.Usage); err != nil {
		return err
	}
	if r.Transactions, err = harness.Value[int](ctx, d,
		"select count(*) from changes where kind = 'backfilled'"); err != nil {
		return err
	}
	if r.SettleSeconds, err = x.settled(ctx, d, p.Process); err != nil {
		return err
	}
	return p.End(&r.Usage)
}

// took sets the time, and what follows from it.
func (r *Run) took(t time.Duration, events int) {
	r.Seconds = t.Seconds()
	r.EventsPerS, r.MicrosPerEvent = float64(events)/t.Seconds(), float64(t.Microseconds())/float64(events)
}

// answered sets what the node was asked. Headers are counted apart because their number follows from the history: one
// for each block with logs, however few requests an indexer makes.
func (r *Run) answered(s chainserver.Stats, events int) {
	r.Requests, r.Limited, r.Calls, r.AnswersMB = s.Requests, s.Limited, s.Calls, float64(s.Bytes)/1e6
	headers := s.Calls["eth_getBlockByNumber"]
	others := -headers
	for _, n := range s.Calls {
		others += n
	}
	r.CallsPer2000, r.HeadersPer2000 = float64(others)*2000/float64(events), float64(headers)*2000/float64(events)
}

// stored reports whether the newest event's block is indexed.
func (x *indexing) stored(d *harness.Database) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		return harness.Value[bool](ctx, d, "select exists (select from chains where cursor_block >= $1)",
			x.history.LastEvent())
	}
}

// settled waits until all events are there and none waits for another one; how
// long it took, or the whole time it was given. That the time was not enough is no
// error: the comparison of the dumps says what is missing.
func (x *indexing) settled(ctx context.Context, d *harness.Database, p *harness.Process) (float64, error) {
	if x.settle == 0 {
		return 0, nil
	}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, x.settle)
	defer cancel()
	err := p.Await(limited, time.Second, func(ctx context.Context) (bool, error) {
		return harness.Value[bool](ctx, d,
			"select (select count(*) from events) >= $1 and not exists (select from pending)",
			x.history.Events())
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		x.Say("events are still missing after %s", x.settle)
		err = nil
	}
	return time.Since(start).Seconds(), err
}

// config is the product's configuration: nothing but the chain, the
// role and what verifyRate says is set.
func (x *indexing) config(d *harness.Database, n *node) string {
	return fmt.Sprintf("database: %q\nroles: [indexer]\n", d.URL) + chainConfig(synth.Chain(), n.url) +
		fmt.Sprintf("    verify_rate: %d\n", x.verifyRate)
}

// chainConfig is the configuration of one chain. Lines with more of its keys may follow.
func chainConfig(c repute.Chain, url string) string {
	return fmt.Sprintf("chains:\n  - name: %s\n    id: %d\n    identity: %q\n    reputation: %q\n    validations: [%q]\n"+
		"    start_block: %d\n    rpc: %q\n", c.Name, c.ID, c.Identity, c.Reputation, c.Validations[0],
		c.StartBlock, url)
}
