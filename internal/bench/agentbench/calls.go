package agentbench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"golang.org/x/sync/errgroup"

	"repute/internal/bench/harness"
	"repute/orchestrator/wallet/keys"
	"repute/x402"
)

// answer is one that was read to its end.
type answer struct {
	status int
	body   []byte
	took   float64 // milliseconds
}

// ask sends one request.
func (x *run) ask(ctx context.Context, method, path, payment string) (a answer, err error) {
	began := time.Now()
	body := ""
	if method == http.MethodPost {
		body = input
	}
	r, err := http.NewRequestWithContext(ctx, method, x.base+path, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Content-Type", "application/json")
	if payment != "" {
		r.Header.Set(x402.HeaderPayment, payment)
	}
	res, err := x.client.Do(r)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a.status = res.StatusCode
	a.body, err = io.ReadAll(res.Body)
	a.took = harness.Millis(time.Since(began))
	return a, err
}

// good asks and returns an error where the answer is no success.
func (x *run) good(ctx context.Context, method, path, payment string) (answer, error) {
	a, err := x.ask(ctx, method, path, payment)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s is answered with %d: %.200s", path, a.status, a.body)
	}
	return a, err
}

// pay signs a payment of a new payer: every call is one of a stranger, for whom nothing is kept in memory.
func pay(ctx context.Context) (string, error) {
	key, err := crypto.GenerateKey()
	if err != nil {
		return "", err
	}
	r, err := requirements()
	if err != nil {
		return "", err
	}
	p, err := x402.Pay(ctx, keys.Local{Key: key}, &x402.PaymentRequired{X402Version: x402.V2}, x402.V2, r, time.Now())
	if err != nil {
		return "", err
	}
	return x402.Encode(p)
}

// serial measures requests one after the other, bare and free in turn.
func (x *run) serial(ctx context.Context) error {
	var bare, free []float64
	for i := range x.Requests + warm {
		b, err := x.good(ctx, http.MethodPost, "/bare", "")
		if err != nil {
			return err
		}
		f, err := x.good(ctx, http.MethodPost, "/capability/echo", "")
		if err != nil {
			return err
		}
		if i >= warm {
			bare, free = append(bare, b.took), append(free, f.took)
		}
	}
	s := &x.m.Serial
	s.Bare, s.Free = timesOf(bare), timesOf(free)
	s.Ratio = ratio(s.Free, s.Bare)
	x.Say("one after the other: bare %.2f ms, free %.2f ms (medians)", s.Bare.P50, s.Free.P50)
	return nil
}

// warm is how many requests are not counted at the beginning: connections are opened and statements prepared in them.
const warm = 20

// crowd makes the requests of a kind by all clients at once. Each client makes an equal part of Requests, rounded down
// and at least one, and sends the next when the one before is answered. The first failure ends all.
func (x *run) crowd(ctx context.Context, one func(context.Context) (answer, error)) (all []answer, err error) {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	each := max(1, x.Requests/x.AtOnce)
	for range x.AtOnce {
		g.Go(func() error {
			for range each {
				a, err := one(ctx)
				if err != nil {
					return err
				}
				mu.Lock()
				all = append(all, a)
				mu.Unlock()
			}
			return nil
		})
	}
	return all, g.Wait()
}

// took lists the milliseconds of answers.
func took(all []answer) (out []float64) {
	for _, a := range all {
		out = append(out, a.took)
	}
	return out
}

// atOnce measures all clients at once: bare, free with health beside it, and paid. Health is asked by one client more.
func (x *run) atOnce(ctx context.Context) error {
	m := &x.m.AtOnce
	bare, err := x.crowd(ctx,
		func(ctx context.Context) (answer, error) { return x.good(ctx, http.MethodPost, "/bare", "") })
	if err != nil {
		return err
	}
	// Health is asked during the free requests alone.
	probes, stop := x.probe(ctx)
	free, err := x.crowd(ctx, func(ctx context.Context) (answer, error) {
		return x.good(ctx, http.MethodPost, "/capability/echo", "")
	})
	stop()
	health := <-probes
	if err != nil {
		return err
	}
	paid, err := x.paidCrowd(ctx)
	if err != nil {
		return err
	}
	m.Bare, m.Free, m.Paid, m.Health = timesOf(took(bare)), timesOf(took(free)), timesOf(took(paid)), timesOf(health)
	m.Ratio = ratio(m.Free, m.Bare)
	if m.Before, err = beforeHandler(paid); err != nil {
		return err
	}
	if m.Schema, err = beforeHandler(free); err != nil {
		return err
	}
	x.Say("%d at once, p99: bare %.1f ms, free %.1f ms, paid %.1f ms, before the handler %.1f ms, health %.1f ms",
		x.AtOnce,
		m.Bare.P99, m.Free.P99, m.Paid.P99, m.Before.P99, m.Health.P99)
	return nil
}

