package wallet

import (
	"bytes"
	"context"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"repute/contracts/bindings"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet/keys"
	"repute/orchestrator/wallet/rules"
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
	registries := safety.Registries{ChainID: 7, Identity: identity, Reputation: reputation,
		Validations: []common.Address{validation}}
	return &chain{ChainConfig: ChainConfig{ChainID: 7, Treasury: treasury, Registries: registries}, id: id,
		rules: rules.Rules{ChainID: id, Treasury: treasury, Registries: registries,
			Ceilings: rules.DefaultCeilings(7)},
		operator:   operator,
		identities: map[string]keys.Signer{"payer": own}}
}

// writes are the functions of the registries that agents sign, by the place of the registry.
var writes = [][][]byte{
	functionsOf(bindings.NewIdentityRegistry().GetABI(), "register", "setAgentURI", "setAgentWallet"),
	functionsOf(bindings.NewReputationRegistry().GetABI(), "giveFeedback", "appendResponse"),
	functionsOf(bindings.NewValidationRegistry().GetABI(), "validationResponse"),
}

// functionsOf lists the functions of these names, overloads included.
func functionsOf(of abi.ABI, names ...string) (out [][]byte) {
	for _, m := range of.Methods {
		if slices.Contains(names, m.RawName) {
			out = append(out, m.ID)
		}
	}
	return out
}

// hashOf is how the treasury names agents, runs and tasks.
func hashOf(text string) common.Hash { return crypto.Keccak256Hash([]byte(text)) }

// calldata is anything, often the beginning of a real function.
func calldata() *rapid.Generator[[]byte] {
	var all [][]byte
	for _, m := range bindings.NewOpenFiTreasury().GetABI().Methods {
		all = append(all, m.ID)
	}
	for _, list := range writes {
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

func aTx() *rapid.Generator[transaction.Tx] {
	return rapid.Custom(func(t *rapid.T) transaction.Tx {
		tx := transaction.Tx{ChainID: 7, Target: rapid.SampledFrom(places).Draw(t, "target"),
			Data:    calldata().Draw(t, "data"),
			Value:   rapid.SampledFrom([]string{"", "0", "1", "99999999999999999999", "-1", "x"}).Draw(t, "value"),
			Purpose: rapid.String().Draw(t, "purpose")}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0: // what agents may write, mostly
			i := rapid.IntRange(0, 2).Draw(t, "registry")
			function := rapid.SampledFrom(writes[i]).Draw(t, "function")
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
	c, o := testChain(operator, own), transaction.Origin{Agent: "payer", Run: "run_1", Task: "task_1"}
	signed := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		operator.signed, own.signed = nil, nil
		tx := aTx().Draw(t, "tx")
		k, err := c.callOf(o, &tx)
		if err != nil {
			return
		}
		attempt, err := c.rules.Sign(context.Background(), k.by, k.signer, k.Origin, types.NewTx(&types.DynamicFeeTx{
			ChainID: c.id, To: &k.to, Value: new(big.Int), Data: k.data, Gas: 1, GasFeeCap: big.NewInt(1),
			GasTipCap: big.NewInt(1)}))
		if err != nil {
			t.Fatalf("made, and then not signed: %v", err)
		}
		raw := new(types.Transaction)
		if err := raw.UnmarshalBinary(attempt.Raw); err != nil || raw.Hash() != attempt.Hash ||
			raw.Value().Sign() != 0 {
			t.Fatalf("%v, value %s", err, raw.Value())
		}
		if len(operator.signed)+len(own.signed) != 1 {
			t.Fatalf("signed %d and %d", len(operator.signed), len(own.signed))
		}
		for range own.signed {
			list := map[common.Address][][]byte{identity: writes[0], reputation: writes[1],
				validation: writes[2]}[*raw.To()]
			if !slices.ContainsFunc(list, func(s []byte) bool { return bytes.Equal(s, raw.Data()[:4]) }) ||
				!bytes.Equal(raw.Data(), tx.Data) {
				t.Fatalf("own key: %s %x", raw.To(), raw.Data())
			}
			signed["own"]++
		}
		for range operator.signed {
			of := bindings.NewOpenFiTreasury().GetABI()
			m, err := of.MethodById(raw.Data())
			if err != nil || *raw.To() != treasury || m.Name != "executeCall" && m.Name != "transferERC20" {
				t.Fatalf("operator: %s %x", raw.To(), raw.Data())
			}
			a, err := m.Inputs.Unpack(raw.Data()[4:])
			if err != nil || a[0].([32]byte) != hashOf("payer") || a[4].([32]byte) != hashOf("run_1") ||
				a[5].([32]byte) != hashOf("task_1") {
				t.Fatalf("operator: %v, %v", a, err)
			}
			signed[m.Name]++
		}
	})
	t.Logf("signed %v", signed)
	for name, tx := range map[string]transaction.Tx{
		"call": {Target: places[4], Value: "1", Data: []byte{1, 2, 3, 4}}, "coin": {Target: places[4], Value: "1"},
		"transfer": {Target: places[4], Token: &places[4], Amount: "5"},
		"feedback": {Target: reputation, Data: writes[1][0]},
	} {
		if _, err := c.callOf(o, &tx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
