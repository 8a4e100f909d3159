package agents_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/contracts/bindings"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/x402"
)

// report pays for one, and returns what the answer says of its validation.
func (w *world) report(t *testing.T, url string) http.Header {
	t.Helper()
	res := post(t, url+"/capability/report", `{}`, nil)
	d, _, err := x402.DemandOf(res.Header, nil)
	ok(t, err)
	p, err := x402.Pay(t.Context(), w.Signer(paytest.PayerAccount), &d, x402.V2, d.Accepts[0], time.Now())
	ok(t, err)
	text, err := x402.Encode(p)
	ok(t, err)
	first := post(t, url+"/capability/report", `{}`, http.Header{"Payment-Signature": {text}})
	again := post(t, url+"/capability/report", `{}`, http.Header{"Payment-Signature": {text}})
	const name = "X-Agent-Validation-Request"
	if first.StatusCode != http.StatusOK || first.Header.Get("X-Agent-Validation") != "required" ||
		first.Header.Get(name) != again.Header.Get(name) ||
		!strings.Contains(first.Header.Get("X-Agent-Metadata"), first.Header.Get(name)) {
		t.Errorf("%d %v, again %v", first.StatusCode, first.Header, again.Header)
	}
	return first.Header
}

// TestValidation: a paid result above the threshold of the policy is confirmed on the chain: the agent
// asks its validator once, also where it was stopped before, takes the answer, and judges the validator
// by its score.
func TestValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	validator, c := w.Account(paytest.StrangerAccount), w.Chain()
	var score atomic.Int64
	score.Store(90)
	index := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/reputation"):
			fmt.Fprintf(out, `{"score":%d,"status":"rated"}`, score.Load())
		case r.URL.Query().Get("wallet") == validator.Address.Hex():
			_, _ = io.WriteString(out, `{"items":[{"id":"31337:7"}]}`)
		default:
			_, _ = io.WriteString(out, `{"items":[]}`)
		}
	}))
	t.Cleanup(index.Close)
	w.index = index
	settler := filepath.Join(w.dir, "settler")
	ok(t, os.WriteFile(settler, []byte(hex.EncodeToString(crypto.FromECDSA(w.Account(paytest.SettlerAccount).Key))),
		0o600))
	main := fmt.Sprintf(mainFile, c.Identity, c.Reputation, w.RPCURL(), w.Token, settler)
	main = strings.Replace(main, "start_block: 1,",
		fmt.Sprintf("start_block: 1, validations: [%q],", c.Validations[0]), 1)
	main = strings.Replace(main, "{settler:", fmt.Sprintf(`{owner: "file:%s", settler:`, w.key), 1)
	w.main = w.file(t, "repute.yaml", main)
	policy := w.file(t, "policy.json", `{"version":"1.0","agentId":0,"rules":{"validation":{
		"requireValidationAbove":"0.001 USDC","validatorMinReputation":80}}}`)
	more := fmt.Sprintf("policy: {uri: %s, unsigned: true}\nvalidation: {validator: %q, sender: owner}\nreceipts: {public: true}",
		policy, validator.Address)
	handler, _, _ := worker(t)
	text, err := os.ReadFile(w.agentFile(t, "0", w.key, more, handler))
	ok(t, err)
	file := w.file(t, "agent.yaml", strings.Replace(string(text), "  id: 0",
		fmt.Sprintf("  id: 0\n  validations: %q", c.Validations[0]), 1))
	before, _, stop := w.serve(t, file)
	asked := []common.Hash{common.HexToHash(w.report(t, before).Get("X-Agent-Validation-Request"))}
	ok(t, stop()) // before or after it was sent
	url, out, stop := w.serve(t, file)
	asked = append(asked, common.HexToHash(w.report(t, url).Get("X-Agent-Validation-Request")))
	if asked[0] == asked[1] || asked[0] == (common.Hash{}) {
		t.Fatalf("%v", asked)
	}
	receipts := func(status string) []map[string]any {
		t.Helper()
		for end := time.Now().Add(90 * time.Second); ; time.Sleep(500 * time.Millisecond) {
			res, err := http.Get(url + "/agent/0/receipts")
			ok(t, err)
			var list []struct{ Validation map[string]any }
			ok(t, json.NewDecoder(res.Body).Decode(&list))
			_ = res.Body.Close()
			found := []map[string]any{}
			for _, r := range list {
				if r.Validation["status"] == status {
					found = append(found, r.Validation)
				}
			}
			if len(found) == len(asked) {
				return found
			}
			if time.Now().After(end) {
				t.Fatalf("%+v, want all %s: %s", list, status, out)
			}
		}
	}
	receipts("requested")
	registry := bindings.NewValidationRegistry()
	raw, err := w.Client().CallContract(t.Context(), ethereum.CallMsg{To: &c.Validations[0],
		Data: registry.PackGetValidatorRequests(validator.Address)}, nil)
	ok(t, err)
	requests, err := registry.UnpackGetValidatorRequests(raw)
	if err != nil || len(requests) != 2 || common.Hash(requests[0]) != asked[0] ||
		common.Hash(requests[1]) != asked[1] {
		t.Errorf("the chain has the requests %x, %v; want %v", requests, err, asked)
	}
	b := w.Batch()
	for i, hash := range asked {
		b.ValidationResponse(validator, devnet.ValidationAnswer{Request: hash, Response: uint8(90 + i),
			Tag: "re-execution"})
	}
	_, err = b.Mine(t.Context())
	ok(t, err)
	for _, v := range receipts("judged") {
		if v["counts"] != true || v["response"].(float64) < 90 || v["tag"] != "re-execution" ||
			!strings.EqualFold(fmt.Sprint(v["validator"]), validator.Address.Hex()) {
			t.Errorf("%v", v)
		}
	}
	for _, want := range []string{`"msg":"validation requested"`, `"msg":"validation answered"`,
		`"msg":"validation judged"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	ok(t, stop())
}
