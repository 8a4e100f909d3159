package indexer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
)

// started runs a follower until the end of the test, which wants no error of it.
func started(t *testing.T, f *Follower) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// logText collects log lines; it is safe for concurrent use.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			return true
		}
	}
	return false
}

func (l *logText) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestWatchdog(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 41)
	w.grow(10)
	db, reg := openStore(t), prometheus.NewRegistry()
	var logged logText
	started(t, follow(t, db, c, Options{Stall: 300 * time.Millisecond, Metrics: NewMetrics(reg), Log: logged.logger()}))
	eventually(t, "indexed", func() bool { return cursorOf(t, db).Number == 10 })
	for round, fault := range []rpctest.Answer{{Error: &rpctest.Error{Code: -32000, Message: "no"}}, {Hang: true}} {
		undo := c.Inject(rpctest.On("eth_getLogs", rpctest.Always(fault)))
		w.grow(5)
		eventually(t, "the alarm is raised", func() bool {
			return metric(t, reg, "repute_chain_stalled") == 1 && logged.has("level=ERROR", "chain stalled") &&
				strings.Contains(status(t, db).LastError, "stalled: block")
		})
		undo()
		if fault.Hang { // nothing but its time limit ends such a question
			break
		}
		eventually(t, "the alarm ends", func() bool {
			return metric(t, reg, "repute_chain_stalled") == 0 && status(t, db).LastError == "" &&
				cursorOf(t, db).Number == uint64(15+5*round)
		})
	}
}

// A chain that has nothing new, or whose node lags, is not stalled.
func TestWatchdogKeepsQuiet(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 42).grow(10)
	db, reg := openStore(t), prometheus.NewRegistry()
	started(t, follow(t, db, c, Options{Stall: 50 * time.Millisecond, Metrics: NewMetrics(reg)}))
	eventually(t, "indexed", func() bool { return cursorOf(t, db).Number == 10 })
	c.ServeHead(4)
	asked := c.Calls("eth_chainId")
	eventually(t, "many looks", func() bool { return c.Calls("eth_chainId") > asked+20 })
	if n := metric(t, reg, "repute_chain_stalled"); n != 0 || status(t, db).LastError != "" {
		t.Errorf("stalled is %v, the status says %q", n, status(t, db).LastError)
	}
}

func TestUpgradeWarns(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Tx(repute.Upgraded{Implementation: rpctest.Account(1)}))
	c.MineEmpty(300)
	db, reg := openStore(t), prometheus.NewRegistry()
	var logged logText
	f := follow(t, db, c, Options{Metrics: NewMetrics(reg), Log: logged.logger()})
	catchUp(t, f)
	if !logged.has("level=INFO", "registry was upgraded", strings.ToLower(rpctest.Account(1).Hex())) {
		t.Error("the first implementation is not in the log")
	}
	c.Mine(c.Tx(repute.Upgraded{Implementation: rpctest.Account(2)}))
	catchUp(t, f)
	if !logged.has("level=WARN", "registry was upgraded", strings.ToLower(rpctest.Account(2).Hex())) {
		t.Error("an upgrade near the head was not warned of")
	}
	if n := metric(t, reg, "repute_upgrades_total"); n != 2 {
		t.Errorf("%v upgrades counted, want 2", n)
	}
	if got := dump(t, db); strings.Count(got, fmt.Sprintf(`"kind" : %d,`, repute.KindUpgraded)) != 2 {
		t.Error("the upgrades are not among the events")
	}
}

func TestWakeUp(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 43)
	w.grow(10)
	db := openStore(t)
	wake := make(chan struct{}, 1)
	f := follow(t, db, c, Options{Wake: wake})
	f.poll.fixed = time.Hour
	started(t, f)
	eventually(t, "indexed", func() bool { return cursorOf(t, db).Number == 10 })
	for n := uint64(11); n < 15; n++ {
		w.grow(1)
		wake <- struct{}{}
		eventually(t, "woken", func() bool { return cursorOf(t, db).Number == n })
	}
	w.fork(13, 1) // the same height
	wake <- struct{}{}
	eventually(t, "woken by a sibling", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
}

// The node that is asked for the head may be behind the one that announced it.
func TestWakeUpTooEarly(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 45)
	w.grow(10)
	db := openStore(t)
	wake := make(chan struct{}, 1)
	f := follow(t, db, c, Options{Wake: wake})
	f.poll.fixed = time.Hour
	started(t, f)
	eventually(t, "indexed", func() bool { return cursorOf(t, db).Number == 10 })
	looks := c.Calls("eth_chainId")
	wake <- struct{}{}
	eventually(t, "more than one look", func() bool { return c.Calls("eth_chainId") > looks+2 })
}

