package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute/agent"
	"repute/agent/capability"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/x402"
	"repute/x402/facilitator"
)

// liar is a facilitator of others.
type liar struct {
	verify, settle func(w http.ResponseWriter, r *http.Request)
}

// ServeHTTP implements http.Handler.
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/verify") {
		l.verify(w, r)
		return
	}
	l.settle(w, r)
}

func says(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// TestLyingFacilitator: no content is given that was not paid for, whatever a facilitator says, and
// nothing that it writes is shown.
func TestLyingFacilitator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	payer := w.Account(1).Address.Hex()
	yes := says(fmt.Sprintf(`{"isValid":true,"payer":%q}`, payer))
	hash := common.HexToHash("0x12").Hex()
	settled := fmt.Sprintf(`{"success":true,"transaction":%q,"network":"eip155:31337","payer":%q}`, hash, payer)
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	}
	for name, c := range map[string]struct {
		verify, settle func(http.ResponseWriter, *http.Request)
		status         int
		code           string
		runs           int
	}{
		"says yes and never settles": {yes, says(settled), 503, "payment_pending", 1},
		"hangs at verify":            {hang, says(settled), 503, "unavailable", 0},
		"hangs at settle":            {yes, hang, 503, "payment_pending", 1},
		"answers HTML":               {says("<html>secret</html>"), says(""), 503, "unavailable", 0},
		"settles with HTML":          {yes, says("<html>secret</html>"), 503, "payment_pending", 1},
		"success without a hash": {yes, says(`{"success":true,"transaction":"","network":"eip155:31337"}`), 503,
			"payment_pending", 1},
		"another payer": {says(`{"isValid":true,"payer":"0x0000000000000000000000000000000000000001"}`),
			says(settled), 503, "unavailable", 0},
		"refuses with markup": {says(`{"isValid":false,"invalidReason":"<script>secret</script>","invalidMessage":"secret"}`), says(settled),
			402, "payment_required", 0},
		"refuses to settle": {yes,
			says(`{"success":false,"errorReason":"insufficient_funds","errorMessage":"secret","transaction":"","network":"eip155:31337"}`),
			402, "payment_required", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&liar{verify: c.verify, settle: c.settle})
			t.Cleanup(server.Close)
			client, err := facilitator.NewClient(nil, time.Second, server.URL)
			ok(t, err)
			db := database(t, w.url)
			wl, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{w.chain(t)}})
			ok(t, err)
			t.Cleanup(wl.Close)
			f := &x402.Confirmed{Facilitator: client, Wait: time.Second,
				Verifier: &x402.Verifier{Chain: settlement.Chain{Wallet: wl}},
				History:  wl}
			h := &echo{}
			s := w.open(t, agent.Options{Payments: w.payments(f)}, service(t, "echo", h, w.price(), nil),
				service(t, "change", h, w.price(), func(d *capability.Definition) { d.SideEffects = true }))
			head := header(t, w.Pay(t, w.Requirements(10)))
			for range 2 {
				got := s.send(t, "echo", hello, head)
				var body struct{ Error string }
				ok(t, json.Unmarshal([]byte(got.body), &body))
				if got.status != c.status || body.Error != c.code || h.count() != c.runs ||
					strings.Contains(got.body, "secret") ||
					strings.Contains(fmt.Sprint(got.header), "secret") || strings.Contains(got.body, `"run"`) {
					t.Errorf("%d %s, %d runs", got.status, got.body, h.count())
				}
				if got.status == 503 && got.header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			}
			head = header(t, w.Pay(t, w.Requirements(10)))
			if got := s.send(t, "change", hello, head); got.status != c.status || h.count() != c.runs {
				t.Errorf("settled before: %d %s, %d runs", got.status, got.body, h.count())
			}
		})
	}
}
