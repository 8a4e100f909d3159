package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/compliance"
	"repute/agent/signed"
	"repute/internal/paytest"
	"repute/x402"
)

// registered is what the chain of a test says, and documents what URIs name.
type (
	registered compliance.Registered
	documents  map[string]string
)

// Agent implements compliance.Chain.
func (r registered) Agent(context.Context, repute.AgentID) (compliance.Registered, error) {
	if (r.Owner == common.Address{}) {
		return compliance.Registered{}, repute.ErrNotFound
	}
	return compliance.Registered(r), nil
}

// Read implements compliance.Documents.
func (d documents) Read(_ context.Context, uri string) ([]byte, error) {
	if text, ok := d[uri]; ok {
		return []byte(text), nil
	}
	return nil, os.ErrNotExist
}

// fault changes an answer. resign says that the agent signs what it became.
type fault func(r *http.Request, input string, a *httptest.ResponseRecorder) (resign bool)

// broken serves a handler with a fault.
func broken(t *testing.T, next http.Handler, f fault) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		input, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(input))
		a := httptest.NewRecorder()
		next.ServeHTTP(a, r)
		again := f(r, string(input), a)
		a.Header().Del("Content-Length")
		if again {
			if old, err := signed.ReadResponse(a.Header()); err == nil {
				old.ResultHash = signed.HashBody(a.Body.Bytes())
				old.Signature, _ = signer(t).SignTyped(r.Context(), old.Data(old.Domain))
				old.Write(a.Header(), "1.2.3")
			}
		}
		for name, values := range a.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(a.Code)
		_, _ = w.Write(a.Body.Bytes())
	}))
	t.Cleanup(s.Close)
	return s
}

// become replaces an answer.
func become(a *httptest.ResponseRecorder, status int, body string) bool {
	a.Code = status
	a.Body = bytes.NewBufferString(body)
	a.Header().Set("Content-Type", "application/json")
	return true
}

// value is what the payment of a request pays, 0 for none.
func value(r *http.Request) int64 {
	p, err := x402.PaymentOf(r.Header)
	if err != nil || p.Payload.Authorization == nil {
		return 0
	}
	return p.Payload.Authorization.Value.Big().Int64()
}

// on makes a fault of those answers that are of a path, and status if it is not 0.
func on(path string, status int, change fault) fault {
	return func(r *http.Request, input string, a *httptest.ResponseRecorder) bool {
		if !strings.HasPrefix(r.URL.Path, path) || status != 0 && a.Code != status {
			return false
		}
		return change(r, input, a)
	}
}

// to answers with another status and body.
func to(status int, body string) fault {
	return func(_ *http.Request, _ string, a *httptest.ResponseRecorder) bool { return become(a, status, body) }
}

// without leaves out a header.
func without(name string) fault {
	return func(_ *http.Request, _ string, a *httptest.ResponseRecorder) bool { a.Header().Del(name); return false }
}

// replaced changes a text of the body.
func replaced(from, by string) fault {
	return func(_ *http.Request, _ string, a *httptest.ResponseRecorder) bool {
		return become(a, a.Code, strings.ReplaceAll(a.Body.String(), from, by))
	}
}

// second makes a fault of the second successful answer to the same payment.
func second(change fault) fault {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(r *http.Request, input string, a *httptest.ResponseRecorder) bool {
		text := r.Header.Get(x402.HeaderPayment)
		if text == "" || a.Code != http.StatusOK {
			return false
		}
		mu.Lock()
		again := seen[text]
		seen[text] = true
		mu.Unlock()
		return again && change(r, input, a)
	}
}

// paying makes a fault of refused payments of an amount.
func paying(units int64, change fault) fault {
	return func(r *http.Request, input string, a *httptest.ResponseRecorder) bool {
		return a.Code == http.StatusPaymentRequired && value(r) == units && change(r, input, a)
	}
}

// headed makes a fault of requests with a header of at least so many characters.
func headed(name string, least int, change fault) fault {
	return func(r *http.Request, input string, a *httptest.ResponseRecorder) bool {
		return len(r.Header.Get(name)) >= least && change(r, input, a)
	}
}

