package agents_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/agent/governance"
	"repute/agent/signed"
	"repute/cmd/repute/internal/clitest"
	"repute/internal/paytest"
)

// signedPolicy is the file of a policy that allows one free request, with the signature of an account.
func (w *world) signedPolicy(t *testing.T, account int) string {
	t.Helper()
	const text = `{"version":"1.0","agentId":0,"rules":{"payment":{"freeTierRateLimit":1}},"issuedAt":"2026-11-01T00:00:00Z"%s}`
	p, err := governance.Parse(fmt.Appendf(nil, text, ""))
	ok(t, err)
	domain := signed.DomainOf(repute.AgentID{ChainID: w.Chain().ID, Registry: w.Chain().Identity})
	said := signed.Policy{PolicyHash: p.Hash()}
	signature, err := w.Signer(account).SignTyped(t.Context(), said.Data(domain))
	ok(t, err)
	return w.file(t, fmt.Sprintf("policy%d.json", account),
		fmt.Sprintf(text, fmt.Sprintf(`,"signature":%q`, hexutil.Encode(signature))))
}

// TestPolicyOfOwner serves an agent by a policy that its owner onchain signed, and by none that anybody else signed.
func TestPolicyOfOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler, _, _ := worker(t)
	by := func(account int) string {
		return w.agentFile(t, "0", w.key, "policy: {uri: "+w.signedPolicy(t, account)+"}", handler)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // an agent that is served runs until then
	defer cancel()
	err := w.run(ctx, &clitest.Output{}, "serve", "--config", by(paytest.StrangerAccount), "--main-config", w.main,
		"--database-url", w.database)
	if err == nil || !strings.Contains(err.Error(), "signature") {
		t.Errorf("signed by another: %v", err)
	}
	url, _, stop := w.serve(t, by(paytest.PayeeAccount))
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if got := post(t, url+"/capability/echo", `{"text":"hello"}`, nil).StatusCode; got != want {
			t.Errorf("request %d is answered with %d", i+1, got)
		}
	}
	ok(t, stop())
}
