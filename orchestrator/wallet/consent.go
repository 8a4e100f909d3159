package wallet

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
	"repute/contracts"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/keys"
	"repute/store/rundb"
)

// Consent is the message by which a wallet agrees to be the wallet of an agent. The Identity
// Registry accepts it until the deadline, at most five minutes in the future.
type Consent struct {
	ChainID  uint64
	Agent    *big.Int // token
	Wallet   common.Address
	Owner    common.Address // of the token
	Deadline uint64         // seconds since 1970, by the chain's clock
}

// SignConsent signs with the key of the wallet if it is configured, as the operator's or an agent's
// key. repute.ErrNotFound if it is not.
func (w *Wallet) SignConsent(ctx context.Context, consent Consent) ([]byte, error) {
	c, err := w.on(consent.ChainID)
	if err != nil {
		return nil, err
	}
	s := c.signerOf(consent.Wallet)
	if s == nil {
		return nil, &repute.MissingError{What: fmt.Sprintf("key of %s on chain %d", consent.Wallet, consent.ChainID),
			Why:  "is not configured",
			Hint: "let the wallet sign, and give deadline and signature"}
	}
	return s.SignTyped(ctx, consent.typed(c.Registries.Identity))
}

// ConsentOfRun is SignConsent for a run. Anybody who may create tasks chooses a run's input, and could
// bind the wallet to a bad agent, for which the wallet's owner would then answer. Therefore the run
// MUST be one of the registrar, its transactions MUST have registered the agent, the registrar's key
// MUST still own the agent, and the wallet MUST be that of a slug in Consents. The error is
// repute.ErrInvalid and names the violated condition.
func (w *Wallet) ConsentOfRun(ctx context.Context, by transaction.Origin, consent Consent) ([]byte, error) {
	c, err := w.on(consent.ChainID)
	if err != nil {
		return nil, err
	}
	if w.registrar == "" || by.Agent != w.registrar {
		return nil, repute.Invalid("agent", fmt.Sprintf("%q is not the registrar of this service", by.Agent),
			"a task of the registrar, or a signature of the wallet")
	}
	registrar := c.identities[w.registrar]
	if registrar == nil || registrar.Address() != consent.Owner {
		return nil, repute.Invalid("owner", fmt.Sprintf("%s is not the registrar's key", consent.Owner),
			"an agent that the registrar registered, or a signature of the wallet")
	}
	open := slices.ContainsFunc(c.Consents,
		func(slug string) bool { return c.identities[slug].Address() == consent.Wallet })
	if !open {
		return nil, repute.Invalid("wallet", fmt.Sprintf("%s is of no slug that orchestrator.wallets[].consents lists",
			consent.Wallet), "such a slug's wallet, or a signature of the wallet")
	}
	registered, err := w.registered(ctx, c, consent.Agent)
	if err != nil {
		return nil, err
	}
	if !registered {
		return nil, repute.Invalid("agent", fmt.Sprintf("%s was not registered by a run of the registrar",
			consent.Agent),
			"an agent that was, or a signature of the wallet")
	}
	return w.SignConsent(ctx, consent)
}

// registered reports whether the receipts of the registrar's runs show that they registered an agent. The journal
// is asked, and not the chain, which says who owns the agent and not who had it registered.
func (w *Wallet) registered(ctx context.Context, c *chain, agent *big.Int) (bool, error) {
	token := common.BigToHash(agent)
	receipts, err := rundb.SentWithTopic(ctx, w.db, w.registrar, c.ChainID, token)
	for _, r := range receipts {
		var sent transaction.Sent
		var logs []types.Log
		if json.Unmarshal(r, &sent) != nil || !sent.OK || json.Unmarshal(sent.Result, &logs) != nil {
			continue
		}
		for _, l := range logs {
			if l.Address != c.Registries.Identity {
				continue
			}
			event, err := contracts.Decode(l)
			if made, ok := event.(repute.Registered); err == nil && ok && made.TokenID.ToBig().Cmp(agent) == 0 {
				return true, nil
			}
		}
	}
	return false, err
}

// signerOf returns the configured key of an address, nil for none.
func (c *chain) signerOf(a common.Address) keys.Signer {
	if c.operator != nil && c.operator.Address() == a {
		return c.operator
	}
	for _, s := range c.identities {
		if s.Address() == a {
			return s
		}
	}
	return nil
}

// typed returns the consent as EIP-712 data.
func (c Consent) typed(registry common.Address) apitypes.TypedData {
	field := func(name, kind string) apitypes.Type { return apitypes.Type{Name: name, Type: kind} }
	return apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": {field("name", "string"), field("version", "string"), field("chainId", "uint256"),
				field("verifyingContract", "address")},
			"AgentWalletSet": {field("agentId", "uint256"), field("newWallet", "address"), field("owner", "address"),
				field("deadline", "uint256")},
		},
		PrimaryType: "AgentWalletSet",
		Domain: apitypes.TypedDataDomain{Name: "ERC8004IdentityRegistry", Version: "1",
			ChainId: (*math.HexOrDecimal256)(new(big.Int).SetUint64(c.ChainID)), VerifyingContract: registry.Hex()},
		Message: apitypes.TypedDataMessage{"agentId": c.Agent.String(), "newWallet": c.Wallet.Hex(),
			"owner":    c.Owner.Hex(),
			"deadline": fmt.Sprint(c.Deadline)},
	}
}