// faults are runtimes with one fault each, by the check that MUST fail, and no other.
func faults() map[string]fault {
	otherTx := func(_ *http.Request, _ string, a *httptest.ResponseRecorder) bool {
		s, _ := x402.SettlementOf(a.Header())
		s.Transaction = common.Hash{1}.Hex()
		_ = x402.WriteSettlement(a.Header(), x402.V2, s)
		return false
	}
	return map[string]fault{
		"headers: one is missing on errors": on("/capability", 404, without("X-Agent-Version")),
		"headers: no signature on 402":      on("/capability", 402, without("X-Agent-Signature")),
		"signatures: another body": on("/health", 200,
			func(r *http.Request, s string, a *httptest.ResponseRecorder) bool {
				replaced("uptime", "uptime ")(r, s, a)
				become(a, 200, strings.Replace(a.Body.String(), "uptime ", "uptime\":0,\"uptime2", 1))
				return false
			}),
		"health: without uptime": on("/health", 200, replaced("uptime", "time")),
		"health: another id":     on("/health", 200, replaced(`"version":"1.2.3"`, `"version":7`)),
		"ready: never":           on("/health/ready", 0, to(503, `{}`)),
		"mode: accepts nothing": on("/health", 200,
			replaced(`"acceptingRequests":true`, `"acceptingRequests":false`)),
		"registration-file: wrong version": on("/.well-known/agent-registration", 200,
			replaced(`"version":"1.2.3"`, `"version":"v1"`)),
		"registration-file: of another agent": on("/.well-known/agent-registration", 200,
			replaced(`"agentId":42`, `"agentId":43`)),
		"agent-card: no object": on("/.well-known/agent-card", 200, to(200, `[]`)),
		"mcp: no server":        on("/mcp", 0, to(200, `{}`)),
		"invalid-400: an internal error": on("/capability", 400,
			func(r *http.Request, s string, a *httptest.ResponseRecorder) bool {
				return s == `{"text":` && become(a, 500, `{"error":"internal","message":"x"}`)
			}),
		"invalid-400: no members": on("/capability", 400,
			func(r *http.Request, s string, a *httptest.ResponseRecorder) bool {
				return s == `{"text":` && become(a, 400, `{"detail":"x"}`)
			}),
		"unknown-404: refused otherwise": on("/capability", 404, to(400, `{"error":"x","message":"x"}`)),
		"oversize-413: accepted":         on("/capability", 413, to(200, `{}`)),
		"payment-headers: no currency":   on("/capability", 402, without("X-Payment-Currency")),
		"payment-headers: an amount of units": on("/capability", 402,
			func(_ *http.Request, _ string, a *httptest.ResponseRecorder) bool {
				a.Header().Set("X-Payment-Amount", "0.1 USDC")
				return false
			}),
		"payment-body: another error": on("/capability", 402, replaced(`"error":"payment_required"`, `"error":"pay"`)),
		"task-hash: of the bytes": on("/capability", 402,
			func(_ *http.Request, s string, a *httptest.ResponseRecorder) bool {
				if strings.Contains(s, "\n") {
					a.Header().Set("X-Payment-TaskHash", signed.HashBody([]byte("x"+s)).Hex())
				}
				return false
			}),
		"x402-v2: no header": on("/capability", 402, without(x402.HeaderRequired)),
		"x402-v1: no requirement": on("/capability", 402,
			replaced(`"accepts":[`, `"accepts":[{"scheme":1}`)),
		"malformed-payment: an internal error": headed(x402.HeaderPayment, 1,
			on("/capability", 400, to(500, `{"error":"x","message":"x"}`))),
		"unsigned-receipt: accepted":       headed(signed.HeaderReceipt, 20, on("/capability", 402, to(200, `{}`))),
		"forged-payment: accepted":         paying(10, to(200, `{}`)),
		"other-price: accepted":            paying(9, to(200, `{}`)),
		"paid: no settlement":              on("/capability", 200, without(x402.HeaderResponse)),
		"replay: another answer":           second(to(200, `{"run":99}`)),
		"replay: charged twice":            second(otherTx),
		"replay: refused":                  second(to(402, `{"error":"payment_required","message":"x"}`)),
		"replay-other: accepted":           on("/capability", 409, to(200, `{}`)),
		"free: no JSON":                    on("/capability/free", 200, to(200, `free`)),
		"receipts: no list":                on("/agent/42/receipts", 200, to(200, `{}`)),
		"receipts: the payment is missing": on("/agent/42/receipts", 200, to(200, `[]`)),
		"no-internals: a trace": on("/capability", 404,
			to(404, `{"error":"x","message":"goroutine 1 [running]"}`)),
	}
}

// ofCompliance is an agent with a paid and a free capability, and the options that check it.
func (w *world) ofCompliance(t *testing.T) (*shop, compliance.Options) {
	t.Helper()
	small := func(d *capability.Definition) { d.MaxRequestBytes = 1 << 16 }
	s := w.open(t, agent.Options{Concurrency: 50}, service(t, "echo", &echo{}, w.price(), small),
		service(t, "free", &echo{}, nil, small))
	return s, compliance.Options{URL: s.URL, MaxBody: 1 << 16, Payer: w.Signer(paytest.PayerAccount), MaxPay: 10,
		Chain:       registered{Owner: signer(t).Address(), URI: "https://agent.example/file.json"},
		MetadataURI: "https://agent.example/file.json",
		Policy:      "policy", Documents: documents{"https://agent.example/file.json": `{"name":"echo agent"}`,
			"policy": `{"version":"1.0","agentId":42,"rules":{}}`,
			"wrong":  `{"version":"1.0","agentId":42,"rules":{"x":1}}`}}
}

