package wallet_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store/walletdb"
)

// TestRun brings a transaction to its end that nobody waits for.
func TestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.abandon("one", "60")
	w.abandon("two", "60")
	w.mining()
	b, db := w.open(w.config())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	until(t, "both confirmed", func() bool {
		one, err1 := walletdb.ReadIntent(t.Context(), db, "one")
		two, err2 := walletdb.ReadIntent(t.Context(), db, "two")
		return err1 == nil && err2 == nil && one.State == walletdb.IntentConfirmed &&
			two.State == walletdb.IntentConfirmed
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || w.paid() != 120 || w.nonce() != 2 {
		t.Errorf("%v, %d wei", err, w.paid())
	}
	if open, err := walletdb.OpenIntents(t.Context(), db, w.d.Chain().ID, ""); err != nil || len(open) != 0 {
		t.Errorf("%v, %v", open, err)
	}
}

// TestSendSignedBefore follows what is signed although nothing like it would be signed any
// more: it may be mined yet, so no error may say that it was not sent.
func TestSendSignedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, db := w.open(w.config())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := sending(ctx, a, w.pay("one", "60"))
	until(t, "its broadcast", func() bool {
		in, err := walletdb.ReadIntent(t.Context(), db, "one")
		return err == nil && in.State == walletdb.IntentBroadcast
	})
	cancel()
	<-r
	for what, change := range map[string]func(*wallet.ChainConfig){
		"no such call":     func(c *wallet.ChainConfig) { c.Treasury = w.payee },
		"another treasury": func(c *wallet.ChainConfig) { c.Treasury = w.token },
		"another key":      func(c *wallet.ChainConfig) { c.Operator.KeyFile = w.keyFile(strangerAccount) },
		"no key":           func(c *wallet.ChainConfig) { c.Operator, c.Treasury = keys.Config{}, common.Address{} },
		"another chain":    func(c *wallet.ChainConfig) { c.ChainID++ },
	} {
		c := w.config()
		change(&c)
		b, _ := w.open(c)
		if _, err := b.Send(t.Context(), w.pay("another", "60")); errors.Is(err, repute.ErrUnavailable) || err == nil {
			t.Errorf("%s: a new one: %v", what, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := b.Send(ctx, w.pay("one", "60")); !errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := b.Send(t.Context(), w.pay("one", "61")); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%s: another by its id: %v", what, err)
		}
		cancel()
	}
	c := w.config()
	c.Treasury = w.token
	b, _ := w.open(c)
	changed := sending(t.Context(), b, w.pay("one", "60"))
	w.mining()
	if got := <-changed; got.err != nil || !got.sent.OK || w.paid() != 60 {
		t.Errorf("%+v, %v; %d wei", got.sent, got.err, w.paid())
	}
}

// TestSendRefusedSinceSent has another process send while this one simulates: that it would
// fail by now is no reason to say that it did.
func TestSendRefusedSinceSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	b, _ := w.open(w.config())
	var meanwhile sync.Once
	a, _ := w.open(w.config(w.proxy(func(method string) *message {
		if method == "eth_getBlockByNumber" {
			meanwhile.Do(func() {
				got := <-sending(t.Context(), b, w.pay("one", "60"))
				ok(t, got.err)
				w.owner(treasuryABI.PackPause())
			})
		}
		return nil
	}, nil)))
	if got := <-sending(t.Context(), a, w.pay("one", "60")); got.err != nil || !got.sent.OK || w.paid() != 60 {
		t.Errorf("%+v, %v; %d wei", got.sent, got.err, w.paid())
	}
	if got := <-sending(t.Context(), a, w.pay("two", "60")); !errors.Is(got.err, repute.ErrInvalid) {
		t.Errorf("what nobody sent: %v", got.err)
	}
}
