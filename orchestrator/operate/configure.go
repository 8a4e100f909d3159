package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/rules"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// maxListed bounds the entries of one change of a policy, because each is a transaction.
// An owner's transactions are sent one after the other, each after the confirmation of the one before.
const maxListed = 32

// defaultWindow is the treasury's DEFAULT_WINDOW_SECONDS.
const defaultWindow = 86400

// ConfigurePolicy changes the treasury's policy of an agent. The treasury's owner signs. It returns
// repute.ErrConflict while another change for the agent is open, because a change keeps the current
// values of fields that it does not name.
//
// The functions that c names are checked before anything is stored, and stored when the act ends (carryOn): names of
// functions that were never allowed would decode calls for nobody. A change of several entries is not atomic:
// transactions that were confirmed before a failure stay on the chain.
func (o *Operator) ConfigurePolicy(ctx context.Context, c PolicyChange, h How) (Act, error) {
	if n := len(c.Calls) + len(c.Relayers) + len(c.Tokens); n > maxListed {
		return Act{}, repute.Invalid("calls, relayers, tokens", fmt.Sprintf("have %d entries", n),
			fmt.Sprintf("at most %d at once", maxListed))
	}
	if act, known, err := o.asked(ctx, kindPolicy, c, h); known || err != nil {
		return act, err
	}
	if err := o.knows(ctx, c.AgentSlug); err != nil {
		return Act{}, err
	}
	steps, err := o.changes(ctx, &c)
	if err != nil {
		return Act{}, err
	}
	if _, err := c.functions(); err != nil {
		return Act{}, err
	}
	return o.perform(ctx, &job{kind: kindPolicy, chain: o.o.ExecutionChain, agent: c.AgentSlug, request: c,
		steps: steps}, h)
}

// maxNamed bounds how many agents an error names.
const maxNamed = 20

// knows refuses a slug without an agent: the policy of a misspelled slug would be usable by an
// agent that registers it later. The policy of a removed agent can be changed. repute.ErrNotFound
// names the known slugs.
// An operator that is not zero shows that the treasury has a policy of the slug, since setPolicy refuses the zero
// address for an active policy.
func (o *Operator) knows(ctx context.Context, slug string) error {
	if err := slugOf("agentSlug", slug); err != nil {
		return err
	}
	if _, err := rundb.Module(ctx, o.db, slug); !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	if _, p, err := o.policyNow(ctx, slug); err != nil || (p.Operator != common.Address{}) {
		return err
	}
	list, err := rundb.Modules(ctx, o.db)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range list[:min(len(list), maxNamed)] {
		names = append(names, m.Slug)
	}
	return &repute.MissingError{What: fmt.Sprintf("agent %q", slug),
		Why:  "is not registered, and the treasury has no policy of it",
		Hint: "one of " + strings.Join(names, ", ") + "; GET /v1/agents lists them"}
}

// changes returns the transactions that change a policy as requested.
func (o *Operator) changes(ctx context.Context, c *PolicyChange) (steps []step, err error) {
	at, err := o.treasury()
	if err != nil {
		return nil, err
	}
	add := func(purpose string, data []byte) {
		steps = append(steps,
			step{Purpose: purpose, Owner: true, Tx: transaction.Tx{ChainID: o.o.ExecutionChain, Target: at, Data: data,
				Purpose: purpose}})
	}
	key := crypto.Keccak256Hash([]byte(c.AgentSlug))
	// The policy comes before its lists: setPolicy with another operator ends all relayers, so that relayers of this
	// change would be lost if they came first.
	if c.setsPolicy() {
		now, err := o.policyBase(ctx, c.AgentSlug)
		if err != nil {
			return nil, err
		}
		if err := c.policy(key, &now, add); err != nil {
			return nil, err
		}
	}
	if err := c.lists(key, add); err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, repute.Invalid("body", "changes nothing", "at least one field of the policy")
	}
	return steps, nil
}

// setsPolicy reports whether the change names operator, caps, window or switch; those that it does
// not name keep their values.
func (c *PolicyChange) setsPolicy() bool {
	return c.Active != nil || c.Operator != "" || c.NativePerTxCapWei != "" || c.NativeWindowCapWei != "" ||
		c.WindowDurationSeconds != nil
}

