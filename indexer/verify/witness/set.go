package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/time/rate"

	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
)

// ErrNone is returned when there is no endpoint to ask at the moment.
var ErrNone = errors.New("no endpoint to ask")

// ErrDisagree is returned when endpoints show different blocks at the same height.
var ErrDisagree = errors.New("the nodes disagree about the block")

// Set is the endpoints of one chain, which share one rate limit.
type Set struct {
	nodes   func() []*node.Node
	allowed rate.Limit
	limiter *rate.Limiter
}

// New returns the set of the endpoints that nodes returns, the one to be asked first in front.
// There may be none at times. perSecond is the number of JSON-RPC calls that may be made in a
// second, burst the number that may be made at once.
func New(nodes func() []*node.Node, perSecond float64, burst int) *Set {
	allowed := rate.Limit(perSecond)
	return &Set{nodes: nodes, allowed: allowed, limiter: rate.NewLimiter(allowed, burst)}
}

// Nodes returns the endpoints that can be asked now.
func (s *Set) Nodes() []*node.Node { return s.nodes() }

// Adapt halves the rate when err says that an endpoint refuses it, and raises it by a tenth of
// what is allowed when err is nil.
func (s *Set) Adapt(err error) {
	now := s.limiter.Limit()
	switch {
	case err == nil:
		s.limiter.SetLimit(min(s.allowed, now+s.allowed/10))
	case jsonrpc.Diagnose(err).Fault == jsonrpc.FaultRate:
		s.limiter.SetLimit(max(s.allowed/32, now/2))
	}
}

// Spend waits until that many calls may be made.
func (s *Set) Spend(ctx context.Context, calls int) error {
	for calls > 0 {
		n := min(calls, s.limiter.Burst())
		calls -= n
		if err := s.limiter.WaitN(ctx, n); err != nil {
			return fmt.Errorf("wait for the rate limit: %w", err)
		}
	}
	return nil
}

// First runs f on one endpoint after the other until it succeeds. It returns the last error, and
// ErrNone when there is no endpoint.
func (s *Set) First(f func(*node.Node) error) error { return first(s.nodes(), f) }

// Last is First in reverse order: where there are several endpoints, it asks another one.
func (s *Set) Last(f func(*node.Node) error) error {
	nodes := slices.Clone(s.nodes())
	slices.Reverse(nodes)
	return first(nodes, f)
}

// first asks one node after the other until one succeeds, and returns the last error when none
// does. ErrNone when there is none to ask.
func first(nodes []*node.Node, f func(*node.Node) error) error {
	err := ErrNone
	for _, n := range nodes {
		if err = f(n); err == nil {
			return nil
		}
	}
	return err
}
