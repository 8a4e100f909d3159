package serve_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute/agent"
	"repute/agent/a2aserver"
	"repute/agent/capability"
	"repute/agent/envelope"
	"repute/agent/remoteserver"
	"repute/agent/signed"
	"repute/agent/toolserver"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/x402"
)

// told is what a client is told, whatever the surface.
type told struct {
	status int
	body   string
	mode   string
	moved  string // transaction of the settlement
}

// client asks for a capability over one surface, and checks the signature of the answer.
type client func(t testing.TB, name, input string, p *x402.Payment) told

// checkSigned verifies a signature of a surface that has no headers.
func checkSigned(t testing.TB, s envelope.Signature, body []byte) {
	t.Helper()
	r, err := signed.ReadResponse(s.Headers())
	ok(t, err)
	if by, err := r.Verify(body); err != nil || by != signer(t).Address() {
		t.Errorf("signed by %s: %v", by, err)
	}
}

// over converts JSON.
func over[T any](t testing.TB, v any) (out T) {
	t.Helper()
	raw, err := json.Marshal(v)
	ok(t, err)
	ok(t, json.Unmarshal(raw, &out))
	return out
}

func (s *shop) overHTTP(t testing.TB, name, input string, p *x402.Payment) told {
	h := http.Header{}
	if p != nil {
		h = header(t, *p)
	}
	r := s.send(t, name, input, h)
	out := told{r.status, r.body, r.header.Get("X-Agent-Mode"), ""}
	if settled, ok := x402.SettlementOf(r.header); ok && settled.Success {
		out.moved = settled.Transaction
	}
	return out
}

// overMCP is a client of MCP on a transport.
func overMCP(t *testing.T, transport sdk.Transport) client {
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	ok(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return func(t testing.TB, name, input string, p *x402.Payment) told {
		t.Helper()
		q := &sdk.CallToolParams{Name: strings.ReplaceAll(name, "-", "_"), Arguments: json.RawMessage(input)}
		if p != nil {
			q.Meta = sdk.Meta{x402.MetaPayment: *p}
		}
		r, err := c.CallTool(t.Context(), q)
		ok(t, err)
		text := r.Content[0].(*sdk.TextContent).Text
		checkSigned(t, over[envelope.Signature](t, r.Meta[toolserver.MetaSignature]), []byte(text))
		out := told{status: over[int](t, r.Meta[toolserver.MetaStatus]), body: text}
		out.mode, _ = r.Meta[toolserver.MetaMode].(string)
		if r.IsError != (out.status != http.StatusOK) {
			t.Errorf("isError is %t of status %d", r.IsError, out.status)
		}
		if out.status == http.StatusPaymentRequired {
			if d := over[x402.PaymentRequired](t, r.StructuredContent); d.X402Version != x402.V2 ||
				len(d.Accepts) == 0 ||
				d.Resource.URL != "mcp://tool/"+name {
				t.Errorf("%+v", d)
			}
		}
		if m := r.Meta[x402.MetaResponse]; m != nil {
			out.moved = over[x402.Settlement](t, m).Transaction
		}
		return out
	}
}

// overA2A pays, as the extension wants it, by a second message of the same task.
func (s *shop) overA2A(t *testing.T) client {
	card, err := agentcard.DefaultResolver.Resolve(t.Context(), s.URL)
	ok(t, err)
	c, err := a2aclient.NewFromCard(t.Context(), card)
	ok(t, err)
	return func(t testing.TB, name, input string, p *x402.Payment) told {
		t.Helper()
		var value any
		ok(t, json.Unmarshal([]byte(input), &value))
		m := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewDataPart(map[string]any{"capability": name, "input": value}))
		task := s.message(t, c, m)
		if p != nil && task.Status.State == a2a.TaskStateInputRequired {
			if task.Status.Message.Metadata[x402.A2AStatus] != "payment-required" ||
				len(over[x402.PaymentRequired](t, task.Status.Message.Metadata[x402.A2ARequired]).Accepts) == 0 {
				t.Errorf("%+v", task.Status.Message)
			}
			pays := a2a.NewMessageForTask(a2a.MessageRoleUser, task, a2a.NewTextPart("the payment"))
			pays.Metadata = map[string]any{x402.A2AStatus: "payment-submitted",
				x402.A2APayload: over[map[string]any](t, *p)}
			task = s.message(t, c, pays)
		}
		stored, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: task.ID})
		if err != nil || stored.Status.State != task.Status.State {
			t.Errorf("stored is %+v: %v", stored, err)
		}
		return toldBy(t, task)
	}
}

