package rules

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/x402"
)

// TestPermit checks transactions that a wallet never makes.
func TestPermit(t *testing.T) {
	t.Parallel()
	treasury, identity, reputation, validation := common.HexToAddress("0x01"), common.HexToAddress("0x02"),
		common.HexToAddress("0x03"), common.HexToAddress("0x04")
	payee, token := common.HexToAddress("0x05"), common.HexToAddress("0x06")
	r := Rules{ChainID: big.NewInt(7), Treasury: treasury, Ceilings: DefaultCeilings(7),
		Tokens: []common.Address{token},
		Registries: safety.Registries{
			ChainID: 7, Identity: identity, Reputation: reputation, Validations: []common.Address{validation}}}
	o := transaction.Origin{Agent: "payer", Run: "run_1", Task: "task_1"}
	b := bindings.NewOpenFiTreasury()
	good := b.PackExecuteCall(contractID("payer"), payee, big.NewInt(1), nil, contractID("run_1"), contractID("task_1"),
		"x")
	spend := func(agent, run, task string, target common.Address) []byte {
		return b.PackExecuteCall(contractID(agent), target, big.NewInt(1), nil, contractID(run), contractID(task), "x")
	}
	praise := bindings.NewReputationRegistry().PackGiveFeedback(big.NewInt(1), big.NewInt(1), 0, "", "", "", "",
		[32]byte{})
	asks := bindings.NewValidationRegistry().PackValidationRequest(payee, big.NewInt(1), "", [32]byte{1})
	if _, allowed := r.RegistryWrite(validation, asks); allowed {
		t.Error("agents of runs choose who confirms their work")
	}
	coin := fixtures.NewAuthorizedToken()
	settles := coin.PackTransferWithSplitSignature(payee, payee, big.NewInt(1), big.NewInt(0), big.NewInt(1),
		[32]byte{}, 27,
		[32]byte{}, [32]byte{})
	multicall := func(second common.Address, data []byte) []byte {
		return fixtures.NewMulticall().PackAggregate3([]fixtures.MulticallCall3{
			{Target: identity, AllowFailure: true, CallData: praise}, {Target: second, CallData: data}})
	}
	form := func(to *common.Address, value int64, data []byte) *types.Transaction {
		return types.NewTx(&types.DynamicFeeTx{ChainID: r.ChainID, To: to, Value: big.NewInt(value), Data: data, Gas: 1,
			GasFeeCap: big.NewInt(1), GasTipCap: big.NewInt(1)})
	}
	dear := func(gas uint64, price, tip int64) *types.Transaction {
		return types.NewTx(&types.DynamicFeeTx{ChainID: r.ChainID, To: &treasury, Data: b.PackPause(), Gas: gas,
			GasFeeCap: big.NewInt(price), GasTipCap: big.NewInt(tip)})
	}
	for _, x := range []struct {
		name string
		by   Role
		tx   *types.Transaction
		ok   bool
	}{
		{"call", ByOperator, form(&treasury, 0, good), true},
		{"feedback", ByIdentity, form(&reputation, 0, praise), true},
		{"request for a validation", ByIdentity, form(&validation, 0, asks), true},
		{"request for a validation by the operator", ByOperator, form(&validation, 0, asks), false},
		{"request for a validation elsewhere", ByIdentity, form(&reputation, 0, asks), false},
		{"call by the agent's key", ByIdentity, form(&treasury, 0, good), false},
		{"feedback by the operator", ByOperator, form(&reputation, 0, praise), false},
		{"feedback with value", ByIdentity, form(&reputation, 1, praise), false},
		{"feedback elsewhere", ByIdentity, form(&identity, 0, praise), false},
		{"feedback nowhere", ByIdentity, form(&common.Address{}, 0, praise), false},
		{"call with value", ByOperator, form(&treasury, 1, good), false},
		{"a contract", ByOperator, form(nil, 0, good), false},
		{"coin", ByOperator, form(&treasury, 0, nil), false},
		{"another agent", ByOperator, form(&treasury, 0, spend("other", "run_1", "task_1", payee)), false},
		{"another run", ByOperator, form(&treasury, 0, spend("payer", "run_2", "task_1", payee)), false},
		{"another task", ByOperator, form(&treasury, 0, spend("payer", "run_1", "task_2", payee)), false},
		{"itself", ByOperator, form(&treasury, 0, spend("payer", "run_1", "task_1", treasury)), false},
		{"a registry", ByOperator, form(&treasury, 0, spend("payer", "run_1", "task_1", reputation)), false},
		{"pause", ByOperator, form(&treasury, 0, b.PackPause()), false},
		{"withdraw", ByOperator, form(&treasury, 0, b.PackWithdraw(payee, big.NewInt(1))), false},
		{"more bytes", ByOperator, form(&treasury, 0, append(slices.Clone(good), 0)), false},
		{"fewer bytes", ByOperator, form(&treasury, 0, good[:len(good)-32]), false},
		{"settlement", ByIdentity, form(&token, 0, settles), true},
		{"settlement after a deployment by Multicall3", ByIdentity,
			form(&x402.Multicall3, 0, multicall(token, settles)), true},
		{"settlement by the operator", ByOperator, form(&token, 0, settles), false},
		{"settlement by the owner", ByOwner, form(&token, 0, settles), false},
		{"settlement in a token that is not listed", ByIdentity, form(&payee, 0, settles), false},
		{"settlement on a registry", ByIdentity, form(&identity, 0, settles), false},
		{"transfer of the key's own", ByIdentity, form(&token, 0, coin.PackTransfer(payee, big.NewInt(1))), false},
		{"approval by the key", ByIdentity, form(&token, 0, coin.PackApprove(payee, big.NewInt(1))), false},
		{"approval through Multicall3", ByIdentity,
			form(&x402.Multicall3, 0, multicall(token, coin.PackApprove(payee, big.NewInt(1)))), false},
		{"deployment by the key itself", ByIdentity, form(&payee, 0, multicall(token, settles)), false},
		{"another chain", ByOperator, types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(8), To: &treasury,
			Data: good}),
			false},
		{"an old form", ByOperator, types.NewTx(&types.LegacyTx{To: &treasury, Data: good}), false},
		{"over a fee per gas", ByOperator, dear(1, 100e9+1, 1), false},
		{"over a tip", ByOwner, dear(1, 6e9, 5e9+1), false},
		{"over a fee in all", ByOwner, dear(1e6, 20e9+1, 1), false},
		{"at every ceiling", ByOwner, dear(2e5, 100e9, 5e9), true},
		{"a list", ByOperator,
			types.NewTx(&types.DynamicFeeTx{ChainID: r.ChainID, To: &treasury, Data: good,
				AccessList: types.AccessList{{}}}),
			false},
	} {
		if err := r.allowSignature(x.by, o, x.tx); (err == nil) != x.ok {
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
