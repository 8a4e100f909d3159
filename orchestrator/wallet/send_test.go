package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"repute"
	"repute/orchestrator/wallet"
	"repute/store/walletdb"
)

// TestSendOnce asks for one transaction many times, at once and again later.
func TestSendOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	a, db := w.open(w.config())
	b, _ := w.open(w.config())
	var wg sync.WaitGroup
	results := make([]result, 6)
	for i := range results {
		wg.Go(func() { results[i] = <-sending(t.Context(), []*wallet.Wallet{a, b}[i%2], w.pay("one", "60")) })
	}
	wg.Wait()
	results = append(results, <-sending(t.Context(), a, w.pay("one", "60")))
	for _, r := range results {
		ok(t, r.err)
		if r.sent.Hash != results[0].sent.Hash || !r.sent.OK || r.sent.From != w.d.Account(operatorAccount).Address ||
			r.sent.Block == 0 || r.sent.GasUsed == 0 || len(r.sent.Result) == 0 {
			t.Errorf("%+v", r.sent)
		}
	}
	if w.paid() != 60 || w.nonce() != 1 || len(w.transactions()) != 1 {
		t.Errorf("%d wei, nonce %d", w.paid(), w.nonce())
	}
	in, err := walletdb.ReadIntent(t.Context(), db, "one")
	ok(t, err)
	if in.State != walletdb.IntentConfirmed || in.Mined.Hash != results[0].sent.Hash || len(in.Attempts) != 1 ||
		in.Run != "run_1" || in.Agent != "payer" {
		t.Errorf("%+v", in)
	}
	if _, err := a.Send(t.Context(), w.pay("one", "61")); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another transaction: %v", err)
	}
}

// TestSendCutOff ends the caller's context at each request to the endpoint in turn.
func TestSendCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	var mu sync.Mutex
	var count, at int
	var cut context.CancelFunc
	url := w.proxy(func(string) *message {
		mu.Lock()
		defer mu.Unlock()
		if count++; count == at {
			cut()
		}
		return nil
	}, nil)
	for round := 1; ; round++ {
		a, _ := w.open(w.config(url))
		ctx, cancel := context.WithCancel(t.Context())
		mu.Lock()
		count, at, cut = 0, round, cancel
		mu.Unlock()
		sent, err := a.Send(ctx, w.pay("one", "60"))
		cancel()
		if err == nil {
			if !sent.OK || round < 8 {
				t.Errorf("round %d: %+v", round, sent)
			}
			break
		}
		if ctx.Err() == nil || round > 100 {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if w.paid() != 60 || w.nonce() != 1 {
		t.Errorf("%d wei, nonce %d", w.paid(), w.nonce())
	}
}

// TestSendShared has two processes send 100 transactions with one key.
func TestSendShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.owner(treasuryABI.PackSetPolicy(agentKey, true, w.d.Account(operatorAccount).Address, n(100), n(1000), n(0)))
	c := w.config()
	c.Poll = 50 * time.Millisecond
	a, db := w.open(c)
	b, _ := w.open(c)
	w.mining()
	var wg sync.WaitGroup
	work := make(chan int, 100)
	for i := range 100 {
		work <- i
	}
	close(work)
	for i := range 16 {
		wg.Go(func() {
			by := []*wallet.Wallet{a, b}[i%2]
			for j := range work {
				r := <-sending(t.Context(), by, w.pay(fmt.Sprint("i", j), "1"))
				for errors.Is(r.err, repute.ErrUnavailable) && t.Context().Err() == nil { // on a busy machine
					r = <-sending(t.Context(), by, w.pay(fmt.Sprint("i", j), "1"))
				}
				if r.err != nil || !r.sent.OK {
					t.Errorf("%d: %v, %v", j, r.sent.OK, r.err)
				}
			}
		})
	}
	wg.Wait()
	all, err := walletdb.IntentsBetween(t.Context(), db, w.d.Chain().ID, w.d.Account(operatorAccount).Address, 0, 1000)
	ok(t, err)
	for i, in := range all {
		if in.Nonce != uint64(i) || in.State != walletdb.IntentConfirmed {
			t.Errorf("intent %d has nonce %d and is %s", i, in.Nonce, in.State)
		}
	}
	if w.paid() != 100 || w.nonce() != 100 || len(w.transactions()) != 100 {
		t.Errorf("%d wei, nonce %d", w.paid(), w.nonce())
	}
}

