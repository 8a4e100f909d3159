package operate_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings/fixtures"
	"repute/orchestrator/operate"
)

// Rules see what a transaction of the operator tells its contract, by argument.
func TestRulesSeeArguments(t *testing.T) {
	w := newWorld(t)
	rules := `version: "1"
rules:
  - {id: cap, when: 'call.function.startsWith("setPolicy(") && gt(call.args.nativePerTxCapWei, "60")', effect: deny, reason: caps end at 60}
  - {id: payee, when: 'call.function.startsWith("transfer(") && call.args.to == "` + somebody.Hex() + `"', effect: deny, reason: not to them}
`
	o := w.operator(rules)
	if act, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "61"},
		by("")); err == nil || !strings.Contains(err.Error(), "caps end at 60") || act.Status != operate.Refused {
		t.Errorf("a cap of 61: %+v, %v", act, err)
	}
	if act, err := o.ConfigurePolicy(t.Context(), operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "60"},
		by("")); err != nil || act.Status != operate.Confirmed {
		t.Errorf("a cap of 60: %+v, %v", act, err)
	}
	data := hexutil.Encode(fixtures.NewTestToken().PackTransfer(somebody, n(1)))
	if act, err := o.ExecuteCall(t.Context(), operate.TreasuryCall{AgentSlug: "payer", Target: w.token.Hex(),
		Data: data}, by("")); err == nil || !strings.Contains(err.Error(), "not to them") {
		t.Errorf("a transfer to them: %+v, %v", act, err)
	}
}

// The entry of an allow-list names the function of its selector: people who approve, and rules, see the arguments of a
// call that nothing else knows, with the names inside of tuples.
func TestAllowListNamesFunctions(t *testing.T) {
	w := newWorld(t)
	const text = "settle((address payee, uint96 share)[] parts, bytes32 memo)"
	f, err := contracts.ParseFunction(text)
	ok(t, err)
	of, err := abi.JSON(strings.NewReader(`[{"type":"function","name":"settle","inputs":[{"name":"parts","type":"tuple[]","components":[{"name":"payee","type":"address"},{"name":"share","type":"uint96"}]},{"name":"memo","type":"bytes32"}]}]`))
	ok(t, err)
	type part struct {
		Payee common.Address
		Share *big.Int
	}
	data, err := of.Pack("settle", []part{{somebody, n(7)}}, [32]byte{1})
	ok(t, err)
	o := w.operator(open +
		"rules:\n  - {id: memo, when: 'call.function.startsWith(\"settle(\") && call.args.parts[0].share == \"7\"', effect: require_approval, reason: shares of 7 are looked at}\n")
	call := operate.TreasuryCall{AgentSlug: "payer", Target: somebody.Hex(), Data: hexutil.Encode(data)}
	shown := func() contracts.Call {
		act, err := o.ExecuteCall(t.Context(), call, operate.How{By: "ops", DryRun: true})
		ok(t, err)
		return act.Transactions[0].Calls[0]
	}
	pair := func(function string, selector []byte) operate.PolicyChange {
		return operate.PolicyChange{AgentSlug: "payer",
			Calls: []operate.CallAllowed{{Target: somebody.Hex(), Selector: hexutil.Encode(selector), Allowed: true,
				Function: function}}}
	}
	for function, says := range map[string]string{"settle(uint256 n)": "not " + hexutil.Encode(f.Selector[:]),
		"settle(": "cannot be read", "function " + text: "cannot be read"} {
		if _, err := o.ConfigurePolicy(t.Context(), pair(function, f.Selector[:]), by("")); !errors.Is(err,
			repute.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", function, err)
		}
	}
	if _, err := o.ConfigurePolicy(t.Context(), pair(text, make([]byte, 4)), by("")); !errors.Is(err,
		repute.ErrInvalid) {
		t.Errorf("a payment without data with a function: %v", err)
	}
	dry, err := o.ConfigurePolicy(t.Context(), pair(text, f.Selector[:]), operate.How{By: "ops", DryRun: true})
	if ok(t, err); !strings.Contains(dry.Transactions[0].Purpose, text) {
		t.Errorf("the owner signs for %q", dry.Transactions[0].Purpose)
	}
	if c := shown(); c.Undecoded == "" {
		t.Errorf("a dry run has named the function: %+v", c)
	}
	act, err := o.ConfigurePolicy(t.Context(), pair(text, f.Selector[:]), by(""))
	if err != nil || act.Status != operate.Confirmed {
		t.Fatalf("%+v, %v", act, err)
	}
	c := shown()
	if c.Source != contracts.SourceListed || len(c.Arguments) != 4 || c.Arguments[1].Name != "parts[0].payee" ||
		c.Arguments[1].Value != somebody.Hex() || c.Arguments[2].Value != "7" {
		t.Errorf("shown as %+v", c)
	}
	if act, err := o.ExecuteCall(t.Context(), call, by("")); err == nil ||
		!strings.Contains(err.Error(), "shares of 7") {
		t.Errorf("by a rule about a member: %+v, %v", act, err)
	}
}
