package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/propagation"

	"repute"
	"repute/agent/capability"
	"repute/internal/httprule"
)

// MCP calls a tool of an MCP server with the input as its arguments. A structured result is the
// answer; else the text of the result is, as JSON where it is JSON and as a JSON string otherwise.
type MCP struct {
	Server    Connector
	Tool      string
	MaxAnswer int // 10 MiB when 0
	Log       *slog.Logger
}

// Connector gives sessions with an MCP server.
type Connector interface {
	// Session returns a session, and a function that MUST be called when the call on it has ended.
	Session(ctx context.Context) (session *sdk.ClientSession, done func(), err error)
}

// Run implements agent.Handler.
func (m *MCP) Run(ctx context.Context, call capability.Call) (json.RawMessage, error) {
	if input := bytes.TrimSpace(call.Input); len(input) == 0 || input[0] != '{' {
		return nil, fmt.Errorf("%w: tools take objects, and the capability's input schema allows others", ErrFailed)
	}
	session, done, err := m.Server.Session(ctx)
	if err != nil {
		logger(m.Log).WarnContext(ctx, "MCP server not reached", "tool", m.Tool, "error", withoutURL(err))
		return nil, handlerError(ctx, fmt.Errorf("%w: the handler's MCP server cannot be reached",
			repute.ErrUnavailable))
	}
	defer done()
	result, err := CallTool(ctx, m.Server, session, &sdk.CallToolParams{Name: m.Tool, Arguments: call.Input,
		Meta: metaOf(ctx, call)})
	switch {
	case err != nil:
		logger(m.Log).WarnContext(ctx, "tool not called", "tool", m.Tool, "error", withoutURL(err))
		return nil, handlerError(ctx, fmt.Errorf("%w: its MCP server did not run the tool", ErrFailed))
	case result.IsError:
		logger(m.Log).WarnContext(ctx, "tool failed", "tool", m.Tool, "text", fmt.Sprintf("%.4096s", Text(result)))
		return nil, fmt.Errorf("%w: its tool ended with an error", ErrFailed)
	}
	return m.answer(result)
}

// writeGrace is how long a call may last after its context ended. A call that was written returns at once; another one
// waits for a server that does not read.
const writeGrace = time.Second

// CallTool calls a tool on a session that a Connector gave, and returns soon after ctx ends. The client writes to a
// program without a context, so that a program that does not read would block the call for ever: it is killed, and the
// next call starts it again.
func CallTool(ctx context.Context, from Connector, session *sdk.ClientSession,
	params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	type answer struct {
		result *sdk.CallToolResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := session.CallTool(ctx, params)
		answered <- answer{result, err}
	}()
	select {
	case a := <-answered:
		return a.result, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-answered:
		return a.result, a.err
	case <-time.After(writeGrace):
	}
	if p, ok := from.(*MCPProgram); ok {
		p.kill(session)
	}
	return nil, fmt.Errorf("the server does not read its input: %w", context.Cause(ctx))
}

// Members of the _meta of a call: the request's id, which is the same where a call is repeated, and
// the id for logs. The trace is in traceparent and tracestate (W3C Trace Context).
const (
	metaRequest     = "agent402/requestId"
	metaCorrelation = "agent402/correlationId"
)

// metaOf is the _meta of a call.
func metaOf(ctx context.Context, call capability.Call) sdk.Meta {
	meta, trace := sdk.Meta{metaRequest: call.RequestID}, propagation.MapCarrier{}
	if call.Correlation != "" {
		meta[metaCorrelation] = call.Correlation
	}
	propagation.TraceContext{}.Inject(ctx, trace)
	for name, value := range trace {
		meta[name] = value
	}
	return meta
}

// answer is the result of a tool as JSON.
func (m *MCP) answer(result *sdk.CallToolResult) (raw json.RawMessage, err error) {
	text := Text(result)
	switch {
	case result.StructuredContent != nil:
		raw, err = json.Marshal(result.StructuredContent)
	case json.Valid([]byte(text)):
		raw = json.RawMessage(text)
	default:
		raw, err = json.Marshal(text)
	}
	if most := cmp.Or(m.MaxAnswer, defaultMaxAnswer); err == nil && len(raw) > most {
		return nil, fmt.Errorf("%w: its answer has more than %d bytes", ErrFailed, most)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: its answer is no JSON", ErrFailed)
	}
	return checked(raw)
}

// Text joins the texts of a result.
func Text(result *sdk.CallToolResult) string {
	var out bytes.Buffer
	for _, c := range result.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			out.WriteString(t.Text)
		}
	}
	return out.String()
}

