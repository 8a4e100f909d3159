package capability_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute/agent/capability"
	"repute/agent/signed"
	"repute/internal/freeport"
)

const (
	runtimeExample = "../../examples/minimal-runtime/dist/runtime.js"
	verifyExample  = "../../examples/verify-response/dist/verify.js"
	registry       = "0x8004A818BFB912233c491871b3d84c89A494BD9e"
)

// localFacilitator accepts every payment, and counts what it settled.
func localFacilitator(t *testing.T) (url string, settled *atomic.Int64) {
	t.Helper()
	settled = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/verify":
			_, _ = io.WriteString(w, `{"isValid":true,"payer":"0x00000000000000000000000000000000000000aa"}`)
		case "/settle":
			settled.Add(1)
			_, _ = io.WriteString(w, `{"success":true,"transaction":"0x01","network":"eip155:84532"}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, settled
}

// startRuntime starts the example and returns its base URL and the address of its key.
func startRuntime(t *testing.T, node, facilitator string) (string, common.Address) {
	t.Helper()
	port := freeport.Port(t)
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, runtimeExample)
	cmd.Env = append(os.Environ(), "AGENT_ID=42", "AGENT_PRIVATE_KEY="+hexutil.Encode(crypto.FromECDSA(key)),
		"AGENT_REGISTRY_CONTRACT="+registry, "FACILITATOR_URL="+facilitator, "AGENT_PORT="+port)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	base := "http://127.0.0.1:" + port
	for range 600 {
		if resp, err := http.Get(base + "/health"); err == nil {
			_ = resp.Body.Close()
			return base, crypto.PubkeyToAddress(key.PublicKey)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the example does not start")
	return "", common.Address{}
}

// signer recovers who signed an answer, by the headers and the body alone.
func signer(t *testing.T, h http.Header, body []byte) common.Address {
	t.Helper()
	result, err := signed.HashJSON(body)
	if err != nil || h.Get("X-Agent-Result-Hash") != result.Hex() {
		t.Fatalf("the result hash is %s, %v; the header has %s", result, err, h.Get("X-Agent-Result-Hash"))
	}
	field := func(name, of string) apitypes.Type { return apitypes.Type{Name: name, Type: of} }
	digest, _, err := apitypes.TypedDataAndHash(apitypes.TypedData{PrimaryType: "TaskResponse",
		Types: apitypes.Types{
			"EIP712Domain": {field("name", "string"), field("version", "string"), field("chainId", "uint256"),
				field("verifyingContract", "address")},
			"TaskResponse": {field("agentId", "uint256"), field("taskHash", "bytes32"), field("resultHash", "bytes32"),
				field("timestamp", "uint256"), field("metadata", "string")}},
		Domain: apitypes.TypedDataDomain{Name: "TrustlessAgentFramework", Version: "1",
			ChainId: (*math.HexOrDecimal256)(big.NewInt(84532)), VerifyingContract: registry},
		Message: apitypes.TypedDataMessage{"agentId": h.Get("X-Agent-ID"), "taskHash": h.Get("X-Agent-Task-Hash"),
			"resultHash": result.Hex(), "timestamp": h.Get("X-Agent-Timestamp"),
			"metadata": h.Get("X-Agent-Metadata")}})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := hexutil.Decode(h.Get("X-Agent-Signature"))
	if err != nil || len(signature) != 65 {
		t.Fatalf("signature %x, %v", signature, err)
	}
	signature[64] -= 27
	public, err := crypto.SigToPub(digest, signature)
	if err != nil {
		t.Fatal(err)
	}
	return crypto.PubkeyToAddress(*public)
}

// TestMinimalRuntime asks, pays and verifies examples/minimal-runtime, and lets
// examples/verify-response verify the same answer. make examples compiles both.
func TestMinimalRuntime(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	for _, file := range []string{runtimeExample, verifyExample} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("the examples are not compiled: run make examples")
		}
	}
	url, settled := localFacilitator(t)
	base, key := startRuntime(t, node, url)
	ask := func(method, path, body, payment string) (*http.Response, []byte) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if payment != "" {
			req.Header.Set("PAYMENT-SIGNATURE", payment)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body)
		if by := signer(t, resp.Header, got); by != key {
			t.Errorf("%s %s: signed by %s, the key is of %s", method, path, by, key)
		}
		resp.Body = io.NopCloser(strings.NewReader(string(got)))
		return resp, got
	}
	if resp, body := ask("GET", "/health", "", ""); resp.StatusCode != 200 || !strings.Contains(string(body),
		`"agentId":"42"`) {
		t.Errorf("health: %d %s", resp.StatusCode, body)
	}
	const path, input = "/capability/word-count", `{"text": "one  two"}`
	for wrong, want := range map[string]int{`{}`: 400, `{`: 400, `{"text":"a","more":1}`: 400,
		`{"text":"` + strings.Repeat("x", 2<<20) + `"}`: 413} {
		if resp, _ := ask("POST", path, wrong, ""); resp.StatusCode != want {
			t.Errorf("%.30s: %d", wrong, resp.StatusCode)
		}
	}
	task, err := capability.TaskHash("42", "word-count", "1.0.0", json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	resp, _ := ask("POST", path, input, "")
	if resp.StatusCode != 402 || resp.Header.Get("X-Payment-TaskHash") != task.Hex() {
		t.Fatalf("unpaid: %d, %v; the task hash is %s", resp.StatusCode, resp.Header, task)
	}
	payment := payFor(t, resp.Header.Get("PAYMENT-REQUIRED"))
	for range 2 {
		resp, body := ask("POST", path, input, payment)
		if resp.StatusCode != 200 || string(body) != `{"words":2}` || resp.Header.Get("PAYMENT-RESPONSE") == "" {
			t.Fatalf("paid: %d %s", resp.StatusCode, body)
		}
		verifyOutside(t, node, resp, key)
	}
	if other, _ := ask("POST", path, `{"text":"x"}`, payment); other.StatusCode != 409 || settled.Load() != 1 {
		t.Errorf("the payment for another request: %d; %d settlements", other.StatusCode, settled.Load())
	}
}

// payFor makes a payment that the facilitator of these tests accepts.
func payFor(t *testing.T, demand string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(demand)
	var d struct {
		X402Version int
		Accepts     []json.RawMessage
	}
	if err != nil || json.Unmarshal(raw, &d) != nil || d.X402Version != 2 || len(d.Accepts) != 1 {
		t.Fatalf("the demand is %s, %v", raw, err)
	}
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil,
		`{"x402Version":2,"accepted":%s,"payload":{"signature":"0x00","authorization":{}}}`, d.Accepts[0]))
}

// verifyOutside lets examples/verify-response check an answer, and the same with another body.
func verifyOutside(t *testing.T, node string, resp *http.Response, key common.Address) {
	t.Helper()
	raw, err := httputil.DumpResponse(resp, true)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "answer.txt")
	run := func(answer, signer string) error {
		if err := os.WriteFile(file, []byte(answer), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(node, verifyExample, file, signer).CombinedOutput()
		if err == nil && !strings.Contains(string(out), key.Hex()) {
			t.Errorf("it prints %s", out)
		}
		return err
	}
	if err := run(string(raw), key.Hex()); err != nil {
		t.Errorf("the answer: %v", err)
	}
	if run(strings.Replace(string(raw), `"words":2`, `"words":3`, 1), key.Hex()) == nil {
		t.Error("it accepts another body")
	}
	if run(string(raw), registry) == nil {
		t.Error("it accepts another signer")
	}
}
