package serve_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"repute"
	"repute/agent"
	"repute/agent/a2aserver"
	"repute/agent/capability"
	"repute/agent/remoteserver"
	"repute/agent/serve"
	"repute/agent/signed"
	"repute/agent/toolserver"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/orchestrator/safety"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/store/agentdb"
	"repute/x402"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// agentKey signs the answers of agents in tests.
const agentKey = "b71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291"

func signer(t testing.TB) keys.Local {
	t.Helper()
	key, err := crypto.HexToECDSA(agentKey)
	ok(t, err)
	return keys.Local{Key: key}
}

// echo answers its input with the number of its runs.
type echo struct {
	mu    sync.Mutex
	runs  int
	ids   []string
	block chan struct{} // closed to let runs end; nil: at once
	begun chan struct{} // one element for each run that begins
	fail  error
	out   string // "" for {"run": n}
}

// Run implements agent.Handler.
func (e *echo) Run(ctx context.Context, c capability.Call) (json.RawMessage, error) {
	e.mu.Lock()
	e.runs++
	n, fail, out := e.runs, e.fail, e.out
	e.ids = append(e.ids, c.RequestID)
	e.mu.Unlock()
	if e.begun != nil {
		e.begun <- struct{}{}
	}
	if e.block != nil {
		select {
		case <-e.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if fail != nil {
		return nil, fail
	}
	if out != "" {
		return json.RawMessage(out), nil
	}
	return json.Marshal(map[string]any{"run": n, "text": c.Input})
}

func (e *echo) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs
}

const (
	inputSchema  = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
	outputSchema = `{"type":"object"}`
)

// service is a capability of a handler.
func service(t testing.TB, name string, h agent.Handler, price *agent.Price,
	change func(*capability.Definition)) *agent.Service {
	t.Helper()
	d := capability.Definition{Name: name, Version: "1.0.0", Description: "echo",
		InputSchema:  json.RawMessage(inputSchema),
		OutputSchema: json.RawMessage(outputSchema)}
	if change != nil {
		change(&d)
	}
	c, err := capability.New(d)
	ok(t, err)
	return &agent.Service{Capability: c, Handler: h, Price: price}
}

// database is a store with partitions for the log.
func database(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), url, store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
	return db
}

// shop is an agent that is served.
type shop struct {
	*httptest.Server
	router *agent.Router
	tools  *toolserver.Server
	tasks  *a2aserver.Server
	db     *store.DB
	log    *bytes.Buffer
	// payments are those of the router, for another process.
	payments agent.Payments
}

// open serves an agent on a database.
func open(t testing.TB, url string, o agent.Options) *shop {
	t.Helper()
	s := &shop{db: database(t, url), log: &bytes.Buffer{}, payments: o.Payments}
	o.Signer, o.Version = signer(t), "1.2.3"
	if o.ID.ChainID == 0 {
		o.ID = repute.AgentID{ChainID: 31337, Registry: common.HexToAddress("0x8004"), TokenID: *uint256.NewInt(42)}
	}
	var mu sync.Mutex
	o.Log = slog.New(slog.NewJSONHandler(locked{&mu, s.log}, nil))
	var err error
	s.router, err = agent.NewRouter(s.db, o)
	ok(t, err)
	s.tools, err = toolserver.New(toolserver.Options{Router: s.router, Name: "echo agent", MaxBody: maxBody,
		Log: o.Log})
	ok(t, err)
	s.tasks = a2aserver.New(a2aserver.Options{Router: s.router, Name: "echo agent", MaxBody: maxBody, Log: o.Log})
	t.Cleanup(s.tasks.Close)
	orchestrators, err := remoteserver.New(remoteserver.Options{Router: s.router, Name: "echo agent", MaxBody: maxBody,
		Log: o.Log})
	ok(t, err)
	h, err := serve.New(serve.Options{Router: s.router, Profile: serve.Profile{Name: "echo agent"}, Log: o.Log,
		Rate:  1000,
		Burst: 1000, Registry: o.Registry, MaxBody: maxBody, Card: s.tasks.Card,
		Mounts: slices.Concat(s.tools.Mounts(), s.tasks.Mounts(), orchestrators.Mounts())})
	ok(t, err)
	s.Server = httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(s.tools.Close) // before the server, which waits for streams
	return s
}