// outcome makes the checks, and returns those that failed and were skipped.
func outcome(t *testing.T, o compliance.Options) (report *compliance.Report, failed, skipped []string) {
	t.Helper()
	report, err := compliance.Run(t.Context(), o)
	ok(t, err)
	for _, c := range report.Checks {
		switch {
		case c.Skipped:
			skipped = append(skipped, c.ID)
		case !c.OK:
			failed = append(failed, c.ID+": "+c.Detail)
		}
	}
	return report, failed, skipped
}

// TestCompliance: this runtime passes all checks, and says so also when it is degraded or shut down.
func TestCompliance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, o := w.ofCompliance(t)
	report, failed, skipped := outcome(t, o)
	skipped = slices.DeleteFunc(skipped,
		func(id string) bool { return id == "mcp" || id == "x402-v1" }) // of a named network
	if len(failed) > 0 || len(skipped) > 0 || w.paid(t) != 10 || report.Agent != s.router.ID().String() || !report.OK {
		t.Errorf("%s: failed %q, skipped %q, %d units", report.Agent, failed, skipped, w.paid(t))
	}
	s.router.SetMode(t.Context(), agent.Degraded, "test")
	o.Payer = nil
	o.Mode = compliance.Degraded
	report, failed, skipped = outcome(t, o)
	if len(failed) > 0 || !slices.Contains(skipped, "paid") || report.Exit() != 2 {
		t.Errorf("degraded: failed %q, skipped %q", failed, skipped)
	}
	s.router.SetMode(t.Context(), agent.Shutdown, "test")
	o.Mode = compliance.Shutdown
	if _, failed, _ = outcome(t, o); len(failed) > 0 {
		t.Errorf("shut down: %q", failed)
	}
	o.Mode = compliance.Normal
	if report, failed, _ = outcome(t, o); len(failed) == 0 || report.Exit() != 1 {
		t.Errorf("an agent that is shut down passes: %q", failed)
	}
}

// TestBrokenRuntimes: each fault of a runtime fails its check and no other.
func TestBrokenRuntimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, o := w.ofCompliance(t)
	only := func(t *testing.T, name string, o compliance.Options) {
		t.Helper()
		want, _, _ := strings.Cut(name, ":")
		if _, failed, _ := outcome(t, o); len(failed) != 1 || !strings.HasPrefix(failed[0], want+": ") {
			t.Errorf("%s: failed %q", name, failed)
		}
	}
	for name, f := range faults() {
		changed := o
		changed.URL = broken(t, s.Config.Handler, f).URL
		only(t, name, changed)
	}
	for name, change := range map[string]func(*compliance.Options){
		"registered: no such agent": func(o *compliance.Options) { o.Chain = registered{} },
		"signatures: of a stranger": func(o *compliance.Options) { o.Chain = registered{Owner: w.Payee(), URI: o.MetadataURI} },
		"metadata: another URI":     func(o *compliance.Options) { o.MetadataURI = "https://agent.example/old.json" },
		"metadata: gone":            func(o *compliance.Options) { o.Documents = documents{"policy": o.Documents.(documents)["policy"]} },
		"policy: unknown rule":      func(o *compliance.Options) { o.Policy = "wrong" },
		"mode: not degraded":        func(o *compliance.Options) { o.Mode = compliance.Degraded },
		"https: plain http": func(o *compliance.Options) {
			o.URL = "http://agent.example"
			o.Client = &http.Client{Transport: toHost(s.Listener.Addr().String())}
		},
	} {
		changed := o
		change(&changed)
		only(t, name, changed)
	}
}

// TestComplianceOptions: options that are wrong are refused by name.
func TestComplianceOptions(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]compliance.Options{"url": {URL: "ftp://x"},
		"expect-mode": {URL: "http://x", Mode: "slow"},
		"input":       {URL: "http://x", Input: json.RawMessage(`{`)}} {
		if _, err := compliance.Run(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// toHost is a transport that sends all requests to a host, whatever host their URLs name.
type toHost string

// RoundTrip implements http.RoundTripper.
func (to toHost) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.URL.Host, sent.Host = string(to), string(to)
	return http.DefaultTransport.RoundTrip(sent)
}