// client is the MCP client of all connectors.
func client() *sdk.Client {
	return sdk.NewClient(&sdk.Implementation{Name: "repute", Version: "1"}, nil)
}

// MCPEndpoint connects over streamable HTTP, anew for each call, so that a restarted server costs no
// failed call. No request goes to another origin than that of URL, wherever a redirect or the server's event
// endpoint points: the requests have the header, and the server decides what they say.
type MCPEndpoint struct {
	URL       string
	Client    *http.Client // decides what may be reached; see Doer
	Header    http.Header  // added to each request, such as a token
	MaxAnswer int64        // 10 MiB when 0
	SSE       bool         // the server speaks the older HTTP+SSE transport
}

// Session implements Connector.
func (e *MCPEndpoint) Session(ctx context.Context) (*sdk.ClientSession, func(), error) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, nil, repute.Invalid("url", "is no URL", "https://host/path") // not quoted: it may have a secret
	}
	bounded := *e.Client
	guarded := &endpointTransport{next: cmp.Or(e.Client.Transport, http.DefaultTransport), origin: originOf(u),
		most: 2 * cmp.Or(e.MaxAnswer, defaultMaxAnswer), header: e.Header}
	bounded.Transport = guarded
	var transport sdk.Transport = &sdk.StreamableClientTransport{Endpoint: e.URL, HTTPClient: &bounded,
		DisableStandaloneSSE: true, MaxRetries: -1}
	if e.SSE {
		transport = &sdk.SSEClientTransport{Endpoint: e.URL, HTTPClient: &bounded}
	}
	session, err := client().Connect(ctx, transport, nil)
	if refused := guarded.refused.Load(); err != nil && refused != nil {
		return nil, nil, *refused // the SDK may report only a closed connection
	}
	if err != nil {
		return nil, nil, err
	}
	return session, func() { _ = session.Close() }, nil // the call has ended
}

// originOf is the scheme, host and port of a URL.
func originOf(u *url.URL) string {
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + httprule.Port(u)
}

// endpointTransport sends requests to one origin, adds headers to them, and ends answers that are too long.
type endpointTransport struct {
	next    http.RoundTripper
	origin  string
	most    int64
	header  http.Header
	refused atomic.Pointer[error] // why the last request to another origin was not sent
}

// RoundTrip implements http.RoundTripper.
func (t *endpointTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if to := originOf(req.URL); to != t.origin {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper MUST close it; the refusal is what is told
		}
		err := repute.Invalid("url", fmt.Sprintf("the server sends its client to %.200s", to), "only "+t.origin)
		t.refused.Store(&err)
		return nil, err
	}
	if len(t.header) > 0 {
		req = req.Clone(req.Context()) // a RoundTripper MUST NOT change its request
		for name, values := range t.header {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: t.most}
	}
	return resp, err
}

// boundedBody is a body that fails beyond its bound.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("the answer is too long")
	}
	return n, err
}

// MCPProgram connects to a program over standard input and output. The program runs until Close, and
// is started again when it ended. The operator vouches for it: no limits bind it.
type MCPProgram struct {
	Path string
	Args []string
	Dir  string   // working directory; that of this process when empty
	Env  []string // the whole environment

	mu      sync.Mutex
	session *sdk.ClientSession
	process *os.Process // of the session
}

// Session implements Connector.
func (p *MCPProgram) Session(ctx context.Context) (*sdk.ClientSession, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		return p.session, func() {}, nil
	}
	cmd := exec.Command(p.Path, p.Args...) // it outlives the call that starts it
	cmd.Dir, cmd.Env = p.Dir, append([]string{}, p.Env...)
	session, err := client().Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, nil, err
	}
	p.session, p.process = session, cmd.Process
	go p.forget(session)
	return session, func() {}, nil
}

// forget waits for the end of a session, so that the next call starts another.
func (p *MCPProgram) forget(session *sdk.ClientSession) {
	_ = session.Wait() // whatever ended it, the session is over
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == session {
		p.session = nil
	}
}

// kill ends the program of a session, where it still runs. Its pipes break, which ends the calls on the session.
func (p *MCPProgram) kill(session *sdk.ClientSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session == session {
		_ = p.process.Kill() // an error means that it has already ended
		p.session = nil
	}
}

// Close ends the program.
func (p *MCPProgram) Close() error {
	p.mu.Lock()
	session := p.session
	p.session = nil
	p.mu.Unlock()
	if session == nil {
		return nil
	}
	return session.Close()
}
