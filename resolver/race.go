package resolver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
)

// hedgeAfter is how long one gateway is waited for before the next one is asked too.
const hedgeAfter = 1500 * time.Millisecond

// race asks gateways for one document: the first at once, the next one after a failure or after
// hedgeAfter. The first gateway that proves the document wins.
type race struct {
	client  *Client
	root    cid.Cid
	path    string
	asked   []*peer
	answers chan answer // has room for every answer, so that no sender blocks

	started  int
	running  []*peer
	failures []error
	proven   blockSet
}

type answer struct {
	from *peer
	doc  Document
	err  error
}

// run returns the document or the failure.
func (r *race) run(caller context.Context) (Document, error) {
	ctx, cancel := context.WithTimeout(caller, r.client.opts.Timeout)
	defer cancel() // cancels the remaining requests
	// Also the last of many silent gateways must leave time to answer.
	patience := min(hedgeAfter, r.client.opts.Timeout/time.Duration(2*len(r.asked)))
	hedge := time.NewTicker(patience)
	defer hedge.Stop()
	r.start(ctx)
	for len(r.running) > 0 {
		select {
		case <-hedge.C:
			r.start(ctx)
		case a := <-r.answers:
			if a.err == nil {
				r.won(a.from)
				return a.doc, nil
			}
			if err := r.lost(caller, a); err != nil {
				return Document{}, err
			}
			r.start(ctx)
			hedge.Reset(patience)
		}
	}
	return Document{}, allFailed(r.failures)
}

// start asks the next gateway, if there is one.
func (r *race) start(ctx context.Context) {
	if r.started == len(r.asked) {
		return
	}
	g := r.asked[r.started]
	r.started++
	r.running = append(r.running, g)
	go func() {
		doc, err := r.client.fromGateway(ctx, g, r.root, r.path, &r.proven)
		r.answers <- answer{g, doc, err}
	}()
}

// won records the success of the winner, and failures of the gateways that had more time.
func (r *race) won(winner *peer) {
	for _, g := range r.running {
		if g == winner {
			break
		}
		r.client.peers.failed(g, passing(ReasonTimeout, "overtaken"), time.Now())
	}
	r.client.peers.worked(winner)
}

// lost records a failure. It returns those that end the race: facts that blocks prove, and
// cancellation by the caller.
func (r *race) lost(caller context.Context, a answer) error {
	r.running = slices.DeleteFunc(r.running, func(g *peer) bool { return g == a.from })
	named := networkError(caller, a.err)
	if !named.Retry && named.Status == 0 && !aboutGateway(named.Reason) || named.Reason == ReasonCanceled {
		return named
	}
	if named.Reason == ReasonCIDMismatch {
		r.client.opts.Log.Warn("ipfs gateway gave wrong bytes", "gateway", a.from.name, "cid", r.root.String(), "error",
			named)
	}
	r.client.peers.failed(a.from, named, time.Now())
	r.failures = append(r.failures, fmt.Errorf("%s: %w", a.from.name, named))
	return nil
}
