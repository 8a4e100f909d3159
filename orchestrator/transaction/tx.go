package transaction

import (
	"cmp"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/journal"
	"repute/policy"
)

// Tx is a transaction that an agent wants. Native coin and calls go to Target; where
// Token is set, Amount of it goes to Target instead and Value and Data are empty.
type Tx struct {
	// Key tells this transaction of a step from its others; the same key is never sent
	// twice. Empty: the transactions of a step in the order it asks for them.
	Key     string          `json:"key,omitempty"`
	ChainID uint64          `json:"chainId"`
	Target  common.Address  `json:"target"`
	Value   string          `json:"value,omitempty"` // wei, decimal
	Data    []byte          `json:"data,omitempty"`  // base64 in JSON
	Token   *common.Address `json:"token,omitempty"`
	Amount  string          `json:"amount,omitempty"` // of Token, decimal
	Purpose string          `json:"purpose"`
	// Payee is the id of the agent whose wallet Target is, eip155:chain:registry:id: the runtime
	// compares Target with the newest final wallet that is indexed. Empty: Target is paid without regard to its owner.
	Payee string `json:"payee,omitempty"`
	// Function is the text of the function that Data calls, with types: set(address who). Calls
	// of the dry run need it that have placeholders and call a function that is not known.
	Function string `json:"function,omitempty"`
	// Placeholders are values that the agent cannot know yet. Only calls of the dry run have
	// them.
	Placeholders []Placeholder `json:"placeholders,omitempty"`
}

// maxData bounds calldata, in bytes.
const maxData = 128 << 10

// Check refuses what no chain could take. The error is repute.ErrInvalid.
func (t *Tx) Check() error {
	for _, f := range []struct{ name, text string }{{"value", t.Value}, {"amount", t.Amount}} {
		if _, err := ParseAmount(f.text); err != nil {
			return repute.Invalid("tx."+f.name, err.Error(), "decimal digits of an unsigned 256-bit number")
		}
	}
	switch {
	case t.Target == common.Address{}:
		return repute.Invalid("tx.target", "is the zero address", "an address")
	case t.Token != nil && (len(t.Data) > 0 || t.Value != "" && t.Value != "0"):
		return repute.Invalid("tx.token", "comes with value or data", "one of both")
	case t.Token == nil && t.Amount != "":
		return repute.Invalid("tx.amount", "comes without a token", "tx.value for native coin")
	case len(t.Data) > maxData:
		return repute.Invalid("tx.data", fmt.Sprintf("has %d bytes", len(t.Data)), "at most 131072")
	case len(t.Purpose) > 256 || len(t.Key) > 128:
		return repute.Invalid("tx.purpose", "is too long", "at most 256 bytes, keys 128")
	}
	return t.checkPayee()
}

// checkPayee refuses a payee that names no agent, and one of a call: only payments have an
// agent's wallet as their target. The error is repute.ErrInvalid.
func (t *Tx) checkPayee() error {
	if t.Payee == "" {
		return nil
	}
	if _, err := PayeeID(t.Payee); err != nil {
		return err
	}
	if len(t.Data) > 0 {
		return repute.Invalid("tx.payee", "comes with data",
			"a payment of native coin or of tx.token, whose target is the agent's wallet")
	}
	return nil
}

// PayeeID reads the id of an agent that is paid.
func PayeeID(text string) (repute.AgentID, error) {
	ref, err := repute.ParseAgentRef(text)
	if err != nil || ref.ChainID == 0 {
		return repute.AgentID{}, repute.Invalid("tx.payee", fmt.Sprintf("%.120q is no id of an agent", text),
			"eip155:chain:registry:id or chain:id")
	}
	id := repute.AgentID{ChainID: ref.ChainID, TokenID: ref.TokenID}
	if ref.Registry != nil {
		id.Registry = *ref.Registry
	}
	return id, nil
}

// Call returns the transaction as the rules of a policy see it, without what its calldata says.
func (t *Tx) Call() policy.Call {
	out := policy.Call{ChainID: t.ChainID, Target: t.Target.Hex(), Selector: t.Selector(),
		Value: cmp.Or(t.Value, "0"), Amount: cmp.Or(t.Amount, "0"), Purpose: t.Purpose, Payee: t.Payee}
	if t.Token != nil {
		out.Token = t.Token.Hex()
	}
	return out
}

// Selector is the function that a call names, empty for none.
func (t *Tx) Selector() string {
	if len(t.Data) < 4 {
		return ""
	}
	return fmt.Sprintf("0x%x", t.Data[:4])
}

// Digest names a transaction by all that it is: chain, target, value, data, token, amount and
// payee.
func (t *Tx) Digest() string {
	token := tokenIn(t)
	value, _ := ParseAmount(t.Value) // checked before
	amount, _ := ParseAmount(t.Amount)
	return journal.Digest(fmt.Append(nil, t.ChainID), t.Target[:], fmt.Append(nil, value), t.Data, token[:],
		fmt.Append(nil, amount), []byte(t.Payee))
}

// Same reports whether two transactions send the same to the same target.
func (t *Tx) Same(s *Tx) bool { return t.Digest() == s.Digest() }

// ParseAmount reads an amount; empty is 0.
func ParseAmount(s string) (*big.Int, error) {
	if s == "" {
		return new(big.Int), nil
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return nil, fmt.Errorf("%.40q is no amount", s)
		}
	}
	v, ok := new(big.Int).SetString(s[:min(len(s), 80)], 10)
	if !ok || len(s) > 80 || v.BitLen() > 256 {
		return nil, fmt.Errorf("%.40q… is too large", s)
	}
	return v, nil
}

// Difference is a − b of two amounts, empty where one cannot be read.
func Difference(a, b string) string {
	x, err1 := ParseAmount(a)
	y, err2 := ParseAmount(b)
	if err1 != nil || err2 != nil {
		return ""
	}
	return new(big.Int).Sub(x, y).String()
}
