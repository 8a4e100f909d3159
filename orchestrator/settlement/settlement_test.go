package settlement_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings/fixtures"
	"repute/internal/paytest"
	"repute/x402"
	"repute/x402/facilitator"
)

// settleOnce verifies and settles a payment, and checks what moved.
func (w *world) settleOnce(t *testing.T, f x402.Facilitator, p x402.Payment, r x402.Requirements,
	units int64) x402.Settlement {
	t.Helper()
	before, count := w.paid(t), w.sent(t)
	v, err := f.Verify(t.Context(), p, r)
	ok(t, err)
	if !v.IsValid {
		t.Fatalf("not valid: %s: %s", v.InvalidReason, v.InvalidText)
	}
	s, err := f.Settle(t.Context(), p, r)
	ok(t, err)
	if !s.Success || w.paid(t)-before != units || w.sent(t) != count+1 {
		t.Fatalf("%+v: %d moved, %d transactions", s, w.paid(t)-before, w.sent(t)-count)
	}
	return s
}

// TestWaysToPay settles payments by every scheme and kind of account, and asks for each settlement
// again: the answer is the same, and nothing more is sent.
func TestWaysToPay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	forms := func(v byte) x402.Payment {
		p := w.Pay(t, w.Requirements(10))
		p.Payload.Signature[64] -= v
		return p
	}
	unborn := func(r x402.Requirements) x402.Payment {
		p := w.PayAs(t, paytest.For{Wallet: w.Unborn, Key: w.Signer(paytest.PayerAccount)}, r)
		p.Payload.Signature = w.Undeployed(p.Payload.Signature)
		return p
	}
	contract := paytest.For{Wallet: w.Wallet, Key: w.Signer(paytest.PayerAccount)}
	charged := w.UptoRequirements(300)
	upto := w.Pay(t, charged)
	charged.Amount = x402.NewAmount(120)
	for _, x := range []struct {
		name  string
		p     x402.Payment
		r     x402.Requirements
		units int64
	}{
		{"EIP-3009", w.Pay(t, w.Requirements(10)), w.Requirements(10), 10},
		{"EIP-3009 with v of 0 and 1", forms(27), w.Requirements(10), 10},
		{"EIP-3009 by a contract wallet", w.PayAs(t, contract, w.Requirements(20)), w.Requirements(20), 20},
		{"EIP-3009 by a wallet that is deployed with it", unborn(w.Requirements(30)), w.Requirements(30), 30},
		{"EIP-3009 by that wallet, wrapped still", unborn(w.Requirements(5)), w.Requirements(5), 5},
		{"Permit2", w.Pay(t, w.PlainRequirements(40)), w.PlainRequirements(40), 40},
		{"upto, for less than was signed", upto, charged, 120},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := w.settleOnce(t, f, x.p, x.r, x.units)
			before, count := w.paid(t), w.sent(t)
			again, err := f.Settle(t.Context(), x.p, x.r)
			ok(t, err)
			if again.Transaction != s.Transaction || !again.Success || w.paid(t) != before || w.sent(t) != count {
				t.Errorf("again: %+v, first: %+v", again, s)
			}
			if v, err := f.Verify(t.Context(), x.p, x.r); err != nil || v.IsValid {
				t.Errorf("a settled payment is valid again: %+v, %v", v, err)
			}
		})
	}
	t.Run("upto, for nothing", func(t *testing.T) {
		count := w.sent(t)
		r := w.UptoRequirements(300)
		p := w.Pay(t, r)
		r.Amount = x402.Amount{}
		if s, err := f.Settle(t.Context(), p, r); err != nil || !s.Success || s.Transaction != "" ||
			w.sent(t) != count {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// TestRefused lists payments that are refused with their reasons: nothing is sent, nothing moves.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	r, plain := w.Requirements(10), w.PlainRequirements(10)
	stranger := w.Signer(paytest.StrangerAccount)
	changed := func(r x402.Requirements, change func(*x402.Payment)) x402.Payment {
		p := w.Pay(t, r)
		change(&p)
		return p
	}
	resigned := func(change func(*x402.Authorization)) x402.Payment {
		return changed(r, func(p *x402.Payment) {
			change(p.Payload.Authorization)
			terms, err := r.Terms()
			ok(t, err)
			p.Payload.Signature, err = w.Signer(paytest.PayerAccount).SignTyped(t.Context(),
				x402.AuthorizationData(*p.Payload.Authorization, w.Chain().ID, w.Token, terms.Name, terms.Version))
			ok(t, err)
		})
	}
	other := r
	other.Extra = []byte(`{"name":"USD Coin","version":"2"}`)
	asset := r
	asset.Asset = common.HexToAddress("0x77")
	elsewhere := r
	elsewhere.Network = "eip155:1"
	high := func(p *x402.Payment) {
		s := p.Payload.Signature
		n := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(s[32:64]))
		p.Payload.Signature = append(append(bytes.Clone(s[:32]), common.LeftPadBytes(n.Bytes(), 32)...), 55-s[64])
	}
	compact := func(p *x402.Payment) {
		s := p.Payload.Signature
		s[32] |= (s[64] - 27) << 7
		p.Payload.Signature = s[:64]
	}
	now := uint64(time.Now().Unix())
	upto := w.UptoRequirements(10)
	more := upto
	more.Amount = x402.NewAmount(11)
	for _, x := range []struct {
		name   string
		p      x402.Payment
		r      x402.Requirements
		reason x402.Reason
	}{
		{"one unit short", w.Pay(t, w.Requirements(9)), r, x402.ReasonValue},
		{"one unit more", w.Pay(t, w.Requirements(11)), r, x402.ReasonValue},
		{"to another", resigned(func(a *x402.Authorization) { a.To[0]++ }), r, x402.ReasonRecipient},
		{"of another chain", w.Pay(t, elsewhere), r, x402.ReasonInvalidNetwork},
		{"on a chain that is not served", w.Pay(t, elsewhere), elsewhere, x402.ReasonInvalidNetwork},
		{"of another scheme", changed(r, func(p *x402.Payment) { p.Accepted.Scheme = "upto" }), r,
			x402.ReasonInvalidScheme},
		{"in an asset that is not accepted", w.Pay(t, asset), asset, x402.ReasonInvalidRequirements},
		{"stale", resigned(func(a *x402.Authorization) { a.ValidBefore = x402.NewAmount(now + 3) }), r,
			x402.ReasonValidBefore},
		{"from the future", resigned(func(a *x402.Authorization) { a.ValidAfter = x402.NewAmount(now + 600) }), r,
			x402.ReasonValidAfter},
		{"by another signer", changed(r, func(p *x402.Payment) { p.Payload.Authorization.From = stranger.Address() }),
			r, x402.ReasonSignature},
		{"changed after it was signed", changed(r, func(p *x402.Payment) { p.Payload.Authorization.Nonce[0]++ }), r,
			x402.ReasonSignature},
		{"with a high s", changed(r, high), r, x402.ReasonSignature},
		{"in 64 bytes", changed(r, compact), r, x402.ReasonSignature},
		{"with v of 29", changed(r, func(p *x402.Payment) { p.Payload.Signature[64] = 29 }), r, x402.ReasonSignature},
		{"wrapped without a factory", changed(r, func(p *x402.Payment) {
			p.Payload.Signature = append(p.Payload.Signature, bytes.Repeat([]byte{0x64, 0x92}, 16)...)
		}), r, x402.ReasonSignature},
		{"by a wallet whose factory does not deploy it", changed(r, func(p *x402.Payment) {
			p.Payload.Authorization.From = common.HexToAddress("0x99")
			p.Payload.Signature = w.Undeployed(p.Payload.Signature)
		}), r, x402.ReasonInsufficientFunds},
		{"in the domain of another token", w.Pay(t, other), other, x402.ReasonInvalidRequirements},
		{"without funds", w.PayAs(t, stranger, r), r, x402.ReasonInsufficientFunds},
		{"without allowance", w.PayAs(t, paytest.For{Wallet: w.Wallet, Key: w.Signer(paytest.PayerAccount)}, plain),
			plain, x402.ReasonAllowance},
		{"for another spender", changed(plain, func(p *x402.Payment) { p.Payload.Permit2.Spender[0]++ }), plain,
			x402.ReasonSpender},
		{"upto, more than was signed", w.Pay(t, upto), more, x402.ReasonExceedsAmount},
		{"upto, for another facilitator", changed(upto,
			func(p *x402.Payment) { p.Payload.Permit2.Witness.Facilitator[0]++ }), upto, x402.ReasonFacilitator},
		{"by EIP-3009 for a demand by Permit2", changed(r, func(p *x402.Payment) { p.Accepted = plain }), plain,
			x402.ReasonInvalidPayload},
	} {
		t.Run(x.name, func(t *testing.T) {
			v, err := f.Verify(t.Context(), x.p, x.r)
			ok(t, err)
			s, err := f.Settle(t.Context(), x.p, x.r)
			ok(t, err)
			if v.IsValid || v.InvalidReason != x.reason || s.Success || s.ErrorReason != x.reason ||
				v.InvalidText == "" {
				t.Errorf("verified %s (%s), settled %s, want %s", v.InvalidReason, v.InvalidText, s.ErrorReason,
					x.reason)
			}
		})
	}
	if w.paid(t) != 0 || w.sent(t) != 0 {
		t.Errorf("%d units moved in %d transactions", w.paid(t), w.sent(t))
	}
}

// TestBadTokens: a token that reverts, or that claims success without moving anything, settles
// nothing.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	r, token := w.Requirements(10), fixtures.NewAuthorizedToken()
	w.Send(t, paytest.OwnerAccount, w.Token, token.PackBehave(1))
	p := w.Pay(t, r)
	if s, err := f.Settle(t.Context(), p, r); err != nil || s.Success || s.ErrorReason != x402.ReasonTransactionState {
		t.Errorf("reverting: %+v, %v", s, err)
	}
	w.Send(t, paytest.OwnerAccount, w.Token, token.PackBehave(2))
	for range 2 { // the stored end is the same
		if s, err := f.Settle(t.Context(), p, r); err != nil || s.Success ||
			s.ErrorReason != x402.ReasonTransactionState ||
			s.Transaction == "" {
			t.Errorf("idle: %+v, %v", s, err)
		}
	}
	plain := w.PlainRequirements(10)
	w.Send(t, paytest.OwnerAccount, w.Plain, fixtures.NewPlainToken().PackFail(true))
	if s, err := f.Settle(t.Context(), w.Pay(t, plain), plain); err != nil || s.Success ||
		s.ErrorReason != x402.ReasonTransactionState {
		t.Errorf("false: %+v, %v", s, err)
	}
	if w.paid(t) != 0 || w.sent(t) != 1 {
		t.Errorf("%d units moved in %d transactions", w.paid(t), w.sent(t))
	}
}

