package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"repute/devnet"
	"repute/internal/bench/harness"
	"repute/internal/freeport"
)

// FollowOptions say what Follow measures.
type FollowOptions struct {
	Program   harness.Program
	Blocks    int       // made and watched, one a second
	PerSecond int       // events
	Progress  io.Writer // lines for a person; nil: none
}

// What following must reach, from the node's announcement of a block to the first
// REST answer that shows what is in it, and to the first with a score that counts it.
const (
	medianMillis = 300
	p99Millis    = 1000 // blocks come once a second: a later answer would be one block behind
	scoredMillis = 1000
)

// What polling over HTTP must reach, where the node announces nothing.
const (
	pollingMillis = 250
	pollsPerBlock = 2 // questions for the newest block; providers bill each
)

// FollowMeasurements is what Follow found.
type FollowMeasurements struct {
	Blocks  int     `json:"blocks"`
	Events  int     `json:"events"`
	Visible Delays  `json:"visible"` // from the announcement to an answer that counts all ratings of the block
	Scored  Delays  `json:"scored"`  // to one whose score is of the block
	Polls   int     `json:"polls"`   // REST answers read
	PollMS  float64 `json:"poll_ms"` // one of them on average, pauses included: the measurement's own grain
	PeakMB  float64 `json:"peak_rss_mb"`
	CPU     float64 `json:"cpu_seconds"` // of the product, API and trust engine included
	HTTP    Polling `json:"http"`        // the same over HTTP, in a run of its own
}

// Polling is what was measured of a node that is asked over HTTP.
type Polling struct {
	Visible  Delays  `json:"visible"`
	Polls    int64   `json:"head_polls"` // requests that asked the node for its newest block
	PerBlock float64 `json:"head_polls_per_block"`
}

// Delays are milliseconds, one for each block whose announcement was heard. All are 0 where there is none.
type Delays struct {
	Median  float64   `json:"median_ms"`
	P90     float64   `json:"p90_ms"`
	P99     float64   `json:"p99_ms"`
	Longest float64   `json:"longest_ms"`
	All     []float64 `json:"all_ms"` // in the order of the blocks
}

// Follow measures how soon a block's events are visible: a devnet makes a block of
// ratings every second, the product follows it over WebSocket and scores it, and its
// REST API is asked all the time. A second run follows it over HTTP.
func Follow(ctx context.Context, o FollowOptions) (r harness.Report, err error) {
	r = harness.Report{Name: "follow", Config: map[string]any{"blocks": o.Blocks, "events_per_second": o.PerSecond}}
	return harness.OnServer(ctx, harness.Progress{To: o.Progress}, r, false, func(server *harness.Server) (_ any,
		_ []harness.Target, err error) {
		dn, err := devnet.Start(ctx, devnet.Options{Seed: "bench"})
		if err != nil {
			return nil, nil, err
		}
		defer func() { err = errors.Join(err, dn.Close()) }()
		f := &follow{o: o, server: server, chain: dn}
		if err := f.prepare(ctx); err != nil {
			return nil, nil, err
		}
		m, err := f.run(ctx, dn.WSURL(), func() {})
		if err == nil {
			m.HTTP, err = f.polling(ctx)
		}
		return m, m.targets(), err
	})
}

// targets judges what was measured.
func (m *FollowMeasurements) targets() []harness.Target {
	return []harness.Target{harness.AtMost("announced to visible, median", m.Visible.Median, medianMillis, "ms"),
		harness.AtMost("announced to visible, p99", m.Visible.P99, p99Millis, "ms"),
		harness.AtMost("announced to scored, p99", m.Scored.P99, scoredMillis, "ms"),
		harness.AtMost("over HTTP: announced to visible, median", m.HTTP.Visible.Median, pollingMillis, "ms"),
		harness.AtMost("over HTTP: polls per block", m.HTTP.PerBlock, pollsPerBlock, "")}
}

// polling is a run over HTTP, with the polls of the blocks that are watched.
func (f *follow) polling(ctx context.Context) (p Polling, err error) {
	var polls atomic.Int64
	url, stop, err := countPolls(f.chain.RPCURL(), &polls)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	m, err := f.run(ctx, url, func() { polls.Store(0) })
	if err != nil {
		return p, err
	}
	p = Polling{Visible: m.Visible, Polls: polls.Load()}
	p.PerBlock = float64(p.Polls) / float64(m.Blocks)
	return p, nil
}

// follow is one call of Follow. Its runs share the devnet and its ratings: the second indexes what the first one saw,
// on a database of its own.
type follow struct {
	o      FollowOptions
	server *harness.Server
	chain  *devnet.Devnet
	rated  int // ratings of the watched agent so far, of all runs
}

