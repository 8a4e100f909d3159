package rules

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/keys"
	"repute/store/walletdb"
	"repute/x402"
)

// Rules define the transactions that may be signed on a chain.
type Rules struct {
	ChainID    *big.Int
	Treasury   common.Address // the zero address for none
	Registries safety.Registries
	Tokens     []common.Address // that identities settle x402 payments in
	Ceilings   Ceilings         // all set
}

// Role is the kind of a key. Each kind signs other transactions.
type Role int

// The kinds of keys.
const (
	ByIdentity Role = iota // an agent's own key, for registry writes
	ByOperator             // for treasury calls on behalf of runs
	ByOwner                // of the treasury's owner, for its policies
)

// The functions that each kind of contract may be called by.
var (
	treasuryABI       = bindings.NewOpenFiTreasury().GetABI()
	identityWrites    = selectors(bindings.NewIdentityRegistry().GetABI(), "register", "setAgentURI", "setAgentWallet")
	reputationWrites  = selectors(bindings.NewReputationRegistry().GetABI(), "giveFeedback", "appendResponse")
	validationWrites  = selectors(bindings.NewValidationRegistry().GetABI(), "validationResponse")
	validationAsks    = selectors(bindings.NewValidationRegistry().GetABI(), "validationRequest")
	treasuryFunctions = selectors(treasuryABI, "executeCall", "transferERC20")
	ownerFunctions    = selectors(treasuryABI, "setPolicy", "setCall", "setToken", "setRelayer", "pause", "unpause")
)

// selectors lists the functions of these names, overloads included.
func selectors(of abi.ABI, names ...string) (out [][]byte) {
	for _, m := range of.Methods {
		if slices.Contains(names, m.RawName) {
			out = append(out, m.ID)
		}
	}
	return out
}

// oneOf reports whether data begins with one of the selectors.
func oneOf(list [][]byte, data []byte) bool {
	return slices.ContainsFunc(list, func(s []byte) bool { return bytes.HasPrefix(data, s) })
}

// writes returns the functions that may be called on a registry; known reports whether the address
// is a registry.
func (r *Rules) writes(to common.Address) (list [][]byte, known bool) {
	switch {
	case to == common.Address{}:
		return nil, false
	case to == r.Registries.Identity:
		return identityWrites, true
	case to == r.Registries.Reputation:
		return reputationWrites, true
	}
	return validationWrites, slices.Contains(r.Registries.Validations, to)
}

// RegistryWrite reports whether an address is a registry, and whether data calls a function there
// that agents sign.
func (r *Rules) RegistryWrite(to common.Address, data []byte) (registry, allowed bool) {
	list, registry := r.writes(to)
	return registry, registry && oneOf(list, data)
}

// Settles reports whether data settles an x402 payment in one of the tokens. Such a transaction moves
// only what its payer signed for: nothing of the account that sends it, but for gas. A wallet that
// is deployed before is deployed by Multicall3, never by the account itself.
func (r *Rules) Settles(to common.Address, data []byte) bool {
	c, ok := x402.Charged(to, data)
	_, registry := r.writes(to)
	return ok && !registry && to != r.Treasury && slices.Contains(r.Tokens, c.Token)
}

// AsksValidation reports whether data asks a validator to confirm work of an agent, in one of the
// registries. It is sent for agents that are run here, and is no write that agents of runs sign: they
// would choose who confirms their own work.
func (r *Rules) AsksValidation(to common.Address, data []byte) bool {
	return slices.Contains(r.Registries.Validations, to) && oneOf(validationAsks, data)
}

// AnswersValidation reports whether data answers a request to a validator, in one of the registries.
func (r *Rules) AnswersValidation(to common.Address, data []byte) bool {
	return slices.Contains(r.Registries.Validations, to) && oneOf(validationWrites, data)
}

// SetsPolicy reports whether data calls a function of the treasury that its owner signs.
func SetsPolicy(data []byte) bool { return oneOf(ownerFunctions, data) }

