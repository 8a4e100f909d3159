package agent

import (
	"fmt"
	"math/big"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of section 13.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	payments *prometheus.CounterVec
	revenue  *prometheus.CounterVec
}

// newMetrics registers the metrics of a router. It MUST be called once for a registry.
func newMetrics(r *Router, registry *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agent_requests_total",
			Help: "Requests answered."}, []string{"capability", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "agent_request_duration_seconds",
			Help: "Time to answer.", Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}},
			[]string{"capability"}),
		payments: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agent_payments_total",
			Help: "Payments by what became of them."}, []string{"status"}),
		revenue: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agent_revenue_total",
			Help: "Settled payments, in whole units of the currency."}, []string{"currency"}),
	}
	for _, c := range append([]prometheus.Collector{m.requests, m.duration, m.payments, m.revenue}, gauges(r)...) {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// gauges are read when they are asked for.
func gauges(r *Router) []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	scored := func(value func(*Score) float64) func() float64 {
		return func() float64 {
			if s := r.score.Load(); s != nil {
				return value(s)
			}
			return 0
		}
	}
	return []prometheus.Collector{
		gauge("agent_reputation_score", "The agent's own score, -100 to 100; 0 where it is not known.",
			scored(func(s *Score) float64 { return s.Value })),
		gauge("agent_feedback_count", "Ratings that the agent has.",
			scored(func(s *Score) float64 { return float64(s.Feedback) })),
		gauge("agent_uptime_seconds", "Time since the start.", func() float64 { return r.Uptime().Seconds() }),
		gauge("agent_memory_usage_bytes", "Memory that the process uses.", memory),
		gauge("agent_cpu_usage_percent", "CPU time of the process since its start, in percent of one CPU.",
			func() float64 { return 100 * cpu().Seconds() / max(r.Uptime().Seconds(), 0.001) }),
	}
}

// memory is what the Go runtime has of the system, in bytes: what it gave back does not count.
func memory() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Sys - m.HeapReleased)
}

// cpu is the CPU time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settled counts money that moved: an amount of smallest units, by the terms of its payment.
func (m *metrics) settled(amount *big.Int, t *terms) {
	m.payments.WithLabelValues("settled").Inc()
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Decimals)), nil)
	whole, _ := new(big.Rat).SetFrac(amount, unit).Float64()
	m.revenue.WithLabelValues(t.Currency).Add(whole)
}
