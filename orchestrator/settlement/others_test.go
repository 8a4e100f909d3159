package settlement_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"repute/contracts/bindings/fixtures"
	"repute/internal/paytest"
	"repute/x402"
	"repute/x402/facilitator"
)

// useUp has somebody else send the transaction of a payment.
func (w *world) useUp(t *testing.T, f *x402.Local, p x402.Payment, r x402.Requirements) {
	t.Helper()
	transfer, err := f.Verifier.Verify(t.Context(), &p, &r)
	ok(t, err)
	w.Send(t, paytest.OwnerAccount, transfer.Target, transfer.Data)
}

// TestFrontRun: a payment whose transaction somebody else sent is settled, by that transaction, and by none of
// the facilitator's own; others who name the authorization, without its signature, have paid nothing.
func TestFrontRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	contract := paytest.For{Wallet: w.Wallet, Key: w.Signer(paytest.PayerAccount)}
	for name, x := range map[string]struct {
		p x402.Payment
		r x402.Requirements
	}{
		"EIP-3009":                {w.Pay(t, w.Requirements(10)), w.Requirements(10)},
		"EIP-3009 of a wallet":    {w.PayAs(t, contract, w.Requirements(10)), w.Requirements(10)},
		"Permit2, amid others":    {w.Pay(t, w.PlainRequirements(10)), w.PlainRequirements(10)},
		"Permit2, another amount": {w.Pay(t, w.PlainRequirements(11)), w.PlainRequirements(11)},
	} {
		before := w.paid(t)
		w.useUp(t, f, x.p, x.r)
		if x.r.Asset == w.Plain { // the newest transfer is of another permit
			w.useUp(t, f, w.Pay(t, x.r), x.r)
		}
		moved := w.paid(t) - before
		first, err := f.Settle(t.Context(), x.p, x.r)
		if err != nil || !first.Success || first.Transaction == "" || w.paid(t)-before != moved || w.sent(t) != 0 {
			t.Fatalf("%s: %+v, %v: %d units moved, %d transactions", name, first, err, w.paid(t)-before, w.sent(t))
		}
		if again, err := f.Settle(t.Context(), x.p, x.r); err != nil || again.Transaction != first.Transaction {
			t.Errorf("%s again: %+v, %v", name, again, err)
		}
		forged := x.p
		forged.Payload.Signature = append([]byte{}, x.p.Payload.Signature...)
		forged.Payload.Signature[7] ^= 1
		if s, err := f.Settle(t.Context(), forged, x.r); err != nil || s.Success ||
			s.ErrorReason != x402.ReasonSignature {
			t.Errorf("%s forged: %+v, %v", name, s, err)
		}
	}
}

// TestFoundLongAgo: the payment by a permit is found behind newer payments of its payer, also after the permit has
// ended, and is never said to have moved nothing.
func TestFoundLongAgo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	r := w.PlainRequirements(10)
	r.MaxTimeoutSeconds = 600
	old := w.Pay(t, r)
	w.useUp(t, f, old, r)
	for range 1100 { // more than one question for logs spans
		_, err := w.Mine(t.Context())
		ok(t, err)
	}
	r.MaxTimeoutSeconds = 36_000
	w.useUp(t, f, w.Pay(t, r), r)
	before := w.paid(t)
	for who, one := range map[string]x402.Facilitator{"local": f,
		"remote": &x402.Confirmed{Facilitator: refusing(t), Verifier: f.Verifier, History: f.History}} {
		if s, err := one.Settle(t.Context(), old, r); err != nil || !s.Success || s.Transaction == "" || s.Dead {
			t.Errorf("%s: %+v, %v", who, s, err)
		}
	}
	if w.paid(t) != before {
		t.Errorf("paid again: %d", w.paid(t)-before)
	}
}

// claiming is a facilitator that says of every payment that it is settled.
func claiming(t *testing.T) *facilitator.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = out.Write([]byte(`{"success":true,"transaction":"0x` + strings.Repeat("11", 32) +
			`","network":"eip155:31337"}`))
	}))
	t.Cleanup(s.Close)
	c, err := facilitator.NewClient(nil, time.Second, s.URL)
	ok(t, err)
	return c
}

// refusing is a facilitator that settles nothing.
func refusing(t *testing.T) *facilitator.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = out.Write([]byte(`{"success":false,"errorReason":"insufficient_funds","transaction":"","network":"eip155:31337"}`))
	}))
	t.Cleanup(s.Close)
	c, err := facilitator.NewClient(nil, time.Second, s.URL)
	ok(t, err)
	return c
}

