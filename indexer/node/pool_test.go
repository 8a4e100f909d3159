package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/contracts"
	"repute/indexer/node/jsonrpc"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
)

// poolOf makes a Pool over the URLs whose endpoints are never paused for long.
func poolOf(t *testing.T, o PoolOptions, urls ...string) *Pool {
	t.Helper()
	var nodes []*Node
	for _, url := range urls {
		n, err := New(url, Options{Timeout: 5 * time.Second, OpenMin: time.Millisecond, OpenMax: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	if o.ChainID == 0 {
		o.ChainID = 31337
	}
	p := NewPool(nodes, o)
	t.Cleanup(p.Close)
	return p
}

// twoOf is a chain of n blocks with an agent, behind two endpoints.
func twoOf(t *testing.T, n int) (a, b *rpctest.Chain) {
	a = rpctest.New(t, rpctest.Options{})
	a.Mine(a.Register(0, rpctest.Account(1), ""))
	a.MineEmpty(n - 1)
	return a, a.Second(t)
}

func wantSpan(t *testing.T, p *Pool, q Query, from *rpctest.Chain) {
	t.Helper()
	span, err := p.Span(t.Context(), q)
	if err != nil {
		t.Errorf("blocks %d..%d: %v", q.From, q.To, err)
	} else if from != nil && span.From != strings.TrimPrefix(from.URL(), "http://") {
		t.Errorf("blocks %d..%d came from %s, not %s", q.From, q.To, span.From, from.URL())
	}
}

func openDB(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{Decode: contracts.Read, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

func TestPoolMovesOn(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 9)
	var log lines
	p := poolOf(t, PoolOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, a.URL(), b.URL())
	for round, dark := range []*rpctest.Chain{a, b, a} {
		dark.GoDark(true)
		for range 10 {
			if _, err := p.Heads(t.Context()); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			wantSpan(t, p, queryOf(a, 1, 9, false), nil)
			if blocks, err := p.Blocks(t.Context(), []uint64{3, 4}); err != nil || len(blocks) != 2 {
				t.Errorf("round %d: %d blocks, %v", round, len(blocks), err)
			}
		}
		dark.GoDark(false)
		for _, m := range p.members { // both work again
			await(t, "recovery", func() bool { _, err := m.refreshHead(t.Context(), 31337); return err == nil })
		}
	}
	a.GoDark(true)
	b.GoDark(true)
	if _, err := p.Heads(t.Context()); err == nil || !jsonrpc.IsTransient(err) || errors.Is(err, repute.ErrConflict) {
		t.Errorf("all dark: %v", err)
	}
	if _, err := p.Span(t.Context(), queryOf(a, 1, 9, false)); err == nil || !jsonrpc.IsTransient(err) {
		t.Errorf("all dark: %v", err)
	}
	if left, back := log.count("paused after failures"), log.count("works again"); left > 5 || back > left {
		t.Errorf("%d warnings that an endpoint is paused, %d that one works again", left, back)
	}
}

// await waits for a condition.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s", what)
		}
	}
}

func TestPoolWrongChain(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 5)
	a.SetChainID(5)
	var log lines
	p := poolOf(t, PoolOptions{Log: slog.New(slog.NewTextHandler(&log, nil))}, a.URL(), b.URL())
	if nodes := p.Nodes(); len(nodes) != 0 {
		t.Errorf("%d nodes are said to serve the chain before any was asked", len(nodes))
	}
	for range 10 {
		wantSpan(t, p, queryOf(b, 1, 5, false), b)
		if h, err := p.Heads(t.Context()); err != nil || h.ChainID != 31337 {
			t.Errorf("heads of chain %d, %v", h.ChainID, err)
		}
	}
	if nodes := p.Nodes(); len(nodes) != 1 || nodes[0] != p.members[1].Node {
		t.Errorf("%d nodes serve the chain", len(nodes))
	}
	if n := log.count("serves chain 5, configured is 31337"); n != 1 {
		t.Errorf("%d warnings about the wrong chain", n)
	}
	b.GoDark(true)
	if _, err := p.Heads(t.Context()); err == nil || errors.Is(err, repute.ErrConflict) || !jsonrpc.IsTransient(err) {
		t.Errorf("one wrong, one dark: %v", err)
	}
	b.GoDark(false)
	b.SetChainID(6)
	p.members[1].recheckChain(t.Context(), 31337)
	for _, ask := range []func() error{
		func() error { _, err := p.Heads(t.Context()); return err },
		func() error { _, err := p.Span(t.Context(), queryOf(a, 1, 5, false)); return err },
	} {
		if err := ask(); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("all wrong: %v, want a conflict", err)
		}
	}
	a.SetChainID(31337)
	p.members[0].requested = time.Time{}
	p.tryIdle(t.Context())
	wantSpan(t, p, queryOf(b, 1, 5, false), a)
}

