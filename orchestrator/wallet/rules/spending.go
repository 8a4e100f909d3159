package rules

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/orchestrator/transaction"
)

// contractID returns the key by which the treasury identifies an agent, run or task.
func contractID(text string) common.Hash { return crypto.Keccak256Hash([]byte(text)) }

// Spending is a decoded call of the treasury by which an agent spends.
type Spending struct {
	Agent, Run, Task common.Hash
	Target           common.Address // of executeCall, or the receiver of tokens
	Value            *big.Int       // wei, or units of Token
	Data             []byte
	Token            common.Address // zero for executeCall
	Purpose          string
}

// Pack encodes the treasury call: a transfer of a token, or a call with value.
func (s *Spending) Pack() []byte {
	t := bindings.NewOpenFiTreasury()
	if (s.Token != common.Address{}) {
		return t.PackTransferERC20(s.Agent, s.Token, s.Target, s.Value, s.Run, s.Task, s.Purpose)
	}
	return t.PackExecuteCall(s.Agent, s.Target, s.Value, s.Data, s.Run, s.Task, s.Purpose)
}

// selector returns the selector that the treasury checks: zero for a call without data.
func (s *Spending) selector() (out [4]byte) {
	copy(out[:], s.Data)
	return out
}

// ParseSpending decodes a call of the treasury. It accepts only the canonical encoding, so that what
// was checked is what the treasury reads.
func ParseSpending(data []byte) (*Spending, error) {
	m, err := treasuryABI.MethodById(data)
	if err != nil {
		return nil, err
	}
	a, err := m.Inputs.Unpack(data[4:])
	if err != nil {
		return nil, err
	}
	var s Spending
	switch m.Name {
	case "executeCall":
		s = Spending{Agent: a[0].([32]byte), Target: a[1].(common.Address), Value: a[2].(*big.Int), Data: a[3].([]byte),
			Run: a[4].([32]byte), Task: a[5].([32]byte), Purpose: a[6].(string)}
	case "transferERC20":
		s = Spending{Agent: a[0].([32]byte), Token: a[1].(common.Address), Target: a[2].(common.Address),
			Value: a[3].(*big.Int), Run: a[4].([32]byte), Task: a[5].([32]byte), Purpose: a[6].(string)}
	default:
		return nil, fmt.Errorf("%s is not for agents", m.Name)
	}
	if !bytes.Equal(s.Pack(), data) {
		return nil, fmt.Errorf("%s is encoded in another way than the treasury's interface does", m.Name)
	}
	return &s, nil
}

// SpendingOf returns the treasury call for a transaction that an agent asks for. The error is
// repute.ErrInvalid.
func SpendingOf(o transaction.Origin, tx *transaction.Tx) (*Spending, error) {
	value, err := Amount("tx.value", tx.Value)
	if err != nil {
		return nil, err
	}
	s := &Spending{Agent: contractID(o.Agent), Run: contractID(o.Run), Task: contractID(o.Task), Target: tx.Target,
		Value: value,
		Data:  tx.Data, Purpose: tx.Purpose}
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

// Emitted reports whether a log of the treasury is the event of this call.
func (s *Spending) Emitted(l *types.Log) bool {
	t := bindings.NewOpenFiTreasury()
	if (s.Token != common.Address{}) {
		e, err := t.UnpackERC20TransferredEvent(l)
		return err == nil && e.AgentKey == s.Agent && e.RunId == s.Run && e.TaskId == s.Task && e.Token == s.Token &&
			e.To == s.Target && same(e.Amount, s.Value)
	}
	e, err := t.UnpackNativeExecutedEvent(l)
	return err == nil && e.AgentKey == s.Agent && e.RunId == s.Run && e.TaskId == s.Task && e.Target == s.Target &&
		e.Selector == s.selector() && same(e.Value, s.Value)
}

// same reports whether two amounts are given and equal.
func same(a, b *big.Int) bool { return a != nil && b != nil && a.Cmp(b) == 0 }

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
