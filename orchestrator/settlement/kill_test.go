package settlement_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"
	"time"

	"repute/internal/killtest"
	"repute/internal/paytest"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/store"
	"repute/x402"
)

// errand is what a process is to settle.
type errand struct {
	Database     string
	Chain        wallet.ChainConfig
	Payment      x402.Payment
	Requirements x402.Requirements
}

// TestMain runs the tests, or what a test wants a process to do.
func TestMain(m *testing.M) { killtest.Main(m, runErrand) }

func runErrand(ctx context.Context, e errand) error {
	db, err := store.Open(ctx, e.Database, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	w, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{e.Chain}})
	if err != nil {
		return err
	}
	defer w.Close()
	f, err := settlement.New(db, w, options(e.Chain))
	if err != nil {
		return err
	}
	for {
		s, err := f.Settle(ctx, e.Payment, e.Requirements)
		switch {
		case errors.Is(err, x402.ErrUnknownEnd) && ctx.Err() == nil:
			continue
		case err != nil:
			return err
		case !s.Success:
			return fmt.Errorf("not settled: %s: %s", s.ErrorReason, s.ErrorText)
		}
		return nil
	}
}

// relay passes requests on to the chain, and calls a function before and after each.
func (w *world) relay(t *testing.T, before, after func()) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		before()
		res, err := http.Post(w.RPCURL(), "application/json", bytes.NewReader(body))
		if err != nil {
			return
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		after()
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestSettleKilled kills the settling process with -9 at each of its requests in turn, before or
// after the node had it: the payment is settled by one transaction in the end.
func TestSettleKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var child *exec.Cmd
	var count, at int
	strike := func(odd int) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			if odd == 1 {
				count++
			}
			if at%2 == odd && count >= (at+1)/2 && child != nil { // several requests are under way at once
				_ = child.Process.Kill()
			}
		}
	}
	c := w.chain(t, map[string]int{"settler": paytest.SettlerAccount})
	c.RPC = []string{w.relay(t, strike(1), strike(0))}
	r := w.Requirements(10)
	work := errand{w.url, c, w.Pay(t, r), r}
	killed := 0
	for round := 1; round <= 100; round++ {
		next, err := killtest.Command(t.Context(), work)
		ok(t, err)
		said := &bytes.Buffer{}
		next.Stderr = said
		mu.Lock()
		count, at, child = 0, round, next
		err = child.Start()
		mu.Unlock()
		ok(t, err)
		if err := child.Wait(); err == nil {
			break
		} else if exit, is := err.(*exec.ExitError); !is || exit.Exited() {
			t.Fatalf("round %d was not killed: %v: %s", round, err, said)
		}
		killed++
	}
	if killed < 16 || w.paid(t) != 10 || w.sent(t) != 1 {
		t.Errorf("%d units, %d transactions after %d kills", w.paid(t), w.sent(t), killed)
	}
	t.Logf("%d processes killed", killed)
}

// TestReorg: where the block of a settlement is replaced by one without it, the same transaction is
// sent again, and the payment moves once.
func TestReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.chain(t, map[string]int{"settler": paytest.SettlerAccount})
	c.StuckAfter = time.Second // how often confirmed ones are looked at again
	db, err := store.Open(t.Context(), w.url, store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	wl, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{c}})
	ok(t, err)
	t.Cleanup(wl.Close)
	f, err := settlement.New(db, wl, options(c))
	ok(t, err)
	before := w.Head().Number
	r := w.Requirements(10)
	p := w.Pay(t, r)
	first, err := f.Settle(t.Context(), p, r)
	ok(t, err)
	if !first.Success || w.paid(t) != 10 {
		t.Fatalf("%+v", first)
	}
	w.SetPeriod(0)
	depth := int(w.Head().Number - before)
	ok(t, w.Reorg(t.Context(), depth, depth+2))
	ok(t, w.DropPool())
	if w.paid(t) != 0 {
		t.Fatal("the block of the settlement is still there")
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = wl.Run(ctx) })
	defer running.Wait()
	defer stop()
	w.SetPeriod(250 * time.Millisecond)
	for end := time.Now().Add(time.Minute); w.paid(t) != 10 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	again, err := f.Settle(t.Context(), p, r)
	ok(t, err)
	if again.Transaction != first.Transaction || w.paid(t) != 10 || w.sent(t) != 1 {
		t.Errorf("%+v, first %+v: %d units, %d transactions", again, first, w.paid(t), w.sent(t))
	}
}
