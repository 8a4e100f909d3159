package wallet

import (
	"context"
	"sync"
	"time"

	"repute/store/walletdb"
)

// Run takes care of transactions whose run was cancelled or whose process died: it sends them
// again, replaces them and stores their results, until ctx ends. It checks confirmed transactions
// until their blocks are final. Any number of processes may run it.
func (w *Wallet) Run(ctx context.Context) error {
	var probing sync.WaitGroup
	defer probing.Wait()
	for _, c := range w.chains {
		if w.ownsPools {
			probing.Go(func() { _ = c.pool.Run(ctx) }) // ends with ctx, without an error
		}
	}
	followers, rechecked := map[string]*follower{}, map[*chain]time.Time{}
	for {
		pause := time.Minute
		open := map[string]*follower{}
		for _, c := range w.chains {
			pause = min(pause, 5*c.Poll)
			if err := w.stepAll(ctx, c, followers, open); err != nil && ctx.Err() == nil {
				w.log.Warn("transactions: step failed, will retry", "chain", c.ChainID, "error", err)
			}
			if time.Since(rechecked[c]) < c.StuckAfter {
				continue
			}
			rechecked[c] = time.Now()
			if err := w.recheck(ctx, c); err != nil && ctx.Err() == nil {
				w.log.Warn("transactions: check of confirmed ones failed, will retry", "chain", c.ChainID, "error", err)
			}
		}
		followers = open // drops those that are final
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stepAll takes one step with every open intent of a chain, one after another and in pages, so that a pass ends.
// before has the followers of the previous pass, after receives those of this one: a follower remembers when it
// last sent. An error ends the pass, because it mostly is that of all endpoints.
func (w *Wallet) stepAll(ctx context.Context, c *chain, before, after map[string]*follower) error {
	for last := ""; ; {
		open, err := walletdb.OpenIntents(ctx, w.db, c.ChainID, last)
		if err != nil || len(open) == 0 {
			return err
		}
		for i := range open {
			id := open[i].ID
			f := before[id] // with its endpoint and times
			if f == nil {
				f = w.follower(c, id)
			}
			after[id] = f
			if _, err := f.step(ctx); err != nil {
				return err
			}
		}
		last = open[len(open)-1].ID
	}
}
