package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"repute/devnet"
	"repute/internal/freeport"
	"repute/internal/pgtest"
)

// raters are the roots of the chain of ratedAgent, which rate its agent.
const raters = 6

// ratedAgent is an agent on a chain that a process indexes, and the file of another process that serves the agent.
type ratedAgent struct {
	chain        *devnet.Devnet
	index        string // base URL
	database     string // of the served agent
	file, policy string
	indexSays    *bytes.Buffer
	ratings      uint64 // of each rater
}

// newRatedAgent starts the chain and the process that indexes it. The raters are its roots.
func newRatedAgent(t *testing.T) *ratedAgent {
	t.Helper()
	chain, err := devnet.Start(t.Context(), devnet.Options{Accounts: raters + 1, SafeDepth: 1, FinalizedDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	b := chain.Batch()
	b.Register(chain.Account(raters), "https://agent.example/registration.json")
	if _, err := b.Mine(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir, listen, c := t.TempDir(), freeport.Address(t), chain.Chain()
	a := &ratedAgent{chain: chain, index: "http://" + listen, database: pgtest.New(t),
		file:   filepath.Join(dir, "agent.yaml"),
		policy: filepath.Join(dir, "policy.json")}
	indexed, key, roots := pgtest.New(t), filepath.Join(dir, "key"), ""
	for i := range raters {
		roots += fmt.Sprintf("- {chain: devnet, address: %q, reason: rates in a test}\n", chain.Account(i).Address)
	}
	handler := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(handler.Close)
	config := filepath.Join(dir, "repute.yaml")
	for name, text := range map[string]string{
		config: fmt.Sprintf("database: %q\nlisten: %s\nroles: [indexer, trust, api]\nrate: -1\nchains:\n"+
			"  - {name: devnet, id: %d, identity: %q, reputation: %q, start_block: 0, rpc: %q}\n", indexed, listen,
			c.ID, c.Identity,
			c.Reputation, chain.RPCURL()),
		filepath.Join(dir, "roots.yaml"): roots,
		key:                              hex.EncodeToString(crypto.FromECDSA(chain.Account(raters).Key)),
		a.file: fmt.Sprintf(`agent: {id: 0, registry: %q, reputation: %q, key: "file:%s", rpc: %q, indexer: %q}
profile: {name: echo, description: Echoes., version: 1.0.0}
listen: 127.0.0.1:0
policy: {uri: %s, unsigned: true}
capabilities:
  - {name: echo, version: 1.0.0, inputSchema: {type: object}, outputSchema: {type: object}, handler: {http: %q}}
`, c.Identity, c.Reputation, key, chain.RPCURL(), a.index, a.policy, handler.URL),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.restarts(t, true)
	_, a.indexSays = child(t, "serve", "--config", config)
	eventually(t, a.index+"/status", http.StatusOK, "", a.indexSays)
	mustRun(t, "roots", "import", filepath.Join(dir, "roots.yaml"), "--config", config)
	return a
}

// restarts writes the policy: the agent is degraded below 10, stops below -10, and starts again by itself or not.
func (a *ratedAgent) restarts(t *testing.T, byItself bool) {
	t.Helper()
	text := fmt.Sprintf(`{"version":"1.0","agentId":0,"rules":{"reputation":{"degradeServiceBelowScore":10},
		"shutdown":{"autoShutdownOnLowReputation":true,"shutdownThreshold":-10,"autoRestartWhenFixed":%v}}}`, byItself)
	if err := os.WriteFile(a.policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rate mines a rating of every rater, and the revocation of the one before: good ones of the first raters, bad ones of
// the others.
func (a *ratedAgent) rate(t *testing.T, good int) {
	t.Helper()
	b := a.chain.Batch()
	for i := range raters {
		if a.ratings > 0 {
			b.RevokeFeedback(a.chain.Account(i), 0, a.ratings)
		}
		value := int64(0)
		if i < good {
			value = 100
		}
		b.GiveFeedback(a.chain.Account(i), devnet.Rating{Value: big.NewInt(value), Tag1: "starred"})
	}
	a.ratings++
	if _, err := b.Mine(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// serve starts a process that serves the agent, and returns its base URL.
func (a *ratedAgent) serve(t *testing.T, more ...string) (url string, cmd *exec.Cmd, says *bytes.Buffer) {
	t.Helper()
	listen := freeport.Address(t)
	text, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, bytes.Replace(text, []byte("127.0.0.1:0"), []byte(listen), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, says = child(t, append([]string{"agent", "serve", "--config", file, "--database-url", a.database}, more...)...)
	eventually(t, "http://"+listen+"/health", http.StatusOK, "", says)
	return "http://" + listen, cmd, says
}

// awaitStatus waits until a served agent has a status, and checks that it answers requests accordingly.
func (a *ratedAgent) awaitStatus(t *testing.T, url, want string, says *bytes.Buffer) {
	t.Helper()
	var health struct {
		Status            string
		AcceptingRequests bool
		Reputation        struct{ Score, Low, High float64 }
	}
	for end := time.Now().Add(2 * time.Minute); health.Status != want; time.Sleep(200 * time.Millisecond) {
		_, body := fetch(t, url+"/health")
		if err := json.Unmarshal([]byte(body), &health); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if time.Now().After(end) {
			_, score := fetch(t, a.index+"/agents/0/reputation?chainId=31337")
			t.Fatalf("the agent is %s and not %s; the index says %s; the agent says\n%s\nthe index says\n%s", body,
				want, score,
				says, a.indexSays)
		}
	}
	t.Logf("%s by a score of %.1f, shown to be from %.1f to %.1f", want, health.Reputation.Score, health.Reputation.Low,
		health.Reputation.High)
	res, err := http.Post(url+"/capability/echo", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if served := want != "shutdown"; health.AcceptingRequests != served || (res.StatusCode == http.StatusOK) != served {
		t.Errorf("an agent that is %s answers a request with %d", want, res.StatusCode)
	}
}

// TestScoreMovesMode mines ratings on a chain that a process indexes. Another process serves the agent, reads its own
// score from the first one over HTTP, and follows it: degraded while nobody has rated it, normal, degraded, shut down
// and normal again. Where the policy does not restart it, it stays shut down over a restart until the operator resumes
// it.
func TestScoreMovesMode(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a runtime to ask its chain, for two minutes")
	}
	t.Parallel()
	a := newRatedAgent(t)
	url, cmd, says := a.serve(t)
	a.awaitStatus(t, url, "degraded", says)
	for _, step := range []struct {
		good int
		want string
	}{{raters, "healthy"}, {raters / 2, "degraded"}, {0, "shutdown"}, {raters, "healthy"}} {
		a.rate(t, step.good)
		a.awaitStatus(t, url, step.want, says)
	}
	a.rate(t, 0)
	a.awaitStatus(t, url, "shutdown", says)
	stopped := func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, says)
		}
	}
	stopped()
	a.restarts(t, false)
	a.rate(t, raters)
	eventually(t, a.index+"/agents/0/reputation?chainId=31337", http.StatusOK, `"score":54`, a.indexSays)
	url, cmd, says = a.serve(t)
	a.awaitStatus(t, url, "shutdown", says)
	stopped()
	url, _, says = a.serve(t, "--resume")
	a.awaitStatus(t, url, "healthy", says)
}
