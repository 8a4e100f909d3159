package orchestrator_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"repute/internal/tracing"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/telemetry"
)

// collected is a collector of traces that keeps what it is sent.
type collected struct {
	mu    sync.Mutex
	spans []*traces.Span
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var said collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &said) != nil {
		http.Error(w, "not a trace", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range said.ResourceSpans {
		for _, s := range of.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// A run is one trace at the collector that the environment names: the run, its phases below
// it, calls and runs of other agents below those.
func TestRunIsOneTrace(t *testing.T) { // not parallel: the environment
	c := &collected{}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	provider, err := tracing.Open(t.Context(), "test", telemetry.TraceIDs{}, slog.New(slog.DiscardHandler))
	ok(t, err)

	head, hand := newWorker("head"), newWorker("hand")
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "head"}, {ID: "b", Agent: "hand"}}}
	}
	head.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		return c.Tool(ctx, "echo", json.RawMessage("1"))
	}
	echo := toolFunc(func(_ context.Context, _ string, in json.RawMessage) (json.RawMessage, error) { return in, nil })
	h, _ := newHouse(t)
	stop := h.start(orchestrator.Options{Lenient: true, Trace: telemetry.NewTrace(provider),
		Modules: []orchestrator.Module{head, hand}, Tools: map[string]orchestrator.Tool{"echo": echo}})
	for range 2 {
		h.ended(h.submit(standard.Request{Coordinator: "head"}))
	}
	stop()
	ok(t, provider.Shutdown(context.Background()))

	byTrace := map[string]map[string]*traces.Span{}
	for _, s := range c.spans {
		id := hex.EncodeToString(s.TraceId)
		if byTrace[id] == nil {
			byTrace[id] = map[string]*traces.Span{}
		}
		byTrace[id][hex.EncodeToString(s.SpanId)] = s
	}
	if len(byTrace) != 2 {
		t.Fatalf("%d spans in %d traces of two runs", len(c.spans), len(byTrace))
	}
	phases := []string{"discover", "dry_run", "execute", "plan", "policy", "record", "summarize", "trust", "verify"}
	var want []string
	for _, p := range phases {
		want = append(want, "run/"+p, "run/execute/run/"+p)
	}
	want = append(want, "run", "run/execute/run", "run/execute/tool")
	slices.Sort(want)
	for id, spans := range byTrace {
		var got []string
		for _, s := range spans {
			got = append(got, pathOf(spans, s))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("trace %s: %v", id, got)
		}
	}
}

// pathOf names a span with all above it.
func pathOf(spans map[string]*traces.Span, s *traces.Span) string {
	if len(s.ParentSpanId) == 0 {
		return s.Name
	}
	above := spans[hex.EncodeToString(s.ParentSpanId)]
	if above == nil {
		return "?/" + s.Name
	}
	return pathOf(spans, above) + "/" + s.Name
}

// Without a collector in the environment nothing is traced.
func TestNoCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	if provider, err := tracing.Open(t.Context(), "test", nil, slog.New(slog.DiscardHandler)); provider != nil ||
		err != nil {
		t.Errorf("%v, %v", provider, err)
	}
}
