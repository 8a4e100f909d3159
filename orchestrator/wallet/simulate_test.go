package wallet_test

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/transaction"
	"repute/store/walletdb"
)

// want is what a simulation is to say.
type want struct {
	name       string
	tx         transaction.Tx
	reason     string // a part of it; empty: it would work
	caps, call bool
}

func (w *world) simulate(tx transaction.Tx) transaction.Simulation {
	w.t.Helper()
	a, _ := w.open(w.config())
	tx.ChainID = w.d.Chain().ID
	out, err := a.Simulate(w.t.Context(), origin, tx)
	ok(w.t, err)
	if head := w.d.Head(); out.Block != head.Number || out.BlockHash != head.Hash {
		w.t.Errorf("at block %d %s, the head is %d", out.Block, out.BlockHash, head.Number)
	}
	return out
}

func (c *want) check(t *testing.T, got transaction.Simulation) {
	t.Helper()
	if got.OK != (c.reason == "") || !strings.Contains(got.Reason, c.reason) {
		t.Errorf("%s: ok %v, %q, want %q", c.name, got.OK, got.Reason, c.reason)
	}
	if got.WithinCaps != c.caps || got.CallOK != c.call {
		t.Errorf("%s: %+v", c.name, got)
	}
	if got.OK && (got.Gas < 21000 || got.FeeWei == "0") {
		t.Errorf("%s: gas %d for %s", c.name, got.Gas, got.FeeWei)
	}
}

// TestSimulate has one case for each reason that stands against a transaction.
func TestSimulate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pay, codeless := payeeABI.PackPay(n(7)), common.HexToAddress("0xdead")
	w.owner(treasuryABI.PackSetCall(agentKey, codeless, [4]byte(pay), true))
	for _, c := range []want{
		{"call", transaction.Tx{Target: w.payee, Value: "100", Data: pay}, "", true, true},
		{"coin", transaction.Tx{Target: w.payee, Value: "5"}, "", true, true},
		{"token", transaction.Tx{Target: w.payee, Token: &w.token, Amount: "100"}, "", true, true},
		{"over the cap by one", transaction.Tx{Target: w.payee, Value: "101"}, "101 wei is over the cap of 100", false,
			true},
		{"tokens over the cap by one", transaction.Tx{Target: w.payee, Token: &w.token, Amount: "101"},
			"is over the cap of 100", false, true},
		{"itself", transaction.Tx{Target: w.treasury, Data: treasuryABI.PackPause()}, "the treasury through itself",
			false,
			false},
		{"an allowed token", transaction.Tx{Target: w.token, Data: tokenABI.PackTransfer(w.payee, n(1))}, "is a token",
			true, false},
		{"a pair of another target", transaction.Tx{Target: w.d.Account(strangerAccount).Address, Data: pay},
			"does not allow the agent the function 0xc290d691 of ", true, false},
		{"a pair of another selector", transaction.Tx{Target: w.payee, Data: tokenABI.PackTransfer(w.payee, n(1))},
			"does not allow the agent the function 0xa9059cbb of " + w.payee.Hex(), true, false},
		{"an account that is not listed", transaction.Tx{Target: w.d.Account(strangerAccount).Address, Value: "1"},
			"does not allow the agent to pay", true, false},
		{"the selector of payments", transaction.Tx{Target: w.payee, Data: make([]byte, 36)},
			"function 0x00000000 cannot be called", true, false},
		{"another token", transaction.Tx{Target: w.payee, Token: &w.payee, Amount: "0"},
			"does not allow the agent the token", true, false},
		{"tokens to themselves", transaction.Tx{Target: w.token, Token: &w.token, Amount: "1"}, "cannot be paid", true,
			false},
		{"half a selector", transaction.Tx{Target: w.payee, Data: []byte{1, 2}}, "data of 2 bytes", true, false},
		{"a target that reverts", transaction.Tx{Target: w.payee, Data: payeeABI.PackFail()}, "payee fails", true,
			true},
		{"a target without code", transaction.Tx{Target: codeless, Data: pay}, "AddressEmptyCode", true, true},
		{"no such function", transaction.Tx{Target: w.payee, Data: []byte{1, 2, 3, 4}}, "", true, true},
	} {
		got := w.simulate(c.tx)
		if c.name == "no such function" {
			c.reason = "FailedCall"
		}
		c.check(t, got)
	}
}

// TestSimulateTerms changes the treasury's terms under a call that worked.
func TestSimulateTerms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	operator := w.d.Account(operatorAccount).Address
	pay := transaction.Tx{Target: w.payee, Value: "60", Data: payeeABI.PackPay(n(7))}
	check := func(name, reason string, caps, call bool) {
		t.Helper()
		(&want{name, pay, reason, caps, call}).check(t, w.simulate(pay))
	}
	w.owner(treasuryABI.PackSetPolicy(agentKey, true, operator, n(100), n(150), n(0)))
	w.owner(treasuryABI.PackSetCall(agentKey, w.payee, [4]byte(pay.Data), false))
	check("no longer listed", "does not allow the agent the function 0x", true, false)
	w.owner(treasuryABI.PackSetCall(agentKey, w.payee, [4]byte(pay.Data), true))
	check("listed", "", true, true)

	a, _ := w.open(w.config())
	w.mining()
	for _, id := range []string{"one", "two"} {
		if r := <-sending(t.Context(), a, w.pay(id, "60")); r.err != nil || !r.sent.OK {
			t.Fatalf("%+v", r)
		}
	}
	w.d.SetPeriod(0)
	check("window", "60 wei is over what is left of the window: 30 of 150", false, true)
	_, err := w.d.AdjustTime(t.Context(), 24*time.Hour)
	ok(t, err)
	check("the next window", "", true, true)
	w.owner(treasuryABI.PackPause())
	check("paused", "is paused", true, true)
	w.owner(treasuryABI.PackUnpause())
	w.owner(treasuryABI.PackSetPolicy(agentKey, true, w.d.Account(strangerAccount).Address, n(100), n(150), n(0)))
	check("another operator", "neither the agent's operator", true, true)
	w.owner(treasuryABI.PackSetRelayer(agentKey, operator, true))
	check("as a relayer", "", true, true)
	w.owner(treasuryABI.PackSetPolicy(agentKey, true, w.d.Account(ownerAccount).Address, n(100), n(150), n(0)))
	check("a relayer of the operator before", "neither the agent's operator", true, true)
	w.owner(treasuryABI.PackSetPolicy(agentKey, false, operator, n(100), n(150), n(0)))
	check("inactive", "no active policy", true, true)
}

