package wallet_test

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"testing"

	"repute"
	"repute/internal/killtest"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/store"
)

// errand is what a process is to send.
type errand struct {
	Database string
	Chain    wallet.ChainConfig
	Intent   transaction.Intent
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
	for {
		if _, err = w.Send(ctx, e.Intent); !errors.Is(err, repute.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
}

// TestSendKilled kills the sending process with -9 at each of its requests in turn, before
// or after the node had it, and has one transaction on the chain in the end.
func TestSendKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var child *exec.Cmd
	var count, at int
	strike := func(when bool) {
		if when && child != nil {
			_ = child.Process.Kill()
		}
	}
	// Odd rounds strike before the node has the request, even ones after it. Requests run at once, also those that the
	// process before left behind, so that the number of a round may be passed by: later ones strike as well.
	url := w.proxy(func(string) *message {
		mu.Lock()
		defer mu.Unlock()
		if count++; at%2 == 1 && count >= (at+1)/2 {
			strike(true)
			return &message{Error: []byte(`{"code":-32000,"message":"lost"}`)}
		}
		return nil
	}, func(string, *message) {
		mu.Lock()
		defer mu.Unlock()
		strike(at%2 == 0 && count >= at/2)
	})
	work := errand{w.url, w.config(url), w.pay("one", "60")}
	w.mining()
	killed := 0
	for round := 1; round <= 100; round++ {
		next, err := killtest.Command(t.Context(), work)
		ok(t, err)
		mu.Lock()
		count, at, child = 0, round, next
		err = child.Start()
		mu.Unlock()
		ok(t, err)
		if err := child.Wait(); err == nil {
			break
		} else if exit, is := err.(*exec.ExitError); !is || exit.Exited() {
			t.Fatalf("round %d was not killed: %v", round, err)
		}
		killed++
	}
	if txs := w.transactions(); killed < 16 || len(txs) != 1 || w.paid() != 60 || w.nonce() != 1 {
		t.Errorf("%d transactions, %d wei, nonce %d after %d kills", len(txs), w.paid(), w.nonce(), killed)
	}
	t.Logf("%d processes killed", killed)
}
