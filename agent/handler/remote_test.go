package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute"
	"repute/agent/capability"
	"repute/agent/handler"
)

func request() capability.Call {
	return capability.Call{AgentID: "42", Capability: "echo", Version: "1.0.0", RequestID: "r-1",
		Time: time.Unix(1_700_000_000, 0), Input: json.RawMessage(`{"text":"hi"}`)}
}

func TestHTTPMapsStatuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		body   string
		want   error
	}{
		"answer":      {200, ` {"n":1} `, nil},
		"no JSON":     {200, `secret`, handler.ErrFailed},
		"too large":   {200, `"` + strings.Repeat("x", 2000) + `"`, handler.ErrFailed},
		"bad request": {400, `secret`, handler.ErrFailed},
		"error":       {500, `secret`, handler.ErrFailed},
		"redirect":    {302, `secret`, handler.ErrFailed},
		"busy":        {429, `secret`, repute.ErrUnavailable},
		"down":        {503, `secret`, repute.ErrUnavailable},
		"late":        {504, `secret`, handler.ErrTimeout},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var got struct{ RequestID string }
				body, _ := io.ReadAll(r.Body)
				if json.Unmarshal(body, &got) != nil || got.RequestID != "r-1" || r.Header.Get("X-Token") != "t" ||
					r.Header.Get("Idempotency-Key") != "r-1" {
					t.Errorf("the server got %s", body)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer s.Close()
			h := &handler.HTTP{URL: s.URL, Client: s.Client(), Header: http.Header{"X-Token": {"t"}}, MaxAnswer: 1000}
			out, err := h.Run(t.Context(), request())
			if !errors.Is(err, tt.want) || err == nil && string(out) != `{"n":1}` {
				t.Fatalf("got %s, %v; want %v", out, err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the server: %v", err)
			}
		})
	}
}

func TestHTTPEndsInTime(t *testing.T) {
	t.Parallel()
	block := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"beginning`)
		w.(http.Flusher).Flush()
		<-block
	}))
	defer s.Close()
	defer close(block)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := (&handler.HTTP{URL: s.URL, Client: s.Client()}).Run(ctx, request()); !errors.Is(err,
		handler.ErrTimeout) {
		t.Errorf("got %v", err)
	}
	gone := &handler.HTTP{URL: "http://127.0.0.1:1/", Client: s.Client()}
	if _, err := gone.Run(t.Context(), request()); !errors.Is(err, repute.ErrUnavailable) ||
		strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("got %v", err)
	}
}

// toolServer serves four tools.
func toolServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "tools", Version: "1"}, nil)
	add := func(name string, result *sdk.CallToolResult, err error) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if string(r.Params.Arguments) != `{"text":"hi"}` {
					t.Errorf("the tool got %s", r.Params.Arguments)
				}
				return result, err
			})
	}
	text := func(s string) []sdk.Content { return []sdk.Content{&sdk.TextContent{Text: s}} }
	add("structured", &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1}, Content: text("one")}, nil)
	add("json", &sdk.CallToolResult{Content: text(`{"n":1}`)}, nil)
	add("text", &sdk.CallToolResult{Content: text(`plain`)}, nil)
	add("long", &sdk.CallToolResult{Content: text(strings.Repeat("x", 100_000))}, nil)
	add("wrong", &sdk.CallToolResult{IsError: true, Content: text("secret")}, nil)
	add("broken", nil, errors.New("secret"))
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(h.Close)
	return h
}

func TestMCPCallsTools(t *testing.T) {
	t.Parallel()
	s := toolServer(t)
	tests := map[string]struct {
		answer string
		want   error
	}{
		"structured": {`{"n":1}`, nil},
		"json":       {`{"n":1}`, nil},
		"text":       {`"plain"`, nil},
		"long":       {"", handler.ErrFailed},
		"wrong":      {"", handler.ErrFailed},
		"broken":     {"", handler.ErrFailed},
		"absent":     {"", handler.ErrFailed},
	}
	for tool, tt := range tests {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			m := &handler.MCP{Server: &handler.MCPEndpoint{URL: s.URL, Client: s.Client(), MaxAnswer: 20_000},
				Tool:      tool,
				MaxAnswer: 20_000}
			out, err := m.Run(t.Context(), request())
			if !errors.Is(err, tt.want) || string(out) != tt.answer {
				t.Errorf("got %.100s, %v; want %s, %v", out, err, tt.answer, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the tool: %v", err)
			}
		})
	}
}

func TestMCPUnavailable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]handler.Connector{
		"endpoint": &handler.MCPEndpoint{URL: "http://127.0.0.1:1/mcp", Client: &http.Client{}},
		"program":  &handler.MCPProgram{Path: "/no/such/program"},
	} {
		if _, err := (&handler.MCP{Server: c, Tool: "x"}).Run(t.Context(), request()); !errors.Is(err,
			repute.ErrUnavailable) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	list := request()
	list.Input = json.RawMessage(`[1]`)
	if _, err := (&handler.MCP{}).Run(t.Context(), list); !errors.Is(err, handler.ErrFailed) {
		t.Errorf("a list as arguments: %v", err)
	}
}

// No request goes to another origin than the configured one, whether a redirect or the event endpoint of an SSE server
// points there: the token that is sent with each request stays with its server.
func TestMCPStaysAtOrigin(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen <- r.Header.Get("X-Api-Key")
	}))
	t.Cleanup(thief.Close)
	redirects := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	t.Cleanup(redirects.Close)
	// The stream stays open until the client leaves: a stream that ended would be an error of its own.
	events := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", thief.URL)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("send the endpoint: %v", err)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(events.Close)
	for name, e := range map[string]*handler.MCPEndpoint{
		"redirect":               {URL: redirects.URL},
		"redirect of events":     {URL: redirects.URL, SSE: true},
		"endpoint of the events": {URL: events.URL, SSE: true},
	} {
		e.Client, e.Header = &http.Client{}, http.Header{"X-Api-Key": {"s3cret"}}
		_, _, err := e.Session(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the server sends its client to") {
			t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case key := <-stolen:
		t.Errorf("another host was asked, with the key %q", key)
	default:
	}
}

// The URL of a handler can have a secret in its path or query: the log of a server that cannot be reached has none.
func TestURLsAreNotLogged(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1/hook/hunter2?key=hunter2"
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	for name, run := range map[string]func(context.Context, capability.Call) (json.RawMessage, error){
		"HTTP": (&handler.HTTP{URL: address, Client: http.DefaultClient, Log: log}).Run,
		"MCP": (&handler.MCP{Server: &handler.MCPEndpoint{URL: address, Client: http.DefaultClient}, Tool: "echo",
			Log: log}).Run,
		"Task": (&handler.Task{URL: address, Client: http.DefaultClient, Log: log}).Run,
	} {
		text.Reset()
		if _, err := run(t.Context(), request()); !errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := text.String(); !strings.Contains(got, "not reached") || strings.Contains(got, "hunter2") {
			t.Errorf("%s: logged %s", name, got)
		}
	}
}
