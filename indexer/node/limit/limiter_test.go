package limit

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
	"repute/indexer/node/jsonrpc"
	"repute/internal/httprule"
)

func gateOf() *Limiter {
	return New(8, time.Second, 10*time.Second)
}

// ask sends one request through the limiter that ends as given.
func (l *Limiter) ask(t *testing.T, o Outcome) error {
	t.Helper()
	leave, err := l.Enter(t.Context())
	if err != nil {
		return err
	}
	if o.Err != nil {
		o.Text = o.Err.Error()
	}
	leave(o)
	return nil
}

// stateNow is what Report says of the endpoint.
func stateNow(l *Limiter) repute.EndpointState {
	var e repute.Endpoint
	l.Report(&e)
	return e.State
}

var (
	errRate = &jsonrpc.Refusal{Message: "rate limit"}
	errDown = &jsonrpc.ConnError{Err: errors.New("refused")}
)

func TestGateConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		var inFlight, peak atomic.Int64
		load := func(n int) {
			peak.Store(0)
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					leave, err := g.Enter(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					now := inFlight.Add(1)
					for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
					}
					time.Sleep(time.Second)
					inFlight.Add(-1)
					leave(Outcome{Took: time.Second})
				})
			}
			all.Wait()
		}
		load(2)
		if peak.Load() != startConcurrency {
			t.Errorf("%d at once at first, want %d", peak.Load(), startConcurrency)
		}
		load(100)
		if peak.Load() != 8 || g.concurrency.limit != 8 {
			t.Errorf("after many successes %d at once, limit %g, want 8", peak.Load(), g.concurrency.limit)
		}
		for range 3 { // together: one halving
			_ = g.ask(t, Outcome{Err: context.DeadlineExceeded, Dense: true})
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
					leave, err := g.Enter(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(20 * time.Millisecond)
					o := Outcome{Took: 20 * time.Millisecond}
					if server.Allow() {
						served.Add(1)
					} else {
						refused.Add(1)
						o.Err = &jsonrpc.StatusError{Code: 429, Retry: time.Second}
					}
					leave(o)
				}
			})
		}
		all.Wait()
		if perSecond := float64(served.Load()) / 300; perSecond < 15 {
			t.Errorf("%.1f requests per second of 20 possible", perSecond)
		}
		if refused.Load()*20 > served.Load() {
			t.Errorf("%d of %d requests were refused, want less than 5 %%", refused.Load(),
				served.Load()+refused.Load())
		}
		t.Logf("%d served, %d refused", served.Load(), refused.Load())
		time.Sleep(time.Hour)
		if err := g.ask(t, Outcome{}); err != nil || g.pace.rate() != 0 {
			t.Errorf("after an hour of calm: rate %g, %v, want no limit", g.pace.rate(), err)
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
			if err := g.ask(t, Outcome{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := g.ask(t, Outcome{Err: &jsonrpc.StatusError{Code: 429, Retry: 0}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		for range 500 {
			if err := g.ask(t, Outcome{}); err != nil {
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
			if err := g.ask(t, Outcome{Err: &jsonrpc.StatusError{Code: 429, Retry: after}}); err != nil {
				t.Fatal(err)
			}
		}
		refuse(3 * time.Second)
		began := time.Now()
		if err := g.ask(t, Outcome{}); err != nil || time.Since(began) < 3*time.Second {
			t.Errorf("asked again after %s, %v", time.Since(began), err)
		}
		refuse(20 * time.Second)
		var closed *ClosedError
		if err := g.ask(t, Outcome{}); !errors.As(err, &closed) || jsonrpc.Diagnose(err).Fault != jsonrpc.FaultRate ||
			jsonrpc.Diagnose(err).RetryAfter != 20*time.Second {
			t.Errorf("a long pause: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(17 * time.Second)
		if _, err := g.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller left: %v", err)
		}
	})
}

// An endpoint that asks for a pause of an hour, or until 2099, is retried
// after three minutes, and after half a minute while no other can answer; its last error
// says so.
func TestGateCutsPauses(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"3600", "99999999999999999999", "Thu, 01 Jan 2099 00:00:00 GMT"} {
		for _, others := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				g := gateOf()
				g.Others = func() bool { return others }
				refusal := &jsonrpc.StatusError{Code: 429, Retry: httprule.RetryAfter(header, time.Now())}
				if err := g.ask(t, Outcome{Err: refusal, Text: "HTTP status 429"}); err != nil {
					t.Fatal(err)
				}
				want := 30 * time.Second
				if others {
					want = 3 * time.Minute
				}
				time.Sleep(want - 10*time.Second)
				err := g.ask(t, Outcome{})
				if err == nil || !strings.Contains(err.Error(), "asks for a pause of") {
					t.Errorf("%s: ten seconds before the pause ends: %v", header, err)
				}
				time.Sleep(10 * time.Second)
				if err := g.ask(t, Outcome{}); err != nil {
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
		g.Changed = func(from, to repute.EndpointState, why string) {
			seen = append(seen, fmt.Sprintf("%s>%s %s", from, to, why))
		}
		for range tripAfter - 1 {
			_ = g.ask(t, Outcome{Err: errDown})
		}
		_ = g.ask(t, Outcome{}) // a success in between
		for i := range tripAfter {
			if err := g.ask(t, Outcome{Err: errDown}); err != nil {
				t.Fatalf("failure %d: %v", i, err)
			}
		}
		open := g.openFor
		for range 3 {
			if err := g.ask(t, Outcome{}); err == nil || !jsonrpc.IsTransient(err) || g.Usable(time.Now()) {
				t.Fatalf("open: %v", err)
			}
		}
		time.Sleep(2 * time.Second)
		if !g.Usable(time.Now()) {
			t.Fatal("not usable after the pause")
		}
		leave, err := g.Enter(t.Context())
		if state := stateNow(g); err != nil || state != repute.EndpointHalfOpen {
			t.Fatalf("%s: %v", state, err)
		}
		if err := g.ask(t, Outcome{}); err == nil {
			t.Error("a second request beside the probe")
		}
		leave(Outcome{Err: errDown, Text: "refused"})
		if err := g.ask(t, Outcome{}); err == nil || g.openFor != 2*open {
			t.Errorf("after a failed probe: %v, open for %s, before %s", err, g.openFor, open)
		}
		time.Sleep(3 * time.Second)
		if err := g.ask(t, Outcome{}); err != nil {
			t.Fatal(err)
		}
		want := []string{"closed>open refused", "open>half_open ", "half_open>open refused", "open>half_open ",
			"half_open>closed "}
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
			for _, o := range []Outcome{{Err: context.DeadlineExceeded, Dense: true},
				{Err: &jsonrpc.AnswerError{What: "cut"}, Dense: true}, {Err: errRate}} {
				if err := g.ask(t, o); err != nil {
					t.Fatal(err)
				}
			}
		}
		if stateNow(g) != repute.EndpointClosed || g.health.errorRate < 0.5 || g.health.failures != 9*tripAfter {
			t.Errorf("%s, error rate %g, %d failures", stateNow(g), g.health.errorRate, g.health.failures)
		}
		g.Exclude("serves chain 5, not 8453")
		if err := g.ask(t, Outcome{}); err == nil || g.Usable(time.Now()) {
			t.Errorf("excluded: %v", err)
		}
		g.Exclude("")
		if err := g.ask(t, Outcome{}); err != nil {
			t.Error(err)
		}
	})
}

// A pause of ten years is not granted.
func TestGatePausesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOf()
		for range 3 {
			for _, err := range []error{
				&jsonrpc.Refusal{Code: 429, Message: "too many requests", Retry: 10 * 365 * 24 * time.Hour},
				&jsonrpc.Refusal{Code: 429, Message: "rate limit", Data: []byte(`{"backoff_seconds":1e11}`)},
			} {
				if e := g.ask(t, Outcome{Err: err}); e != nil {
					t.Fatal(e)
				}
				if g.concurrency.limit != 1 {
					t.Errorf("%g requests will be sent at once after the pause, want one", g.concurrency.limit)
				}
				time.Sleep(maxPause)
			}
		}
	})
}

