package wallet_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
)

// Neither an endpoint nor a signer leads requests elsewhere, or is read without end.
func TestTransport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var led atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { led.Add(1) }))
	t.Cleanup(target.Close)
	redirects := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirects.Close)
	var sent atomic.Int64
	endless := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		n, _ := io.WriteString(rw, `{"jsonrpc":"2.0","id":1,"result":"`)
		for part := strings.Repeat("0", 1<<20); n > 0 && sent.Load() < 200<<20; sent.Add(int64(n)) {
			n, _ = io.WriteString(rw, part)
		}
	}))
	t.Cleanup(endless.Close)
	for name, url := range map[string]string{"redirect": redirects.URL, "endless": endless.URL} {
		a, _ := w.open(w.config(url))
		if _, err := a.Simulate(t.Context(), origin, w.pay("x", "1").Tx); err == nil {
			t.Errorf("%s: an endpoint answered", name)
		}
		c := w.config()
		c.Operator = keys.Config{URL: url, Address: w.d.Account(operatorAccount).Address}
		b, _ := w.open(c)
		if _, err := b.SignConsent(t.Context(),
			wallet.Consent{ChainID: c.ChainID, Agent: n(1), Wallet: c.Operator.Address,
				Owner: common.HexToAddress("0x1"), Deadline: 1}); err == nil {
			t.Errorf("%s: a signer answered", name)
		}
	}
	if led.Load() != 0 {
		t.Errorf("%d requests were led elsewhere", led.Load())
	}
	if got := sent.Load(); got > 180<<20 { // two answers, cut off at 64 MiB each, and what buffers hold
		t.Errorf("%d bytes of endless answers were taken", got)
	}
}
