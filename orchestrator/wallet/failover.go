package wallet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"repute"
)

// leftFor is how long an endpoint that gave no answer is asked last, in seconds.
const leftFor = 60

// with calls f with one endpoint after another until one answers. f MUST be repeatable. A wrong
// answer is returned and not retried, because a person must see it.
func (c *chain) with(ctx context.Context, f func(*endpoint) error) error {
	if err := c.ours(ctx); err != nil {
		return err
	}
	first := 0
	if time.Now().Unix()-c.left.Load() < leftFor {
		first = int(c.best.Load())
	}
	var failed error
	for i := range c.nodes {
		at := (first + i) % len(c.nodes)
		err := f(c.nodes[at])
		var down *downError
		if err == nil || !errors.As(err, &down) || ctx.Err() != nil {
			c.answered(at, i > 0)
			return err
		}
		failed = either(failed, err)
	}
	return failed
}

// answered records which endpoint answers.
func (c *chain) answered(at int, another bool) {
	if another {
		c.left.Store(time.Now().Unix())
	}
	c.best.Store(int64(at))
}

// either joins two errors, either of which may be nil.
func either(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

// ours checks once that the endpoints serve the chain. An endpoint without answer is checked again
// later; one of another chain is a configuration error that stops all work.
func (c *chain) ours(ctx context.Context) error {
	for _, e := range c.nodes {
		if e.known.Load() || time.Now().Unix()-e.looked.Load() < leftFor && e.others {
			continue
		}
		id, err := e.chainID(ctx)
		if err != nil && e.others && ctx.Err() == nil {
			e.looked.Store(time.Now().Unix())
			continue
		}
		if err != nil {
			return err
		}
		if id.Cmp(c.id) != 0 {
			return repute.Conflict("%s is of chain %s, not of %s: mend the configuration", e.name, id, c.id)
		}
		e.known.Store(true)
	}
	return nil
}
