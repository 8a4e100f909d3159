package agents_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/cobra"

	"repute/agent/compliance"
	agentconfig "repute/agent/config"
	"repute/cmd/repute/internal/agents"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
	"repute/cmd/repute/internal/tasks"
	"repute/contracts/bindings"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/x402"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// world is a chain with an agent, an index that says a score, and files of configuration.
type world struct {
	*paytest.World
	dir, database, main, key string
	index                    *httptest.Server
	score                    atomic.Int64
	gone                     atomic.Bool // the index does not answer
}

const mainFile = `chains:
  - {name: pay, id: 31337, identity: "%s", reputation: "%s", start_block: 1, rpc: "%s", stablecoins: ["%s USDC 6"]}
orchestrator:
  wallets:
    - chain: pay
      identities: {settler: "file:%s"}
`

const agentFile = `agent:
  id: %s
  registry: "%s"
  reputation: "%s"
  key: file:%s
  rpc: %s
  indexer: %s
  metadata_uri: https://agent.example/other.json
profile: {name: echo agent, description: Echoes texts., version: 1.2.3}
listen: 127.0.0.1:0
payments:
  settler: settler
  tokens: [{asset: "%s", symbol: USDC, decimals: 6, name: USDC, version: "2"}]
%s
` + capabilities

// capabilities are what agents of these tests do, for a free and for a paid one.
const capabilities = `capabilities:
  - name: echo
    version: 1.0.0
    inputSchema: {type: object, properties: {text: {type: string}}, required: [text]}
    outputSchema: {type: object}
    handler: {http: %s}
  - name: report
    version: 1.0.0
    inputSchema: {type: object}
    outputSchema: {type: object}
    pricing: {amount: "0.02", currency: USDC}
    handler: {http: %s}
`

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: paytest.New(t, devnet.Options{}), database: pgtest.New(t), dir: t.TempDir()}
	key := func(account int) string {
		path := filepath.Join(w.dir, fmt.Sprintf("key%d", account))
		ok(t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.Account(account).Key))), 0o600))
		return path
	}
	c := w.Chain()
	w.key = key(paytest.PayeeAccount)
	w.main = w.file(t, "repute.yaml", fmt.Sprintf(mainFile, c.Identity, c.Reputation, w.RPCURL(), w.Token,
		key(paytest.SettlerAccount)))
	b := w.Batch()
	b.Register(w.Account(paytest.PayeeAccount), "https://agent.example/registration.json")
	_, err := b.Mine(t.Context())
	ok(t, err)
	w.score.Store(80)
	w.index = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.gone.Load() || r.URL.Path != "/agents/0/reputation" {
			http.Error(out, "<html>", http.StatusBadGateway)
			return
		}
		fmt.Fprintf(out, `{"score":%d,"status":"rated"}`, w.score.Load())
	}))
	t.Cleanup(w.index.Close)
	return w
}

