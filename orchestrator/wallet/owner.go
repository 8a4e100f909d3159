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
// ask for.
func (w *Wallet) SimulateOwner(ctx context.Context, o transaction.Origin, chainID uint64,
	data []byte) (transaction.Simulation, error) {
	return w.simulated(ctx, chainID, func(c *chain) (*call, error) { return c.ownerCall(o, data) })
}

// SendOwner is Send for a call of the treasury by its owner: intent's Data on its ChainID.
// Only what sets policies, lists, relayers and the pause is signed.
func (w *Wallet) SendOwner(ctx context.Context, intent transaction.Intent) (transaction.Sent, error) {
	return w.once(ctx, &intent, func(c *chain) (*call, error) { return c.ownerCall(intent.Origin, intent.Data) })
}

// ownerCall makes a call that the treasury's owner signs. The error says why the rules do not
// permit it.
func (c *chain) ownerCall(o transaction.Origin, data []byte) (*call, error) {
	if c.owner == nil {
		return nil, repute.Invalid("chainId", fmt.Sprintf("chain %d has no key of the treasury's owner", c.ChainID),
			"configure it, or let the owner send the transaction")
	}
	return &call{Origin: o, by: rules.ByOwner, signer: c.owner, to: c.Treasury, data: data},
		c.rules.PermitOwner(c.Treasury, data)
}

// Contracts are what a chain is configured with: its registries and its treasury, the
// zero address where there is none. repute.ErrNotFound where the chain is not configured.
func (w *Wallet) Contracts(chainID uint64) (safety.Registries, common.Address, error) {
	c, err := w.on(chainID)
	if err != nil {
		return safety.Registries{}, common.Address{}, err
	}
	return c.Registries, c.Treasury, nil
}

// IdentityOf is the slug whose key has an address; repute.ErrNotFound where none has.
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

// Seen are answers of one block.
type Seen struct {
	Block     uint64
	BlockHash common.Hash
	Time      uint64   // of the block, seconds since 1970
	Balance   *big.Int // wei
	Answers   [][]byte // in the order of the questions
}

// Look asks contracts, and for the balance of an address, at the newest block that two
// endpoints have. repute.ErrUnavailable where too few endpoints answer, or two disagree.
func (w *Wallet) Look(ctx context.Context, chainID uint64, balanceOf common.Address, views ...View) (Seen, error) {
	c, err := w.on(chainID)
	if err != nil {
		return Seen{}, err
	}
	return c.look(ctx, nil, balanceOf, views)
}

// LookAt is Look at a block, which is on the chain still: repute.ErrUnavailable where too few
// endpoints have, or still have, what the chain was like there.
func (w *Wallet) LookAt(ctx context.Context, chainID uint64, balanceOf common.Address, at repute.Block,
	views ...View) (out Seen, err error) {
	c, err := w.on(chainID)
	if err != nil {
		return out, err
	}
	return c.look(ctx, &at.Hash, balanceOf, views)
}

// look asks at a block; nil is the newest one.
func (c *chain) look(ctx context.Context, at *common.Hash, balanceOf common.Address, views []View) (Seen, error) {
	list, _, err := agree(ctx, c, at, func(ctx context.Context, e *endpoint, at *head) (Seen, error) {
		return e.viewsAt(ctx, at, balanceOf, views)
	}, (*Seen).differs)
	if err != nil {
		return Seen{}, err
	}
	return list[0], nil
}
