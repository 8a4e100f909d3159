package wallet

import (
	"bytes"
	"context"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"repute/contracts/bindings"
	"repute/orchestrator"
	"repute/orchestrator/wallet/keys"
)

// witness keeps what it was asked to sign.
type witness struct {
	keys.Local
	signed []*types.Transaction
}

func (w *witness) Sign(ctx context.Context, id *big.Int, tx *types.Transaction) (*types.Transaction, error) {
	w.signed = append(w.signed, tx)
	return w.Local.Sign(ctx, id, tx)
}

func newWitness(t testing.TB) *witness {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return &witness{Local: keys.Local{Key: key}}
}

// places are addresses that mean something, and one that does not.
var (
	treasury, identity, reputation, validation = common.HexToAddress("0x01"), common.HexToAddress("0x02"),
		common.HexToAddress("0x03"), common.HexToAddress("0x04")
	places = []common.Address{treasury, identity, reputation, validation,
		common.HexToAddress("0x05"), {}}
)

func testChain(operator, own keys.Signer) *chain {
	id := big.NewInt(7)
	registries := orchestrator.Registries{ChainID: 7, Identity: identity, Reputation: reputation,
		Validations: []common.Address{validation}}
	return &chain{ChainConfig: ChainConfig{ChainID: 7, Treasury: treasury, Registries: registries}, id: id,
		rules: rules{id, treasury, registries, DefaultCeilings(7)}, operator: operator,
		identities: map[string]keys.Signer{"payer": own}}
}

// calldata is anything, often the beginning of a real function.
func calldata() *rapid.Generator[[]byte] {
	var all [][]byte
	for _, m := range treasuryABI.Methods {
		all = append(all, m.ID)
	}
	for _, list := range [][][]byte{identityWrites, reputationWrites, validationWrites} {
		all = append(all, list...)
	}
	for _, m := range bindings.NewIdentityRegistry().GetABI().Methods {
		all = append(all, m.ID)
	}
	slices.SortFunc(all, bytes.Compare)
	return rapid.Custom(func(t *rapid.T) []byte {
		return append(slices.Clone(rapid.SampledFrom(append(all, nil)).Draw(t, "selector")),
			rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "arguments")...)
	})
}

func aTx() *rapid.Generator[orchestrator.Tx] {
	return rapid.Custom(func(t *rapid.T) orchestrator.Tx {
		tx := orchestrator.Tx{ChainID: 7, Target: rapid.SampledFrom(places).Draw(t, "target"),
			Data:    calldata().Draw(t, "data"),
			Value:   rapid.SampledFrom([]string{"", "0", "1", "99999999999999999999", "-1", "x"}).Draw(t, "value"),
			Purpose: rapid.String().Draw(t, "purpose")}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0: // what agents may write, mostly
			i := rapid.IntRange(0, 2).Draw(t, "registry")
			function := rapid.SampledFrom([][][]byte{identityWrites, reputationWrites, validationWrites}[i]).Draw(t, "function")
			tx.Value, tx.Target = rapid.SampledFrom([]string{"", "0", "1"}).Draw(t, "no value"), places[1+i]
			tx.Data = append(slices.Clone(function), rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "its arguments")...)
		case 1:
			token := rapid.SampledFrom(places).Draw(t, "token")
			tx.Token, tx.Amount = &token, "5"
			if rapid.Bool().Draw(t, "clean") {
				tx.Data, tx.Value = nil, ""
			}
		}
		return tx
	})
}