func (w *world) file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	ok(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// agentFile is the configuration of an agent with more lines.
func (w *world) agentFile(t testing.TB, id, key, more, handler string) string {
	t.Helper()
	c := w.Chain()
	return w.file(t, "agent.yaml", fmt.Sprintf(agentFile, id, c.Identity, c.Reputation, key, w.RPCURL(), w.index.URL,
		w.Token,
		more, handler, handler))
}

// run runs a command of repute agent.
func (w *world) run(ctx context.Context, out *clitest.Output, args ...string) error {
	return clitest.Run(ctx, out, func(p *cli.Program) []*cobra.Command {
		agent := &cobra.Command{Use: "agent"}
		p.Flags.Database(agent.PersistentFlags())
		agent.AddCommand(agents.ServeCommand(p), agents.VerifyCommand(p), agents.ComplianceCommand(p),
			agents.RefundsCommand(p))
		return []*cobra.Command{agent}
	}, append([]string{"agent"}, args...)...)
}

// serve runs an agent, and returns its URL, what it says, and a function that ends it.
func (w *world) serve(t *testing.T, file string) (url string, out *clitest.Output, stop func() error) {
	t.Helper()
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	out, ended := &clitest.Output{}, make(chan error, 1)
	go func() {
		ended <- w.run(ctx, out, "serve", "--config", file, "--main-config", w.main, "--database-url", w.database)
	}()
	stop = sync.OnceValue(func() error { end(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	const said = "agent 31337:0 on "
	for until := time.Now().Add(time.Minute); !strings.Contains(out.String(), said); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err // for stop
			t.Fatalf("the agent does not serve: %v: %s", err, out)
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("the agent does not serve: %s", out)
		}
	}
	_, url, _ = strings.Cut(out.String(), said)
	url, _, _ = strings.Cut(url, "\n")
	return url, out, stop
}

// worker is a handler that echoes, when it is let to.
func worker(t *testing.T) (url string, begun chan struct{}, let chan struct{}) {
	t.Helper()
	begun, let = make(chan struct{}, 10), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "wait") {
			begun <- struct{}{}
			<-let
		}
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"call":%s}`, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, begun, let
}

func post(t *testing.T, url, body string, h http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	ok(t, err)
	r.Header.Set("Content-Type", "application/json")
	for k, v := range h {
		r.Header[k] = v
	}
	res, err := http.DefaultClient.Do(r)
	ok(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// TestServe runs an agent from its file: it is free and paid, verified offline, follows its score,
// and ends by itself when it is asked to.
func TestServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler, begun, let := worker(t)
	policy := w.file(t, "policy.json", `{"version":"1.0","agentId":0, // of the agent
		"rules":{"payment":{"freeTierRateLimit":3}}}`)
	url, out, stop := w.serve(t, w.agentFile(t, "0", w.key, "policy: {uri: "+policy+", unsigned: true}", handler))
	if !strings.Contains(out.String(), "the chain wins") {
		t.Errorf("the difference of the metadata URI is not told: %s", out)
	}
	res := post(t, url+"/capability/echo", `{"text":"hello"}`, nil)
	answer, err := httputil.DumpResponse(res, true)
	ok(t, err)
	file, input := w.file(t, "answer.txt", string(answer)), w.file(t, "input.json", `{"text": "hello"}`)
	said := &clitest.Output{}
	ok(t, w.run(t.Context(), said, "verify-response", file, "--input", input, "--capability", "echo", "--signer",
		w.Payee().Hex(), "--json"))
	if !strings.Contains(said.String(), `"task": "same"`) || !strings.Contains(said.String(), "eip155:31337") {
		t.Errorf("%s", said)
	}
	for _, change := range [][2]string{{"hello", "hallo"}, {"X-Agent-Timestamp: 1", "X-Agent-Timestamp: 2"}} {
		changed := w.file(t, "changed.txt", strings.ReplaceAll(string(answer), change[0], change[1]))
		if err := w.run(t.Context(), said, "verify-response", changed, "--signer", w.Payee().Hex()); err == nil {
			t.Errorf("an answer with %s is valid", change[1])
		}
	}
	w.paidReport(t, url)
	for i, want := range []int{200, 200, 429} {
		if res := post(t, url+"/capability/echo", `{"text":"hello"}`, nil); res.StatusCode != want {
			t.Errorf("free request %d: %d", i+2, res.StatusCode)
		}
	}
	var health struct {
		Status     string
		Reputation struct{ Score float64 }
		Heartbeat  struct{ Signature string }
	}
	got, err := http.Get(url + "/health")
	ok(t, err)
	ok(t, json.NewDecoder(got.Body).Decode(&health))
	if health.Status != "healthy" || health.Reputation.Score != 80 || health.Heartbeat.Signature == "" {
		t.Errorf("%+v", health)
	}
	ended := make(chan int, 1)
	go func() {
		// the payment makes it no free request
		d := w.Pay(t, w.Requirements(20_000))
		text, _ := x402.Encode(d)
		res := post(t, url+"/capability/report", `{"text":"wait"}`, http.Header{"Payment-Signature": {text}})
		ended <- res.StatusCode
	}()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	time.Sleep(300 * time.Millisecond)
	close(let)
	if status := <-ended; status != http.StatusOK {
		t.Errorf("the request in flight is answered with %d", status)
	}
	if err := <-stopped; err != nil || !strings.Contains(out.String(), `"msg":"stopped"`) {
		t.Errorf("%v: %s", err, out)
	}
	key, err := os.ReadFile(w.key)
	ok(t, err)
	if strings.Contains(out.String(), string(key)) {
		t.Error("the log shows the key")
	}
}

// paidReport pays for one.
func (w *world) paidReport(t *testing.T, url string) {
	t.Helper()
	res := post(t, url+"/capability/report", `{}`, nil)
	if res.StatusCode != http.StatusPaymentRequired {
		t.Fatalf("%d", res.StatusCode)
	}
	d, _, err := x402.DemandOf(res.Header, nil)
	ok(t, err)
	p, err := x402.Pay(t.Context(), w.Signer(paytest.PayerAccount), &d, x402.V2, d.Accepts[0], time.Now())
	ok(t, err)
	text, err := x402.Encode(p)
	ok(t, err)
	res = post(t, url+"/capability/report", `{}`, http.Header{"Payment-Signature": {text}})
	body, err := io.ReadAll(res.Body)
	ok(t, err)
	if res.StatusCode != http.StatusOK || w.Balance(t, w.Token, w.Payee()) != 20_000 ||
		!strings.Contains(string(body), `"amount":"20000"`) {
		t.Errorf("%d %s: %d units", res.StatusCode, body, w.Balance(t, w.Token, w.Payee()))
	}
}

// TestRefusedStart: an agent that is not what it says is not served, and the error tells what to do.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stranger := w.file(t, "stranger", hex.EncodeToString(crypto.FromECDSA(w.Account(paytest.StrangerAccount).Key)))
	for name, c := range map[string]struct{ id, key, more, want string }{
		"not registered": {"7", w.key, "", "is not registered"},
		"another key":    {"0", stranger, "", "agent.key"},
		"raw key":        {"0", "0x12", "", "agent.key"},
		"another chain":  {"8453:0", w.key, "", "agent.rpc"},
		"unknown member": {"0", w.key, "limits: {concurency: 3}", "limits.concurency: is not known"},
		"no policy":      {"0", w.key, "policy: {uri: /nowhere.json}", "policy.uri"},
	} {
		file := w.agentFile(t, c.id, c.key, c.more, "http://127.0.0.1:1")
		err := w.run(t.Context(), &clitest.Output{}, "serve", "--config", file, "--main-config", w.main,
			"--database-url", w.database)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The key is checked before the network is asked: here no node answers.
	given, err := os.ReadFile(w.agentFile(t, "0", "0x12", "", "http://127.0.0.1:1"))
	ok(t, err)
	file := w.file(t, "away.yaml", strings.ReplaceAll(string(given), w.RPCURL(), "http://127.0.0.1:1"))
	if err := w.run(t.Context(), &clitest.Output{}, "serve", "--config", file, "--main-config", w.main,
		"--database-url",
		w.database); err == nil || !strings.Contains(err.Error(), "agent.key") {
		t.Errorf("a wrong key without a node: %v", err)
	}
}

// TestComplianceCommand checks a served agent with its chain, its policy and a payment: nothing fails,
// and without a key the payment is skipped.
func TestComplianceCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler, _, _ := worker(t)
	const uri = `data:application/json,{"name":"echo agent"}`
	data, err := bindings.NewIdentityRegistry().TryPackSetAgentURI(new(big.Int), uri)
	ok(t, err)
	w.Send(t, paytest.PayeeAccount, w.Chain().Identity, data)
	policy := w.file(t, "policy.json", `{"version":"1.0","agentId":0,"rules":{}}`)
	url, _, _ := w.serve(t, w.agentFile(t, "0", w.key, "policy: {uri: "+policy+", unsigned: true}", handler))
	payer := w.file(t, "payer", hex.EncodeToString(crypto.FromECDSA(w.Account(paytest.PayerAccount).Key)))
	check := func(more ...string) (map[string]compliance.Check, int) {
		out := &clitest.Output{}
		err := w.run(t.Context(), out, append([]string{"verify-compliance", "--url", url, "--rpc", w.RPCURL(),
			"--agent", "31337:0",
			"--json"}, more...)...)
		var exit cli.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		var report compliance.Report
		ok(t, json.Unmarshal([]byte(out.String()), &report))
		checks := map[string]compliance.Check{}
		for _, c := range report.Checks {
			if checks[c.ID] = c; !c.OK && !c.Skipped {
				t.Errorf("%+v", c)
			}
		}
		return checks, exit.Code
	}
	checks, code := check("--metadata-uri", uri, "--policy", policy, "--pay-key-file", payer)
	for _, id := range []string{"registered", "metadata", "signatures", "health", "paid", "replay", "policy"} {
		if c := checks[id]; !c.OK || c.Skipped {
			t.Errorf("%s: %+v", id, c)
		}
	}
	if code != cli.CodeUnchecked || w.Balance(t, w.Token, w.Payee()) != 20_000 { // version 1 has no name for the chain
		t.Errorf("exit code %d, %d units", code, w.Balance(t, w.Token, w.Payee()))
	}
	if checks, code := check(); !checks["paid"].Skipped || code != cli.CodeUnchecked {
		t.Errorf("%+v: exit code %d", checks["paid"], code)
	}
	out := &clitest.Output{}
	err = w.run(t.Context(), out, "verify-compliance", "--url", url, "--rpc", w.RPCURL(), "--metadata-uri",
		"https://agent.example/")
	var exit cli.ExitError
	if !errors.As(err, &exit) || exit.Code != cli.CodeFailed || !strings.Contains(out.String(), "FAILED   metadata") {
		t.Errorf("%v: %s", err, out)
	}
	empty, err := bindings.NewIdentityRegistry().TryPackSetAgentURI(new(big.Int), "")
	ok(t, err)
	w.Send(t, paytest.PayeeAccount, w.Chain().Identity, empty)
	out = &clitest.Output{}
	err = w.run(t.Context(), out, "verify-compliance", "--url", url, "--rpc", w.RPCURL())
	if !errors.As(err, &exit) || exit.Code != cli.CodeFailed ||
		!strings.Contains(out.String(), "the agent has no URI onchain: call setAgentURI") {
		t.Errorf("an empty URI: %v: %s", err, out)
	}
}

// TestNewRuntime: what agent new --runtime writes is loaded, served and answers.
func TestNewRuntime(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/env"); err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	w := newWorld(t)
	dir := filepath.Join(w.dir, "my-agent")
	out := &clitest.Output{}
	cmd := tasks.AgentCommand(&cli.Program{Stdin: strings.NewReader(""), Stdout: out, Stderr: out})
	cmd.SetArgs([]string{"new", dir, "--runtime"})
	ok(t, cmd.ExecuteContext(t.Context()))
	raw, err := os.ReadFile(filepath.Join(dir, "agent.yaml"))
	ok(t, err)
	none := func(string) string { return "" }
	if _, err := agentconfig.Parse(raw, none); err != nil {
		t.Fatalf("agent.yaml as written: %v", err)
	}
	text := strings.NewReplacer("env:AGENT_PRIVATE_KEY", "file:"+w.key, "https://mainnet.base.org", w.RPCURL(),
		"127.0.0.1:3000", "127.0.0.1:0", "  id: 0",
		fmt.Sprintf("  id: 0\n  registry: %q", w.Chain().Identity)).Replace(string(raw))
	url, _, _ := w.serve(t, w.file(t, "agent.yaml", text))
	res := post(t, url+"/capability/count", `{"text":"one two"}`, nil)
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || string(body) != `{"words": 2}` {
		t.Errorf("%d %s: %v", res.StatusCode, body, err)
	}
}
