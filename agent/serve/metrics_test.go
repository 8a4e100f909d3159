package serve_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute/agent"
)

// TestMetrics shows the metrics of section 13 with their labels, after requests that are free, unpaid, paid and wrong.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(t, agent.Options{Registry: prometheus.NewRegistry()}, service(t, "echo", &echo{}, w.price(), nil),
		service(t, "free", &echo{}, nil, nil))
	s.router.SetScore(t.Context(), &agent.Score{Value: -12.5, Feedback: 7, At: time.Now()})
	forged := w.Pay(t, w.Requirements(10))
	forged.Payload.Signature[4] ^= 1
	for _, r := range []struct {
		name, input string
		header      http.Header
		status      int
	}{{"free", hello, nil, 200}, {"free", hello, nil, 200}, {"free", `{}`, nil, 400}, {"echo", hello, nil, 402},
		{"echo", hello, header(t, forged), 402}, {"echo", hello, header(t, w.Pay(t, w.Requirements(10))), 200},
		{"secret-of-a-stranger", `{}`, nil, 404}} {
		if got := s.send(t, r.name, r.input, r.header); got.status != r.status {
			t.Errorf("%s is answered with %d %s", r.name, got.status, got.body)
		}
	}
	text := "\n" + s.ask(t, http.MethodGet, "/metrics", "", nil).body
	for _, line := range []string{`agent_requests_total{capability="free",status="200"} 2`,
		`agent_requests_total{capability="free",status="400"} 1`,
		`agent_requests_total{capability="echo",status="402"} 2`,
		`agent_requests_total{capability="echo",status="200"} 1`,
		`agent_requests_total{capability="unknown",status="404"} 1`,
		`agent_request_duration_seconds_count{capability="free"} 3`, `agent_payments_total{status="refused"} 1`,
		`agent_payments_total{status="verified"} 1`, `agent_payments_total{status="settled"} 1`,
		`agent_revenue_total{currency="USDC"} 1e-05`, `agent_reputation_score -12.5`, `agent_feedback_count 7`,
		"agent_uptime_seconds ", "agent_memory_usage_bytes ", "agent_cpu_usage_percent "} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("there is no %s", line)
		}
	}
	if t.Failed() || strings.Contains(text, "stranger") {
		t.Error(text)
	}
}
