package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/handler"
	"repute/internal/killtest"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/x402"
	"repute/x402/facilitator"
)

// errand is a paid request that a process is to answer.
type errand struct {
	Database, Handler, Facilitator string
	ChainID                        uint64
	Payment                        x402.Payment
	Price                          agent.Price
	SideEffects, Repeatable        bool
}

// TestMain runs the tests, or what a test wants a process to do.
func TestMain(m *testing.M) { killtest.Main(m, runErrand) }

func runErrand(ctx context.Context, e errand) error {
	db, err := store.Open(ctx, e.Database, store.Options{})
	if err != nil {
		return err
	}
	f, err := facilitator.NewClient(nil, 0, e.Facilitator)
	if err != nil {
		return err
	}
	c, err := capability.New(capability.Definition{Name: "echo", Version: "1.0.0",
		InputSchema:  json.RawMessage(inputSchema),
		OutputSchema: json.RawMessage(outputSchema), SideEffects: e.SideEffects})
	if err != nil {
		return err
	}
	key, err := crypto.HexToECDSA(agentKey)
	if err != nil {
		return err
	}
	router, err := agent.NewRouter(db, agent.Options{ID: repute.AgentID{ChainID: e.ChainID}, Version: "1.0.0",
		Signer: keys.Local{Key: key}, Lease: time.Second,
		Payments: agent.Payments{Facilitator: f, Address: e.Price.Ways[0].PayTo},
		Services: []*agent.Service{{Capability: c,
			Price: &e.Price, Repeatable: e.Repeatable,
			Handler: &handler.HTTP{URL: e.Handler, Client: http.DefaultClient}}}})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		r := router.Do(ctx, agent.Request{Capability: "echo", Input: []byte(hello), Resource: "http://a.example/",
			Payment: &e.Payment})
		switch {
		case r.Status == http.StatusServiceUnavailable:
			time.Sleep(100 * time.Millisecond)
		case r.Problem != nil:
			fmt.Printf("%d %s: %s\n", r.Status, r.Problem.Code, r.Problem.Message)
			return nil
		default:
			fmt.Printf("%d %s\n", r.Status, r.Output)
			return nil
		}
	}
	return ctx.Err()
}

// striker is a process that is killed at one of its messages to the database: before the server has
// the message, or after.
type striker struct {
	mu        sync.Mutex
	child     *exec.Cmd
	at, count int // half messages; 0 for never
	counting  bool
	struck    bool
}

// strike counts from the first message about payments on.
func (s *striker) strike(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counting = s.counting || bytes.Contains(message, []byte("agent_"))
	if !s.counting || s.at == 0 {
		return
	}
	if s.count++; s.count == s.at {
		s.struck = true
		_ = s.child.Process.Kill()
	}
}

// run starts a process that is killed at a half message, and returns what it said.
func (s *striker) run(t *testing.T, e errand, at int) (said string, killed bool) {
	t.Helper()
	child, err := killtest.Command(t.Context(), e)
	ok(t, err)
	out, log := &bytes.Buffer{}, &bytes.Buffer{}
	s.mu.Lock()
	s.at, s.count, s.counting, s.struck = at, 0, false, false
	s.child = child
	s.child.Stdout, s.child.Stderr = out, log
	err = s.child.Start()
	s.mu.Unlock()
	ok(t, err)
	err = s.child.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.struck {
		t.Errorf("the process failed: %v: %s", err, log)
	}
	return strings.TrimSpace(out.String()), s.struck
}

// counter is a handler that counts its runs by request.
type counter struct {
	mu   sync.Mutex
	runs map[string]int
}

// ServeHTTP implements http.Handler.
func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct{ RequestID string }
	raw, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(raw, &call)
	c.mu.Lock()
	c.runs[call.RequestID]++
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":%q}`, call.RequestID)
}

// taken is how many runs were made, and how many of the same request.
func (c *counter) taken() (all, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.runs {
		all, most = all+n, max(most, n)
	}
	c.runs = map[string]int{}
	return all, most
}

// TestKilled kills the answering process with -9 at each of its messages to the database in turn, and
// lets another one go on: the payment is charged at most once and never without an answer that says
// so, the handler is called once unless it may be called again, and nobody gets content for nothing.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	database(t, w.url)
	f := httptest.NewServer(facilitator.NewHandler(localFacilitator(t, database(t, w.url), w.chain(t))))
	t.Cleanup(f.Close)
	for name, kind := range map[string]struct{ effects, again bool }{"settled after": {false, false},
		"settled before": {true, false}, "repeatable": {true, true}} {
		e := errand{Facilitator: f.URL, ChainID: w.Chain().ID, Price: *w.price(), SideEffects: kind.effects,
			Repeatable: kind.again}
		t.Run(name, func(t *testing.T) { t.Parallel(); w.killed(t, e) })
	}
}

// fewest is how many kills of each kind there are at least: a paid request sends few messages.
const fewest = 10

// killed kills processes that answer one request each, and lets others go on.
func (w *world) killed(t *testing.T, e errand) {
	t.Helper()
	var s striker
	c := &counter{runs: map[string]int{}}
	work := httptest.NewServer(c)
	t.Cleanup(work.Close)
	key, err := crypto.GenerateKey()
	ok(t, err)
	payee := crypto.PubkeyToAddress(key.PublicKey) // of its own, so that payments of others do not count
	e.Database, e.Handler, e.Price.Ways[0].PayTo = killtest.Relay(t, w.url, s.strike), work.URL, payee
	kills, ends, before := 0, map[string]int{}, int64(0)
	for at := 1; at < 400; at++ {
		e.Payment = w.Pay(t, e.Price.Ways[0].Requirements)
		_, killed := s.run(t, e, at)
		said, _ := s.run(t, e, 0)
		now := w.Balance(t, w.Token, payee)
		all, most := c.taken()
		ends[judge(t, e.SideEffects, e.Repeatable, said, now-before, all, most)]++
		if t.Failed() {
			t.Fatalf("kill %d: %q, %d units, %d runs, %d of one request", at, said, now-before, all, most)
		}
		if before = now; !killed {
			break
		}
		kills++
	}
	if kills < fewest || e.Repeatable && ends["interrupted"] > 0 {
		t.Errorf("%d kills, %v", kills, ends)
	}
	t.Logf("%d processes killed: %v", kills, ends)
}

// judge says how a payment ended, and fails where something was lost or doubled.
func judge(t *testing.T, effects, again bool, said string, paid int64, runs, most int) string {
	t.Helper()
	switch {
	case strings.HasPrefix(said, "200 "):
		if paid != 10 || runs < 1 || most > 2 || !again && runs != 1 {
			t.Errorf("an answer")
		}
		return "answer"
	case strings.HasPrefix(said, "500 interrupted") && !again:
		charged := strings.Contains(said, "was charged") && !strings.Contains(said, "nothing was charged")
		if runs > 1 || charged != effects || paid != map[bool]int64{true: 10}[effects] {
			t.Errorf("an interruption")
		}
		return "interrupted"
	}
	t.Errorf("another end")
	return said
}