// Where a node names no final block, the chain's depth counts instead.
func TestFinalityDepth(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 44)
	w.grow(60)
	db := openStore(t)
	f := follow(t, db, c, Options{Depth: 12})
	catchUp(t, f)
	if s := status(t, db); s.Finalized != 48 {
		t.Errorf("final up to %d, want 48", s.Finalized)
	}
	w.fork(50, 15) // head 65
	if n := catchUp(t, f); n != 1 {
		t.Errorf("%d reorganizations, want 1", n)
	}
	catchUp(t, f)
	wantFresh(t, db, c)
	before := dump(t, db)
	w.fork(40, 30)
	if err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), repute.ErrFinalized.Error()) {
		t.Errorf("Run: %v, want ErrFinalized", err)
	}
	if dump(t, db) != before {
		t.Error("the index changed")
	}
	c.Finalize(3, 2) // a node that says it itself knows better
	other := openStore(t)
	catchUp(t, follow(t, other, c, Options{Depth: 12}))
	if s := status(t, other); s.Finalized != 2 {
		t.Errorf("final up to %d, want the node's own 2", s.Finalized)
	}
}

// A node that calls each of its heads final, as development nodes do, has no finality: a
// reorganization of one block is followed, and the depth is all that is final. That is said once.
func TestFinalHeadIsNoFinality(t *testing.T) {
	t.Parallel()
	for configured, want := range map[uint64]uint64{0: 44, 10: 290} {
		c := rpctest.New(t, rpctest.Options{})
		w := newWorld(c, 45)
		logged := new(strings.Builder)
		f := follow(t, openStore(t), c, Options{Depth: configured, Log: slog.New(slog.NewTextHandler(logged, nil))})
		grow := func(n int) {
			w.grow(n)
			head := c.Head().Number()
			c.Finalize(head, head)
			catchUp(t, f)
		}
		for range 10 {
			grow(1)
			w.fork(c.Head().Number()-1, 0)
			grow(1)
		}
		grow(int(300 - c.Head().Number()))
		wantCursor(t, f.db, c.Head())
		if s := status(t, f.db); s.Finalized != want {
			t.Errorf("depth %d: finalized %d, want %d", configured, s.Finalized, want)
		}
		if n := strings.Count(logged.String(), "which is not finality"); n != 1 {
			t.Errorf("said %d times, want once:\n%s", n, logged)
		}
	}
}

// nudges is a Verifying that counts.
type nudges struct {
	mu    sync.Mutex
	n     int
	lease store.Lease
	ended bool
}

func (v *nudges) Run(ctx context.Context, l store.Lease, nudge <-chan struct{}) error {
	v.mu.Lock()
	v.lease = l
	v.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			v.mu.Lock()
			defer v.mu.Unlock()
			v.ended = true
			return nil
		case <-nudge:
			v.mu.Lock()
			v.n++
			v.mu.Unlock()
		}
	}
}

func (v *nudges) seen() (int, store.Lease) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.n, v.lease
}

func TestVerifierIsNudged(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	db, v, reg := openStore(t), &nudges{}, prometheus.NewRegistry()
	f := follow(t, db, c, Options{Verifier: v, Metrics: NewMetrics(reg)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "indexed", func() bool { return cursorOf(t, db).Number == 1 })
	if n, lease := v.seen(); n != 0 || lease.Name != "chain:31337" {
		t.Errorf("%d nudges under lease %q before anything was missing", n, lease.Name)
	}
	c.MapLogs(rpctest.Drop(func(l types.Log) bool { return l.BlockNumber == 2 }))
	c.Mine(c.Feedback(0, rpctest.Account(2), 1, 5, "t"))
	c.Mine(c.Feedback(0, rpctest.Account(2), 2, 5, "t"))
	eventually(t, "nudged", func() bool { n, _ := v.seen(); return n > 0 })
	cancel()
	if err := <-done; err != nil || !v.ended {
		t.Errorf("Run: %v, the verifier ended: %t", err, v.ended)
	}
	if n := metric(t, reg, "repute_waiting_events_total"); n != 1 {
		t.Errorf("%v waiting events counted, want 1", n)
	}
}
