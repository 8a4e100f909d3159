package node

import (
	"context"
	"sync"
	"testing"
	"time"

	"repute/internal/rpctest"
)

// runPool runs the pool until the test ends, or until end is called.
func runPool(t *testing.T, p *Pool) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	end = func() {
		cancel()
		all.Wait()
	}
	t.Cleanup(end)
	return end
}

// wantAnnounced mines until a head is announced.
func wantAnnounced(t *testing.T, p *Pool, c *rpctest.Chain, when string) {
	t.Helper()
	end := time.After(time.Minute)
	for {
		c.MineEmpty(1)
		select {
		case <-p.Announced():
			return
		case <-end:
			t.Fatalf("no head announced %s", when)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestPoolAnnounces(t *testing.T) {
	t.Parallel()
	c, other := twoOf(t, 3)
	p := poolOf(t, PoolOptions{Silence: 300 * time.Millisecond, Every: 20 * time.Millisecond}, c.SocketURL(),
		other.URL())
	runPool(t, p)
	wantAnnounced(t, p, c, "at first")
	wantSpan(t, p, queryOf(c, 1, 3, true), nil)
	if head, _, _ := p.members[0].state(time.Now()); head < 3 {
		t.Errorf("the announced head %d was not taken over", head)
	}
	c.HangUp()
	wantAnnounced(t, p, c, "after the connection was cut")
	before := c.Subscriptions()
	c.Mute(true)
	await(t, "new subscription after silence", func() bool {
		c.MineEmpty(1)
		if _, err := p.Heads(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c.Subscriptions() > before
	})
	c.Mute(false)
	wantAnnounced(t, p, c, "after the silence")
}

// A quiet chain is no dead subscription.
func TestPoolKeepsQuietSubscription(t *testing.T) {
	t.Parallel()
	c, other := twoOf(t, 3)
	p := poolOf(t, PoolOptions{Silence: 20 * time.Millisecond, Every: 5 * time.Millisecond}, c.SocketURL(), other.URL())
	runPool(t, p)
	wantAnnounced(t, p, c, "at first")
	was, from := c.Subscriptions(), time.Now()
	await(t, "time", func() bool {
		if _, err := p.Heads(t.Context()); err != nil {
			t.Fatal(err)
		}
		return time.Since(from) > 200*time.Millisecond
	})
	if now := c.Subscriptions(); now != was {
		t.Errorf("%d new subscriptions on a chain that stood still", now-was)
	}
}

// TestPoolNamesKinds: the HTTP and the WebSocket side of one host are told apart by
// their kind.
func TestPoolNamesKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ urls, want []string }{
		{[]string{"http://a.example", "ws://b.example"}, []string{"a.example", "b.example"}},
		{[]string{"http://a.example/x", "ws://a.example/x"}, []string{"a.example (http)", "a.example (ws)"}},
	} {
		p := poolOf(t, PoolOptions{}, tt.urls...)
		for i, m := range p.members {
			if m.name != tt.want[i] {
				t.Errorf("%v: %s, want %s", tt.urls, m.name, tt.want[i])
			}
		}
	}
}

// TestPoolRunTries: an endpoint that failed is tried again while nobody asks.
func TestPoolRunTries(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 3)
	p := poolOf(t, PoolOptions{Every: 5 * time.Millisecond, DB: openDB(t), Owner: "me"}, a.URL(), b.URL())
	a.GoDark(true)
	for range 10 {
		_, _ = p.members[0].Heads(t.Context())
	}
	if !p.members[0].limiter.Failing() {
		t.Fatal("the endpoint is not paused")
	}
	end := runPool(t, p)
	a.GoDark(false)
	await(t, "recovery", func() bool { return !p.members[0].limiter.Failing() })
	await(t, "stored health", func() bool {
		list, err := readEndpoints(t.Context(), p.opts.DB, 31337)
		return err == nil && len(list) == 2 && list[0].State == "closed" && list[1].State == "closed" &&
			list[0].Head == 3
	})
	end()
	if list, err := readEndpoints(t.Context(), p.opts.DB, 31337); err != nil || len(list) != 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}
