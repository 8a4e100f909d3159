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

// SendSettlement is Send for a transaction that settles an x402 payment: intent's Data to its
// Target, signed by the identity of its Agent. Agents cannot request it.
func (w *Wallet) SendSettlement(ctx context.Context, intent transaction.Intent) (transaction.Sent, error) {
	return w.once(ctx, &intent, func(c *chain) (*call, error) {
		return c.identityCall(&intent, "settler", (*rules.Rules).Settles,
			"settles no payment in a token that is listed for chain %d")
	})
}

// identityCall makes a transaction that the key of an intent's agent signs, and that no run may request. field names
// the agent's slug in errors, permits is the rule that MUST hold, and otherwise is the text of its refusal.
func (c *chain) identityCall(in *transaction.Intent, field string,
	permits func(*rules.Rules, common.Address, []byte) bool, otherwise string) (*call, error) {
	signer := c.identities[in.Agent]
	switch {
	case signer == nil:
		return nil, repute.Invalid(field, fmt.Sprintf("%.80q has no key on chain %d", in.Agent, c.ChainID),
			"a slug of identities")
	case !permits(&c.rules, in.Target, in.Data):
		return nil, rules.Refusal(otherwise, c.ChainID)
	}
	return &call{Origin: in.Origin, by: rules.ByIdentity, signer: signer, to: in.Target, data: in.Data}, nil
}

// SendValidationRequest is Send for a request to a validator: intent's Data to its Target, a validation
// registry, signed by the identity of its Agent, which MUST be the owner or an operator of the agent that
// the request is about. Agents of runs cannot request it.
func (w *Wallet) SendValidationRequest(ctx context.Context, intent transaction.Intent) (transaction.Sent, error) {
	return w.once(ctx, &intent, func(c *chain) (*call, error) {
		return c.identityCall(&intent, "validation.sender", (*rules.Rules).AsksValidation,
			"asks no validator in a registry that is listed for chain %d")
	})
}

// SendValidationAnswer is Send for the answer to a request that names the identity of intent's Agent as validator:
// intent's Data to its Target, a validation registry. Runs answer requests by Send.
func (w *Wallet) SendValidationAnswer(ctx context.Context, intent transaction.Intent) (transaction.Sent, error) {
	return w.once(ctx, &intent, func(c *chain) (*call, error) {
		return c.identityCall(&intent, "validation.answerer", (*rules.Rules).AnswersValidation,
			"answers no request in a registry that is listed for chain %d")
	})
}

// IdentityKey is the key that signs for an agent on a chain; repute.ErrNotFound where there is
// none. It signs x402 payments, which move tokens of the identity's account.
func (w *Wallet) IdentityKey(chainID uint64, slug string) (keys.Signer, error) {
	c, err := w.on(chainID)
	if err != nil {
		return nil, err
	}
	if s := c.identities[slug]; s != nil {
		return s, nil
	}
	return nil, &repute.MissingError{What: fmt.Sprintf("identity key of agent %q on chain %d", slug, chainID),
		Why: "is not configured"}
}

// ReadFrom is Read of a call that an account makes.
func (w *Wallet) ReadFrom(ctx context.Context, chainID uint64, from, to common.Address, data []byte) ([]byte, error) {
	seen, err := w.Look(ctx, chainID, to, View{From: from, To: to, Data: data})
	if err != nil {
		return nil, err
	}
	return seen.Answers[0], nil
}
