package rules

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute/contracts/bindings"
)

// Terms are a treasury's limits of an agent and their usage, at one block.
type Terms struct {
	paused, relayer          bool
	policy                   bindings.AgentPoliciesOutput
	window                   bindings.NativeWindowOutput
	call, aToken             bool // the pair is listed; the target is a token that agents have
	token                    bool // allowed
	tokenCap, tokenWindowCap *big.Int
	tokenWindow              bindings.Erc20WindowOutput
	Code                     bool           // there is a contract at Treasury
	Sender                   common.Address // signer of the call
	Treasury                 common.Address
}

// Question is a view function to call, with the destination of its result.
type Question struct {
	To     common.Address
	Data   []byte
	Answer func([]byte) error
}

// ask returns a question whose result is stored in dst.
func ask[T any](to common.Address, data []byte, dst *T, unpack func([]byte) (T, error)) Question {
	return Question{to, data, func(out []byte) (err error) {
		*dst, err = unpack(out)
		return err
	}}
}

// Questions returns the views that are needed to decide about a call.
func (t *Terms) Questions(s *Spending) []Question {
	b, at := bindings.NewOpenFiTreasury(), t.Treasury
	out := []Question{
		ask(at, b.PackPaused(), &t.paused, b.UnpackPaused),
		ask(at, b.PackAgentPolicies(s.Agent), &t.policy, b.UnpackAgentPolicies),
		ask(at, b.PackApprovedRelayers(s.Agent, t.Sender), &t.relayer, b.UnpackApprovedRelayers),
	}
	if (s.Token == common.Address{}) {
		return append(out,
			ask(at, b.PackNativeWindow(s.Agent), &t.window, b.UnpackNativeWindow),
			ask(at, b.PackAllowedCalls(s.Agent, s.Target, s.selector()), &t.call, b.UnpackAllowedCalls),
			ask(at, b.PackKnownTokens(s.Target), &t.aToken, b.UnpackKnownTokens))
	}
	return append(out,
		ask(at, b.PackAllowedTokens(s.Agent, s.Token), &t.token, b.UnpackAllowedTokens),
		ask(at, b.PackErc20PerTxCaps(s.Agent, s.Token), &t.tokenCap, b.UnpackErc20PerTxCaps),
		ask(at, b.PackErc20WindowCaps(s.Agent, s.Token), &t.tokenWindowCap, b.UnpackErc20WindowCaps),
		ask(at, b.PackErc20Window(s.Agent, s.Token), &t.tokenWindow, b.UnpackErc20Window),
	)
}

// Outcome is the treasury's expected decision about a call.
type Outcome struct {
	Caps   bool   // the amount is within the caps
	Call   bool   // the target and function, or the token, are allowed
	Reason string // the first violated rule, with figures; empty: none
}

// Judge applies the treasury's rules in the order of the contract, so that the reason is the
// contract's. The answers to Questions MUST be stored before.
func (t *Terms) Judge(s *Spending) (v Outcome) {
	var against []string
	say := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }
	p := &t.policy
	switch {
	case !t.Code:
		say("there is no treasury at %s", t.Treasury)
	case t.paused:
		say("the treasury is paused")
	case !p.Active:
		say("the treasury has no active policy for the agent")
	case t.Sender != p.Operator && !t.relayer:
		say("%s is neither the agent's operator (%s) nor an approved relayer", t.Sender, p.Operator)
	}
	if (s.Token == common.Address{}) {
		v.Call = t.judgeCall(s, say)
		v.Caps = judgeCaps(s.Value, p.NativePerTxCapWei, p.NativeWindowCapWei, t.window.Spent, "wei", say)
	} else {
		v.Call = t.judgeToken(s, say)
		v.Caps = judgeCaps(s.Value, t.tokenCap, t.tokenWindowCap, t.tokenWindow.Spent, "units of "+s.Token.Hex(), say)
	}
	if len(against) > 0 {
		v.Reason = against[0]
	}
	return v
}

// judgeCall reports whether the treasury allows the agent to call a target, and reports the reason
// to say.
func (t *Terms) judgeCall(s *Spending, say func(string, ...any)) bool {
	switch n := len(s.Data); {
	case s.Target == t.Treasury:
		say("the target is the treasury itself")
	case n > 0 && n < 4:
		say("data of %d bytes names no function", n)
	case n > 0 && s.selector() == [4]byte{}:
		say("the function 0x00000000 cannot be called: this selector stands for payments without data")
	case t.aToken:
		say("the target %s is a token: tokens leave by transfers alone", s.Target)
	case !t.call && n == 0:
		say("the treasury does not allow the agent to pay %s", s.Target)
	case !t.call:
		say("the treasury does not allow the agent the function 0x%x of %s", s.selector(), s.Target)
	default:
		return true
	}
	return false
}

// judgeToken reports whether the treasury allows the agent to transfer a token, and reports the
// reason to say.
func (t *Terms) judgeToken(s *Spending, say func(string, ...any)) bool {
	switch {
	case !t.token:
		say("the treasury does not allow the agent the token %s", s.Token)
	case s.Target == t.Treasury || s.Target == s.Token || s.Target == common.Address{}:
		say("%s cannot be paid", s.Target)
	default:
		return true
	}
	return false
}

// judgeCaps reports whether an amount is within the cap per transaction and the rest of the window.
func judgeCaps(amount, perTx, window, spent *big.Int, unit string, say func(string, ...any)) bool {
	left := new(big.Int).Sub(window, spent)
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	switch {
	case amount.Cmp(perTx) > 0:
		say("%s %s is over the cap of %s per transaction", amount, unit, perTx)
	case amount.Cmp(left) > 0:
		say("%s %s is over what is left of the window: %s of %s", amount, unit, left, window)
	default:
		return true
	}
	return false
}

// NothingAllowed fills in the terms of a treasury that does not exist, of which Judge allows nothing.
func (t *Terms) NothingAllowed() {
	zero := new(big.Int)
	t.policy = bindings.AgentPoliciesOutput{NativePerTxCapWei: zero, NativeWindowCapWei: zero,
		WindowDurationSeconds: zero}
	t.window, t.tokenWindow = bindings.NativeWindowOutput{Start: zero, Spent: zero},
		bindings.Erc20WindowOutput{Start: zero, Spent: zero}
	t.tokenCap, t.tokenWindowCap = zero, zero
}
