package safety

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/query"
)

// PaysPayee refuses a payment to an agent whose target is not the agent's wallet. Three
// sources MUST agree: the newest final block of the index, its newest block, and, where
// transactions are sent on the agent's own chain, the chain as the wallet's endpoints agree on
// it. It is asked in the dry run, before a transaction is journaled, and before it is signed.
func PaysPayee(ctx context.Context, db *store.DB, chain transaction.Chain, tx *transaction.Tx) error {
	if tx.Payee == "" {
		return nil
	}
	id, err := transaction.PayeeID(tx.Payee)
	if err != nil {
		return err
	}
	for _, newest := range []struct {
		finality repute.Finality
		which    string
	}{{repute.Finalized, "newest final one"}, {repute.Latest, "newest one"}} {
		agent, asOf, err := query.Agent(ctx, db, id, repute.At{Finality: newest.finality})
		switch {
		case errors.Is(err, repute.ErrNotFound) || errors.Is(err, repute.ErrInvalid):
			return transaction.Refuse("payee", "the wallet of agent %s cannot be compared with the index: %v",
				tx.Payee, err)
		case err != nil:
			return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
		case agent.Wallet != tx.Target:
			return transaction.Refuse("payee",
				"the payment to agent %s goes to %s, and the agent's wallet is %s in block %d, the %s that is indexed: pay again once a change of the wallet is final; if there is none, an endpoint or the index is wrong",
				tx.Payee, tx.Target, agent.Wallet, asOf.Block.Number, newest.which)
		}
		id = agent.ID
	}
	if id.ChainID != tx.ChainID {
		return nil // the wallet has no endpoints of the agent's chain
	}
	return paysOnChain(ctx, chain, id, tx)
}

// paysOnChain compares a payment's target with the agent's wallet on the chain.
func paysOnChain(ctx context.Context, chain transaction.Chain, id repute.AgentID, tx *transaction.Tx) error {
	token := id.TokenID.Bytes32()
	answer, err := chain.Read(ctx, id.ChainID, id.Registry,
		append(crypto.Keccak256([]byte("getAgentWallet(uint256)"))[:4], token[:]...))
	if err != nil {
		return err
	}
	if len(answer) != 32 || common.BytesToAddress(answer) != tx.Target {
		return transaction.Refuse("payee",
			"the payment to agent %s goes to %s, and the agent's wallet on the chain is 0x%x: pay again once a change of the wallet is final",
			tx.Payee, tx.Target, answer[max(0, len(answer)-20):])
	}
	return nil
}