// TestSimulateNowhere says so where there is no treasury, no registry key and no money.
func TestSimulateNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pay := w.pay("x", "60").Tx
	c := w.config()
	c.Treasury = common.HexToAddress("0xdead")
	a, _ := w.open(c)
	got, err := a.Simulate(t.Context(), origin, pay)
	if err != nil || got.OK || !strings.Contains(got.Reason, "no treasury at") {
		t.Errorf("%+v, %v", got, err)
	}
	key, err := crypto.GenerateKey()
	ok(t, err)
	c = w.config()
	c.Operator.KeyFile = filepath.Join(t.TempDir(), "poor")
	ok(t, os.WriteFile(c.Operator.KeyFile, []byte(hex.EncodeToString(crypto.FromECDSA(key))), 0o600))
	w.owner(treasuryABI.PackSetRelayer(agentKey, crypto.PubkeyToAddress(key.PublicKey), true))
	poor, db := w.open(c)
	if got, err = poor.Simulate(t.Context(), origin, pay); err != nil || got.OK ||
		!strings.Contains(got.Reason, "has 0 wei, gas may cost") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err = poor.Send(t.Context(), w.pay("x", "60")); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("sent without money: %v", err)
	}
	if _, err = walletdb.ReadIntent(t.Context(), db, "x"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("stored: %v", err)
	}
}

// TestRegistryWrites signs with the agent's own key what it writes to registries, and
// nothing else there.
func TestRegistryWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chain := w.d.Chain()
	b := w.d.Batch()
	b.Register(w.d.Account(agentOwner), "https://a.example/agent.json")
	m, err := b.Mine(t.Context())
	ok(t, err)
	agent := n(int64(m.Registered()[0]))
	praise := reputationABI.PackGiveFeedback(agent, n(90), 0, "quality", "", "", "", [32]byte{})
	a, db := w.open(w.config())
	w.mining()
	in := transaction.Intent{ID: "praise", Origin: origin,
		Tx: transaction.Tx{ChainID: chain.ID, Target: chain.Reputation, Data: praise, Purpose: "feedback"}}
	s, err := a.Simulate(t.Context(), origin, in.Tx)
	if err != nil || !s.OK || s.ThroughCall {
		t.Errorf("%+v, %v", s, err)
	}
	in.MaxGasWei = s.FeeWei
	r := <-sending(t.Context(), a, in)
	ok(t, r.err)
	identity := w.d.Account(identityAccount).Address
	all, err := w.d.View().AllFeedback(t.Context(), agent.Uint64())
	if !r.sent.OK || r.sent.From != identity || err != nil || len(all) != 1 || all[0].Client != identity {
		t.Errorf("%+v, %+v, %v", r.sent, all, err)
	}
	in.ID, in.Target, in.Data = "register", chain.Identity, identityABI.PackRegister()
	if r = <-sending(t.Context(), a, in); r.err != nil || !r.sent.OK ||
		!strings.Contains(string(r.sent.Result), strings.ToLower(chain.Identity.Hex())) {
		t.Errorf("%+v", r)
	}
	for name, tx := range map[string]transaction.Tx{
		"with value":    {Target: chain.Reputation, Data: praise, Value: "1"},
		"metadata":      {Target: chain.Identity, Data: identityABI.PackSetMetadata(agent, "x", nil)},
		"approval":      {Target: chain.Identity, Data: identityABI.PackApprove(identity, agent)},
		"no function":   {Target: chain.Reputation},
		"a wrong place": {Target: chain.Identity, Data: praise},
	} {
		tx.ChainID = chain.ID
		if s, err := a.Simulate(t.Context(), origin, tx); err != nil || s.OK ||
			!strings.Contains(s.Reason, "no registry write") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if _, err := a.Send(t.Context(), transaction.Intent{ID: name, Origin: origin, Tx: tx}); err == nil {
			t.Errorf("%s was sent", name)
		}
	}
	other := origin
	other.Agent = "keyless"
	if s, err := a.Simulate(t.Context(), other, in.Tx); err != nil || s.OK ||
		!strings.Contains(s.Reason, `"keyless" has no key`) {
		t.Errorf("%+v, %v", s, err)
	}
	stored, err := walletdb.ReadIntent(t.Context(), db, "praise")
	if err != nil || stored.From != identity || stored.To != chain.Reputation {
		t.Errorf("%+v, %v", stored, err)
	}
}