// run measures over one endpoint, and calls begun when the first watched block comes next. Roots are added before the
// product starts, and blocks are watched only once a score exists: what a new index does first is not measured.
func (f *follow) run(ctx context.Context, endpoint string, begun func()) (m FollowMeasurements, err error) {
	d, err := f.server.Fresh(ctx)
	if err != nil {
		return m, err
	}
	address, err := freeport.Of("127.0.0.1:0")
	if err != nil {
		return m, err
	}
	config, err := f.configure(d, address, endpoint)
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(filepath.Dir(config))
	if err := f.addRoots(ctx, config); err != nil {
		return m, err
	}
	p, err := f.o.Program.Start("serve", "--config", config)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	w := newWatch("http://"+address, f.chain)
	if err := w.ready(ctx, p, f.chain.Head().Number); err != nil {
		return m, err
	}
	if err := f.warm(ctx, p, w); err != nil {
		return m, err
	}
	begun() // what was counted while the product started is forgotten
	if m, err = f.measure(ctx, w); err != nil {
		return m, err
	}
	err = p.Stop()
	m.CPU, m.PeakMB = p.CPU().Seconds(), p.PeakMB
	return m, err
}

// agents are rated round-robin; the first one is watched.
const agents = 10

// prepare registers the agents.
func (f *follow) prepare(ctx context.Context) error {
	b := f.chain.Batch()
	for i := range agents {
		b.Register(f.chain.Account(i), fmt.Sprintf("data:application/json,{\"name\":\"agent %d\"}", i))
	}
	_, err := b.Mine(ctx)
	return err
}

// addRoots makes some of the clients roots, so that scores are more than zero. It uses the command as an operator
// would, one process for each.
func (f *follow) addRoots(ctx context.Context, config string) error {
	const roots = 20
	for i := range roots {
		p, err := f.o.Program.Start("roots", "add", f.chain.Account(agents+i).Address.Hex(), "--reason", "rates well",
			"--config", config, "--chain", f.chain.Chain().Name)
		if err != nil {
			return err
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return errors.Join(ctx.Err(), p.Stop())
		}
		if err := p.Failure(); err != nil {
			return err
		}
	}
	return nil
}

// rate makes a block of ratings at the present time, once the second of the one before is over.
func (f *follow) rate(ctx context.Context, n int) (devnet.Mined, error) {
	const clients = 200
	b := f.chain.Batch()
	for i := range f.o.PerSecond {
		b.GiveFeedback(f.chain.Account(agents+i%clients),
			devnet.Rating{Agent: uint64(i % agents), Value: big.NewInt(int64((n + i) % 101)),
				Tag1: "quality", Tag2: "bench", Endpoint: "https://agent.example/a2a"})
	}
	time.Sleep(time.Until(f.chain.Head().Time.Add(time.Second)))
	mined, err := b.MineAt(ctx, time.Now())
	f.rated += (f.o.PerSecond + agents - 1) / agents
	return mined, err
}

// warm makes blocks until one is final and the watched agent has a score: before that
// there are no weights of raters to score by.
func (f *follow) warm(ctx context.Context, p *harness.Process, w *watch) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return p.Await(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, err := f.rate(ctx, 0); err != nil {
			return false, fmt.Errorf("make block: %w", err)
		}
		v, err := w.ask(ctx)
		return v.scored > 0, err
	})
}

// measure makes the blocks and waits until each is visible. The blocks come at their pace whether or not earlier ones
// are visible. On a failure the watch is stopped as well, and its error is a part of the result.
func (f *follow) measure(ctx context.Context, w *watch) (m FollowMeasurements, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(f.o.Blocks)*time.Second+time.Minute)
	defer cancel()
	stop, err := w.start(ctx)
	if err != nil {
		return m, err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := range f.o.Blocks {
		<-tick.C
		mined, err := f.rate(ctx, n)
		if err != nil {
			return m, errors.Join(fmt.Errorf("make block: %w", err), stop())
		}
		w.expect(mined.Number, f.rated)
	}
	if err := errors.Join(w.await(ctx, f.chain.Head().Number), stop()); err != nil {
		return m, err
	}
	m = w.measurements()
	m.Blocks, m.Events = f.o.Blocks, f.o.Blocks*f.o.PerSecond
	return m, nil
}

// configure writes the product's configuration.
func (f *follow) configure(d *harness.Database, address, endpoint string) (path string, err error) {
	return harness.WriteConfig(fmt.Sprintf(
		"database: %q\nroles: [indexer, trust, api]\nlisten: %q\nrate: -1\n",
		d.URL, address) + chainConfig(f.chain.Chain(), endpoint))
}

// delaysOf summarizes milliseconds.
func delaysOf(all []float64) Delays {
	return Delays{Median: harness.Median(all), P90: harness.Quantile(all, 0.90), P99: harness.Quantile(all, 0.99),
		Longest: harness.Quantile(all, 1), All: all}
}