// TestCanceled: an authorization that is used up while nothing is paid by it settles nothing, no matter who says so,
// and the payment is dead as soon as that is final: of a permit when it has ended, too. A payment by a permit inside of
// the call of another contract stays open: no event names the permit.
func TestCanceled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	r, plain := w.Requirements(10), w.PlainRequirements(10)
	p, permit := w.Pay(t, r), w.Pay(t, plain)
	w.Send(t, paytest.OwnerAccount, w.Token, fixtures.NewAuthorizedToken().PackBehave(2)) // uses, moves nothing
	w.useUp(t, f, p, r)
	w.Send(t, paytest.OwnerAccount, w.Token, fixtures.NewAuthorizedToken().PackBehave(0))
	own := plain
	own.PayTo = w.Account(paytest.PayerAccount).Address
	away := w.Pay(t, own) // the same nonce, for the payer's own account
	away.Payload.Permit2.Nonce = permit.Payload.Permit2.Nonce
	var err error
	away.Payload.Signature, err = w.Signer(paytest.PayerAccount).SignTyped(t.Context(),
		x402.PermitData(*away.Payload.Permit2, w.Chain().ID))
	ok(t, err)
	w.useUp(t, f, away, own)
	w.useUp(t, f, w.Pay(t, plain), plain) // the payer pays the payee as much, by another permit
	dear := w.PlainRequirements(20)
	inside := w.Pay(t, dear)
	transfer, err := f.Verifier.Verify(t.Context(), &inside, &dear)
	ok(t, err)
	w.Send(t, paytest.OwnerAccount, x402.Multicall3, aggregate(t, transfer.Target, transfer.Data))
	_, err = w.AdjustTime(t.Context(), 2*time.Hour) // the permit ends
	ok(t, err)
	for range 70 {
		_, err = w.Mine(t.Context())
		ok(t, err)
	}
	for name, x := range map[string]struct {
		p x402.Payment
		r x402.Requirements
	}{"EIP-3009": {p, r}, "Permit2": {permit, plain}, "inside": {inside, dear}} {
		lying := &x402.Confirmed{Facilitator: claiming(t), Verifier: f.Verifier, History: f.History,
			Wait: time.Millisecond}
		if s, err := lying.Settle(t.Context(), x.p, x.r); !errors.Is(err, x402.ErrUnknownEnd) || s.Success {
			t.Errorf("%s: a claim is believed: %+v, %v", name, s, err)
		}
		for who, one := range map[string]x402.Facilitator{"local": f,
			"remote": &x402.Confirmed{Facilitator: refusing(t), Verifier: f.Verifier, History: f.History}} {
			if name == "inside" {
				if s, err := one.Settle(t.Context(), x.p, x.r); !errors.Is(err, x402.ErrUnknownEnd) || s.Success ||
					s.Dead {
					t.Errorf("%s, %s: %+v, %v", name, who, s, err)
				}
			} else if s := w.dead(t, one, x.p, x.r); s.Success || !s.Dead {
				t.Errorf("%s, %s: %+v", name, who, s)
			}
		}
	}
}

// aggregate is a call of Multicall3 with one call.
func aggregate(t *testing.T, to common.Address, data []byte) []byte {
	t.Helper()
	contract, err := abi.JSON(strings.NewReader(`[{"type":"function","name":"aggregate3","inputs":[{"name":"calls","type":"tuple[]",
		"components":[{"name":"target","type":"address"},{"name":"allowFailure","type":"bool"},{"name":"callData","type":"bytes"}]}]}]`))
	ok(t, err)
	out, err := contract.Pack("aggregate3", []struct {
		Target       common.Address
		AllowFailure bool
		CallData     []byte
	}{{to, false, data}})
	ok(t, err)
	return out
}

// dead settles a payment until its end is known.
func (w *world) dead(t *testing.T, f x402.Facilitator, p x402.Payment, r x402.Requirements) (s x402.Settlement) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var err error
		if s, err = f.Settle(t.Context(), p, r); err == nil && s.Dead {
			return s
		} else if err != nil && !errors.Is(err, x402.ErrUnknownEnd) {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	return s
}

// TestEnded: of a payment that was never settled the end is open as long as it can be, and known when a final
// block is later than its authorization.
func TestEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.facilitator(t)
	for name, r := range map[string]x402.Requirements{"EIP-3009": w.Requirements(10),
		"Permit2": w.PlainRequirements(10)} {
		r.MaxTimeoutSeconds = 12
		p := w.Pay(t, r)
		remote := &x402.Confirmed{Facilitator: refusing(t), Verifier: f.Verifier, History: f.History}
		if s, err := remote.Settle(t.Context(), p, r); err != nil || s.Success || s.Dead {
			t.Errorf("%s, at first: %+v, %v", name, s, err)
		}
		if s := w.dead(t, remote, p, r); s.ErrorReason != x402.ReasonInsufficientFunds {
			t.Errorf("%s, in the end: %+v", name, s)
		}
	}
	if w.paid(t) != 0 || w.sent(t) != 0 {
		t.Errorf("%d units moved in %d transactions", w.paid(t), w.sent(t))
	}
}
