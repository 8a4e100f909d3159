package compliance

import (
	"context"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute/x402"
)

// purse counts what it is asked to sign.
type purse struct{ signed atomic.Int64 }

func (p *purse) Address() common.Address { return common.Address{19: 7} }

func (p *purse) SignTyped(context.Context, apitypes.TypedData) ([]byte, error) {
	p.signed.Add(1)
	return make([]byte, 65), nil
}

// TestRefusedPaymentsAreNotOfThePayer: a runtime could settle a payment that it has to refuse. None of them is signed
// with the key that pays, whatever the price.
func TestRefusedPaymentsAreNotOfThePayer(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(x402.HeaderPayment) != "" {
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = w.Write([]byte(`{"error":"payment_required","message":"pay"}`))
	}))
	defer server.Close()
	for _, price := range []int64{50, 1_000_000_000} {
		payer := &purse{}
		s, err := newSuite(Options{URL: server.URL, Payer: payer, MaxPay: 100, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		amount, err := x402.AmountOf(big.NewInt(price))
		if err != nil {
			t.Fatal(err)
		}
		extra, err := x402.Extra{Name: "USDC", Version: "2"}.JSON()
		if err != nil {
			t.Fatal(err)
		}
		demand, err := x402.Encode(x402.PaymentRequired{X402Version: x402.V2, Resource: x402.Resource{URL: server.URL},
			Accepts: []x402.Requirements{{Scheme: x402.SchemeExact, Network: x402.Network(8453), Amount: amount,
				Asset: common.Address{19: 1}, PayTo: common.Address{19: 2}, MaxTimeoutSeconds: 60, Extra: extra}}})
		if err != nil {
			t.Fatal(err)
		}
		s.paid, s.demand = request{"echo", []byte(`{}`)}, &answer{status: http.StatusPaymentRequired, header: http.Header{}}
		s.demand.header.Set(x402.HeaderRequired, demand)
		before := asked.Load()
		for name, check := range map[string]func(context.Context) (string, error){"forged": s.checkForged,
			"other price": s.checkOtherPrice} {
			if _, err := check(t.Context()); err != nil {
				t.Errorf("%s at %d: %v", name, price, err)
			}
		}
		if asked.Load() != before+3 || payer.signed.Load() != 0 {
			t.Errorf("%d payments were sent, the payer signed %d", asked.Load()-before, payer.signed.Load())
		}
	}
}
