package intentcall_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/publication"
	"repute/agent/serve"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/internal/sitetest"
	"repute/orchestrator/intentcall"
	"repute/orchestrator/payer"
	"repute/orchestrator/safety"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/resolver"
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

// echo is a handler that answers its input.
type echo struct{ runs atomic.Int64 }

// Run implements agent.Handler.
func (e *echo) Run(_ context.Context, c capability.Call) (json.RawMessage, error) {
	e.runs.Add(1)
	return json.Marshal(map[string]json.RawMessage{"echo": c.Input})
}

// market is an agent of this project, served at example.com with the manifest that it makes of itself, and an index
// that says a score of its account.
type market struct {
	*paytest.World
	db    *store.DB
	index string
	low   atomic.Int64
	work  *echo
	guard *resolver.Guard
	site  *resolver.Client
}

func newMarket(t *testing.T, address string) *market {
	t.Helper()
	m := &market{World: paytest.New(t, devnet.Options{}), work: &echo{}}
	m.low.Store(40)
	var err error
	m.db, err = store.Open(t.Context(), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(m.db.Close)
	ok(t, agentdb.Maintain(t.Context(), m.db, agentdb.MinRetention))
	index := httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(index.Close)
	m.index = index.URL
	guard := sitetest.New(t, address, m.runtime(t))
	m.guard = resolver.NewGuard(guard)
	m.site, err = resolver.New(resolver.Options{GuardOptions: guard})
	ok(t, err)
	t.Cleanup(m.site.Close)
	return m
}

// answer is the index: the payee's account is the wallet of one agent.
func (m *market) answer(out http.ResponseWriter, r *http.Request) {
	switch {
	case strings.EqualFold(r.URL.Query().Get("wallet"), m.Payee().Hex()):
		fmt.Fprint(out, `{"items":[{"id":"eip155:31337:0xa:1"}]}`)
	case strings.HasSuffix(r.URL.Path, "/reputation"):
		fmt.Fprintf(out, `{"score":60,"low":%d,"status":"rated"}`, m.low.Load())
	default:
		fmt.Fprint(out, `{"items":[]}`)
	}
}

// facilitator settles by a key of the chain.
func (m *market) facilitator(t *testing.T) x402.Facilitator {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	ok(t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(m.Account(paytest.SettlerAccount).Key))),
		0o600))
	c := m.Chain()
	wl, err := wallet.Open(m.db, wallet.Config{Chains: []wallet.ChainConfig{{ChainID: c.ID, RPC: []string{m.RPCURL()},
		Tokens: []common.Address{m.Token}, Registries: safety.Registries{Identity: c.Identity},
		Identities: map[string]keys.Config{"settler": {KeyFile: path}}, Confirmations: 1,
		Poll: 20 * time.Millisecond}}})
	ok(t, err)
	t.Cleanup(wl.Close)
	f, err := settlement.New(m.db, wl, settlement.Options{Settler: "settler", Chains: []uint64{c.ID},
		Tokens: map[uint64][]common.Address{c.ID: {m.Token}}})
	ok(t, err)
	return f
}