// What an endpoint lacks is asked of another one, and not of it again.
func TestPoolPassesOver(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limit func(*rpctest.Chain)
		q     [2]uint64
	}{
		"behind":    {func(c *rpctest.Chain) { c.ServeHead(4) }, [2]uint64{3, 9}},
		"pruned":    {refusing(&rpctest.Error{Code: 4444, Message: "pruned history unavailable"}), [2]uint64{1, 4}},
		"no method": {refusing(&rpctest.Error{Code: -32601, Message: "Method not found"}), [2]uint64{1, 4}},
		"small ranges": {func(c *rpctest.Chain) {
			c.Inject(rpctest.LimitRange(2, rpctest.Error{Code: -32602, Message: "block range exceeds 2"}))
		}, [2]uint64{1, 8}},
		"lies about its head": {func(c *rpctest.Chain) {
			c.Inject(rpctest.On("eth_getBlockByNumber", func(call rpctest.Call) *rpctest.Answer {
				if string(call.Params[0]) == `"0x9"` {
					return &rpctest.Answer{}
				}
				return nil
			}))
		}, [2]uint64{1, 9}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := twoOf(t, 9)
			tt.limit(a)
			p := poolOf(t, PoolOptions{}, a.URL(), b.URL())
			q := queryOf(a, tt.q[0], tt.q[1], false)
			if _, err := p.Heads(t.Context()); err != nil {
				t.Error(err)
			}
			for _, m := range p.members { // also the one that would not be asked
				_, _ = p.spanOf(t.Context(), m, q)
			}
			before := a.Calls("eth_getLogs")
			for range 5 {
				wantSpan(t, p, q, b)
			}
			if after := a.Calls("eth_getLogs"); after != before {
				t.Errorf("asked %d times more", after-before)
			}
			if h, err := p.Heads(t.Context()); err != nil || h.Latest.Number != 9 {
				t.Errorf("head %d, %v", h.Latest.Number, err)
			}
		})
	}
}

func refusing(e *rpctest.Error) func(*rpctest.Chain) {
	return func(c *rpctest.Chain) { c.Inject(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{Error: e}))) }
}

// Where no endpoint takes the range, the error is that of the one that takes most.
func TestPoolRangeRefused(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 9)
	a.Inject(rpctest.LimitRange(2, rpctest.Error{Code: -32602, Message: "block range exceeds 2"}))
	b.Inject(rpctest.LimitRange(4, rpctest.Error{Code: -32602, Message: "block range exceeds 4"}))
	p := poolOf(t, PoolOptions{}, a.URL(), b.URL())
	for range 3 {
		if _, err := p.Span(t.Context(), queryOf(a, 1, 8, false)); err == nil || jsonrpc.IsTransient(err) ||
			jsonrpc.RangeHint(err) != 4 {
			t.Errorf("hint %d of %v", jsonrpc.RangeHint(err), err)
		}
	}
	wantSpan(t, p, queryOf(a, 1, 4, false), b)
}

// An answer that does not hold together is the endpoint's fault: another one is asked.
func TestPoolChecksSpans(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 9)
	a.MapLogs(rpctest.Corrupt(rpctest.Every, func(l *types.Log) { l.Removed = true }))
	p := poolOf(t, PoolOptions{}, a.URL(), b.URL())
	for range 20 {
		wantSpan(t, p, queryOf(a, 1, 5, false), b)
	}
	if calls := a.Calls("eth_getLogs"); calls > 15 {
		t.Errorf("the lying endpoint was preferred %d times of 20", calls)
	}
}