// TestOnceInTwoProcesses settles each payment 25 times at once in each of two processes: one
// transaction is sent for each, and everybody gets its hash.
func TestOnceInTwoProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	processes := []*x402.Local{w.facilitator(t), w.facilitator(t)}
	r := w.Requirements(10)
	payments := []x402.Payment{w.Pay(t, r), w.Pay(t, r), w.PayAs(t, paytest.For{Wallet: w.Wallet,
		Key: w.Signer(paytest.PayerAccount)}, r)}
	var mu sync.Mutex
	hashes := map[int]map[string]int{}
	var all sync.WaitGroup
	for i, p := range payments {
		hashes[i] = map[string]int{}
		for n := range 50 {
			all.Go(func() {
				s, err := processes[n%2].Settle(t.Context(), p, r)
				for errors.Is(err, repute.ErrUnavailable) &&
					t.Context().Err() == nil { // the node is busy; the caller asks again
					s, err = processes[n%2].Settle(t.Context(), p, r)
				}
				if err != nil || !s.Success {
					t.Errorf("payment %d: %+v, %v", i, s, err)
				}
				mu.Lock()
				defer mu.Unlock()
				hashes[i][s.Transaction]++
			})
		}
	}
	all.Wait()
	for i, h := range hashes {
		if len(h) != 1 {
			t.Errorf("payment %d has %d transactions", i, len(h))
		}
	}
	if w.paid(t) != 30 || w.sent(t) != 3 {
		t.Errorf("%d units moved in %d transactions", w.paid(t), w.sent(t))
	}
}