func (s *shop) message(t testing.TB, c *a2aclient.Client, m *a2a.Message) *a2a.Task {
	t.Helper()
	r, err := c.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: m})
	ok(t, err)
	return r.(*a2a.Task)
}

func toldBy(t testing.TB, task *a2a.Task) told {
	t.Helper()
	meta := task.Status.Message.Metadata
	out := told{status: over[int](t, meta[a2aserver.MetaStatus])}
	parts := task.Status.Message.Parts
	if task.Status.State == a2a.TaskStateCompleted {
		parts = task.Artifacts[0].Parts
	}
	if (task.Status.State == a2a.TaskStateCompleted) != (out.status == http.StatusOK) {
		t.Errorf("state %s with status %d", task.Status.State, out.status)
	}
	body, err := json.Marshal(parts[len(parts)-1].Data())
	ok(t, err)
	checkSigned(t, over[envelope.Signature](t, meta[a2aserver.MetaSignature]), body)
	out.body = string(body)
	out.mode, _ = meta[a2aserver.MetaMode].(string)
	if meta[x402.A2AReceipts] != nil {
		out.moved = over[[]x402.Settlement](t, meta[x402.A2AReceipts])[0].Transaction
	}
	return out
}

var statusText = regexp.MustCompile(`^([a-z_]+): .*\(status (\d+)\)$`)

// overRemote is the step of a run.
func (s *shop) overRemote(t testing.TB, name, input string, p *x402.Payment) told {
	t.Helper()
	task := map[string]any{"capability": name, "input": json.RawMessage(input)}
	if p != nil {
		task["payment"] = *p
	}
	raw, err := json.Marshal(task)
	ok(t, err)
	body, err := json.Marshal(remote.Question{Protocol: remote.Protocol, TaskID: "t",
		Task: standard.Task{ID: "t", Input: raw}})
	ok(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+remoteserver.Path+"/execute",
		strings.NewReader(string(body)))
	ok(t, err)
	res, err := http.DefaultClient.Do(r)
	ok(t, err)
	defer res.Body.Close()
	var a remote.Answer
	ok(t, json.NewDecoder(res.Body).Decode(&a))
	if a.Error != "" {
		m := statusText.FindStringSubmatch(a.Error)
		if m == nil {
			t.Fatalf("%q", a.Error)
		}
		status, err := strconv.Atoi(m[2])
		ok(t, err)
		return told{status: status, body: `{"error":"` + m[1] + `"}`}
	}
	var d remoteserver.Done
	ok(t, json.Unmarshal(a.Result, &d))
	checkSigned(t, d.Signature, d.Output)
	return told{http.StatusOK, string(d.Output), d.Mode, d.Settlement}
}

// code is the code of a problem.
func (a told) code() string {
	var b struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(a.body), &b) != nil || a.status == http.StatusOK {
		return ""
	}
	if a.status == http.StatusPaymentRequired {
		return "payment_required" // x402 has its own texts there
	}
	return b.Error
}

// TestSurfaces: the same requests are answered alike over every surface, and money moves alike.
func TestSurfaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, slow := &echo{}, &echo{begun: make(chan struct{}, 1)}
	s := w.open(t, agent.Options{Concurrency: 4, Degraded: 1}, service(t, "for-free", h, nil, nil),
		service(t, "for-money", h, w.price(), nil), service(t, "for-long", slow, nil, nil),
		service(t, "for-few", h, nil, func(d *capability.Definition) { d.MaxRequestBytes = 64 }))
	first := w.Pay(t, w.Requirements(10))
	elsewhere := s.overHTTP(t, "for-money", `{"text":"first"}`, &first)
	for name, ask := range s.clients(t) {
		table(t, w, s, h, name, ask)
		if got := ask(t, "for-money", `{"text":"first"}`, &first); got.status != http.StatusOK ||
			got.moved != elsewhere.moved ||
			!sameJSON(t, got.body, elsewhere.body) {
			t.Errorf("%s: the payment of another surface: %+v, not %+v", name, got, elsewhere)
		}
		modes(t, s, slow, name, ask)
	}
}

func (s *shop) clients(t *testing.T) map[string]client {
	in, asking := io.Pipe()
	answers, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.tools.Stdio(ctx, in, out) }()
	t.Cleanup(func() { cancel(); <-done })
	return map[string]client{
		"HTTP": s.overHTTP,
		"MCP": overMCP(t,
			&sdk.StreamableClientTransport{Endpoint: s.URL + toolserver.Path, DisableStandaloneSSE: true}),
		"MCP, server-sent events": overMCP(t, &sdk.SSEClientTransport{Endpoint: s.URL + toolserver.EventsPath}),
		"MCP, standard input":     overMCP(t, &sdk.IOTransport{Reader: answers, Writer: asking}),
		"A2A":                     s.overA2A(t),
		"orchestrator":            s.overRemote,
	}
}

