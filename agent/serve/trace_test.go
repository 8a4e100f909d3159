package serve_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"repute/agent"
	"repute/agent/handler"
)

// TestTrace: a request is one span of its client's trace, with a child for each step that it reached,
// and its id goes from the client to the log, the answer and the handler.
func TestTrace(t *testing.T) {
	t.Parallel()
	w, spans := newWorld(t), tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	heard := make(chan http.Header, 1)
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header
		var call struct{ CorrelationID string }
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &call) != nil || call.CorrelationID != r.Header.Get("X-Request-Id") {
			t.Errorf("the handler got %s", body)
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(back.Close)
	h := &handler.HTTP{URL: back.URL, Client: back.Client()}
	s := w.open(t, agent.Options{Tracer: provider.Tracer("test")}, service(t, "for-free", h, nil, nil),
		service(t, "for-money", h, w.price(), nil), service(t, "broken", &echo{out: `[]`}, nil, nil))
	const trace, client = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	ask := func(name, input string, pays http.Header) (steps []string, failed bool) {
		h := http.Header{"X-Request-Id": {"client-7"}, "Traceparent": {"00-" + trace + "-" + client + "-01"}}
		for name, v := range pays {
			h[name] = v
		}
		before := len(spans.Ended())
		got := s.send(t, name, input, h)
		if got.header.Get("X-Request-Id") != "client-7" {
			t.Errorf("%s: the answer has the id %q", name, got.header.Get("X-Request-Id"))
		}
		list := spans.Ended()[before:]
		root := list[len(list)-1]
		if root.Name() != "capability" || root.Parent().SpanID().String() != client ||
			root.SpanContext().TraceID().String() != trace {
			t.Errorf("%s: %s in %s below %s", name, root.Name(), root.SpanContext().TraceID(), root.Parent().SpanID())
		}
		for _, one := range list[:len(list)-1] {
			if one.Parent().TraceID() != root.SpanContext().TraceID() {
				t.Errorf("%s: %s is in another trace", name, one.Name())
			}
			steps = append(steps, one.Name())
		}
		return steps, root.Status().Code == codes.Error
	}
	pays := header(t, w.Pay(t, w.Requirements(10)))
	for _, tt := range []struct {
		name, input string
		pays        http.Header
		want        string
		failed      bool
	}{
		{"for-free", `{"text":"x"}`, nil, "input policy payment handler output sign record", false},
		{"for-free", `{}`, nil, "input", false},
		{"for-money", `{"text":"x"}`, nil, "input policy payment", false},
		{"for-money", `{"text":"x"}`, pays, "input policy payment handler output settle sign record", false},
		{"broken", `{"text":"x"}`, nil, "input policy payment handler output", true},
	} {
		steps, failed := ask(tt.name, tt.input, tt.pays)
		if got := strings.Join(steps, " "); got != tt.want || failed != tt.failed {
			t.Errorf("%s %s: %s, failed %t; want %s", tt.name, tt.input, got, failed, tt.want)
		}
		if strings.Contains(tt.want, "handler") && !tt.failed {
			if h := <-heard; h.Get("X-Request-Id") != "client-7" || !strings.Contains(h.Get("Traceparent"), trace) {
				t.Errorf("the handler got %v", h)
			}
		}
	}
	if !strings.Contains(s.log.String(), `"correlationId":"client-7","traceId":"`+trace) {
		t.Error("the log does not have the request's id and trace")
	}
}

// TestCorrelationNamesNothing: clients that give their requests the same id get their own answers, and
// handlers are told ids of their own.
func TestCorrelationNamesNothing(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	s := w.open(t, agent.Options{}, service(t, "for-free", h, nil, nil))
	for range 2 {
		s.send(t, "for-free", `{"text":"x"}`, http.Header{"X-Request-Id": {"same"}})
	}
	if len(h.ids) != 2 || h.ids[0] == h.ids[1] || slices.Contains(h.ids, "same") {
		t.Errorf("the handler was told %v", h.ids)
	}
}

// TestTraceOfTools: a tool that does the work is told the ids and the trace in _meta.
func TestTraceOfTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	heard := make(chan sdk.Meta, 1)
	tools := sdk.NewServer(&sdk.Implementation{Name: "tools", Version: "1"}, nil)
	sdk.AddTool(tools, &sdk.Tool{Name: "echo"},
		func(_ context.Context, r *sdk.CallToolRequest, _ any) (*sdk.CallToolResult, any, error) {
			heard <- r.Params.Meta
			return nil, map[string]any{}, nil
		})
	back := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return tools },
		&sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(back.Close)
	h := &handler.MCP{Server: &handler.MCPEndpoint{URL: back.URL, Client: back.Client()}, Tool: "echo"}
	s := w.open(t, agent.Options{Tracer: sdktrace.NewTracerProvider().Tracer("test")}, service(t, "echo", h, nil, nil))
	if got := s.send(t, "echo", `{"text":"x"}`,
		http.Header{"X-Request-Id": {"client-7"}}); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	meta := <-heard
	if trace, _ := meta["traceparent"].(string); meta["agent402/correlationId"] != "client-7" ||
		meta["agent402/requestId"] == nil ||
		len(trace) != 55 {
		t.Errorf("%v", meta)
	}
}