// TestOneAuthorizationTwoPrices: an authorization of the scheme upto is settled once, whatever else
// is to be charged by it later.
func TestOneAuthorizationTwoPrices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	r := w.UptoRequirements(300)
	p := w.Pay(t, r)
	r.Amount = x402.NewAmount(100)
	w.settleOnce(t, f, p, r, 100)
	r.Amount = x402.NewAmount(200)
	if s, err := f.Settle(t.Context(), p, r); err != nil || s.Success || s.ErrorReason != x402.ReasonNonceUsed {
		t.Errorf("%+v, %v", s, err)
	}
	if w.paid(t) != 100 || w.sent(t) != 1 {
		t.Errorf("%d units moved in %d transactions", w.paid(t), w.sent(t))
	}
}

// TestSupported: what a facilitator says of itself is JSON that names its account and its schemes.
func TestSupported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.facilitator(t).Supported(t.Context())
	ok(t, err)
	text, err := json.Marshal(s)
	ok(t, err)
	if len(s.Kinds) != 2 || len(s.Signers["eip155:*"]) != 1 ||
		!bytes.Contains(text, []byte(`"facilitatorAddress"`)) {
		t.Errorf("%s", text)
	}
}

// TestClaimedSettlements: a facilitator that says yes and never settles is not believed, one whose
// settlement the chain shows is.
func TestClaimedSettlements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	honest := w.facilitator(t)
	liar := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = out.Write([]byte(`{"success":true,"transaction":"0x` + strings.Repeat("11", 32) +
			`","network":"eip155:31337"}`))
	}))
	t.Cleanup(liar.Close)
	c, err := facilitator.NewClient(nil, time.Second, liar.URL)
	ok(t, err)
	for _, r := range []x402.Requirements{w.Requirements(10), w.PlainRequirements(10)} {
		p := w.Pay(t, r)
		lying := &x402.Confirmed{Facilitator: c, Verifier: honest.Verifier, History: honest.History, Wait: time.Second}
		if s, err := lying.Settle(t.Context(), p, r); !errors.Is(err, x402.ErrUnknownEnd) || s.Success {
			t.Errorf("a claim is believed: %+v, %v", s, err)
		}
		w.settleOnce(t, &x402.Confirmed{Facilitator: honest, Verifier: honest.Verifier, History: honest.History}, p,
			r, 10)
	}
}