// policy adds the transaction that sets operator, caps and window.
// now is the confirmed policy (policyBase), whose values stay where c names none. It is not changed.
func (c *PolicyChange) policy(key common.Hash, now *bindings.AgentPoliciesOutput, add func(string, []byte)) error {
	// The copy shares the pointers of the numbers: they are replaced below and never written to.
	next := *now
	var err error
	if c.Operator != "" {
		if next.Operator, err = addressOf("operator", c.Operator); err != nil {
			return err
		}
	}
	for _, cap := range []struct {
		name, text string
		into       **big.Int
	}{{"nativePerTxCapWei", c.NativePerTxCapWei, &next.NativePerTxCapWei},
		{"nativeWindowCapWei", c.NativeWindowCapWei, &next.NativeWindowCapWei}} {
		if cap.text == "" {
			continue
		}
		if *cap.into, err = rules.Amount(cap.name, cap.text); err != nil {
			return err
		}
	}
	if c.WindowDurationSeconds != nil {
		if *c.WindowDurationSeconds == 0 {
			return repute.Invalid("windowDurationSeconds", "is 0", "1 or more; absent leaves it as it is")
		}
		next.WindowDurationSeconds = new(big.Int).SetUint64(*c.WindowDurationSeconds)
	}
	if next.WindowDurationSeconds.Sign() == 0 { // the contract would use its default; the signed value is explicit
		next.WindowDurationSeconds = new(big.Int).SetUint64(defaultWindow)
	}
	if c.Active != nil {
		next.Active = *c.Active
	}
	add("policy of "+c.AgentSlug, bindings.NewOpenFiTreasury().PackSetPolicy(key, next.Active, next.Operator,
		next.NativePerTxCapWei, next.NativeWindowCapWei,
		next.WindowDurationSeconds))
	return nil
}

// lists adds a transaction for each entry.
func (c *PolicyChange) lists(key common.Hash, add func(string, []byte)) error {
	b := bindings.NewOpenFiTreasury()
	for _, e := range c.Calls {
		if err := e.add(key, add); err != nil {
			return err
		}
	}
	for _, e := range c.Relayers {
		a, err := addressOf("relayers.address", e.Address)
		if err != nil {
			return err
		}
		add(verb(e.Allowed)+"relayer "+a.Hex(), b.PackSetRelayer(key, a, e.Allowed))
	}
	for _, e := range c.Tokens {
		if err := e.add(key, add); err != nil {
			return err
		}
	}
	return nil
}

// functions returns the functions that the entries of the allow-list name.
// An entry that removes a pair needs no function, because the stored text stays useful for calls of the past.
func (c *PolicyChange) functions() (out []walletdb.CallFunction, err error) {
	for _, e := range c.Calls {
		if e.Function == "" || !e.Allowed {
			continue
		}
		f, err := contracts.ParseFunction(e.Function)
		if err != nil {
			return nil, repute.Invalid("calls.function", err.Error(),
				"name and arguments, with types and names: swap(uint256 amountIn, address to)")
		}
		if selector := hexutil.Encode(f.Selector[:]); !strings.EqualFold(selector, e.Selector) {
			return nil, repute.Invalid("calls.function",
				fmt.Sprintf("%.200s has the selector %s, not %.40s", f.Signature,
					selector, e.Selector), "the function of the selector")
		}
		out = append(out, walletdb.CallFunction{Target: common.HexToAddress(e.Target), Selector: f.Selector,
			Text: e.Function})
	}
	return out, nil
}

// functionsOf returns the names of the functions that an operator action adds to the allow-list of a
// treasury. It returns none for an action that is no change of a treasury's policy.
func functionsOf(row *walletdb.Act) ([]walletdb.CallFunction, error) {
	if row.Kind != kindPolicy {
		return nil, nil
	}
	var c PolicyChange
	if err := json.Unmarshal(row.Request, &c); err != nil {
		return nil, fmt.Errorf("stored act %s: %w", row.ID, err)
	}
	return c.functions()
}

// add adds the transaction of an entry of the allow-list.
func (e *CallAllowed) add(key common.Hash, add func(string, []byte)) error {
	target, err := addressOf("calls.target", e.Target)
	if err != nil {
		return err
	}
	selector, err := dataOf("calls.selector", e.Selector)
	if err != nil || len(selector) != 4 {
		return repute.Invalid("calls.selector", fmt.Sprintf("%.40q is no selector", e.Selector),
			"0x and eight hex digits; 0x00000000 is a payment without data")
	}
	called := ""
	if e.Function != "" {
		called = fmt.Sprintf(" (%.120s)", e.Function)
	}
	add(fmt.Sprintf("%scall 0x%x%s of %s", verb(e.Allowed), selector, called, target),
		bindings.NewOpenFiTreasury().PackSetCall(key, target, [4]byte(selector), e.Allowed))
	return nil
}

// add adds the transaction of an entry of the token list.
// An absent cap is 0, by which the contract allows no transfer: there is no value for "unlimited".
func (e *TokenAllowed) add(key common.Hash, add func(string, []byte)) error {
	token, err := addressOf("tokens.token", e.Token)
	if err != nil {
		return err
	}
	most, err := rules.Amount("tokens.perTxCap", e.PerTxCap)
	if err != nil {
		return err
	}
	window, err := rules.Amount("tokens.windowCap", e.WindowCap)
	if err != nil {
		return err
	}
	add("token "+token.Hex(), bindings.NewOpenFiTreasury().PackSetToken(key, token, e.Allowed, most, window))
	return nil
}

// verb returns "allow" or "remove" for the purpose of a step.
func verb(allowed bool) string {
	return map[bool]string{true: "allow ", false: "no longer allow "}[allowed]
}
