package wallet

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/keys"
	"repute/orchestrator/wallet/rules"
)

// call is a transaction before its nonce and fees are known.
type call struct {
	transaction.Origin
	by     rules.Role
	signer keys.Signer
	to     common.Address
	data   []byte
	spends *rules.Spending // nil for registry writes
	still  func(context.Context) error
}

// callOf returns the call for an agent's transaction, and refuses one that must not be signed. A call of a registry
// is made by the agent's own key; every other one is a spending of the treasury, which the operator's key signs
// whatever its target: the contract has the caps and lists.
func (c *chain) callOf(o transaction.Origin, tx *transaction.Tx) (*call, error) {
	value, err := rules.Amount("tx.value", tx.Value)
	if err != nil {
		return nil, err
	}
	k := &call{Origin: o, to: tx.Target, data: tx.Data}
	if registry, allowed := c.rules.RegistryWrite(tx.Target, tx.Data); registry && tx.Token == nil {
		k.by, k.signer = rules.ByIdentity, c.identities[o.Agent]
		switch {
		case value.Sign() != 0 || !allowed:
			return nil, rules.Refusal("is no registry write that agents sign (selector 0x%x, value %s)",
				tx.Data[:min(4, len(tx.Data))], value)
		case k.signer == nil:
			return nil, repute.Invalid("tx.target",
				fmt.Sprintf("is a registry, and agent %q has no key on chain %d", o.Agent,
					c.ChainID), "configure the agent's identity key")
		}
		return k, nil
	}
	if c.operator == nil {
		return nil, repute.Invalid("tx.chainId", fmt.Sprintf("chain %d has no treasury and operator key", c.ChainID),
			"configure both")
	}
	k.by, k.signer, k.to = rules.ByOperator, c.operator, c.Treasury
	if k.spends, err = rules.SpendingOf(o, tx); err != nil {
		return nil, err
	}
	k.data = k.spends.Pack()
	return k, c.rules.PermitTreasury(o, k.to, k.data)
}
