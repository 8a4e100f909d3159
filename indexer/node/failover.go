package node

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"repute"
	"repute/indexer/node/jsonrpc"
	"repute/indexer/node/limit"
)

const (
	// recheckChainAfter is how long a check of the endpoint's chain id is valid.
	recheckChainAfter = 10 * time.Minute
	// proveAgain is the least time between two such checks of an endpoint that does not answer.
	proveAgain = time.Minute
	// idleTimeout bounds a request for the head of an endpoint that is checked or was idle.
	idleTimeout = 10 * time.Second
)

// First calls ask with one endpoint after another until ask returns nil: in the configured order, so
// that a caller who continues later reads from the same endpoint, with those last whose last request
// failed. An endpoint whose chain was not checked recently is checked before. The error is of the endpoints, or
// repute.ErrConflict if none of them serves the chain.
func (p *Pool) First(ctx context.Context, ask func(*Node) error) error {
	list := slices.Clone(p.members)
	slices.SortStableFunc(list, func(a, b *peer) int { return boolCompare(a.limiter.Failed(), b.limiter.Failed()) })
	return p.first(ctx, list, func(m *peer) error { return ask(m.Node) })
}

// Each calls ask with several endpoints at the same time, so that the caller can compare their
// answers, and returns the error of each, nil after an answer. It calls ask with all endpoints that
// serve the chain and whose last request did not fail, and also with the others if those are fewer
// than least.
func (p *Pool) Each(ctx context.Context, least int, ask func(*Node) error) map[*Node]error {
	p.proveAll(ctx)
	list := p.working()
	if len(list) < least {
		list = p.members
	}
	errs := make([]error, len(list))
	var asking sync.WaitGroup
	for i, m := range list {
		asking.Go(func() {
			if errs[i] = p.prove(ctx, m); errs[i] == nil {
				errs[i] = ask(m.Node)
			}
		})
	}
	asking.Wait()
	out := make(map[*Node]error, len(list))
	for i, m := range list {
		out[m.Node] = errs[i]
	}
	return out
}

// Foreign returns the endpoints that serve another chain, with what they serve. It requests the
// chain id of endpoints that have not shown it recently.
func (p *Pool) Foreign(ctx context.Context) map[*Node]string {
	p.proveAll(ctx)
	var out map[*Node]string
	for _, m := range p.members {
		if reason, excluded := m.limiter.Exclusion(); excluded {
			if out == nil {
				out = map[*Node]string{}
			}
			out[m.Node] = reason
		}
	}
	return out
}

// Members returns all endpoints in the configured order.
func (p *Pool) Members() []*Node {
	out := make([]*Node, len(p.members))
	for i, m := range p.members {
		out[i] = m.Node
	}
	return out
}

// working returns the members that recently showed that they serve the chain and whose last request did
// not fail. Run probes the others.
func (p *Pool) working() (out []*peer) {
	now := time.Now()
	for _, m := range p.members {
		if m.isProven(now) && !m.limiter.Excluded() && !m.limiter.Failed() {
			out = append(out, m)
		}
	}
	return out
}

// proveAll checks the chain of the members that were not checked recently, at the same time.
func (p *Pool) proveAll(ctx context.Context) {
	p.refresh(ctx, func(m *peer, age time.Duration) bool {
		return age > proveAgain && !m.isProven(time.Now()) && !m.limiter.Failing()
	})
}

// refresh requests the heads of the members that are due by the age of their last request. Of an
// excluded member it requests the chain id.
func (p *Pool) refresh(ctx context.Context, due func(m *peer, age time.Duration) bool) {
	ctx, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for _, m := range p.members {
		_, _, age := m.state(time.Now())
		switch excluded := m.limiter.Excluded(); {
		case excluded && age > staleHead:
			asking.Go(func() { m.recheckChain(ctx, p.opts.ChainID) })
		case !excluded && due(m, age):
			asking.Go(func() { _, _ = m.refreshHead(ctx, p.opts.ChainID) }) // the limiter records the error
		}
	}
	asking.Wait()
}

// first calls ask with one member after another until ask returns nil. The chain of a member that was
// not checked recently is checked before. Of several errors it returns one that a shorter range may
// cure, and among those the one that allows the most blocks.
func (p *Pool) first(ctx context.Context, list []*peer, ask func(*peer) error) error {
	var worst error
	for _, m := range list {
		err := p.prove(ctx, m)
		if err == nil {
			err = ask(m)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if worst == nil || outranks(err, worst) {
			worst = err
		}
	}
	return p.conflict(worst)
}

// outranks reports whether err is more useful to the caller of first than another error.
func outranks(err, than error) bool {
	if jsonrpc.IsTransient(err) != jsonrpc.IsTransient(than) {
		return !jsonrpc.IsTransient(err)
	}
	return errors.Is(than, repute.ErrConflict) || jsonrpc.RangeHint(err) > jsonrpc.RangeHint(than)
}

// conflict makes an error repute.ErrConflict if and only if no endpoint serves the chain.
func (p *Pool) conflict(err error) error {
	var wrong []string
	for _, m := range p.members {
		if reason, excluded := m.limiter.Exclusion(); excluded {
			wrong = append(wrong, m.name+" "+reason)
		}
	}
	switch {
	case len(wrong) == len(p.members) && !errors.Is(err, repute.ErrConflict):
		return repute.Conflict("no endpoint serves the chain: %s: give an endpoint of chain %d in rpc",
			strings.Join(wrong, ", "), p.opts.ChainID)
	case len(wrong) < len(p.members) && errors.Is(err, repute.ErrConflict):
		return limit.Excluded(err.Error())
	}
	return err
}

// prove checks that a member serves the chain, unless it was checked recently.
func (p *Pool) prove(ctx context.Context, m *peer) error {
	if m.limiter.Excluded() || m.isProven(time.Now()) {
		return nil // the limiter refuses excluded ones
	}
	ctx, cancel := context.WithTimeout(ctx, idleTimeout)
	defer cancel()
	_, err := m.refreshHead(ctx, p.opts.ChainID)
	return err
}
