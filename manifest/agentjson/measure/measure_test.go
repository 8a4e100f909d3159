package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// requests are n requests of which one in every is slow.
func requests(n, every int, slow time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = 10 * time.Millisecond
		if every > 0 && i%every == 0 {
			out[i] = slow
		}
	}
	return out
}

func TestLatencyBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		constraint string
		latencies  []time.Duration
		want       Outcome
	}{
		{"p99 < 500ms", requests(200, 0, 0), Kept},
		{"p99 < 500ms", requests(200, 10, time.Second), Broken},
		{"p99 < 500ms", requests(1000, 200, time.Second), Kept}, // five of a thousand are slow
		{"p99 < 500ms", requests(99, 0, 0), Unknown},            // of 99 requests nobody knows the slowest hundredth
		{"p99 < 500ms", nil, Unknown},
		{"p99 < 10ms", requests(200, 0, 0), Broken},
		{"p99 <= 10ms", requests(200, 0, 0), Kept},
		{"P99.9 < 500 ms", requests(500, 0, 0), Unknown},
		{"p99.9 < 500ms", requests(1000, 0, 0), Kept},
		{"p50 < 50ms", requests(30, 3, time.Second), Kept},
		{"median latency under 50 milliseconds", requests(30, 3, time.Second), Kept},
		{"average response time below 0.1 seconds", requests(30, 3, time.Second), Broken},
		{"max: 2s", requests(30, 3, time.Second), Kept},
		{"max < 500ms", requests(2, 1, time.Second), Broken}, // one is enough
		{"< 500ms", requests(30, 1, time.Second), Broken},
		{"p95 < 900000µs", requests(100, 2, time.Second), Broken},
		{"p99 < 500ms & p50 < 50ms", requests(200, 0, 0), Unknown},
		{"fast", requests(200, 0, 0), Unknown},
		{"p0 < 1ms", requests(200, 0, 0), Unknown},
		{"p99 < 0ms", requests(200, 0, 0), Unknown},
		{"p99 < 5 parsecs", requests(200, 0, 0), Unknown},
		{"", requests(200, 0, 0), Unknown},
	} {
		commitment := Promise{Type: "latency_bound", Constraint: c.constraint, Verifiable: true}
		got := Observed{Latencies: c.latencies}.Check(commitment)
		if got.Outcome != c.want || got.Reason == "" {
			t.Errorf("%q of %d: %+v, want %s", c.constraint, len(c.latencies), got, c.want)
		}
		commitment.Verifiable = false
		if got := (Observed{Latencies: c.latencies}).Check(commitment); got.Outcome != Unknown {
			t.Errorf("%q is judged though it is not verifiable", c.constraint)
		}
	}
}

func TestUptimeBounds(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		constraint   string
		window, down time.Duration
		want         Outcome
	}{
		{"99.9% monthly uptime", 30 * day, 40 * time.Minute, Kept},
		{"99.9% monthly uptime", 30 * day, 44 * time.Minute, Broken},
		{"99.9% monthly uptime", 10 * day, 40 * time.Minute, Unknown},
		{"99.9% monthly uptime", 10 * day, 44 * time.Minute, Broken}, // more than the whole month may lose
		{"99.9 % availability per year", 300 * day, time.Hour, Unknown},
		{"99.9 % availability per year", 365 * day, 8 * time.Hour, Kept},
		{">= 99% uptime", day, 10 * time.Minute, Kept},
		{"at least 99% uptime", time.Hour, 0, Unknown},
		{"99% weekly uptime", 7 * day, 2 * time.Hour, Broken},
		{"100% daily uptime", day, time.Second, Broken},
		{"99.9% monthly uptime per year", 400 * day, 0, Unknown},
		{"101% uptime", 30 * day, 0, Unknown},
		{"0% uptime", 30 * day, 0, Unknown},
		{"five nines", 30 * day, 0, Unknown},
		{"99.9% monthly uptime", 0, 0, Unknown},
		{"99.9% monthly uptime", day, 2 * day, Unknown},
		{"99.9% monthly uptime", 30 * day, -time.Hour, Unknown},
	} {
		got := Observed{Window: c.window, Down: c.down}.Check(Promise{Type: "uptime_sla", Constraint: c.constraint,
			Verifiable: true})
		if got.Outcome != c.want || got.Reason == "" {
			t.Errorf("%q, down %s of %s: %+v, want %s", c.constraint, c.down, c.window, got, c.want)
		}
	}
	other := Observed{Window: 30 * day}.Check(Promise{Type: "data_residency", Constraint: "EU", Verifiable: true})
	if other.Outcome != Unknown || !strings.Contains(other.Reason, "type") {
		t.Errorf("%+v", other)
	}
}

// A quantile by the nearest rank is a measured value that at least the quantile's share of requests did not exceed.
func TestQuantile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		latencies := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 1000),
			func(n int) time.Duration { return time.Duration(n) }), 1, 300).Draw(t, "latencies")
		quantile := rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.99, 0.999, 1}).Draw(t, "quantile")
		got := measure(latencies, quantile)
		within := 0
		for _, l := range latencies {
			if l <= got {
				within++
			}
		}
		if !slices.Contains(latencies, got) || float64(within) < quantile*float64(len(latencies))-1e-6 {
			t.Fatalf("%s: %d of %d", got, within, len(latencies))
		}
	})
}

func TestUnderstood(t *testing.T) {
	t.Parallel()
	for promise, want := range map[Promise]bool{
		{"latency_bound", "p99 < 1s", true}: true, {"latency_bound", "fast", true}: false,
		{"latency_bound", "fast", false}: true,
		{"data_residency", "EU", true}:   true, {"uptime_sla", "five nines", true}: false,
	} {
		if got := promise.Understood(); got != want {
			t.Errorf("%+v: %v", promise, got)
		}
	}
}
