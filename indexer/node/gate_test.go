package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"repute"
	"repute/internal/rpctest"
)

func gateOf() *gate {
	return newGate(Options{Concurrency: 8, OpenMin: time.Second, OpenMax: 10 * time.Second})
}

// ask sends one request through the gate that ends as given.
func (g *gate) ask(t *testing.T, o outcome) error {
	t.Helper()
	probe, err := g.enter(t.Context())
	if err != nil {
		return err
	}
	o.probe = probe
	if o.err != nil {
		o.text = o.err.Error()
	}
	g.leave(o)
	return nil
}

var (
	errRate = &rpcRefusal{Message: "rate limit"}
	errDown = &connError{err: errors.New("refused")}
)

func TestGateConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		var flying, peak atomic.Int64
		load := func(n int) {
			peak.Store(0)
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					probe, err := g.enter(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					now := flying.Add(1)
					for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
					}
					time.Sleep(time.Second)
					flying.Add(-1)
					g.leave(outcome{took: time.Second, probe: probe})
				})
			}
			all.Wait()
		}
		load(2)
		if peak.Load() != startConcurrency {
			t.Errorf("%d at once at first, want %d", peak.Load(), startConcurrency)
		}
		load(100)
		if peak.Load() != 8 || g.limit != 8 {
			t.Errorf("after many successes %d at once, limit %g, want 8", peak.Load(), g.limit)
		}
		for range 3 { // together: one halving
			_ = g.ask(t, outcome{err: context.DeadlineExceeded, dense: true})
		}
		load(5)
		if peak.Load() != 4 && peak.Load() != 5 {
			t.Errorf("after a timeout %d at once, want about 4", peak.Load())
		}
	})
}

// A server that takes 20 requests a second is used well and seldom annoyed.
func TestGateFindsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		server := rate.NewLimiter(20, 20)
		var served, refused atomic.Int64
		end := time.Now().Add(5 * time.Minute)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for time.Now().Before(end) {
					probe, err := g.enter(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(20 * time.Millisecond)
					o := outcome{probe: probe, took: 20 * time.Millisecond}
					if server.Allow() {
						served.Add(1)
					} else {
						refused.Add(1)
						o.err = &statusError{429, time.Second, ""}
					}
					g.leave(o)
				}
			})
		}
		all.Wait()
		if perSecond := float64(served.Load()) / 300; perSecond < 15 {
			t.Errorf("%.1f requests per second of 20 possible", perSecond)
		}
		if refused.Load()*20 > served.Load() {
			t.Errorf("%d of %d requests were refused, want less than 5 %%", refused.Load(), served.Load()+refused.Load())
		}
		t.Logf("%d served, %d refused", served.Load(), refused.Load())
		time.Sleep(time.Hour)
		if err := g.ask(t, outcome{}); err != nil || g.rate != 0 {
			t.Errorf("after an hour of calm: rate %g, %v, want no limit", g.rate, err)
		}
	})
}

// One refusal of an endpoint that was hardly used says little about what it takes:
// a minute later it must not hold a backfill back.
func TestGateForgetsOneRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		for range 3 {
			if err := g.ask(t, outcome{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := g.ask(t, outcome{err: &statusError{429, 0, ""}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		for range 500 {
			if err := g.ask(t, outcome{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("500 requests took %s", took)
		}
	})
}

func TestGateRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		refuse := func(after time.Duration) {
			if err := g.ask(t, outcome{err: &statusError{429, after, ""}}); err != nil {
				t.Fatal(err)
			}
		}
		refuse(3 * time.Second)
		began := time.Now()
		if err := g.ask(t, outcome{}); err != nil || time.Since(began) < 3*time.Second {
			t.Errorf("asked again after %s, %v", time.Since(began), err)
		}
		refuse(20 * time.Second)
		var closed *closedError
		if err := g.ask(t, outcome{}); !errors.As(err, &closed) || Judge(err).Fault != FaultRate || Judge(err).RetryAfter != 20*time.Second {
			t.Errorf("a long pause: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(17 * time.Second)
		if _, err := g.enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller left: %v", err)
		}
	})
}

// An endpoint that wants to be left alone for an hour, or until 2099, is asked again
// after three minutes, and after half a minute while no other can answer; its last error
// says so.
func TestGateCutsPauses(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"3600", "99999999999999999999", "Thu, 01 Jan 2099 00:00:00 GMT"} {
		for _, others := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				g := gateOf()
				g.others = func() bool { return others }
				refusal := &statusError{429, retryAfter(header, time.Now()), ""}
				if err := g.ask(t, outcome{err: refusal, text: "HTTP status 429"}); err != nil {
					t.Fatal(err)
				}
				want := 30 * time.Second
				if others {
					want = 3 * time.Minute
				}
				time.Sleep(want - 10*time.Second)
				err := g.ask(t, outcome{})
				if err == nil || !strings.Contains(err.Error(), "wants to be left alone for") {
					t.Errorf("%s: ten seconds before the pause ends: %v", header, err)
				}
				time.Sleep(10 * time.Second)
				if err := g.ask(t, outcome{}); err != nil {
					t.Errorf("%s, others %t: after %s: %v", header, others, want, err)
				}
			})
		}
	}
}

func TestGateBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		var seen []string
		g.changed = func(from, to repute.EndpointState, why string) {
			seen = append(seen, fmt.Sprintf("%s>%s %s", from, to, why))
		}
		for range tripAfter - 1 {
			_ = g.ask(t, outcome{err: errDown})
		}
		_ = g.ask(t, outcome{}) // a success in between
		for i := range tripAfter {
			if err := g.ask(t, outcome{err: errDown}); err != nil {
				t.Fatalf("failure %d: %v", i, err)
			}
		}
		open := g.openFor
		for range 3 {
			if err := g.ask(t, outcome{}); err == nil || !IsTransient(err) || g.usable(time.Now()) {
				t.Fatalf("open: %v", err)
			}
		}
		time.Sleep(2 * time.Second)
		if !g.usable(time.Now()) {
			t.Fatal("not usable after the pause")
		}
		probe, err := g.enter(t.Context())
		if err != nil || !probe {
			t.Fatalf("probe %t: %v", probe, err)
		}
		if err := g.ask(t, outcome{}); err == nil {
			t.Error("a second request beside the probe")
		}
		g.leave(outcome{err: errDown, text: "refused", probe: true})
		if err := g.ask(t, outcome{}); err == nil || g.openFor != 2*open {
			t.Errorf("after a failed probe: %v, open for %s, before %s", err, g.openFor, open)
		}
		time.Sleep(3 * time.Second)
		if err := g.ask(t, outcome{}); err != nil {
			t.Fatal(err)
		}
		want := []string{"closed>open refused", "open>half_open ", "half_open>open refused", "open>half_open ", "half_open>closed "}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("changes %q, want %q", seen, want)
		}
	})
}

// What may come from the size of the question, and rate limits, do not open the
// breaker.
func TestGateSparesDense(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		for range 3 * tripAfter {
			for _, o := range []outcome{{err: context.DeadlineExceeded, dense: true}, {err: &AnswerError{"cut"}, dense: true}, {err: errRate}} {
				if err := g.ask(t, o); err != nil {
					t.Fatal(err)
				}
			}
		}
		if g.state != repute.EndpointClosed || g.health.errorRate < 0.5 || g.failures != 9*tripAfter {
			t.Errorf("%s, error rate %g, %d failures", g.state, g.health.errorRate, g.failures)
		}
		g.exclude("serves chain 5, not 8453")
		if err := g.ask(t, outcome{}); err == nil || g.usable(time.Now()) {
			t.Errorf("excluded: %v", err)
		}
		g.exclude("")
		if err := g.ask(t, outcome{}); err != nil {
			t.Error(err)
		}
	})
}

// TestNodeSmallBatches: an endpoint that takes two calls in a request gets two.
func TestNodeSmallBatches(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]rpctest.Answer{
		"status":   {Status: 400, Raw: []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Batch of more than 2 requests are not allowed on free tier"}}`)},
		"each one": {Error: &rpctest.Error{Code: -32003, Message: "batch too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			c.MineEmpty(9)
			c.LimitBatch(2, refusal)
			n := nodeOf(t, c, Options{})
			if _, err := n.Span(t.Context(), queryOf(c, 1, 9, true)); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Heads(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// "Leave me alone for ten years" is not obeyed.
func TestGatePausesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		for range 3 {
			for _, err := range []error{
				&rpcRefusal{Code: 429, Message: "too many requests", retry: 10 * 365 * 24 * time.Hour},
				&rpcRefusal{Code: 429, Message: "rate limit", Data: []byte(`{"backoff_seconds":1e11}`)},
			} {
				if e := g.ask(t, outcome{err: err}); e != nil {
					t.Fatal(e)
				}
				if g.limit != 1 {
					t.Errorf("%g requests will be sent at once after the pause, want one", g.limit)
				}
				time.Sleep(mostPause)
			}
		}
	})
}

// A trial that gets any answer shows that the endpoint works again; one that is
// left without does not.
func TestGateProbe(t *testing.T) {
	t.Parallel()
	tooLarge := &rpcRefusal{Message: "query returned more than 10000 results"}
	for name, tt := range map[string]struct {
		err  error
		want repute.EndpointState
	}{
		"too large": {tooLarge, repute.EndpointClosed},
		"behind":    {errNoBlock, repute.EndpointClosed},
		"rate":      {errRate, repute.EndpointClosed},
		"timeout":   {context.DeadlineExceeded, repute.EndpointOpen},
		"down":      {errDown, repute.EndpointOpen},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gateOf()
				for range tripAfter {
					_ = g.ask(t, outcome{err: errDown})
				}
				time.Sleep(10 * time.Second)
				if err := g.ask(t, outcome{err: tt.err, dense: true}); err != nil {
					t.Fatal(err)
				}
				if g.state != tt.want {
					t.Errorf("%s, want %s", g.state, tt.want)
				}
			})
		})
	}
}
