package agents_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/agent"
	"repute/cmd/repute/internal/clitest"
	"repute/x402"
)

// readAll reads the body of an answer.
func readAll(t *testing.T, res *http.Response) []byte {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	ok(t, err)
	return body
}

// TestRefunds: a payment that was charged for a call that failed is listed where the policy owes it back, until its
// repayment is stored, once.
func TestRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "broken", http.StatusInternalServerError)
	}))
	t.Cleanup(broken.Close)
	policy := w.file(t, "policy.json", `{"version":"1.0","agentId":0,"rules":{"payment":{"refundPolicy":"onFailure"}}}`)
	file := w.agentFile(t, "0", w.key, "policy: {uri: "+policy+", unsigned: true}\n", broken.URL)
	given, err := os.ReadFile(file)
	ok(t, err)
	raw := strings.Replace(string(given), "  - name: report\n", "  - name: report\n    sideEffects: true\n", 1)
	url, _, _ := w.serve(t, w.file(t, "agent.yaml", raw))
	asked := post(t, url+"/capability/report", `{}`, nil)
	body := readAll(t, asked)
	d, _, err := x402.DemandOf(asked.Header, body)
	ok(t, err)
	payment, err := x402.Encode(w.Pay(t, d.Accepts[0]))
	ok(t, err)
	got := post(t, url+"/capability/report", `{}`, http.Header{http.CanonicalHeaderKey(x402.HeaderPayment): {payment}})
	if says := readAll(t, got); got.StatusCode != http.StatusInternalServerError ||
		!strings.Contains(string(says), "owes it back") {
		t.Fatalf("%d %s", got.StatusCode, says)
	}
	id := "eip155:31337:" + w.Chain().Identity.Hex() + ":0"
	refunds := func(args ...string) (string, error) {
		var out clitest.Output
		err := w.run(t.Context(), &out, append([]string{"refunds", id, "--database-url", w.database}, args...)...)
		return out.String(), err
	}
	text, err := refunds()
	ok(t, err)
	for other, want := range map[string]string{"8453:22": "nothing is owed back", "31337:0": "eip155:31337:REGISTRY:0",
		"0": "names no chain"} {
		var out clitest.Output
		says := ""
		if err := w.run(t.Context(), &out, "refunds", other, "--database-url", w.database); err != nil {
			says = err.Error()
		}
		if !strings.Contains(out.String()+says, want) {
			t.Errorf("refunds of %s: %s%s", other, &out, says)
		}
	}
	if !strings.Contains(text, "0.02 USDC") || !strings.Contains(text, w.Account(1).Address.Hex()) {
		t.Errorf("%s", text)
	}
	text, err = refunds("--json")
	ok(t, err)
	var list []agent.Owed
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 1 || list[0].Transaction == "" {
		t.Fatalf("%s: %v", text, err)
	}
	if _, err := refunds("--paid", list[0].Payment, "--transaction", "0x1"); err == nil {
		t.Error("a wrong hash is stored")
	}
	hash := common.Hash{1}.Hex()
	_, err = refunds("--paid", list[0].Payment, "--transaction", hash)
	ok(t, err)
	if _, err := refunds("--paid", list[0].Payment, "--transaction", hash); err == nil {
		t.Error("it is paid back twice")
	}
	if text, err := refunds(); err != nil || !strings.Contains(text, "nothing is owed back") {
		t.Errorf("%s: %v", text, err)
	}
}
