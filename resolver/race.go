package resolver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ipfs/go-cid"
)

// hedgeAfter is for how long one gateway has the word alone.
const hedgeAfter = 1500 * time.Millisecond

// race asks gateways for one document: the first at once, the next whenever one
// failed or took long. The first that proves the document wins.
type race struct {
	client  *Client
	root    cid.Cid
	path    string
	asked   []*peer
	answers chan answer // holds an answer of each: nobody waits to write

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

// run gives the document or why there is none.
func (r *race) run(caller context.Context) (Document, error) {
	ctx, cancel := context.WithTimeout(caller, r.client.opts.Timeout)
	defer cancel() // ends those that lost
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

// won remembers the winner, and those it overtook: they had more time.
func (r *race) won(winner *peer) {
	for _, g := range r.running {
		if g == winner {
			break
		}
		r.client.peers.failed(g, passing(ReasonTimeout, "overtaken"), time.Now())
	}
	r.client.peers.worked(winner)
}

// lost notes a failure. It returns those that end the race: what the blocks prove, and
// the caller's giving up.
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
