package wallet

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute/contracts/bindings"
)

// terms are what a treasury allows an agent, and what it has spent, at one block.
type terms struct {
	paused, relayer          bool
	policy                   bindings.AgentPoliciesOutput
	window                   bindings.NativeWindowOutput
	call, aToken             bool // the pair is listed; the target is a token that agents have
	token                    bool // allowed
	tokenCap, tokenWindowCap *big.Int
	tokenWindow              bindings.Erc20WindowOutput
	code                     bool // there is a contract
	sender                   common.Address
	treasury                 common.Address
}

// question is a view function to ask and where its answer goes.
type question struct {
	to     common.Address
	data   []byte
	answer func([]byte) error
}

// ask makes a question to a contract whose answer is stored in dst.
func ask[T any](to common.Address, data []byte, dst *T, unpack func([]byte) (T, error)) question {
	return question{to, data, func(out []byte) (err error) {
		*dst, err = unpack(out)
		return err
	}}
}

// questions are what must be known of a treasury to judge a call.
func (t *terms) questions(s *spending) []question {
	b, at := bindings.NewOpenFiTreasury(), t.treasury
	out := []question{
		ask(at, b.PackPaused(), &t.paused, b.UnpackPaused),
		ask(at, b.PackAgentPolicies(s.Agent), &t.policy, b.UnpackAgentPolicies),
		ask(at, b.PackApprovedRelayers(s.Agent, t.sender), &t.relayer, b.UnpackApprovedRelayers),
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

// verdict is what a treasury's terms say of a call.
type verdict struct {
	caps, call bool
	reason     string // the first that stands against it, with figures
}

// judge applies the treasury's rules, in its order.
func (t *terms) judge(s *spending) (v verdict) {
	var against []string
	say := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }
	p := &t.policy
	switch {
	case !t.code:
		say("there is no treasury at %s", t.treasury)
	case t.paused:
		say("the treasury is paused")
	case !p.Active:
		say("the treasury has no active policy for the agent")
	case t.sender != p.Operator && !t.relayer:
		say("%s is neither the agent's operator (%s) nor an approved relayer", t.sender, p.Operator)
	}
	if (s.Token == common.Address{}) {
		v.call = t.judgeCall(s, say)
		v.caps = judgeCaps(s.Value, p.NativePerTxCapWei, p.NativeWindowCapWei, t.window.Spent, "wei", say)
	} else {
		v.call = t.judgeToken(s, say)
		v.caps = judgeCaps(s.Value, t.tokenCap, t.tokenWindowCap, t.tokenWindow.Spent, "units of "+s.Token.Hex(), say)
	}
	if len(against) > 0 {
		v.reason = against[0]
	}
	return v
}

// judgeCall reports whether the treasury lets the agent call a target, and says why not.
func (t *terms) judgeCall(s *spending, say func(string, ...any)) bool {
	switch n := len(s.Data); {
	case s.Target == t.treasury:
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

// judgeToken reports whether the treasury lets the agent transfer a token, and says why not.
func (t *terms) judgeToken(s *spending, say func(string, ...any)) bool {
	switch {
	case !t.token:
		say("the treasury does not allow the agent the token %s", s.Token)
	case s.Target == t.treasury || s.Target == s.Token || s.Target == common.Address{}:
		say("%s cannot be paid", s.Target)
	default:
		return true
	}
	return false
}

// judgeCaps reports whether an amount is within the cap per transaction and what is left of the
// window.
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

// unknown fills in the terms of a treasury that is not there: nothing is allowed.
func (t *terms) unknown() {
	zero := new(big.Int)
	t.policy = bindings.AgentPoliciesOutput{NativePerTxCapWei: zero, NativeWindowCapWei: zero, WindowDurationSeconds: zero}
	t.window, t.tokenWindow = bindings.NativeWindowOutput{Start: zero, Spent: zero},
		bindings.Erc20WindowOutput{Start: zero, Spent: zero}
	t.tokenCap, t.tokenWindowCap = zero, zero
}
