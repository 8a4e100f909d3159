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
	target, selector, aToken bool // listed; aToken: the target is a token that agents have
	token                    bool // allowed
	tokenCap, tokenWindowCap *big.Int
	tokenWindow              bindings.Erc20WindowsOutput
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
			ask(at, b.PackAllowedTargets(s.Agent, s.Target), &t.target, b.UnpackAllowedTargets),
			ask(at, b.PackAllowedSelectors(s.Agent, s.selector()), &t.selector, b.UnpackAllowedSelectors),
			ask(at, b.PackKnownTokens(s.Target), &t.aToken, b.UnpackKnownTokens))
	}
	return append(out,
		ask(at, b.PackAllowedTokens(s.Agent, s.Token), &t.token, b.UnpackAllowedTokens),
		ask(at, b.PackErc20PerTxCaps(s.Agent, s.Token), &t.tokenCap, b.UnpackErc20PerTxCaps),
		ask(at, b.PackErc20WindowCaps(s.Agent, s.Token), &t.tokenWindowCap, b.UnpackErc20WindowCaps),
		ask(at, b.PackErc20Windows(s.Agent, s.Token), &t.tokenWindow, b.UnpackErc20Windows),
	)
}

// verdict is what a treasury's terms say of a call.
type verdict struct {
	caps, target, selector bool
	reason                 string // the first that stands against it, with figures
}

// judge applies the treasury's rules, in its order, at a block's time.
func (t *terms) judge(s *spending, now uint64) (v verdict) {
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
		v.target, v.selector = t.judgeTarget(s, say), t.judgeSelector(s, say)
		v.caps = t.judgeCaps(s.Value, p.NativePerTxCapWei, p.NativeWindowCapWei, p.NativeWindowSpentWei, p.NativeWindowStart, now, "wei", say)
	} else {
		v.target, v.selector = t.judgeToken(s, say), true
		v.caps = t.judgeCaps(s.Value, t.tokenCap, t.tokenWindowCap, t.tokenWindow.Spent, t.tokenWindow.Start, now, "units of "+s.Token.Hex(), say)
	}
	if len(against) > 0 {
		v.reason = against[0]
	}
	return v
}

func (t *terms) judgeTarget(s *spending, say func(string, ...any)) bool {
	switch {
	case s.Target == t.treasury:
		say("the target is the treasury itself")
	case t.aToken:
		say("the target %s is a token: tokens leave by transfers alone", s.Target)
	case t.policy.RequireTargetAllowlist && !t.target:
		say("the treasury does not allow the agent to call %s", s.Target)
	default:
		return true
	}
	return false
}

func (t *terms) judgeSelector(s *spending, say func(string, ...any)) bool {
	if n := len(s.Data); n > 0 && n < 4 {
		say("data of %d bytes names no function", n)
		return false
	}
	if t.policy.RequireSelectorAllowlist && !t.selector {
		say("the treasury does not allow the agent the function 0x%x", s.selector())
		return false
	}
	return true
}

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

func (t *terms) judgeCaps(amount, perTx, window, spent, start *big.Int, now uint64, unit string, say func(string, ...any)) bool {
	end := new(big.Int).Add(start, t.policy.WindowDurationSeconds)
	if new(big.Int).SetUint64(now).Cmp(end) >= 0 {
		spent = new(big.Int)
	}
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
	t.policy = bindings.AgentPoliciesOutput{NativePerTxCapWei: zero, NativeWindowCapWei: zero, WindowDurationSeconds: zero, NativeWindowStart: zero, NativeWindowSpentWei: zero}
	t.tokenCap, t.tokenWindowCap, t.tokenWindow = zero, zero, bindings.Erc20WindowsOutput{Start: zero, Spent: zero}
}
