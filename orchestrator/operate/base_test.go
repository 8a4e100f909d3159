package operate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/orchestrator/operate"
)

// attackers is an endpoint that shows another operator in the treasury's policies.
func (w *world) attackers() string {
	operator, attacker := strings.ToLower(w.d.Account(operatorAccount).Address.Hex()[2:]),
		strings.ToLower(somebody.Hex()[2:])
	return w.liar(func(method string, answer []byte) []byte {
		if method != "eth_call" {
			return answer
		}
		return bytes.ReplaceAll(answer, []byte(operator), []byte(attacker))
	})
}

// withRPC is an operator whose wallet asks other endpoints.
func (w *world) withRPC(urls ...string) *operate.Operator {
	c := w.config()
	c.RPC, c.Patience = urls, 50*time.Millisecond
	known := w.w
	w.w = w.open(c)
	defer func() { w.w = known }()
	return w.with(open, operate.Options{Wait: 20 * time.Second})
}

// One lying endpoint among three, or alone against the index, cannot have the owner sign a
// policy of its own while a cap is lowered.
func TestLiarsPolicyIsNotSigned(t *testing.T) {
	w := newWorld(t)
	plain := func(_ string, answer []byte) []byte { return answer }
	lower := operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "50"}
	for place := range 3 {
		urls := []string{w.liar(plain), w.d.RPCURL()}
		urls = append(urls[:place:place], append([]string{w.attackers()}, urls[place:]...)...)
		act, err := w.withRPC(urls...).ConfigurePolicy(t.Context(), lower, by(""))
		if !errors.Is(err, repute.ErrUnavailable) || !strings.Contains(err.Error(), "endpoints disagree") {
			t.Errorf("liar at %d of three: %+v, %v", place, act, err)
		}
	}
	act, err := w.withRPC(w.attackers()).ConfigurePolicy(t.Context(), lower, by(""))
	if err == nil || !strings.Contains(err.Error(),
		"operator is "+somebody.Hex()+" on the chain and "+w.d.Account(operatorAccount).Address.Hex()+" in the index") {
		t.Errorf("the liar alone: %+v, %v", act, err)
	}
	if p, err := w.operator(open).TreasuryPolicy(t.Context(), "payer"); err != nil ||
		p.Operator != w.d.Account(operatorAccount).Address.Hex() || p.NativePerTxCapWei != "100" {
		t.Errorf("the policy is %+v, %v", p, err)
	}
	if act, err = w.withRPC(w.liar(plain), w.d.RPCURL()).ConfigurePolicy(t.Context(), lower, by("")); err != nil ||
		act.Status != operate.Confirmed {
		t.Errorf("two honest ones: %+v, %v", act, err)
	}
}

// Without an index of its events nothing is made of what a treasury is said to have: it is
// there, with a policy that its owner may change.
func TestNoBaseWithoutIndex(t *testing.T) {
	w := newWorld(t)
	owner, b, abi := w.d.Account(ownerAccount), w.d.Batch(), bindings.NewOpenFiTreasury()
	nonce, err := w.d.Client().PendingNonceAt(t.Context(), owner.Address)
	ok(t, err)
	second := crypto.CreateAddress(owner.Address, nonce)
	b.Send(owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin),
		abi.PackConstructor(owner.Address)...))
	b.Send(owner, &second, abi.PackSetPolicy(crypto.Keccak256Hash([]byte("payer")), true,
		w.d.Account(operatorAccount).Address, n(100), n(250), n(0)))
	_, err = b.Mine(t.Context())
	ok(t, err)
	c := w.config()
	c.Treasury = second
	w.w = w.open(c)
	lower, o := operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "50"}, w.operator(open)
	if p, err := o.TreasuryPolicy(t.Context(), "payer"); err != nil || p.NativePerTxCapWei != "100" {
		t.Fatalf("the second treasury's policy is %+v, %v", p, err)
	}
	act, err := o.ConfigurePolicy(t.Context(), lower, by(""))
	if !errors.Is(err, repute.ErrUnavailable) || !strings.Contains(err.Error(), "not indexed that far") {
		t.Errorf("without a follower: %+v, %v", act, err)
	}
	w.followOf(second)
	if act, err := o.ConfigurePolicy(t.Context(), lower, by("")); err != nil || act.Status != operate.Confirmed {
		t.Errorf("with a follower: %+v, %v", act, err)
	}
}

// What is signed is shown by its arguments before, and compared with the treasury's event
// after it is mined: where they differ the act has failed, whatever the receipt says.
func TestPolicyIsWhatWasAsked(t *testing.T) {
	w := newWorld(t)
	lower := operate.PolicyChange{AgentSlug: "payer", NativePerTxCapWei: "50"}
	dry, err := w.operator(open).ConfigurePolicy(t.Context(), lower, operate.How{By: "ops", DryRun: true})
	ok(t, err)
	shown, err := json.Marshal(dry.Transactions[0].Calls)
	ok(t, err)
	for _, part := range []string{`"setPolicy(`, `"name":"nativePerTxCapWei","type":"uint256","value":"50"`,
		fmt.Sprintf(`"name":"operator","type":"address","value":%q`, w.d.Account(operatorAccount).Address.Hex())} {
		if !strings.Contains(string(shown), part) {
			t.Errorf("the dry run lacks %s: %s", part, shown)
		}
	}
	word := func(v string) []byte { return []byte(strings.Repeat("0", 64-len(v)) + v) }
	o := w.withRPC(w.liar(func(method string, answer []byte) []byte {
		if method != "eth_getTransactionReceipt" {
			return answer
		}
		return bytes.ReplaceAll(answer, word("32"), word("33")) // 50 and 51
	}))
	act, err := o.ConfigurePolicy(t.Context(), lower, by("lower"))
	if err != nil || act.Status != operate.Failed || !strings.Contains(act.Error, "does not say what was asked") ||
		!strings.Contains(act.Error, `"nativePerTxCapWei":"51"`) {
		t.Errorf("set otherwise: %+v, %v", act, err)
	}
	known, err := w.operator(open).Act(t.Context(), act.ID)
	if err != nil || len(known.Transactions) != 1 || len(known.Transactions[0].Calls) != 1 ||
		len(known.Transactions[0].Calls[0].Arguments) < 6 {
		t.Errorf("recorded %+v, %v", known, err)
	}
}
