package operate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
	"repute/orchestrator/approval"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
)

// decode adds the decoded call of a step, for people and rules. A transaction that the treasury's owner signs MUST
// be decodable: such a key may do everything, so that nothing is signed by it that a person could not read. Another
// call that cannot be decoded is shown as its bytes, and the rules decide.
//
// Calls of an earlier decision are dropped first, since the data may have been made again (readAgain). A step without
// data is a payment or has a consent to come, and has no calls.
func (o *Operator) decode(ctx context.Context, s *step) error {
	s.Calls = nil
	if len(s.Tx.Data) == 0 {
		return nil
	}
	if s.Owner {
		call, err := contracts.DecodeCall(bindings.NewOpenFiTreasury().GetABI(), s.Tx.Data)
		if err != nil {
			return repute.Invalid("tx", err.Error(), "a call of the treasury's owner")
		}
		call.Target, s.Calls = s.Tx.Target.Hex(), []contracts.Call{call}
		return nil
	}
	decoder, err := o.decoder()
	if err != nil {
		return err
	}
	given, err := approval.ListedFunction(ctx, o.db, s.Tx.ChainID, s.Tx.Target, s.Tx.Data)
	if err != nil {
		return err
	}
	s.Calls = decoder.Decode(s.Tx.Target, s.Tx.Data, given)
	return nil
}

// settings returns the event that the treasury emits for a function of its owner. The event has
// every argument of the function under the same name.
// A function that is not in the list has no event, so that asAsked cannot confirm it: an owner's function that is
// added to this package MUST be added here as well.
func settings(function string) string {
	return map[string]string{"setPolicy": "PolicySet", "setCall": "CallAllowed",
		"setToken": "TokenPolicySet", "setRelayer": "RelayerApproved", "pause": "Paused",
		"unpause": "Unpaused"}[function]
}

// asAsked compares the event of a transaction of the treasury's owner with the signed arguments. A contract at the
// address of the treasury may be another one, or an upgraded one, that takes the same call and does something else.
// Its error is final and names both, because the transaction is on the chain.
//
// Only logs of the treasury itself count, because any contract that the transaction reached may emit an event of the
// same signature. One matching event is enough: the function may emit others.
func asAsked(treasury common.Address, data []byte, sent transaction.Sent) error {
	of := bindings.NewOpenFiTreasury().GetABI()
	m, err := of.MethodById(data)
	if err != nil {
		return fmt.Errorf("signed transaction %s: %w", sent.Hash, err)
	}
	call, err := contracts.DecodeCall(of, data)
	if err != nil {
		return fmt.Errorf("signed transaction %s: %w", sent.Hash, err)
	}
	var logs []*types.Log
	if err := json.Unmarshal(sent.Result, &logs); err != nil {
		return fmt.Errorf("logs of %s: %w", sent.Hash, err)
	}
	var said []string
	for _, l := range logs {
		name, fields, err := contracts.DecodeEvent(of, l)
		if err != nil || l.Address != treasury || name != settings(m.RawName) {
			continue
		}
		plain := map[string]string{}
		for name, v := range fields {
			plain[name] = fmt.Sprint(contracts.Plain(v))
		}
		if has(plain, &call) {
			return nil
		}
		said = append(said, string(journal.JSON(plain)))
	}
	return fmt.Errorf("transaction %s is on the chain, but the treasury does not say what was asked: %s was signed with %s, and its %s events say %s: look at the treasury, and pause it where that is not meant",
		sent.Hash, call.Function, journal.JSON(call.Arguments), settings(m.RawName), said)
}

// has reports whether an event has all arguments of a call.
// Values are compared as decimal, hex and boolean texts of contracts.Plain. Fields that the event has beside the
// arguments, such as the sender, are not compared.
func has(fields map[string]string, call *contracts.Call) bool {
	for _, a := range call.Arguments {
		if v, known := fields[a.Name]; !known || v != a.Value {
			return false
		}
	}
	return true
}
