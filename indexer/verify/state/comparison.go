package state

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/store/chaindb"
)

// comparison asks one endpoint about one block and collects what differs.
type comparison struct {
	*Comparer
	node  *node.Node
	at    repute.Block
	gaps  []chaindb.Gap
	calls []node.Call
	then  []func(node.CallResult)
	// planned plan further questions once the ones before are answered: an agent may
	// have hundreds of thousands of clients.
	planned []func()
	// details are clients whose ratings must be compared one by one.
	details []detail
	index   uint64 // the only one of their ratings, 0 for all
	asked   int    // calls made
	// unanswered counts questions that this node cannot answer, by function: what
	// they would have shown is not verified.
	unanswered map[string]error
}

// want plans a question. Its answer is given to f, and so is a revert, which is how a registry answers
// for an agent that does not exist. Any other failure makes the view unanswered: f is not called, no
// gap follows, and the kinds of event that the view shows count as skipped.
func want[T any](c *comparison, name string, to common.Address, q contracts.Question[T], f func(v T, reverted bool)) {
	c.calls = append(c.calls, node.Call{To: to, Data: q.Data})
	c.then = append(c.then, func(r node.CallResult) {
		var v T
		switch {
		case errors.Is(r.Err, node.ErrReverted):
			f(v, true)
			return
		case r.Err == nil && len(r.Data) > 0:
			var err error
			if v, err = q.Read(r.Data); err == nil {
				f(v, false)
				return
			}
			r.Err = err
		case r.Err == nil && to != c.chain.Identity && to != c.chain.Reputation:
			return // a listed contract that is not deployed emits nothing
		case r.Err == nil:
			r.Err = errNoCode
		}
		c.unanswered[name] = r.Err
	})
}

// errNoCode: a call came back empty, as where no contract is.
var errNoCode = errors.New("no answer: is there a contract?")

// ask sends what was planned, in rounds: an answer may plan another question. An error means that the
// endpoint answers for no question about this block; what was found until then MUST NOT be used.
func (c *comparison) ask(ctx context.Context) error {
	for len(c.calls)+len(c.planned) > 0 {
		if len(c.calls) == 0 {
			next := c.planned[0]
			c.planned = c.planned[1:]
			next()
			continue
		}
		n := min(len(c.calls), comparedAtOnce)
		calls, then := c.calls[:n], c.then[:n]
		c.calls, c.then = c.calls[n:], c.then[n:]
		if err := c.spend(ctx, n); err != nil {
			return err
		}
		results, err := c.node.Calls(ctx, c.at, calls)
		if err != nil {
			return err
		}
		c.asked += n
		for i, r := range results {
			then[i](r)
		}
	}
	return nil
}

// comparedAtOnce bounds the answers held in memory.
const comparedAtOnce = 500

// differs records that the chain and the index disagree. Whether an event is missing is decided by
// a second comparison.
func (c *comparison) differs(h chaindb.Gap) { c.gaps = append(c.gaps, h) }

// differsIn is differs for one of several events of a kind that may be missing of the same agent or client. The
// name of the place tells them apart.
func (c *comparison) differsIn(place string, h chaindb.Gap) {
	h.Subject += "/" + place
	c.differs(h)
}

// askAll asks the planned questions, and then those about single ratings.
func (c *comparison) askAll(ctx context.Context) error {
	if err := c.ask(ctx); err != nil {
		return err
	}
	for _, d := range c.details {
		if err := c.askRatings(ctx, d); err != nil {
			return err
		}
	}
	c.details = nil
	return nil
}