// paidCrowd makes paid requests, whose payments are signed before they are measured.
func (x *run) paidCrowd(ctx context.Context) ([]answer, error) {
	// One for each request: with fewer requests than clients, each client still sends one.
	payments := make(chan string, x.Requests+x.AtOnce)
	for range cap(payments) {
		text, err := pay(ctx)
		if err != nil {
			return nil, err
		}
		payments <- text
	}
	return x.crowd(ctx, func(ctx context.Context) (answer, error) {
		return x.good(ctx, http.MethodPost, "/capability/paid", <-payments)
	})
}

// probe asks for health until it is stopped, and then sends what the answers took, in milliseconds. A request that
// fails or is refused is left out, as is one that the stop cuts off.
func (x *run) probe(ctx context.Context) (<-chan []float64, func()) {
	ctx, stop := context.WithCancel(ctx)
	out := make(chan []float64, 1)
	go func() {
		var all []float64
		for ctx.Err() == nil {
			if a, err := x.good(ctx, http.MethodGet, "/health", ""); err == nil {
				all = append(all, a.took)
			}
			time.Sleep(5 * time.Millisecond)
		}
		out <- all
	}()
	return out, stop
}

// beforeHandler reads how long after their begin requests were handed to the handler. The handler itself says it, by
// the clock of the agent's process: the way to the agent and back is left out.
func beforeHandler(all []answer) (Times, error) {
	var out []float64
	for _, a := range all {
		var body struct{ Micros int64 }
		if err := json.Unmarshal(a.body, &body); err != nil {
			return Times{}, fmt.Errorf("answer %.100s: %w", a.body, err)
		}
		out = append(out, float64(body.Micros)/1000)
	}
	return timesOf(out), nil
}

// payCalls makes the paid calls while the agent is killed. Each is sent until it is answered, and a
// tenth of them once more afterwards. begun receives a value for each call, and MUST have room for all.
func (x *run) payCalls(ctx context.Context, begun chan<- struct{}) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(payers)
	for i := range x.Paid {
		g.Go(func() error {
			begun <- struct{}{}
			return x.payCall(ctx, i%10 == 0)
		})
	}
	return g.Wait()
}

// payers are how many clients pay at once while the agent is killed.
const payers = 20

// payCall makes one call. An interrupted one, for which nothing is charged, is paid for anew. Any other refusal counts
// as lost. With again it sends the payment once more after its answer, and another answer counts as doubled: the agent
// MUST have kept the first one.
func (x *run) payCall(ctx context.Context, again bool) error {
	for {
		text, err := pay(ctx)
		if err != nil {
			return err
		}
		a, err := x.payUntilAnswered(ctx, text)
		switch {
		case err != nil:
			return err
		case a.status == http.StatusInternalServerError && bytes.Contains(a.body, []byte("nothing was charged")):
			x.count(&x.m.Kills.Interrupted)
			continue
		case a.status != http.StatusOK:
			x.count(&x.m.Kills.Lost)
			return nil
		case !again:
			return nil
		}
		b, err := x.payUntilAnswered(ctx, text)
		if err == nil && !bytes.Equal(a.body, b.body) {
			x.count(&x.m.Kills.Doubled)
		}
		return err
	}
}

// count adds 1 to a counter of m.Kills, which many calls do at once.
func (x *run) count(n *int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	*n++
}

// payUntilAnswered repeats a payment while the status is 503 or no answer comes, as a client must that does not know
// whether it has paid. Only ctx ends it.
func (x *run) payUntilAnswered(ctx context.Context, payment string) (answer, error) {
	for {
		a, err := x.ask(ctx, http.MethodPost, "/capability/paid", payment)
		if err == nil && a.status != http.StatusServiceUnavailable {
			return a, nil
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
