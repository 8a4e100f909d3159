package wallet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store/walletdb"
)

// lying is an endpoint that changes receipts.
func (w *world) lying(edit func(receipt map[string]any)) string {
	return w.proxy(nil, func(method string, a *message) {
		var r map[string]any
		if method != "eth_getTransactionReceipt" || json.Unmarshal(a.Result, &r) != nil || r == nil {
			return
		}
		edit(r)
		a.Result, _ = json.Marshal(r)
	})
}

func logOf(r map[string]any) map[string]any { return r["logs"].([]any)[0].(map[string]any) }

const elsewhere = "0x1111111111111111111111111111111111111111111111111111111111111111"

// TestLyingReceipt believes no receipt that contradicts the chain or what was signed, and
// believes the same transaction when an honest endpoint shows it.
func TestLyingReceipt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	impatient := func(rpcs ...string) wallet.ChainConfig {
		c := w.config(rpcs...)
		c.Patience = 50 * time.Millisecond
		return c
	}
	for name, edit := range map[string]func(map[string]any){
		"another transaction": func(r map[string]any) { r["transactionHash"] = elsewhere },
		"another block":       func(r map[string]any) { r["blockHash"] = elsewhere },
		"another height":      func(r map[string]any) { r["blockNumber"] = "0x1" },
		"done without event":  func(r map[string]any) { r["logs"] = []any{} },
		"reverted with event": func(r map[string]any) { r["status"] = "0x0" },
		"another contract":    func(r map[string]any) { logOf(r)["address"] = w.token.Hex() },
		"another agent":       func(r map[string]any) { logOf(r)["topics"].([]any)[1] = elsewhere },
		"another run": func(r map[string]any) {
			l := logOf(r)
			l["data"] = strings.Replace(l["data"].(string), idHex("run_1"), elsewhere[2:], 1)
		},
		"too much gas":   func(r map[string]any) { r["gasUsed"] = "0xffffff" },
		"no gas":         func(r map[string]any) { r["gasUsed"] = "0x0" },
		"a higher price": func(r map[string]any) { r["effectiveGasPrice"] = "0xffffffffffff" },
	} {
		a, db := w.open(impatient(w.lying(edit)))
		in := w.pay(name, "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := a.Send(ctx, in)
		if !errors.Is(err, repute.ErrUnavailable) || ctx.Err() != nil || !strings.Contains(err.Error(), "receipt of") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if stored, err := walletdb.ReadIntent(t.Context(), db, name); err != nil || stored.State.Final() {
			t.Errorf("%s: %+v, %v", name, stored, err)
		}
		honest, _ := w.open(w.config())
		if r := <-sending(t.Context(), honest, in); r.err != nil || !r.sent.OK {
			t.Errorf("%s, honestly: %+v", name, r)
		}
	}
	if got := len(w.transactions()); got != 11 || w.paid() != 11 {
		t.Errorf("%d transactions, %d wei", got, w.paid())
	}
}

// TestSecondEndpoint confirms what both endpoints show, waits for one that is behind, and
// says when they disagree, without the keys in their addresses.
func TestSecondEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	liar := w.lying(func(r map[string]any) { r["status"], r["logs"] = "0x0", []any{} })
	conf := w.config(w.d.RPCURL(), liar+"/v2/verysecretkey")
	conf.Patience = 50 * time.Millisecond
	a, db := w.open(conf)
	in := w.pay("one", "60")
	_, err := a.Send(t.Context(), in)
	if !errors.Is(err, repute.ErrUnavailable) || !strings.Contains(err.Error(), "endpoints disagree") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("one lies: %v", err)
	}
	asked := make(chan struct{}, 1000)
	behind := w.proxy(nil, func(method string, a *message) {
		if method == "eth_getTransactionReceipt" {
			a.Result = []byte("null")
			asked <- struct{}{}
		}
	})
	b, _ := w.open(w.config(w.d.RPCURL(), behind))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := sending(ctx, b, in)
	for range 2 {
		<-asked
	}
	cancel()
	if got := <-r; !errors.Is(got.err, repute.ErrUnavailable) ||
		!strings.Contains(got.err.Error(), "does not show it yet") {
		t.Errorf("one is behind: %v", got.err)
	}
	if stored, err := walletdb.ReadIntent(t.Context(), db, "one"); err != nil || stored.State != walletdb.IntentMined {
		t.Errorf("%+v, %v", stored.State, err)
	}
	c, _ := w.open(w.config(w.d.RPCURL(), w.proxy(nil, nil)))
	if r := <-sending(t.Context(), c, in); r.err != nil || !r.sent.OK {
		t.Errorf("both agree: %+v", r)
	}
}