// maxBody is the limit of all surfaces in tests.
const maxBody = 1 << 20

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// reply is an answer that was read and whose signature was verified.
type reply struct {
	status int
	header http.Header
	body   string
	signed signed.Response
}

// send posts an input with headers, and verifies the signature of the answer.
func (s *shop) send(t testing.TB, name, input string, header http.Header) reply {
	t.Helper()
	return s.ask(t, http.MethodPost, "/capability/"+name, input, header)
}

func (s *shop) ask(t testing.TB, method, path, body string, header http.Header) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader([]byte(body)))
	ok(t, err)
	for name, values := range header {
		r.Header[name] = values
	}
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	ok(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	ok(t, err)
	out := reply{status: res.StatusCode, header: res.Header, body: string(raw)}
	out.signed, err = signed.ReadResponse(res.Header)
	ok(t, err)
	by, err := out.signed.Verify(raw)
	if err != nil || by != signer(t).Address() {
		t.Errorf("%s %s: signed by %s: %v", method, path, by, err)
	}
	return out
}

// world is a chain with tokens and a database.
type world struct {
	*paytest.World
	url string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{paytest.New(t, devnet.Options{}), pgtest.New(t)}
}

// chain is the configuration of the facilitator's wallet.
func (w *world) chain(t testing.TB) wallet.ChainConfig {
	t.Helper()
	c, path := w.Chain(), filepath.Join(t.TempDir(), "key")
	ok(t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.Account(paytest.SettlerAccount).Key))),
		0o600))
	return wallet.ChainConfig{ChainID: c.ID, RPC: []string{w.RPCURL()}, Tokens: []common.Address{w.Token, w.Plain},
		Registries: safety.Registries{Identity: c.Identity, Reputation: c.Reputation, Validations: c.Validations},
		Identities: map[string]keys.Config{"settler": {KeyFile: path}}, Confirmations: 1, StuckAfter: time.Hour,
		Poll: 20 * time.Millisecond, Patience: 20 * time.Second}
}

// localFacilitator is one of this process.
func localFacilitator(t testing.TB, db *store.DB, c wallet.ChainConfig) *x402.Local {
	t.Helper()
	wl, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{c}})
	ok(t, err)
	t.Cleanup(wl.Close)
	f, err := settlement.New(db, wl, settlement.Options{Settler: "settler", Chains: []uint64{c.ChainID},
		Tokens: map[uint64][]common.Address{c.ChainID: c.Tokens}})
	ok(t, err)
	return f
}

// price is ten units of the tokens.
func (w *world) price() *agent.Price {
	return &agent.Price{Amount: "0.00001", Currency: "USDC", Decimals: 6, Ways: []agent.Way{
		{Requirements: w.Requirements(10), Symbol: "USDC", Decimals: 6},
		{Requirements: w.PlainRequirements(10), Symbol: "PLAIN", Decimals: 6}}}
}

// payments is how an agent is paid by a facilitator.
func (w *world) payments(f x402.Facilitator) agent.Payments {
	return agent.Payments{Facilitator: f, Address: w.Payee(), Signer: w.Signer(paytest.PayeeAccount)}
}

// open serves an agent that is paid.
func (w *world) open(t testing.TB, o agent.Options, services ...*agent.Service) *shop {
	t.Helper()
	if o.Payments.Facilitator == nil {
		o.Payments = w.payments(localFacilitator(t, database(t, w.url), w.chain(t)))
	}
	o.Services = services
	o.ID = repute.AgentID{ChainID: w.Chain().ID, Registry: w.Chain().Identity, TokenID: *uint256.NewInt(42)}
	return open(t, w.url, o)
}

// paid is what the payee has of both tokens.
func (w *world) paid(t testing.TB) int64 {
	t.Helper()
	return w.Balance(t, w.Token, w.Payee()) + w.Balance(t, w.Plain, w.Payee())
}

// header is a payment as a request carries it.
func header(t testing.TB, p x402.Payment) http.Header {
	t.Helper()
	text, err := x402.Encode(p)
	ok(t, err)
	return http.Header{http.CanonicalHeaderKey(x402.HeaderPayment): {text}}
}