// A trial that gets any answer shows that the endpoint works again; one that is
// left without does not.
func TestGateProbe(t *testing.T) {
	t.Parallel()
	tooLarge := &jsonrpc.Refusal{Message: "query returned more than 10000 results"}
	for name, tt := range map[string]struct {
		err  error
		want repute.EndpointState
	}{
		"too large": {tooLarge, repute.EndpointClosed},
		"behind":    {jsonrpc.ErrNoBlock, repute.EndpointClosed},
		"rate":      {errRate, repute.EndpointClosed},
		"timeout":   {context.DeadlineExceeded, repute.EndpointOpen},
		"down":      {errDown, repute.EndpointOpen},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gateOf()
				for range tripAfter {
					_ = g.ask(t, Outcome{Err: errDown})
				}
				time.Sleep(10 * time.Second)
				if err := g.ask(t, Outcome{Err: tt.err, Dense: true}); err != nil {
					t.Fatal(err)
				}
				if stateNow(g) != tt.want {
					t.Errorf("%s, want %s", stateNow(g), tt.want)
				}
			})
		})
	}
}

// An endpoint that never answers ranks behind one that does, from its first timeout on.
func TestScoreOfTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent, slow := gateOf(), gateOf()
		for _, err := range []error{silent.ask(t, Outcome{Err: context.DeadlineExceeded, Took: 6 * time.Second}),
			slow.ask(t, Outcome{Took: time.Second})} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if silent.Score() <= slow.Score() {
			t.Errorf("scores %g of one that does not answer, %g of one that does", silent.Score(), slow.Score())
		}
	})
}
