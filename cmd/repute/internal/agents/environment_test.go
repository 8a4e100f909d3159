package agents_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	agentconfig "repute/agent/config"
	"repute/agent/signed"
	"repute/internal/freeport"
	"repute/internal/paytest"
	"repute/x402"
)

// capabilitiesFile says what an agent does and takes. Everything else is left to the environment.
const capabilitiesFile = `profile: {name: echo agent}
policy: {unsigned: true}
payments:
  settler: settler
  tokens: [{asset: "%s", symbol: USDC, decimals: 6, name: USDC, version: "2"}]
` + capabilities

// environment sets each variable of section 14 to what the world has, and returns the port and the payee.
func (w *world) environment(t *testing.T) (port, payee string) {
	t.Helper()
	port, payee = freeport.Port(t), common.HexToAddress("0xca5e").Hex()
	key := w.Account(paytest.PayeeAccount).Key
	values := map[string]string{"AGENT_ID": "0", "AGENT_PRIVATE_KEY": "0x" + hex.EncodeToString(crypto.FromECDSA(key)),
		"AGENT_METADATA_URI": "https://agent.example/other.json", "AGENT_REGISTRY_CONTRACT": w.Chain().Identity.Hex(),
		"RPC_URL": w.RPCURL(), "INDEXER_URL": w.index.URL, "AGENT_PORT": port, "AGENT_LOG_LEVEL": "debug",
		"AGENT_PAYMENT_ADDRESS": payee, "AGENT_POLICY_URI": w.file(t, "policy.json",
			`{"version":"1.0","agentId":0,"rules":{"payment":{"freeTierRateLimit":1}}}`)}
	for _, name := range agentconfig.Variables() {
		if values[name] == "" {
			t.Fatalf("the test sets no %s", name)
		}
		t.Setenv(name, values[name])
	}
	return port, payee
}

// TestServeByEnvironment serves an agent that the environment alone names: each variable of section 14 has its effect.
func TestServeByEnvironment(t *testing.T) {
	w := newWorld(t)
	handler, _, _ := worker(t)
	port, payee := w.environment(t)
	url, out, stop := w.serve(t, w.file(t, "agent.yaml", fmt.Sprintf(capabilitiesFile, w.Token, handler, handler)))
	if url != "http://127.0.0.1:"+port {
		t.Errorf("AGENT_PORT %s: it listens on %s", port, url)
	}
	res := post(t, url+"/capability/echo", `{"text":"a"}`, nil)
	response, err := signed.ReadResponse(res.Header)
	ok(t, err)
	body, err := io.ReadAll(res.Body)
	ok(t, err)
	if by, err := response.Verify(body); err != nil || by != w.Payee() {
		t.Errorf("AGENT_PRIVATE_KEY: signed by %s, %v", by, err)
	}
	if got := post(t, url+"/capability/echo", `{"text":"a"}`, nil).StatusCode; got != http.StatusTooManyRequests {
		t.Errorf("AGENT_POLICY_URI: the second free request is answered with %d", got)
	}
	d, _, err := x402.DemandOf(post(t, url+"/capability/report", `{}`, nil).Header, nil)
	ok(t, err)
	if got := d.Accepts[0].PayTo.Hex(); got != payee {
		t.Errorf("AGENT_PAYMENT_ADDRESS: %s is paid", got)
	}
	w.healthByEnvironment(t, url)
	if said := out.String(); !strings.Contains(said, `"level":"DEBUG"`) ||
		!strings.Contains(said, "AGENT_METADATA_URI") {
		t.Errorf("AGENT_LOG_LEVEL, AGENT_METADATA_URI: %s", said)
	}
	if strings.Contains(out.String(), os.Getenv("AGENT_PRIVATE_KEY")[2:]) {
		t.Error("the log shows the key")
	}
	ok(t, stop())
}

// healthByEnvironment checks who the agent is, and that the index was asked for its score.
func (w *world) healthByEnvironment(t *testing.T, url string) {
	t.Helper()
	var health struct {
		AgentID    string
		Reputation struct{ Score float64 }
	}
	got, err := http.Get(url + "/health")
	ok(t, err)
	defer got.Body.Close()
	ok(t, json.NewDecoder(got.Body).Decode(&health))
	if health.AgentID != "0" || health.Reputation.Score != float64(w.score.Load()) {
		t.Errorf("AGENT_ID, INDEXER_URL: %+v", health)
	}
}
