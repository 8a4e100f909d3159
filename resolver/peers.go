package resolver

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A failed gateway is asked last for a pause that doubles with every further failure. Wrong bytes
// are no accident and cause the longest pause at once.
const (
	minRest = 30 * time.Second
	maxRest = 16 * time.Minute
)

// peer is one trustless ipfs gateway.
type peer struct {
	base  string // URL without trailing slash; it may contain a key
	name  string // scheme and host, fit for logs
	guard *Guard

	failures int       // in a row; guarded by peers.mu, like rests
	rests    time.Time // asked last until then
}

// peers are the configured gateways and their health, which is only in memory.
type peers struct {
	mu    sync.Mutex
	all   []*peer // as configured, the operator's node first
	open  *Guard  // for gateways that a URI names
	inner *Guard  // for the operator's node, nil without one
}

// newPeers reads the configuration.
func newPeers(guard *Guard, o Options) (*peers, error) {
	g := &peers{open: guard}
	if o.Node != "" {
		node, host, err := newPeer(o.Node)
		if err != nil {
			return nil, fmt.Errorf("ipfs node: %w", err)
		}
		// Only these requests may go there; documents have the other guard.
		own := o.GuardOptions
		own.AllowHosts = []string{host}
		g.inner = NewGuard(own)
		node.guard = g.inner
		g.all = append(g.all, node)
	}
	for i, base := range o.Gateways {
		one, _, err := newPeer(base)
		if err != nil {
			return nil, fmt.Errorf("ipfs gateway %d: %w", i+1, err)
		}
		one.guard = guard
		g.all = append(g.all, one)
	}
	return g, nil
}

var errBadGateway = errors.New("not a gateway URL: want https://host, without user, query or fragment")

// newPeer returns the gateway at a URL and its host with port. Errors do not contain the URL, which
// may contain a key.
func newPeer(base string) (*peer, string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", errBadGateway
	}
	return &peer{base: strings.TrimRight(base, "/"), name: u.Scheme + "://" + u.Host}, u.Host, nil
}

// order returns the gateways to ask: the healthy in configured order, then those in a pause, the
// shortest first. The origin in the URI is last, unless it is configured.
func (p *peers) order(now time.Time, named string) []*peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Clone(p.all)
	slices.SortStableFunc(list, func(a, b *peer) int {
		return cmp.Compare(max(a.rests.Sub(now), 0), max(b.rests.Sub(now), 0))
	})
	known := func(g *peer) bool { return g.base == named }
	if named != "" && !slices.ContainsFunc(list, known) {
		list = append(list, &peer{base: named, name: named, guard: p.open})
	}
	return list
}

// worked forgets the failures of a gateway.
func (p *peers) worked(g *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.failures, g.rests = 0, time.Time{}
}

// failed starts a gateway's pause. A missing document is no failure of the gateway.
func (p *peers) failed(g *peer, why *Error, now time.Time) {
	if why.Reason == ReasonNotFound || why.Reason == ReasonCanceled {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := min(minRest<<min(g.failures, 10), maxRest)
	if why.Reason == ReasonCIDMismatch {
		rest = maxRest
	}
	g.failures++
	g.rests = now.Add(max(rest, min(why.RetryAfter, maxRest)))
}

// closeIdle closes connections that are not in use.
func (p *peers) closeIdle() {
	if p.inner != nil {
		p.inner.CloseIdle()
	}
}