func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	return signed.HashBody([]byte(a)) == signed.HashBody([]byte(b))
}

// table asks the same of each surface.
func table(t *testing.T, w *world, s *shop, h *echo, name string, ask client) {
	t.Helper()
	paid := w.Pay(t, w.Requirements(10))
	less, plain := w.Pay(t, w.Requirements(9)), w.Pay(t, w.PlainRequirements(10))
	input := `{"text":"` + name + `"}`
	var once told
	for _, c := range []struct {
		what, capability, input string
		payment                 *x402.Payment
		status                  int
		code                    string
		runs                    int
		moves                   int64
	}{
		{"free", "for-free", input, nil, 200, "", 1, 0},
		{"unpaid", "for-money", input, nil, 402, "payment_required", 0, 0},
		{"paid less", "for-money", input, &less, 402, "payment_required", 0, 0},
		{"paid", "for-money", input, &paid, 200, "", 1, 10},
		{"paid by Permit2", "for-money", input, &plain, 200, "", 1, 10},
		{"replay", "for-money", input, &paid, 200, "", 0, 0},
		{"another request", "for-money", `{"text":"other"}`, &paid, 409, "conflict", 0, 0},
		{"bad input", "for-free", `{"txt":"x"}`, nil, 400, "invalid", 0, 0},
		{"bad input, unpaid", "for-money", `{"txt":"x"}`, nil, 400, "invalid", 0, 0},
		{"too large", "for-few", `{"text":"` + strings.Repeat("x", 100) + `"}`, nil, 413, "too_large", 0, 0},
	} {
		runs, balance := h.count(), w.paid(t)
		got := ask(t, c.capability, c.input, c.payment)
		if got.status != c.status || got.code() != c.code || h.count()-runs != c.runs || w.paid(t)-balance != c.moves ||
			(got.moved != "") != (c.status == 200 && c.payment != nil) || got.mode != "" {
			t.Errorf("%s, %s: %+v, %d runs, %d moved", name, c.what, got, h.count()-runs, w.paid(t)-balance)
		}
		switch c.what {
		case "paid":
			once = got
		case "replay":
			if !sameJSON(t, got.body, once.body) || got.moved != once.moved {
				t.Errorf("%s: replayed is %+v, not %+v", name, got, once)
			}
		}
	}
}

// modes asks an agent that works in other modes.
func modes(t *testing.T, s *shop, slow *echo, name string, ask client) {
	t.Helper()
	input := `{"text":"x"}`
	s.router.SetMode(t.Context(), agent.Degraded, "a test")
	if got := ask(t, "for-free", input, nil); got.status != http.StatusOK || got.mode != string(agent.Degraded) {
		t.Errorf("%s, degraded: %+v", name, got)
	}
	slow.block = make(chan struct{})
	done := make(chan *agent.Response, 1)
	go func() { done <- s.router.Do(t.Context(), agent.Request{Capability: "for-long", Input: []byte(input)}) }()
	<-slow.begun
	if got := ask(t, "for-free", input, nil); got.status != http.StatusServiceUnavailable || got.code() != "degraded" {
		t.Errorf("%s, degraded and full: %+v", name, got)
	}
	close(slow.block)
	if got := <-done; got.Status != http.StatusOK {
		t.Errorf("%s: %+v", name, got.Problem)
	}
	s.router.SetMode(t.Context(), agent.Shutdown, "a test")
	if got := ask(t, "for-free", input, nil); got.status != http.StatusServiceUnavailable || got.code() != "shutdown" {
		t.Errorf("%s, shut down: %+v", name, got)
	}
	s.router.SetMode(t.Context(), agent.Normal, "a test")
}

// TestOneLimit: a message that is larger than the limit is refused by every transport.
func TestOneLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t, agent.Options{}, service(t, "echo", &echo{}, nil, nil))
	large := `{"text":"` + strings.Repeat("x", maxBody) + `"}`
	for path, body := range map[string]string{
		"/capability/echo": large, a2aserver.Path: `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` +
			large + `}`,
		toolserver.Path:                   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + large + `}`,
		remoteserver.Path + "/can-handle": `{"protocol":"repute-agent/1","task":` + large + `}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		ok(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(r)
		ok(t, err)
		if ok(t, res.Body.Close()); res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}
