package wallet

import (
	"context"
	"time"

	"repute/store/walletdb"
)

// Run looks after transactions that nobody waits for any more, because their run was
// cancelled or its process is gone: it sends them again, replaces them and stores what
// became of them, until ctx ends. Confirmed ones are looked at again until their blocks are
// final. Any number of processes may run it.
func (w *Wallet) Run(ctx context.Context) error {
	followers, looked := map[string]*follower{}, map[*chain]time.Time{}
	for {
		pause := time.Minute
		open := map[string]*follower{}
		for _, c := range w.chains {
			pause = min(pause, 5*c.Poll)
			if err := w.tend(ctx, c, followers, open); err != nil && ctx.Err() == nil {
				w.log.Warn("transactions: will look again", "chain", c.ChainID, "error", err)
			}
			if time.Since(looked[c]) < c.StuckAfter {
				continue
			}
			looked[c] = time.Now()
			if err := w.recheck(ctx, c); err != nil && ctx.Err() == nil {
				w.log.Warn("transactions: confirmed ones will be looked at again", "chain", c.ChainID, "error", err)
			}
		}
		followers = open // forgets what is final
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tend looks once after every open intent of a chain. What it knows of them from its last
// look is in before, and goes to after.
func (w *Wallet) tend(ctx context.Context, c *chain, before, after map[string]*follower) error {
	for last := ""; ; {
		open, err := walletdb.OpenIntents(ctx, w.db, c.ChainID, last)
		if err != nil || len(open) == 0 {
			return err
		}
		for i := range open {
			if err := w.lookAfter(ctx, c, &open[i], before, after); err != nil {
				return err
			}
		}
		last = open[len(open)-1].ID
	}
}

// lookAfter takes one step in following an intent. What is known of its endpoints and times is
// kept from round to round.
func (w *Wallet) lookAfter(ctx context.Context, c *chain, in *walletdb.Intent, before,
	after map[string]*follower) error {
	f := before[in.ID]
	if f == nil {
		f = w.follower(c, in.ID)
	}
	after[in.ID] = f
	_, err := f.step(ctx)
	return err
}
