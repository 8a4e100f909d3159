package agents_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings/fixtures"
	"repute/internal/paytest"
	"repute/manifest"
	"repute/orchestrator/agents"
	"repute/orchestrator/settlement"
	"repute/resolver"
	"repute/x402"
)

// units is what an account has of the token.
func (w *world) units(account int) int64 {
	w.t.Helper()
	out, err := w.d.Client().CallContract(w.t.Context(), ethereum.CallMsg{To: &w.token,
		Data: fixtures.NewAuthorizedToken().PackBalanceOf(w.d.Account(account).Address)}, nil)
	ok(w.t, err)
	return new(big.Int).SetBytes(out).Int64()
}

// sells makes the subject's paid endpoint cost two cents.
func (w *world) sells() *paytest.Shop {
	w.t.Helper()
	c := w.d.Chain()
	f, err := settlement.New(w.db, w.purse, settlement.Options{Settler: "settler", Chains: []uint64{c.ID},
		Tokens: map[uint64][]common.Address{c.ID: {w.token}}})
	ok(w.t, err)
	extra, err := x402.Extra{Name: paytest.TokenName, Version: paytest.TokenVersion}.JSON()
	ok(w.t, err)
	shop := &paytest.Shop{Facilitator: f, Accepts: []x402.Requirements{{Scheme: x402.SchemeExact,
		Network: x402.Network(c.ID),
		Amount:  x402.NewAmount(20_000), Asset: w.token, PayTo: w.d.Account(subjectAccount).Address,
		MaxTimeoutSeconds: 36_000,
		Extra:             extra}}}
	w.shop.Store(shop)
	w.until("the chain's clock is that of today",
		func() bool { return !w.d.Head().Time.Before(time.Now().Add(-5 * time.Second)) })
	return shop
}

// The reporter pays for what it measures where it is asked to, and the rating of the success rate
// carries the payment as its proof. An agent that the index does not trust is neither paid nor rated.
func TestPaidReport(t *testing.T) {
	t.Parallel()
	for name, served := range map[string][]string{"in the binary": nil, "elsewhere": agents.Names()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPaidReport(t, newWorld(t, served...))
		})
	}
}

func testPaidReport(t *testing.T, w *world) {
	t.Helper()
	shop, at := w.sells(), w.server.URL+"/paid"
	input := func(more string) string {
		return fmt.Sprintf(`{"agent":"31337:0","endpoint":%q,"pay":true,"body":{"q":1}%s}`, at, more)
	}
	w.low.Store(19)
	w.fails(agents.Reporter, input(""), "has a score of at least 19, 20 are needed")
	w.low.Store(40)
	list, err := w.d.View().AllFeedback(t.Context(), 0)
	if err != nil || len(list) != 0 || w.units(subjectAccount) != 0 || shop.Runs() != 0 {
		t.Fatalf("%d ratings, %d units, %d runs: %v", len(list), w.units(subjectAccount), shop.Runs(), err)
	}
	got := into[agents.Reported](t, w.completed(agents.Reporter, input(`,"requests":2`))["work"])
	if w.units(subjectAccount) != 40_000 || shop.Runs() != 2 || len(got.Requests) != 2 || got.Payment == nil ||
		got.Payment.Dollars != "0.02" || got.Payment.Agent != w.identity(0).String() ||
		got.Answer != `{"echo":"{\"q\":1}","run":2}` {
		t.Fatalf("%d units, %d runs: %+v, %+v", w.units(subjectAccount), shop.Runs(), got, got.Payment)
	}
	for _, r := range got.Ratings {
		body, err := resolver.Inline(r.URI, 1<<20)
		ok(t, err)
		file, problems := manifest.ParseFeedback(body)
		var proof struct {
			ProofOfPayment *struct{ FromAddress, ToAddress, ChainID, TxHash string }
		}
		ok(t, json.Unmarshal(body, &proof))
		p := proof.ProofOfPayment
		if repute.HasErrors(problems) || file.Value != fmt.Sprint(r.Value) || (p != nil) != (r.Tag1 == "successRate") {
			t.Errorf("%s: file %s, %+v", r.Tag1, body, problems)
		}
		if p != nil && (p.TxHash != got.Payment.Transaction || p.ChainID != "31337" ||
			!strings.EqualFold(p.FromAddress, w.d.Account(reporterAccount).Address.Hex()) ||
			!strings.EqualFold(p.ToAddress, w.d.Account(subjectAccount).Address.Hex())) {
			t.Errorf("proof %+v of %+v", p, got.Payment)
		}
	}
	// Without pay a demand is an answer like any other: the endpoint does not answer to it.
	unpaid := into[agents.Reported](t, w.completed(agents.Reporter,
		fmt.Sprintf(`{"agent":"31337:0","endpoint":%q,"requests":1}`, at))["work"])
	if unpaid.Payment != nil || unpaid.Requests[0].Status != 402 || unpaid.Ratings[0].Value != 0 {
		t.Errorf("%+v", unpaid)
	}
}