// runtime is the agent: one capability that costs two cents, and one that is free.
func (m *market) runtime(t *testing.T) http.Handler {
	t.Helper()
	var services []*agent.Service
	for name, price := range map[string]*agent.Price{"echo": nil,
		"report": {Amount: "0.02", Currency: "USDC", Decimals: 6,
			Ways: []agent.Way{{Requirements: m.Requirements(20_000), Symbol: "USDC", Decimals: 6}}}} {
		c, err := capability.New(capability.Definition{Name: name, Version: "1.0.0",
			Description: "Echoes a text that is given.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},
				"lines":{"type":"integer","enum":[1,2]}},"required":["text"],"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object"}`)})
		ok(t, err)
		services = append(services, &agent.Service{Capability: c, Handler: m.work, Price: price})
	}
	router, err := agent.NewRouter(m.db, agent.Options{Services: services, Version: "1.0.0",
		Signer: m.Signer(paytest.PayeeAccount),
		Payments: agent.Payments{Facilitator: m.facilitator(t), Address: m.Payee(),
			Signer: m.Signer(paytest.PayeeAccount)},
		ID: repute.AgentID{ChainID: m.Chain().ID, Registry: m.Chain().Identity, TokenID: *uint256.NewInt(42)}})
	ok(t, err)
	own, err := publication.New(publication.Options{Domain: sitetest.Host, Name: "Echo", PayTo: m.Payee(),
		Services: router.Services()})
	ok(t, err)
	h, err := serve.New(serve.Options{Router: router, Profile: serve.Profile{Name: "Echo"}, Manifest: own.Manifest,
		Rate:  1000,
		Burst: 1000})
	ok(t, err)
	return h
}

// payer pays at most so much for a call.
func (m *market) payer(t *testing.T, most repute.Micros) *payer.Payer {
	t.Helper()
	p, err := payer.New(m.db, payer.Options{Index: m.index, HTTP: m.guard.Client(time.Minute), Agent: "buyer",
		MaxCall: most,
		MaxHost: 1_000_000, MaxDay: 1_000_000, MinScore: 20,
		Keys:  func(uint64) (x402.Signer, error) { return m.Signer(paytest.PayerAccount), nil },
		Coins: []repute.Stablecoin{{ChainID: m.Chain().ID, Address: m.Token, Symbol: "USDC", Decimals: 6}}})
	ok(t, err)
	return p
}

// run is repute intent run without its command line.
func (m *market) run(t *testing.T, name, most string, params ...string) (payer.Answer, error) {
	t.Helper()
	p, err := intentcall.Find(t.Context(), wellknownOf(m.site), intentcall.Target{Name: name, Domain: sitetest.Host})
	if err != nil {
		return payer.Answer{}, err
	}
	arguments, err := p.Arguments(params)
	if err != nil {
		return payer.Answer{}, err
	}
	request, err := p.Request(arguments)
	if err != nil {
		return payer.Answer{}, err
	}
	var bound *repute.Micros
	var sender intentcall.Sender = intentcall.Free{Client: m.guard.Client(time.Minute)}
	if most != "" {
		dollars, err := repute.ParseDollars("max", most)
		ok(t, err)
		bound = &dollars
	}
	limit, err := p.Limit(bound)
	if err != nil {
		return payer.Answer{}, err
	}
	if bound != nil {
		sender = m.payer(t, limit)
	}
	return intentcall.Call(t.Context(), sender, request)
}

// An intent of a runtime is called by what its manifest says, and paid within a bound if its account is trusted.
func TestRun(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "127.80.3.1")
	for _, c := range []struct{ name, most, params, low, wrong string }{
		{"report", "", "text=hi", "40", "max: is missing"},
		{"report", "0.019999", "text=hi", "40", "the price is 0.02 dollars"},
		{"report", "0.05", "", "40", "param text: is missing"},
		{"report", "0.05", "text=hi lines=3", "40", "param lines: "},
		{"report", "0.05", "text=hi admin=1", "40", "is not in the manifest"},
		{"report", "0.05", "text=hi", "19", "has a score of at least 19"},
		{"absent", "0.05", "text=hi", "40", "not found"},
	} {
		low := int64(40)
		if c.low == "19" {
			low = 19
		}
		m.low.Store(low)
		_, err := m.run(t, c.name, c.most, strings.Fields(c.params)...)
		if err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if m.work.runs.Load() != 0 || m.Balance(t, m.Token, m.Payee()) != 0 {
		t.Fatalf("%d runs, %d units were paid", m.work.runs.Load(), m.Balance(t, m.Token, m.Payee()))
	}
	m.low.Store(40)
	a, err := m.run(t, "report", "0.05", "text=hi+bye", "lines=2")
	ok(t, err)
	if a.Status != 200 || string(a.Body) != `{"echo":{"lines":2,"text":"hi+bye"}}` || a.Receipt.Dollars != "0.02" ||
		m.Balance(t, m.Token, m.Payee()) != 20_000 {
		t.Errorf("%d %s, %+v", a.Status, a.Body, a.Receipt)
	}
	if a, err = m.run(t, "echo", "", "text=free"); err != nil || a.Status != 200 || a.Receipt != nil ||
		m.work.runs.Load() != 2 || m.Balance(t, m.Token, m.Payee()) != 20_000 {
		t.Errorf("%d %s: %v", a.Status, a.Body, err)
	}
}

// A service may demand what its manifest does not say, and is not paid for it without a bound.
func TestDemandOfFree(t *testing.T) {
	t.Parallel()
	m := newMarket(t, "127.80.3.2")
	p := &intentcall.Plan{Origin: sitetest.Host}
	p.Intent.Endpoint, p.Intent.URL, p.Intent.Method = "/x", "https://example.com/capability/report", http.MethodPost
	limit, err := p.Limit(nil)
	if err != nil || limit != 0 {
		t.Fatal(limit, err)
	}
	r, err := p.Request(nil)
	ok(t, err)
	r.Body = []byte(`{"text":"hi"}`)
	_, err = intentcall.Call(t.Context(), intentcall.Free{Client: m.guard.Client(time.Minute)}, r)
	if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), "max: ") ||
		m.Balance(t, m.Token, m.Payee()) != 0 {
		t.Errorf("without a bound: %v", err)
	}
	bound := repute.Micros(20_000)
	limit, err = p.Limit(&bound)
	ok(t, err)
	if a, err := intentcall.Call(t.Context(), m.payer(t, limit), r); err != nil || a.Receipt == nil ||
		m.Balance(t, m.Token, m.Payee()) != 20_000 {
		t.Errorf("within a bound: %+v, %v", a, err)
	}
}