// TestSignsNothingElse asks for transactions of any kind. What is signed by the operator
// is a call of the treasury for this agent, run and task; what is signed by the agent's
// own key is a listed function of a registry; neither carries value.
func TestSignsNothingElse(t *testing.T) {
	t.Parallel()
	operator, own := newWitness(t), newWitness(t)
	c, o := testChain(operator, own), orchestrator.Origin{Agent: "payer", Run: "run_1", Task: "task_1"}
	signed := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		operator.signed, own.signed = nil, nil
		tx := aTx().Draw(t, "tx")
		k, err := c.callOf(o, &tx)
		if err != nil {
			return
		}
		attempt, err := c.rules.sign(context.Background(), k.by, k.signer, k.Origin, types.NewTx(&types.DynamicFeeTx{
			ChainID: c.id, To: &k.to, Value: new(big.Int), Data: k.data, Gas: 1, GasFeeCap: big.NewInt(1),
			GasTipCap: big.NewInt(1)}))
		if err != nil {
			t.Fatalf("made, and then not signed: %v", err)
		}
		raw := new(types.Transaction)
		if err := raw.UnmarshalBinary(attempt.Raw); err != nil || raw.Hash() != attempt.Hash || raw.Value().Sign() != 0 {
			t.Fatalf("%v, value %s", err, raw.Value())
		}
		if len(operator.signed)+len(own.signed) != 1 {
			t.Fatalf("signed %d and %d", len(operator.signed), len(own.signed))
		}
		for range own.signed {
			list := map[common.Address][][]byte{identity: identityWrites, reputation: reputationWrites,
				validation: validationWrites}[*raw.To()]
			if !slices.ContainsFunc(list, func(s []byte) bool { return bytes.Equal(s, raw.Data()[:4]) }) ||
				!bytes.Equal(raw.Data(), tx.Data) {
				t.Fatalf("own key: %s %x", raw.To(), raw.Data())
			}
			signed["own"]++
		}
		for range operator.signed {
			m, err := treasuryABI.MethodById(raw.Data())
			if err != nil || *raw.To() != treasury || m.Name != "executeCall" && m.Name != "transferERC20" {
				t.Fatalf("operator: %s %x", raw.To(), raw.Data())
			}
			a, err := m.Inputs.Unpack(raw.Data()[4:])
			if err != nil || a[0].([32]byte) != idOf("payer") || a[4].([32]byte) != idOf("run_1") ||
				a[5].([32]byte) != idOf("task_1") {
				t.Fatalf("operator: %v, %v", a, err)
			}
			signed[m.Name]++
		}
	})
	t.Logf("signed %v", signed)
	for name, tx := range map[string]orchestrator.Tx{
		"call": {Target: places[4], Value: "1", Data: []byte{1, 2, 3, 4}}, "coin": {Target: places[4], Value: "1"},
		"transfer": {Target: places[4], Token: &places[4], Amount: "5"},
		"feedback": {Target: reputation, Data: reputationWrites[0]},
	} {
		if _, err := c.callOf(o, &tx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPermit gives the last look transactions that callOf never makes.
func TestPermit(t *testing.T) {
	t.Parallel()
	operator, own := newWitness(t), newWitness(t)
	c, o := testChain(operator, own), orchestrator.Origin{Agent: "payer", Run: "run_1", Task: "task_1"}
	b := bindings.NewOpenFiTreasury()
	good := b.PackExecuteCall(idOf("payer"), places[4], big.NewInt(1), nil, idOf("run_1"), idOf("task_1"), "x")
	spend := func(agent, run, task string, target common.Address) []byte {
		return b.PackExecuteCall(idOf(agent), target, big.NewInt(1), nil, idOf(run), idOf(task), "x")
	}
	praise := bindings.NewReputationRegistry().PackGiveFeedback(big.NewInt(1), big.NewInt(1), 0, "", "", "", "",
		[32]byte{})
	form := func(to *common.Address, value int64, data []byte) *types.Transaction {
		return types.NewTx(&types.DynamicFeeTx{ChainID: c.id, To: to, Value: big.NewInt(value), Data: data, Gas: 1,
			GasFeeCap: big.NewInt(1), GasTipCap: big.NewInt(1)})
	}
	dear := func(gas uint64, price, tip int64) *types.Transaction {
		return types.NewTx(&types.DynamicFeeTx{ChainID: c.id, To: &treasury, Data: b.PackPause(), Gas: gas,
			GasFeeCap: big.NewInt(price), GasTipCap: big.NewInt(tip)})
	}
	for _, x := range []struct {
		name string
		by   role
		tx   *types.Transaction
		ok   bool
	}{
		{"call", byOperator, form(&treasury, 0, good), true},
		{"feedback", byIdentity, form(&reputation, 0, praise), true},
		{"call by the agent's key", byIdentity, form(&treasury, 0, good), false},
		{"feedback by the operator", byOperator, form(&reputation, 0, praise), false},
		{"feedback with value", byIdentity, form(&reputation, 1, praise), false},
		{"feedback elsewhere", byIdentity, form(&identity, 0, praise), false},
		{"feedback nowhere", byIdentity, form(&common.Address{}, 0, praise), false},
		{"call with value", byOperator, form(&treasury, 1, good), false},
		{"a contract", byOperator, form(nil, 0, good), false},
		{"coin", byOperator, form(&treasury, 0, nil), false},
		{"another agent", byOperator, form(&treasury, 0, spend("other", "run_1", "task_1", places[4])), false},
		{"another run", byOperator, form(&treasury, 0, spend("payer", "run_2", "task_1", places[4])), false},
		{"another task", byOperator, form(&treasury, 0, spend("payer", "run_1", "task_2", places[4])), false},
		{"itself", byOperator, form(&treasury, 0, spend("payer", "run_1", "task_1", treasury)), false},
		{"a registry", byOperator, form(&treasury, 0, spend("payer", "run_1", "task_1", reputation)), false},
		{"pause", byOperator, form(&treasury, 0, b.PackPause()), false},
		{"withdraw", byOperator, form(&treasury, 0, b.PackWithdraw(places[4], big.NewInt(1))), false},
		{"more bytes", byOperator, form(&treasury, 0, append(slices.Clone(good), 0)), false},
		{"fewer bytes", byOperator, form(&treasury, 0, good[:len(good)-32]), false},
		{"another chain", byOperator, types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(8), To: &treasury, Data: good}),
			false},
		{"an old form", byOperator, types.NewTx(&types.LegacyTx{To: &treasury, Data: good}), false},
		{"over a fee per gas", byOperator, dear(1, 100e9+1, 1), false},
		{"over a tip", byOwner, dear(1, 6e9, 5e9+1), false},
		{"over a fee in all", byOwner, dear(1e6, 20e9+1, 1), false},
		{"at every ceiling", byOwner, dear(2e5, 100e9, 5e9), true},
		{"a list", byOperator,
			types.NewTx(&types.DynamicFeeTx{ChainID: c.id, To: &treasury, Data: good, AccessList: types.AccessList{{}}}), false},
	} {
		if err := c.rules.permit(x.by, o, x.tx); (err == nil) != x.ok {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if n := len(identityWrites); n != 5 { // register has three forms
		t.Errorf("%d functions of the identity registry", n)
	}
	if len(reputationWrites) != 2 || len(validationWrites) != 1 || len(treasuryFunctions) != 2 {
		t.Error("a function is missing")
	}
}

// TestFees raises fees by an eighth at least and keeps them within a limit.
func TestFees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, 1<<50)
		f := fees{big.NewInt(amount.Draw(t, "limit")), big.NewInt(amount.Draw(t, "tip"))}
		now := fees{big.NewInt(amount.Draw(t, "now")), big.NewInt(amount.Draw(t, "now's tip"))}
		up := f.bumped(now)
		if 8*up.limit.Int64() < 9*f.limit.Int64() || up.limit.Cmp(f.limit) <= 0 || 8*up.tip.Int64() < 9*f.tip.Int64() ||
			up.limit.Cmp(now.limit) < 0 {
			t.Fatalf("%v after %v, now %v", up, f, now)
		}
		gas, most := rapid.Uint64Range(1, 1<<24).Draw(t, "gas"), big.NewInt(amount.Draw(t, "most"))
		if in := f.within(gas, most); cost(gas, in.limit).Cmp(most) > 0 || in.tip.Cmp(in.limit) > 0 &&
			in.limit.Cmp(f.limit) < 0 {
			t.Fatalf("%v for %d gas, at most %s", in, gas, most)
		}
	})
}
