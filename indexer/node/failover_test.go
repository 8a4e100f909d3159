package node

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"repute/internal/rpctest"
)

// asked records which endpoints a function was called with.
type asked struct {
	mu    sync.Mutex
	hosts []string
}

// call requests the chain id from an endpoint.
func (a *asked) call(t *testing.T) func(*Node) error {
	return func(n *Node) error {
		a.mu.Lock()
		a.hosts = append(a.hosts, n.host)
		a.mu.Unlock()
		var id string
		return n.CallContext(t.Context(), &id, "eth_chainId")
	}
}

// First continues with the next endpoint after a failure, and prefers the one that answers.
func TestFirst(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 3)
	p := poolOf(t, PoolOptions{}, a.URL(), b.URL())
	a.GoDark(true)
	for range 10 {
		var done asked
		if err := p.First(t.Context(), done.call(t)); err != nil ||
			!slices.Equal(done.hosts, []string{p.members[1].host}) {
			t.Errorf("called with %v: %v", done.hosts, err)
		}
	}
	a.GoDark(false)
	await(t, "recovery", func() bool { _, err := p.members[0].refreshHead(t.Context(), 31337); return err == nil })
	var done asked
	refused := errors.New("refused")
	if err := p.First(t.Context(), func(n *Node) error { _ = done.call(t)(n); return refused }); !errors.Is(err,
		refused) ||
		len(done.hosts) != 2 {
		t.Errorf("called with %v: %v", done.hosts, err)
	}
}

// Each calls all endpoints of the chain, without those that failed last while enough others remain.
func TestEach(t *testing.T) {
	t.Parallel()
	a, b := twoOf(t, 3)
	c, foreign := b.Second(t), rpctest.New(t, rpctest.Options{ChainID: 5})
	p := poolOf(t, PoolOptions{}, a.URL(), b.URL(), c.URL(), foreign.URL())
	results := func(least int) (answered, failed int) {
		t.Helper()
		var done asked
		for n, err := range p.Each(t.Context(), least, done.call(t)) {
			if !slices.Contains(p.Members(), n) {
				t.Errorf("an endpoint of another pool: %s", n.Host())
			}
			if err == nil {
				answered++
			} else {
				failed++
			}
		}
		return answered, failed
	}
	if answered, failed := results(2); answered != 3 || failed != 0 {
		t.Errorf("%d answered, %d failed", answered, failed)
	}
	if wrong := p.Foreign(t.Context()); len(wrong) != 1 || wrong[p.Members()[3]] == "" {
		t.Errorf("of another chain: %v", wrong)
	}
	c.GoDark(true)
	if answered, failed := results(2); answered != 2 || failed != 1 {
		t.Errorf("one became dark: %d answered, %d failed", answered, failed)
	}
	if answered, failed := results(2); answered != 2 || failed != 0 {
		t.Errorf("one is dark: %d answered, %d failed", answered, failed)
	}
	b.GoDark(true)
	_, _ = results(2)
	if answered, failed := results(2); answered != 1 || failed != 3 {
		t.Errorf("two are dark: %d answered, %d failed", answered, failed)
	}
}