// TestSendStuck replaces what no block takes, at its nonce, for at least an eighth more.
func TestSendStuck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config()
	c.StuckAfter = 50 * time.Millisecond
	a, db := w.open(c)
	r := sending(t.Context(), a, w.pay("one", "60"))
	until(t, "two replacements", func() bool {
		in, err := walletdb.ReadIntent(t.Context(), db, "one")
		return err == nil && len(in.Attempts) >= 3 && in.State == walletdb.IntentBroadcast
	})
	w.mining()
	got := <-r
	ok(t, got.err)
	in, err := walletdb.ReadIntent(t.Context(), db, "one")
	ok(t, err)
	for i := 1; i < len(in.Attempts); i++ {
		was, is := in.Attempts[i-1], in.Attempts[i]
		if 8*is.FeeCap.Int64() < 9*was.FeeCap.Int64() || 8*is.TipCap.Int64() < 9*was.TipCap.Int64() ||
			is.Gas != was.Gas {
			t.Errorf("attempt %d: %v after %v", i, is, was)
		}
		if is.FeeCap.Int64()*int64(is.Gas) > in.MaxFee.Int64() {
			t.Errorf("attempt %d may cost more than %s", i, in.MaxFee)
		}
	}
	if txs := w.transactions(); w.paid() != 60 || len(txs) != 1 || txs[0].Hash() != got.sent.Hash ||
		txs[0].Nonce() != 0 {
		t.Errorf("%d wei, %d transactions", w.paid(), len(txs))
	}
}

// TestSendFeeLimit never offers more than the intent allows, and signs nothing where that
// is below the block's fee.
func TestSendFeeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config()
	c.StuckAfter = 20 * time.Millisecond
	a, db := w.open(c)
	in := w.pay("poor", "60")
	in.MaxGasWei = "1000"
	if _, err := a.Send(t.Context(), in); !errors.Is(err, repute.ErrLimited) {
		t.Errorf("below the base fee: %v", err)
	}
	if _, err := walletdb.ReadIntent(t.Context(), db, "poor"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("stored: %v", err)
	}
	s, err := a.Simulate(t.Context(), origin, in.Tx)
	ok(t, err)
	in.ID, in.MaxGasWei = "limited", s.FeeWei
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := sending(ctx, a, in)
	until(t, "the limit", func() bool {
		stored, err := walletdb.ReadIntent(t.Context(), db, "limited")
		if err != nil || len(stored.Attempts) < 2 {
			return false
		}
		last := stored.Attempts[len(stored.Attempts)-1]
		return 9*cost(last)/8 > stored.MaxFee.Int64() // another eighth would pass it
	})
	time.Sleep(3 * c.StuckAfter) // time for the attempt that must not come
	cancel()
	if r := <-waits; !errors.Is(r.err, repute.ErrUnavailable) {
		t.Errorf("nobody mines: %v", r.err)
	}
	stored, err := walletdb.ReadIntent(t.Context(), db, "limited")
	ok(t, err)
	for _, a := range stored.Attempts {
		if cost(a) > stored.MaxFee.Int64() {
			t.Errorf("an attempt for %d of %s", cost(a), stored.MaxFee)
		}
	}
	w.mining()
	if r := <-sending(t.Context(), a, in); r.err != nil || !r.sent.OK {
		t.Errorf("%+v", r)
	}
}

// cost is what an attempt may cost at most, in wei.
func cost(a walletdb.IntentAttempt) int64 { return a.FeeCap.Int64() * int64(a.Gas) }

// TestSendReorg confirms nothing before it is deep enough, and sends again what a
// reorganization threw out.
func TestSendReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config()
	c.Confirmations = 4
	c.StuckAfter = time.Minute // where it is sent again before the pool is emptied, half of that later once more
	a, db := w.open(c)
	r := sending(t.Context(), a, w.pay("one", "60"))
	state := func(want walletdb.IntentState) func() bool {
		return func() bool {
			in, err := walletdb.ReadIntent(t.Context(), db, "one")
			return err == nil && in.State == want
		}
	}
	until(t, "broadcast", state(walletdb.IntentBroadcast))
	mine(w, 2)
	until(t, "mined", state(walletdb.IntentMined))
	in, err := walletdb.ReadIntent(t.Context(), db, "one")
	ok(t, err)
	ok(t, w.d.Reorg(t.Context(), 2, 3))
	ok(t, w.d.DropPool())
	until(t, "sent again", func() bool {
		pending, err := w.d.Client().PendingNonceAt(t.Context(), w.d.Account(operatorAccount).Address)
		return err == nil && pending == 1
	})
	if w.paid() != 0 {
		t.Error("the reorganization left the payment")
	}
	mine(w, 1)
	until(t, "mined again", state(walletdb.IntentMined))
	mine(w, 3)
	got := <-r
	ok(t, got.err)
	if got.sent.Hash != in.Mined.Hash || got.sent.Block == in.Mined.Block || w.paid() != 60 || w.nonce() != 1 {
		t.Errorf("%+v, was in block %d", got.sent, in.Mined.Block)
	}
}