// TestEndpointDown shows nothing of where an endpoint or a signer is that does not answer, in
// errors, which reach agents: the log has the host, but no key. An endpoint of another chain is
// refused.
func TestEndpointDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	down := w.config("http://user:passw0rd@127.0.0.1:1/v2/verysecretkey?apikey=alsosecret")
	down.Patience = 50 * time.Millisecond
	var lines bytes.Buffer
	_, db := w.open(w.config())
	a, err := wallet.Open(db,
		wallet.Config{Chains: []wallet.ChainConfig{down}, Log: slog.New(slog.NewTextHandler(&lines, nil))})
	ok(t, err)
	t.Cleanup(a.Close)
	unsigned := w.config()
	unsigned.Operator = keys.Config{URL: "http://127.0.0.1:1/v2/verysecretkey",
		Address: w.d.Account(operatorAccount).Address}
	s, _ := w.open(unsigned)
	refusing, _ := w.open(w.config(w.proxy(nil, func(method string, a *message) {
		if method == "eth_call" {
			a.Result, a.Error = nil, json.RawMessage(`{"code":-32005,"message":"see https://127.0.0.1/dashboard"}`)
		}
	})))
	for what, err := range map[string]error{
		"simulate": second(a.Simulate(t.Context(), origin, w.pay("x", "1").Tx)),
		"send":     second(a.Send(t.Context(), w.pay("x", "1"))),
		"read":     second(a.Read(t.Context(), w.d.Chain().ID, w.token, nil)),
		"sign":     second(s.Send(t.Context(), w.pay("x", "1"))),
		"answer":   second(refusing.Read(t.Context(), w.d.Chain().ID, w.token, nil)),
	} {
		if !errors.Is(err, repute.ErrUnavailable) || strings.Contains(err.Error(), "secret") ||
			strings.Contains(err.Error(), "passw0rd") || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if text := lines.String(); !strings.Contains(text, "127.0.0.1:1") || strings.Contains(text, "secret") ||
		strings.Contains(text, "passw0rd") {
		t.Errorf("log: %s", text)
	}
	c := w.config()
	c.ChainID = 5
	b, _ := w.open(c)
	in := w.pay("x", "1")
	in.ChainID = 5
	if _, err := b.Send(t.Context(), in); !errors.Is(err, repute.ErrConflict) ||
		!strings.Contains(err.Error(), "serves chain 31337") {
		t.Errorf("another chain: %v", err)
	}
	in.ChainID = 6
	if _, err := b.Send(t.Context(), in); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("unknown chain: %v", err)
	}
}

// TestFailover does nothing by one endpoint of two, goes on by two of three, confirms what two
// show, and neither what one alone shows nor what one contradicts.
func TestFailover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	const down = "http://127.0.0.1:1/v2/verysecretkey"
	two, db := w.open(w.config(down, w.d.RPCURL()))
	for what, err := range map[string]error{
		"simulate": second(two.Simulate(t.Context(), origin, w.pay("x", "1").Tx)),
		"read":     second(two.Read(t.Context(), w.d.Chain().ID, w.token, tokenABI.PackBalanceOf(w.treasury))),
		"send":     second(two.Send(t.Context(), w.pay("x", "1"))),
	} {
		if !errors.Is(err, repute.ErrUnavailable) || !strings.Contains(err.Error(), "1 of 2 endpoints") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s by one of two: %v", what, err)
		}
	}
	hides := w.proxy(nil, func(method string, a *message) {
		if method == "eth_getTransactionReceipt" {
			a.Result = []byte("null")
		}
	})
	in := w.pay("one", "60")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hidden, _ := w.open(w.config(down, w.d.RPCURL(), hides))
	r := sending(ctx, hidden, in)
	until(t, "it is mined", func() bool {
		i, err := walletdb.ReadIntent(t.Context(), db, "one")
		return err == nil && i.State == walletdb.IntentMined
	})
	cancel()
	if got := <-r; !errors.Is(got.err, repute.ErrUnavailable) || strings.Contains(got.err.Error(), "secret") {
		t.Errorf("one alone shows it: %+v", got)
	}
	conf := w.config(down, w.d.RPCURL(), w.lying(func(r map[string]any) { r["status"], r["logs"] = "0x0", []any{} }))
	conf.Patience = 50 * time.Millisecond
	liar, _ := w.open(conf)
	if _, err := liar.Send(t.Context(), in); !errors.Is(err, repute.ErrUnavailable) ||
		!strings.Contains(err.Error(), "endpoints disagree") {
		t.Errorf("one lies: %v", err)
	}
	three, _ := w.open(w.config(down, w.d.RPCURL(), w.proxy(nil, nil)))
	if r := <-sending(t.Context(), three, in); r.err != nil || !r.sent.OK {
		t.Errorf("two of three show it: %+v", r)
	}
	if got := w.paid(); got != 60 {
		t.Errorf("paid %d, wanted 60", got)
	}
}

// TestHangingEndpoint reads by two endpoints of three without waiting for the third each time, which
// accepts requests and never answers them.
func TestHangingEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var requests atomic.Int32
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of the request once the body is read
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	a, _ := w.open(w.config(hanging.URL, w.d.RPCURL(), w.proxy(nil, nil)))
	for range 5 {
		if _, err := a.Read(t.Context(), w.d.Chain().ID, w.token, tokenABI.PackBalanceOf(w.treasury)); err != nil {
			t.Error(err)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests to an endpoint that does not answer, want one", n)
	}
}

func second[T any](_ T, err error) error { return err }

// TestRead reads a contract and tells refusal from silence.
func TestRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := w.open(w.config())
	out, err := a.Read(t.Context(), w.d.Chain().ID, w.token, tokenABI.PackBalanceOf(w.treasury))
	if err != nil || n(0).SetBytes(out).Int64() != 1000 {
		t.Errorf("%x, %v", out, err)
	}
	if _, err := a.Read(t.Context(), w.d.Chain().ID, w.payee, payeeABI.PackFail()); !errors.Is(err,
		repute.ErrInvalid) ||
		!strings.Contains(err.Error(), "payee fails") {
		t.Errorf("%v", err)
	}
	if op, err := a.Operator(w.d.Chain().ID); err != nil || op != w.d.Account(operatorAccount).Address {
		t.Errorf("%s, %v", op, err)
	}
	if id, err := a.Identity(w.d.Chain().ID, "payer"); err != nil || id != w.d.Account(identityAccount).Address {
		t.Errorf("%s, %v", id, err)
	}
	if _, err := a.Identity(w.d.Chain().ID, "nobody"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
