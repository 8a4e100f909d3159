package wallet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"repute"
	"repute/indexer/node"
)

// with calls f with one endpoint after another until one answers. f MUST be repeatable. An error of f
// other than a downError, such as a contradiction, is returned and not retried, because a person must
// see it.
func (c *chain) with(ctx context.Context, f func(*endpoint) error) error {
	if err := c.checkChain(ctx); err != nil {
		return err
	}
	var answer error
	err := c.pool.First(ctx, func(n *node.Node) error {
		err := f(c.endpoint(n))
		if isDown(err) {
			return err
		}
		answer = err
		return nil
	})
	switch {
	case err == nil:
		return answer
	case isDown(err):
		return err
	}
	c.log.Warn("transactions: no endpoint answered", "chain", c.ChainID, "error", plain(err.Error()))
	return &downError{fmt.Sprintf("chain %d: no endpoint answered", c.ChainID)}
}

// each calls f with the endpoints of the chain at the same time. The error joins the errors of f and
// of endpoints that do not answer.
func (c *chain) each(ctx context.Context, f func(*endpoint) error) error {
	errs := make([]error, len(c.nodes))
	unproven := c.pool.Each(ctx, c.quorum(), func(n *node.Node) error {
		e := c.endpoint(n)
		errs[e.place] = f(e)
		return nil
	})
	for n, err := range unproven {
		if e := c.endpoint(n); err != nil {
			errs[e.place] = e.failed("chain id", err)
		}
	}
	return errors.Join(errs...)
}

// endpoint returns the endpoint of a node of the chain's pool. The pool may be shared, and its nodes are those that
// were opened for the same URLs.
func (c *chain) endpoint(n *node.Node) *endpoint {
	return c.nodes[slices.IndexFunc(c.nodes, func(e *endpoint) bool { return e.rpc == n })]
}

// checkChain refuses endpoints of another chain: they are an error of the configuration that stops
// all work.
func (c *chain) checkChain(ctx context.Context) error {
	foreign := c.pool.Foreign(ctx)
	for _, e := range c.nodes {
		if reason, is := foreign[e.rpc]; is {
			return repute.Conflict("%s %s: mend the configuration", e.name, reason)
		}
	}
	return nil
}
