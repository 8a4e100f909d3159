package wallet

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
	"repute/orchestrator"
	"repute/orchestrator/wallet/keys"
	"repute/store/walletdb"
)

// rules say what may be signed on a chain.
type rules struct {
	chainID    *big.Int
	treasury   common.Address
	registries orchestrator.Registries
	ceilings   Ceilings
}

// role tells the kinds of keys apart.
type role int

const (
	byIdentity role = iota // signs registry writes
	byOperator             // signs treasury calls
	byOwner                // signs what the treasury's owner sets
)

// The functions that each kind of contract may be called by.
var (
	treasuryABI       = bindings.NewOpenFiTreasury().GetABI()
	identityWrites    = selectors(bindings.NewIdentityRegistry().GetABI(), "register", "setAgentURI", "setAgentWallet")
	reputationWrites  = selectors(bindings.NewReputationRegistry().GetABI(), "giveFeedback", "appendResponse")
	validationWrites  = selectors(bindings.NewValidationRegistry().GetABI(), "validationResponse")
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

// writes lists what may be called on a registry; known tells whether it is one.
func (r *rules) writes(to common.Address) (list [][]byte, known bool) {
	switch {
	case to == common.Address{}:
		return nil, false
	case to == r.registries.Identity:
		return identityWrites, true
	case to == r.registries.Reputation:
		return reputationWrites, true
	}
	return validationWrites, slices.Contains(r.registries.Validations, to)
}

// permit is the last look at a transaction before it is signed: the operator's key signs
// calls of the treasury for this agent, run and task, an agent's own key signs listed
// functions of the registries, the treasury's owner's key what sets policies, and nothing
// else is signed.
func (r *rules) permit(by role, o orchestrator.Origin, tx *types.Transaction) error {
	switch {
	case tx.Type() != types.DynamicFeeTxType || len(tx.AccessList()) > 0 || tx.ChainId().Cmp(r.chainID) != 0:
		return refused("is of another form or chain")
	case tx.To() == nil:
		return refused("makes a contract")
	case tx.Value().Sign() != 0:
		return refused("carries %s wei: native coin leaves by the treasury alone", tx.Value())
	}
	if err := r.ceilings.permit(tx); err != nil {
		return err
	}
	switch by {
	case byOperator:
		return r.permitTreasury(o, *tx.To(), tx.Data())
	case byOwner:
		return r.permitOwner(*tx.To(), tx.Data())
	}
	if list, known := r.writes(*tx.To()); !known || !oneOf(list, tx.Data()) {
		return refused("is no registry write that agents sign (target %s, selector 0x%x)", tx.To(),
			tx.Data()[:min(4, len(tx.Data()))])
	}
	return nil
}

// permitTreasury permits what the operator's key may sign: spending by the agent, run and task
// that ask, to targets that are neither the treasury nor a registry.
func (r *rules) permitTreasury(o orchestrator.Origin, to common.Address, data []byte) error {
	if to != r.treasury || (to == common.Address{}) || !oneOf(treasuryFunctions, data) {
		return refused("is no call of the treasury %s", r.treasury)
	}
	s, err := parseSpending(data)
	if err != nil {
		return refused("is no call of the treasury: %v", err)
	}
	_, registry := r.writes(s.Target)
	switch {
	case s.Agent != idOf(o.Agent) || s.Run != idOf(o.Run) || s.Task != idOf(o.Task):
		return refused("names another agent, run or task")
	case s.Target == r.treasury || s.Token == r.treasury:
		return refused("calls the treasury through itself")
	case registry:
		return refused("writes to registry %s through the treasury: agents write there with their own key", s.Target)
	}
	return nil
}

// permitOwner lets an owner set policies and pause; taking funds out and handing the
// treasury over need the key elsewhere.
func (r *rules) permitOwner(to common.Address, data []byte) error {
	if to != r.treasury || (to == common.Address{}) || !oneOf(ownerFunctions, data) {
		return refused("sets no policy of the treasury %s (selector 0x%x)", r.treasury, data[:min(4, len(data))])
	}
	if _, err := contracts.DecodeCall(treasuryABI, data); err != nil {
		return refused("is no call of the treasury: %v", err)
	}
	return nil
}

// refused makes the error of a transaction that no rule permits.
func refused(format string, args ...any) error {
	return repute.Invalid("tx", fmt.Sprintf(format, args...), "treasury calls, and registry writes that agents sign")
}

// idOf is how the treasury names agents, runs and tasks.
func idOf(text string) common.Hash { return crypto.Keccak256Hash([]byte(text)) }

// spending is a call of the treasury, taken apart.
type spending struct {
	Agent, Run, Task common.Hash
	Target           common.Address // of executeCall, or who gets the tokens
	Value            *big.Int       // wei, or units of Token
	Data             []byte
	Token            common.Address // zero for executeCall
	Purpose          string
}

// pack encodes the treasury call: a transfer of a token, or a call with value.
func (s *spending) pack() []byte {
	t := bindings.NewOpenFiTreasury()
	if (s.Token != common.Address{}) {
		return t.PackTransferERC20(s.Agent, s.Token, s.Target, s.Value, s.Run, s.Task, s.Purpose)
	}
	return t.PackExecuteCall(s.Agent, s.Target, s.Value, s.Data, s.Run, s.Task, s.Purpose)
}

// selector is the one that the treasury checks: zero for a call without data.
func (s *spending) selector() (out [4]byte) {
	copy(out[:], s.Data)
	return out
}

// parseSpending takes a call of the treasury apart, and accepts its one proper encoding
// alone.
func parseSpending(data []byte) (*spending, error) {
	m, err := treasuryABI.MethodById(data)
	if err != nil {
		return nil, err
	}
	a, err := m.Inputs.Unpack(data[4:])
	if err != nil {
		return nil, err
	}
	var s spending
	switch m.Name {
	case "executeCall":
		s = spending{Agent: a[0].([32]byte), Target: a[1].(common.Address), Value: a[2].(*big.Int), Data: a[3].([]byte),
			Run: a[4].([32]byte), Task: a[5].([32]byte), Purpose: a[6].(string)}
	case "transferERC20":
		s = spending{Agent: a[0].([32]byte), Token: a[1].(common.Address), Target: a[2].(common.Address),
			Value: a[3].(*big.Int), Run: a[4].([32]byte), Task: a[5].([32]byte), Purpose: a[6].(string)}
	default:
		return nil, fmt.Errorf("%s is not for agents", m.Name)
	}
	if !bytes.Equal(s.pack(), data) {
		return nil, fmt.Errorf("%s is encoded in another way than the treasury's interface does", m.Name)
	}
	return &s, nil
}

// sign signs a transaction that the rules permit, and checks what comes back: another
// transaction or another sender is refused.
func (r *rules) sign(ctx context.Context, by role, s keys.Signer, o orchestrator.Origin,
	tx *types.Transaction) (walletdb.IntentAttempt, error) {
	if err := r.permit(by, o, tx); err != nil {
		return walletdb.IntentAttempt{}, err
	}
	signed, err := s.Sign(ctx, r.chainID, tx)
	if err != nil {
		return walletdb.IntentAttempt{}, err
	}
	form := types.LatestSignerForChainID(r.chainID)
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

// call is the transaction that a chain is to see.
type call struct {
	orchestrator.Origin
	by     role
	signer keys.Signer
	to     common.Address
	data   []byte
	spends *spending // nil for registry writes
	still  func(context.Context) error
}

// callOf makes the transaction for what an agent asks for, and refuses what may not be
// signed.
func (c *chain) callOf(o orchestrator.Origin, tx *orchestrator.Tx) (*call, error) {
	value, err := Amount("tx.value", tx.Value)
	if err != nil {
		return nil, err
	}
	k := &call{Origin: o, to: tx.Target, data: tx.Data}
	if list, known := c.rules.writes(tx.Target); known && tx.Token == nil {
		k.by, k.signer = byIdentity, c.identities[o.Agent]
		switch {
		case value.Sign() != 0 || !oneOf(list, tx.Data):
			return nil, refused("is no registry write that agents sign (selector 0x%x, value %s)",
				tx.Data[:min(4, len(tx.Data))], value)
		case k.signer == nil:
			return nil, repute.Invalid("tx.target", fmt.Sprintf("is a registry, and agent %q has no key on chain %d", o.Agent,
				c.ChainID), "configure the agent's identity key")
		}
		return k, nil
	}
	if c.operator == nil {
		return nil, repute.Invalid("tx.chainId", fmt.Sprintf("chain %d has no treasury and operator key", c.ChainID),
			"configure both")
	}
	k.by, k.signer, k.to = byOperator, c.operator, c.Treasury
	if k.spends, err = spendingOf(o, tx); err != nil {
		return nil, err
	}
	k.data = k.spends.pack()
	return k, c.rules.permitTreasury(o, k.to, k.data)
}

// spendingOf is how the treasury is asked for a transaction.
func spendingOf(o orchestrator.Origin, tx *orchestrator.Tx) (*spending, error) {
	value, err := Amount("tx.value", tx.Value)
	if err != nil {
		return nil, err
	}
	s := &spending{Agent: idOf(o.Agent), Run: idOf(o.Run), Task: idOf(o.Task), Target: tx.Target, Value: value,
		Data: tx.Data, Purpose: tx.Purpose}
	if tx.Token == nil {
		return s, nil
	}
	if s.Value, err = Amount("tx.amount", tx.Amount); err != nil {
		return nil, err
	}
	if len(tx.Data) > 0 || value.Sign() != 0 || (*tx.Token == common.Address{}) {
		return nil, repute.Invalid("tx.token", "comes with value or data, or is the zero address",
			"a token, an amount and who gets it")
	}
	s.Token = *tx.Token
	return s, nil
}

// Amount reads decimal digits of the field named; empty is 0. The error is
// repute.ErrInvalid.
func Amount(field, text string) (*big.Int, error) {
	v, ok := new(big.Int), true
	digits := !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if text != "" {
		v, ok = v.SetString(text[:min(len(text), 79)], 10)
	}
	if !ok || !digits || len(text) > 78 || v.BitLen() > 256 {
		return nil, repute.Invalid(field, fmt.Sprintf("%.40q is no amount", text),
			"decimal digits of an unsigned 256-bit number")
	}
	return v, nil
}