func TestPoolPrefersFast(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 9)
	a.Inject(func(rpctest.Call) *rpctest.Answer {
		return &rpctest.Answer{Delay: 20 * time.Millisecond, Honest: true}
	})
	p := poolOf(t, PoolOptions{}, a.URL(), b.URL())
	for range 60 {
		wantSpan(t, p, queryOf(a, 1, 5, false), nil)
	}
	if slow, fast := a.Calls("eth_getLogs"), b.Calls("eth_getLogs"); slow*3 > fast {
		t.Errorf("the slow endpoint was asked %d times, the fast one %d", slow, fast)
	}
	if first := p.Nodes()[0]; first != p.members[1].Node {
		t.Errorf("the healthiest is %s", first.name)
	}
}

func TestPoolAgreed(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 20)
	c := a.Second(t)
	stale, err := poolOf(t, PoolOptions{}, b.URL()).Blocks(t.Context(), []uint64{20, 19, 15})
	if err != nil {
		t.Fatal(err)
	}
	agreed := func(urls ...string) ([]repute.Block, error) {
		return poolOf(t, PoolOptions{}, urls...).Agreed(t.Context(), []uint64{20, 19, 15})
	}
	b.Freeze(true)
	a.Fork(10)
	a.MineEmpty(10)
	if _, err := agreed(a.URL(), b.URL()); err == nil || !jsonrpc.IsTransient(err) {
		t.Errorf("two level endpoints that contradict each other: %v", err)
	}
	for name, urls := range map[string][]string{"majority": {b.URL(), a.URL(), c.URL()}, "alone": {a.URL()}} {
		if got, err := agreed(urls...); err != nil || got[1].Hash == stale[1].Hash {
			t.Errorf("%s: %v, want the new chain", name, err)
		}
	}
	a.MineEmpty(soloLead + 1)
	if got, err := agreed(b.URL(), a.URL()); err != nil || got[1].Hash == stale[1].Hash {
		t.Errorf("one is ahead: %v, want its chain", err)
	}
	a.GoDark(true)
	if got, err := agreed(a.URL(), b.URL()); err != nil || got[1].Hash != stale[1].Hash {
		t.Errorf("only one answers: %v", err)
	}
}

// TestPoolNames: two endpoints of one host are told apart without their keys, and
// what is stored and measured of them holds none.
func TestPoolNames(t *testing.T) {
	t.Parallel()
	a, _ := twoOf(t, 5)
	db := openDB(t)
	registry := prometheus.NewRegistry()
	p := poolOf(t, PoolOptions{DB: db, Owner: "me", Metrics: NewMetrics(registry)}, a.URL()+"/v3/FIRSTKEY",
		a.URL()+"/v3/OTHERKEY?k=QUERY")
	a.Inject(rpctest.Times(4,
		rpctest.Always(rpctest.Answer{Status: 500, Raw: []byte("no /v3/FIRSTKEY or /v3/OTHERKEY?k=QUERY here")})))
	for _, m := range p.members {
		_, _ = m.Heads(t.Context())
	}
	_, _ = p.Heads(t.Context())
	if err := p.save(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := readEndpoints(t.Context(), db, 31337)
	if err != nil || len(list) != 2 || list[0].Name == list[1].Name {
		t.Fatalf("stored %+v, %v", list, err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprint(list, families)
	for _, secret := range []string{"KEY", "QUERY", "v3"} {
		if strings.Contains(shown, secret) {
			t.Errorf("shows %s: %s", secret, shown)
		}
	}
	for _, e := range list {
		if e.Failures == 0 || e.LastError == "" || e.Requests == 0 || e.Kind != "http" ||
			!strings.Contains(shown, e.Name) {
			t.Errorf("health %+v", e)
		}
	}
	for _, name := range []string{"requests_total", "errors_total", "seconds", "in_flight", "state"} {
		if !strings.Contains(shown, "repute_endpoint_"+name) {
			t.Errorf("no metric repute_endpoint_%s", name)
		}
	}
}

// readEndpoints reads the stored health of a chain's endpoints.
func readEndpoints(ctx context.Context, db *store.DB, chainID uint64) (out []repute.Endpoint, err error) {
	err = chaindb.View(ctx, db, "read endpoints", func(ctx context.Context, tx pgx.Tx) error {
		out, err = chaindb.ReadEndpoints(ctx, tx, chainID)
		return err
	})
	return out, err
}