// allowSignature checks a transaction before it is signed. It MUST carry no native coin. The operator's
// key signs calls of the treasury for this agent, run and task. An agent's own key signs listed
// functions of the registries, settlements of x402 payments and requests for validations. The key of
// the treasury's owner signs functions that set policies. Nothing else is signed.
func (r *Rules) allowSignature(by Role, o transaction.Origin, tx *types.Transaction) error {
	switch {
	case tx.Type() != types.DynamicFeeTxType || len(tx.AccessList()) > 0 || tx.ChainId().Cmp(r.ChainID) != 0:
		return Refusal("is of another form or chain")
	case tx.To() == nil:
		return Refusal("makes a contract")
	case tx.Value().Sign() != 0:
		return Refusal("carries %s wei: native coin leaves by the treasury alone", tx.Value())
	}
	if err := r.Ceilings.allowSignature(tx); err != nil {
		return err
	}
	switch by {
	case ByOperator:
		return r.PermitTreasury(o, *tx.To(), tx.Data())
	case ByOwner:
		return r.PermitOwner(*tx.To(), tx.Data())
	}
	if _, allowed := r.RegistryWrite(*tx.To(), tx.Data()); !allowed && !r.Settles(*tx.To(), tx.Data()) &&
		!r.AsksValidation(*tx.To(), tx.Data()) {
		return Refusal("is no registry write that agents sign (target %s, selector 0x%x)", tx.To(),
			tx.Data()[:min(4, len(tx.Data()))])
	}
	return nil
}

// PermitTreasury permits spending by the requesting agent, run and task, to targets that are
// neither the treasury nor a registry.
func (r *Rules) PermitTreasury(o transaction.Origin, to common.Address, data []byte) error {
	if to != r.Treasury || (to == common.Address{}) || !oneOf(treasuryFunctions, data) {
		return Refusal("is no call of the treasury %s", r.Treasury)
	}
	s, err := ParseSpending(data)
	if err != nil {
		return Refusal("is no call of the treasury: %v", err)
	}
	_, registry := r.writes(s.Target)
	switch {
	case s.Agent != contractID(o.Agent) || s.Run != contractID(o.Run) || s.Task != contractID(o.Task):
		return Refusal("names another agent, run or task")
	case s.Target == r.Treasury || s.Token == r.Treasury:
		return Refusal("calls the treasury through itself")
	case registry:
		return Refusal("writes to registry %s through the treasury: agents write there with their own key", s.Target)
	}
	return nil
}

// PermitOwner permits the owner to set policies and to pause. Withdrawing funds and transferring
// the treasury need the key outside of this program.
func (r *Rules) PermitOwner(to common.Address, data []byte) error {
	if to != r.Treasury || (to == common.Address{}) || !SetsPolicy(data) {
		return Refusal("sets no policy of the treasury %s (selector 0x%x)", r.Treasury, data[:min(4, len(data))])
	}
	if _, err := contracts.DecodeCall(treasuryABI, data); err != nil {
		return Refusal("is no call of the treasury: %v", err)
	}
	return nil
}

// Refusal returns the repute.ErrInvalid error of a transaction that no rule permits.
func Refusal(format string, args ...any) error {
	return repute.Invalid("tx", fmt.Sprintf(format, args...), "treasury calls, and registry writes that agents sign")
}

// Sign signs a transaction that the rules permit, and checks the result: a signer that returns
// another transaction or sender is refused.
func (r *Rules) Sign(ctx context.Context, by Role, s keys.Signer, o transaction.Origin,
	tx *types.Transaction) (walletdb.IntentAttempt, error) {
	if err := r.allowSignature(by, o, tx); err != nil {
		return walletdb.IntentAttempt{}, err
	}
	signed, err := s.Sign(ctx, r.ChainID, tx)
	if err != nil {
		return walletdb.IntentAttempt{}, err
	}
	form := types.LatestSignerForChainID(r.ChainID)
	from, err := types.Sender(form, signed)
	if err != nil || from != s.Address() || form.Hash(signed) != form.Hash(tx) {
		return walletdb.IntentAttempt{}, fmt.Errorf("the signer of %s signed another transaction than it was given: %w",
			s.Address(), repute.ErrConflict)
	}
	raw, err := signed.MarshalBinary()
	if err != nil {
		return walletdb.IntentAttempt{}, fmt.Errorf("encode transaction: %w", err)
	}
	return walletdb.IntentAttempt{Hash: signed.Hash(), Raw: raw, Nonce: tx.Nonce(), Gas: tx.Gas(),
		FeeCap: tx.GasFeeCap(), TipCap: tx.GasTipCap()}, nil
}
