package agentbench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/serve"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/store/agentdb"
	"repute/x402"
	"repute/x402/facilitator"
)

// The token that capabilities cost, and the chain it is said to be on.
const (
	chainID      = 31337
	tokenName    = "USDC"
	tokenVersion = "2"
	units        = 10 // of a paid call
)

// Schemas of the capabilities, and the input that every request sends. The schema has what validation costs: a bound, a
// list and no other members.
const (
	inputSchema = `{"type":"object","properties":{"text":{"type":"string","maxLength":1000},
		"tags":{"type":"array","items":{"type":"string"},"maxItems":10}},"required":["text"],"additionalProperties":false}`
	outputSchema = `{"type":"object","properties":{"text":{"type":"string"},"micros":{"type":"integer"}},"required":["text"]}`
	input        = `{"text":"hello","tags":["one","two"]}`
)

// WorkerOptions say how the process of the agent runs: its database, the URL of the facilitator, and the address that
// it listens at. All are needed.
type WorkerOptions struct{ DatabaseURL, Facilitator, Listen string }

// echo answers its text, and how many microseconds after the request's begin it was called.
type echo struct{}

// Run implements agent.Handler.
func (echo) Run(_ context.Context, c capability.Call) (json.RawMessage, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"text": in.Text, "micros": time.Since(c.Time).Microseconds()})
}

// requirements are how a paid call is paid.
func requirements() (x402.Requirements, error) {
	extra, err := x402.Extra{Name: tokenName, Version: tokenVersion}.JSON()
	return x402.Requirements{Scheme: x402.SchemeExact, Network: x402.Network(chainID), Amount: x402.NewAmount(units),
		Asset: common.HexToAddress("0x5dc"), PayTo: common.HexToAddress("0xfee"), MaxTimeoutSeconds: 3600,
		Extra: extra}, err
}

// definition is a capability of the benchmark.
func definition(name string) (*capability.Capability, error) {
	return capability.New(capability.Definition{Name: name, Version: "1.0.0", InputSchema: json.RawMessage(inputSchema),
		OutputSchema: json.RawMessage(outputSchema)})
}

// Work is the process of the agent: capabilities echo and paid, and /bare, which reads and writes JSON
// and does nothing else. It ends with ctx.
func Work(ctx context.Context, o WorkerOptions) error {
	db, err := store.Open(ctx, o.DatabaseURL, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := agentdb.Maintain(ctx, db, agentdb.MinRetention); err != nil {
		return err
	}
	router, err := newRouter(db, o.Facilitator)
	if err != nil {
		return err
	}
	h, err := serve.New(serve.Options{Router: router, Profile: serve.Profile{Name: "echo"},
		Log:  slog.New(slog.DiscardHandler),
		Rate: 1e6, Burst: 1e6})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("POST /bare", bare)
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newRouter makes the runtime as a program of an agent would, with one capability that is free and one that costs. The
// lease is short, so that the call of a killed process is taken over within the benchmark.
func newRouter(db *store.DB, url string) (*agent.Router, error) {
	f, err := facilitator.NewClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}, 0, url)
	if err != nil {
		return nil, err
	}
	r, err := requirements()
	if err != nil {
		return nil, err
	}
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("agent of the benchmark")))
	if err != nil {
		return nil, err
	}
	free, err := definition("echo")
	if err != nil {
		return nil, err
	}
	paid, err := definition("paid")
	if err != nil {
		return nil, err
	}
	price := &agent.Price{Amount: "0.00001", Currency: "USDC", Decimals: 6,
		Ways: []agent.Way{{Requirements: r, Symbol: "USDC", Decimals: 6}}}
	return agent.NewRouter(db, agent.Options{ID: repute.AgentID{ChainID: chainID}, Version: "1.0.0",
		Signer:   keys.Local{Key: key},
		Patience: time.Minute, Lease: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
		Payments: agent.Payments{Facilitator: f, Address: r.PayTo},
		Services: []*agent.Service{{Capability: free, Handler: echo{}},
			{Capability: paid, Handler: echo{}, Price: price}}})
}

// bare is the handler without a runtime: what a program would do that takes any input and asks for nothing.
func bare(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Text string
		Tags []string
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"text": in.Text, "micros": 0}) // the caller may be gone
}
