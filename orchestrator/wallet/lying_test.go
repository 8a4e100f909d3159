package wallet_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/store/walletdb"
)

// TestHiddenReceipt never takes a payment for not sent because one endpoint hides its
// receipt, whether there is another one or not.
func TestHiddenReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	var asked atomic.Int64
	hides := w.proxy(nil, func(method string, a *message) {
		if method == "eth_getTransactionReceipt" {
			asked.Add(1)
			a.Result = []byte("null")
		}
	})
	for id, urls := range map[string][]string{"two": {hides, w.d.RPCURL()}, "alone": {hides}} {
		before, already := w.paid(), asked.Load()
		a, db := w.open(w.config(urls...))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		r := sending(ctx, a, w.pay(id, "60"))
		until(t, "it is paid", func() bool { return w.paid() == before+60 })
		until(t, "its receipt is asked for again and again", func() bool { return asked.Load() > already+10 })
		select {
		case got := <-r:
			t.Errorf("%s: %+v", id, got)
		default:
		}
		cancel()
		got := <-r
		in, err := walletdb.ReadIntent(t.Context(), db, id)
		ok(t, err)
		// A cancellation in the middle of a check replaces the reason of the check before.
		if in.State.Final() || !errors.Is(got.err, repute.ErrUnavailable) ||
			!strings.Contains(got.err.Error(), "without a receipt") &&
				!strings.Contains(got.err.Error(), "context canceled") {
			t.Errorf("%s: %s %q, %v", id, in.State, in.Reason, got.err)
		}
		honest, _ := w.open(w.config())
		if got := <-sending(t.Context(), honest, w.pay(id, "60")); got.err != nil || !got.sent.OK ||
			w.paid() != before+60 {
			t.Errorf("%s, by an honest one: %+v, %d wei", id, got, w.paid())
		}
	}
}

// TestLyingNonce takes no nonce on the word of one endpoint of several.
func TestLyingNonce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	var asked atomic.Int64
	liar := w.proxy(nil, func(method string, a *message) {
		if method == "eth_getTransactionCount" {
			asked.Add(1)
			a.Result = []byte(`"0x3b9aca00"`)
		}
	})
	c := w.config(liar, w.d.RPCURL())
	c.Patience = 50 * time.Millisecond
	a, db := w.open(c)
	short, cancel := context.WithCancel(t.Context())
	r := sending(short, a, w.pay("first", "1"))
	until(t, "it is stored", func() bool {
		_, err := walletdb.ReadIntent(t.Context(), db, "first")
		return err == nil
	})
	before := asked.Load()
	until(t, "the liar is asked again", func() bool { return asked.Load() > before+1 || len(r) == 1 })
	cancel()
	t.Log("by the liar:", (<-r).err)
	in, err := walletdb.ReadIntent(t.Context(), db, "first")
	ok(t, err)
	if in.Nonce != 0 || in.State == walletdb.IntentFailed {
		t.Errorf("nonce %d, %s", in.Nonce, in.State)
	}
	down := w.config(liar, "http://127.0.0.1:1")
	down.Patience = 50 * time.Millisecond
	b, _ := w.open(down)
	if _, err := b.Send(t.Context(), w.pay("alone", "1")); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("nobody else answers: %v", err)
	}
	honest, _ := w.open(w.config())
	if got := <-sending(t.Context(), honest, w.pay("second", "1")); got.err != nil || !got.sent.OK {
		t.Errorf("the liar is gone: %+v", got)
	}
}

// TestPoisonedNonce goes on once an endpoint that lied about an account's nonce is gone:
// what it made take a nonce out of reach fails, what is within reach is mined behind those
// that close the gap.
func TestPoisonedNonce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	poisoned := func(id, nonce string) {
		t.Helper()
		liar, db := w.open(w.config(w.proxy(nil, func(method string, a *message) {
			if method == "eth_getTransactionCount" {
				a.Result = []byte(`"` + nonce + `"`)
			}
		})))
		ctx, cancel := context.WithCancel(t.Context())
		r := sending(ctx, liar, w.pay(id, "10"))
		until(t, "it is sent", func() bool {
			in, err := walletdb.ReadIntent(t.Context(), db, id)
			return err == nil && in.State == walletdb.IntentBroadcast
		})
		cancel()
		<-r
	}
	poisoned("near", "0x2")
	poisoned("far", "0x3b9aca00")
	c := w.config()
	c.StuckAfter = 100 * time.Millisecond
	a, db := w.open(c)
	time.Sleep(2 * c.StuckAfter) // those are old then
	for _, id := range []string{"zero", "one"} {
		if got := <-sending(t.Context(), a, w.pay(id, "10")); got.err != nil || !got.sent.OK {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if got := <-sending(t.Context(), a, w.pay("far", "10")); !errors.Is(got.err, repute.ErrConflict) ||
		!strings.Contains(got.err.Error(), "out of reach") {
		t.Errorf("far: %+v", got)
	}
	for _, id := range []string{"near", "three"} {
		if got := <-sending(t.Context(), a, w.pay(id, "10")); got.err != nil || !got.sent.OK {
			t.Errorf("%s: %+v", id, got)
		}
	}
	for nonce, id := range []string{"zero", "one", "near", "three"} {
		if in, err := walletdb.ReadIntent(t.Context(), db, id); err != nil || in.Nonce != uint64(nonce) {
			t.Errorf("%s has nonce %d: %v", id, in.Nonce, err)
		}
	}
	if w.paid() != 40 || w.nonce() != 4 {
		t.Errorf("%d wei, nonce %d", w.paid(), w.nonce())
	}
}