// TestConfirmedReorg sends again what a reorganization threw out after it was confirmed, and
// leaves what is still there alone.
func TestConfirmedReorg(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config()
	c.StuckAfter = 50 * time.Millisecond
	a, db := w.open(c)
	r := sending(t.Context(), a, w.pay("one", "60"))
	until(t, "broadcast", func() bool {
		in, err := walletdb.ReadIntent(t.Context(), db, "one")
		return err == nil && in.State == walletdb.IntentBroadcast
	})
	mine(w, 1)
	got := <-r
	ok(t, got.err)
	before, err := walletdb.ReadIntent(t.Context(), db, "one")
	ok(t, err)
	mine(w, 1)
	ok(t, w.d.Reorg(t.Context(), 2, 3))
	ok(t, w.d.DropPool())
	if before.State != walletdb.IntentConfirmed || w.paid() != 0 {
		t.Fatalf("%s, %d wei after the reorganization", before.State, w.paid())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	until(t, "open again", func() bool {
		in, err := walletdb.ReadIntent(t.Context(), db, "one")
		return err == nil && !in.State.Final()
	})
	w.mining()
	until(t, "confirmed again", func() bool {
		in, err := walletdb.ReadIntent(t.Context(), db, "one")
		return err == nil && in.State == walletdb.IntentConfirmed
	})
	head := w.d.Head().Number
	until(t, "more blocks", func() bool { return w.d.Head().Number > head+10 })
	cancel()
	<-ended
	after, err := walletdb.ReadIntent(t.Context(), db, "one")
	ok(t, err)
	if after.State != walletdb.IntentConfirmed || after.Mined.BlockHash == before.Mined.BlockHash ||
		after.Nonce != before.Nonce || w.paid() != 60 || w.nonce() != 1 {
		t.Errorf("%+v after %+v, %d wei", after.Mined, before.Mined, w.paid())
	}
}

func mine(w *world, blocks int) {
	w.t.Helper()
	for range blocks {
		_, err := w.d.Mine(w.t.Context())
		ok(w.t, err)
	}
}

// TestSendForeign fails an intent whose nonce another user of the key took, and signs
// nothing in its place; the next intent goes on behind it.
func TestSendForeign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.proxy(func(method string) *message {
		if method == "eth_sendRawTransaction" {
			return &message{Result: []byte(`"0x00"`)} // lost on its way
		}
		return nil
	}, nil)
	a, db := w.open(w.config(url))
	r := sending(t.Context(), a, w.pay("one", "60"))
	until(t, "broadcast", func() bool {
		in, err := walletdb.ReadIntent(t.Context(), db, "one")
		return err == nil && in.State == walletdb.IntentBroadcast
	})
	b := w.d.Batch()
	b.Pay(w.d.Account(operatorAccount), w.payee, n(1))
	_, err := b.Mine(t.Context())
	ok(t, err)
	got := <-r
	if !errors.Is(got.err, repute.ErrConflict) || errors.Is(got.err, repute.ErrUnavailable) {
		t.Errorf("%+v", got)
	}
	in, err := walletdb.ReadIntent(t.Context(), db, "one")
	ok(t, err)
	if in.State != walletdb.IntentFailed || in.Reason == "" || len(in.Attempts) != 1 {
		t.Errorf("%+v", in)
	}
	direct, _ := w.open(w.config())
	w.mining()
	if got := <-sending(t.Context(), direct, w.pay("two", "5")); got.err != nil || !got.sent.OK || w.paid() != 6 ||
		w.nonce() != 2 {
		t.Errorf("%+v, %d wei", got, w.paid())
	}
}

// abandon leaves a transaction behind that is signed and stored, and that no node has.
func (w *world) abandon(id, wei string) {
	w.t.Helper()
	refusedOnce := make(chan struct{}, 1000)
	a, _ := w.open(w.config(w.proxy(func(method string) *message {
		if method != "eth_sendRawTransaction" {
			return nil
		}
		refusedOnce <- struct{}{}
		return &message{Error: []byte(`{"code":-32000,"message":"try later"}`)}
	}, nil)))
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r := sending(ctx, a, w.pay(id, wei))
	for range 3 { // the third time it has heard of the first
		<-refusedOnce
	}
	cancel()
	if got := <-r; !errors.Is(got.err, repute.ErrUnavailable) || !strings.Contains(got.err.Error(), "try later") {
		w.t.Errorf("abandoned: %v", got.err)
	}
}

// TestSendAbandoned mines an earlier transaction of the account whose caller is gone
// before the endpoint had it.
func TestSendAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.abandon("one", "60")
	w.mining()
	b, db := w.open(w.config())
	if r := <-sending(t.Context(), b, w.pay("two", "5")); r.err != nil || !r.sent.OK || w.paid() != 65 ||
		w.nonce() != 2 {
		t.Errorf("%+v, %d wei", r, w.paid())
	}
	if in, err := walletdb.ReadIntent(t.Context(), db, "one"); err != nil || in.Nonce != 0 {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestSendReverts tells a transaction that the chain reverts from one that works.
func TestSendReverts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := w.open(w.config())
	r := sending(t.Context(), a, w.pay("one", "60"))
	until(t, "sent", func() bool {
		pending, err := w.d.Client().PendingNonceAt(t.Context(), w.d.Account(operatorAccount).Address)
		return err == nil && pending == 1
	})
	w.owner(treasuryABI.PackPause()) // after it was simulated, before it is mined
	mine(w, 1)
	if got := <-r; got.err != nil || got.sent.OK || got.sent.GasUsed == 0 || got.sent.FeeWei == "0" || w.paid() != 0 {
		t.Errorf("%+v", got)
	}
}
