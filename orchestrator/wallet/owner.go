package wallet

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/rules"
)

// SimulateOwner is Simulate for a call of the treasury by its owner, which agents cannot
// request.
func (w *Wallet) SimulateOwner(ctx context.Context, o transaction.Origin, chainID uint64,
	data []byte) (transaction.Simulation, error) {
	return w.simulated(ctx, chainID, func(c *chain) (*call, error) { return c.ownerCall(o, data) })
}

// SendOwner is Send for a call of the treasury by its owner: intent's Data on its ChainID. Only
// calls that set policies, lists, relayers and the pause are signed.
func (w *Wallet) SendOwner(ctx context.Context, intent transaction.Intent) (transaction.Sent, error) {
	return w.once(ctx, &intent, func(c *chain) (*call, error) { return c.ownerCall(intent.Origin, intent.Data) })
}

// ownerCall returns a call that the treasury's owner signs. The error is the rule that forbids it.
func (c *chain) ownerCall(o transaction.Origin, data []byte) (*call, error) {
	if c.owner == nil {
		return nil, repute.Invalid("chainId", fmt.Sprintf("chain %d has no key of the treasury's owner", c.ChainID),
			"configure it, or let the owner send the transaction")
	}
	return &call{Origin: o, by: rules.ByOwner, signer: c.owner, to: c.Treasury, data: data},
		c.rules.PermitOwner(c.Treasury, data)
}

// Contracts returns the configured registries and treasury of a chain, the zero address for no
// treasury. repute.ErrNotFound if the chain is not configured.
func (w *Wallet) Contracts(chainID uint64) (safety.Registries, common.Address, error) {
	c, err := w.on(chainID)
	if err != nil {
		return safety.Registries{}, common.Address{}, err
	}
	return c.Registries, c.Treasury, nil
}

// IdentityOf returns the slug whose key has an address; repute.ErrNotFound if there is none.
func (w *Wallet) IdentityOf(chainID uint64, key common.Address) (string, error) {
	c, err := w.on(chainID)
	if err != nil {
		return "", err
	}
	for slug, s := range c.identities {
		if s.Address() == key {
			return slug, nil
		}
	}
	return "", &repute.MissingError{What: fmt.Sprintf("key of %s on chain %d", key, chainID), Why: "is not configured"}
}

// View is a question to a contract. The zero From stands for nobody.
type View struct {
	From, To common.Address
	Data     []byte
}

// Seen are results at one block.
type Seen struct {
	Block     uint64
	BlockHash common.Hash
	Time      uint64   // of the block, seconds since 1970
	Balance   *big.Int // wei
	Answers   [][]byte // in the order of the questions
}

// Look calls view functions and reads a balance at the newest block that two endpoints have.
// repute.ErrUnavailable if too few endpoints answer or two disagree.
func (w *Wallet) Look(ctx context.Context, chainID uint64, balanceOf common.Address, views ...View) (Seen, error) {
	c, err := w.on(chainID)
	if err != nil {
		return Seen{}, err
	}
	return c.agreedViews(ctx, nil, balanceOf, views)
}

// LookAt is Look at a block that is still on the chain. repute.ErrUnavailable if too few endpoints
// have its state.
func (w *Wallet) LookAt(ctx context.Context, chainID uint64, balanceOf common.Address, at repute.Block,
	views ...View) (out Seen, err error) {
	c, err := w.on(chainID)
	if err != nil {
		return out, err
	}
	return c.agreedViews(ctx, &at.Hash, balanceOf, views)
}

// agreedViews returns the views on which endpoints agree at a block; nil is the newest one.
func (c *chain) agreedViews(ctx context.Context, at *common.Hash, balanceOf common.Address,
	views []View) (Seen, error) {
	list, _, err := agree(ctx, c, at, func(ctx context.Context, e *endpoint, at *head) (Seen, error) {
		return e.viewsAt(ctx, at, balanceOf, views)
	}, (*Seen).differs)
	if err != nil {
		return Seen{}, err
	}
	return list[0], nil
}
