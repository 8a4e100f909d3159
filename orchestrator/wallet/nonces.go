package wallet

import (
	"context"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/walletdb"
)

// reach is the largest plausible distance of a nonce from the account's own: a larger one is invented
// by an endpoint, and a transaction with it is never mined.
const reach = 1 << 20

// nextNonce returns the nonce of an account's next transaction: the journal's, or a larger one if
// transactions were sent that the journal does not know, or a smaller one if a gap keeps everything
// from being mined. If there are several endpoints two must confirm transactions that the journal
// does not know, because one false answer would block the account.
func (c *chain) nextNonce(ctx context.Context, e *endpoint, of common.Address, n walletdb.Nonces,
	note func(string, ...any)) (uint64, error) {
	pending, err := e.nonce(ctx, of, "pending")
	if err != nil {
		return 0, err
	}
	switch {
	case pending > math.MaxInt64-1:
		return 0, e.failed("nonce", fmt.Errorf("%d cannot be", pending))
	case pending < n.Next:
		return c.gap(ctx, of, pending, n, note)
	case pending == n.Next || len(c.nodes) == 1:
		return pending, nil
	}
	var others uint64 // the largest count of another endpoint
	answered := false
	for _, other := range c.nodes {
		if other == e {
			continue
		}
		if n, err := other.nonce(ctx, of, "pending"); err == nil {
			others, answered = max(others, n), true
		} else if ctx.Err() != nil {
			return 0, err
		}
	}
	if !answered {
		return 0, fmt.Errorf("%s counts %d transactions of %s, the journal %d, and no other endpoint answers: %w",
			e.name,
			pending, of, n.Next, repute.ErrUnavailable)
	}
	if others < pending {
		note("transaction: nonce that no other endpoint confirms", "chain", c.ChainID, "from", of, "nonce",
			pending, "by",
			e.rpc.Host(), "others", others, "journal", n.Next)
	}
	return max(n.Next, min(pending, others)), nil
}

// gap returns the smallest nonce that is missing below those in the journal, because an endpoint once counted too
// many transactions, or because foreign ones were dropped. Without a gap it returns the next nonce. Every endpoint
// must return the account's count: a nonce that is used again by mistake replaces a transaction that somebody waits
// for.
func (c *chain) gap(ctx context.Context, of common.Address, pending uint64, n walletdb.Nonces,
	note func(string, ...any)) (uint64, error) {
	free, err := n.Free(ctx, pending, c.StuckAfter)
	if err != nil || free == n.Next {
		return free, err
	}
	count, err := c.counted(ctx, of)
	if err != nil {
		return 0, err
	}
	if free, err = n.Free(ctx, min(count, n.Next), c.StuckAfter); err == nil && free < n.Next {
		note("transaction: closes a gap of nonces", "chain", c.ChainID, "from", of, "nonce", free, "journal", n.Next)
	}
	return free, err
}

// counted returns the largest number of transactions of an account that an endpoint reports. All
// must answer.
func (c *chain) counted(ctx context.Context, of common.Address) (most uint64, err error) {
	for _, e := range c.nodes {
		n, err := e.nonce(ctx, of, "pending")
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	return most, nil
}

// stranded ends an intent whose nonce the account never reaches according to every endpoint.
func (f *follower) stranded(ctx context.Context, in *walletdb.Intent) error {
	count, err := f.c.counted(ctx, in.From)
	if err != nil || count >= in.Nonce || in.Nonce-count <= reach {
		return err
	}
	reason := fmt.Sprintf("nonce %d of %s is out of reach, the account is at %d: an endpoint had counted transactions that are not there", in.Nonce, in.From, count)
	f.w.log.Error("transaction: nonce out of reach", "intent", in.ID, "chain", in.ChainID, "from", in.From, "nonce",
		in.Nonce, "count", count)
	if err := walletdb.MarkIntent(ctx, f.w.db, in.ID, walletdb.IntentFailed, walletdb.Mining{}, reason); err != nil {
		return err
	}
	*in, err = walletdb.ReadIntent(ctx, f.w.db, in.ID)
	return err
}