// TestUnknownEnd: while a settlement is not mined the facilitator answers 503, and the same payment
// sent again is settled by the one transaction. A chain that cannot be asked is 503 too.
func TestUnknownEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	hasty := *f
	hasty.Settler = &impatient{f.Settler}
	server := httptest.NewServer(facilitator.NewHandler(&hasty))
	t.Cleanup(server.Close)
	c, err := facilitator.NewClient(nil, 0, server.URL)
	ok(t, err)
	r := w.Requirements(10)
	p := w.Pay(t, r)
	w.SetPeriod(0)
	for range 2 {
		if s, err := c.Settle(t.Context(), p, r); !errors.Is(err, x402.ErrUnknownEnd) || s.Success {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	w.SetPeriod(250 * time.Millisecond)
	var s x402.Settlement
	for end := time.Now().Add(time.Minute); !s.Success && time.Now().Before(end); {
		s, _ = c.Settle(t.Context(), p, r)
	}
	if !s.Success || w.paid(t) != 10 || w.sent(t) != 1 {
		t.Errorf("%+v: %d units moved in %d transactions", s, w.paid(t), w.sent(t))
	}
	gone := w.chain(t, map[string]int{"settler": paytest.SettlerAccount})
	gone.RPC, gone.Patience = []string{"http://127.0.0.1:1"}, 100*time.Millisecond
	blind, err := open(t, w.url, gone)
	ok(t, err)
	if v, err := blind.Verify(t.Context(), w.Pay(t, r), r); !errors.Is(err, x402.ErrUnavailable) || v.IsValid {
		t.Errorf("without a chain: %+v, %v", v, err)
	}
}

// impatient waits for the end of a settlement for no longer than half a second.
type impatient struct{ x402.Settler }

// Send implements x402.Settler.
func (i *impatient) Send(ctx context.Context, t *x402.Transfer) (x402.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return i.Settler.Send(ctx, t)
}

// Outcome implements x402.Settler.
func (i *impatient) Outcome(ctx context.Context, t *x402.Transfer) (x402.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return i.Settler.Outcome(ctx, t)
}
