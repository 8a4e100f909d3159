package evmtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
)

var (
	factoryABI = bindings.NewOpenFiTreasuryFactory()
	tokenABI   = fixtures.NewTestToken()
	payeeABI   = fixtures.NewPayee()
)

// Ids of an agent, a run and a task.
var (
	agentKey = crypto.Keccak256Hash([]byte("payer"))
	otherKey = crypto.Keccak256Hash([]byte("other"))
	runID    = crypto.Keccak256Hash([]byte("run_1"))
	taskID   = crypto.Keccak256Hash([]byte("task_1"))
)

const day = 24 * time.Hour

// vault is a treasury with 1,000 wei and 1,000 units of a token. The client operates
// agentKey with caps of 100 a transaction and 250 a day, and may pay payee and stranger.
type vault struct {
	*world
	at, token, payee common.Address
}

func newVault(t *testing.T) *vault {
	w := &world{chain: &shared, t: t}
	v := &vault{world: w, at: w.deploy(bindings.OpenFiTreasuryMetaData.Bin, treasuryABI.PackConstructor(owner.addr)),
		token: w.deploy(fixtures.TestTokenMetaData.Bin, nil), payee: w.deploy(fixtures.PayeeMetaData.Bin, nil)}
	w.fund(v.at, 1000)
	w.send(admin, v.token, tokenABI.PackMint(v.at, n(1000)))
	v.policy(agentKey, client.addr, 100, 250)
	v.allow(agentKey, v.payee, nil)
	v.allow(agentKey, v.payee, payeeABI.PackPay(n(0)))
	v.allow(agentKey, stranger.addr, nil)
	v.send(owner, v.at, treasuryABI.PackSetToken(agentKey, v.token, true, n(100), n(250)))
	return v
}

// fund sends native coin.
func (w *world) fund(to common.Address, wei int64) {
	w.t.Helper()
	w.mine(admin, &types.DynamicFeeTx{To: &to, Value: n(wei), Gas: 100_000, Nonce: w.nonce(admin), GasFeeCap: n(5e10),
		GasTipCap: n(1e9)})
}

func (v *vault) policy(key common.Hash, operator common.Address, perTx, window int64) {
	v.t.Helper()
	v.send(owner, v.at, treasuryABI.PackSetPolicy(key, true, operator, n(perTx), n(window), n(0)))
}

// allow puts a target with the selector of a call's data on an agent's list.
func (v *vault) allow(key common.Hash, target common.Address, data []byte) {
	v.t.Helper()
	var selector [4]byte
	copy(selector[:], data)
	v.send(owner, v.at, treasuryABI.PackSetCall(key, target, selector, true))
}

func (w *world) pass(d time.Duration) {
	w.t.Helper()
	err := w.backend.AdjustTime(d)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = w.backend.AdjustTime(d) {
		time.Sleep(10 * time.Millisecond) // the node's pool does not know yet that its transactions are mined
	}
	w.check(err)
}

func (w *world) balance(of common.Address) int64 {
	w.t.Helper()
	b, err := w.client.BalanceAt(w.t.Context(), of, nil)
	w.check(err)
	return b.Int64()
}

func (v *vault) tokens(of common.Address) int64 {
	v.t.Helper()
	return get(v.world, v.token, tokenABI.PackBalanceOf(of), tokenABI.UnpackBalanceOf).Int64()
}

func call(target common.Address, value int64, data []byte) []byte {
	return treasuryABI.PackExecuteCall(agentKey, target, n(value), data, runID, taskID, "test")
}

func (v *vault) pay(to common.Address, amount int64) []byte {
	return treasuryABI.PackTransferERC20(agentKey, v.token, to, n(amount), runID, taskID, "test")
}

func (v *vault) nativeLeft() int64 {
	v.t.Helper()
	return get(v.world, v.at, treasuryABI.PackNativeLeft(agentKey), treasuryABI.UnpackNativeLeft).Int64()
}

func TestTreasuryCalls(t *testing.T) {
	v := newVault(t)
	r := v.send(client, v.at, call(v.payee, 60, payeeABI.PackPay(n(7))))
	e, err := treasuryABI.UnpackNativeExecutedEvent(r.Logs[0])
	v.check(err)
	if e.AgentKey != agentKey || e.Operator != client.addr || e.Caller != client.addr || e.Target != v.payee ||
		e.Value.Int64() != 60 ||
		[4]byte(e.Selector[:]) != [4]byte(payeeABI.PackPay(n(7))[:4]) || e.RunId != runID || e.TaskId != taskID ||
		e.Purpose != "test" {
		t.Errorf("event %+v", e)
	}
	v.send(client, v.at, call(stranger.addr, 100, nil))
	if got := v.balance(v.at); got != 840 {
		t.Errorf("%d wei left, want 840", got)
	}
	if got := v.nativeLeft(); got != 90 {
		t.Errorf("%d wei may still move, want 90", got)
	}
	v.allow(agentKey, v.payee, payeeABI.PackFail())
	v.wantRevert("payee fails", client, v.at, call(v.payee, 0, payeeABI.PackFail()))
}

func TestTreasuryTransfers(t *testing.T) {
	v := newVault(t)
	r := v.send(client, v.at, v.pay(stranger.addr, 70))
	e, err := treasuryABI.UnpackERC20TransferredEvent(r.Logs[0])
	v.check(err)
	if e.AgentKey != agentKey || e.Operator != client.addr || e.Caller != client.addr || e.Token != v.token ||
		e.To != stranger.addr || e.Amount.Int64() != 70 ||
		e.RunId != runID || e.TaskId != taskID || e.Purpose != "test" {
		t.Errorf("event %+v", e)
	}
	if got := v.tokens(stranger.addr); got != 70 {
		t.Errorf("%d units arrived, want 70", got)
	}
	if got := get(v.world, v.at, treasuryABI.PackErc20Left(agentKey, v.token),
		treasuryABI.UnpackErc20Left).Int64(); got != 100 {
		t.Errorf("%d units may still move, want 100", got)
	}
}

// TestTreasuryRefuses has one case for each rule that an agent can break.
func TestTreasuryRefuses(t *testing.T) {
	v := newVault(t)
	unlisted := v.deploy(fixtures.TestTokenMetaData.Bin, nil)
	nobody := common.HexToAddress("0x00000000000000000000000000000000000bad00")
	v.allow(agentKey, nobody, payeeABI.PackPay(n(0)))
	of := func(key common.Hash) []byte {
		return treasuryABI.PackExecuteCall(key, v.payee, n(1), nil, runID, taskID, "")
	}
	token := func(token, to common.Address, amount int64) []byte {
		return treasuryABI.PackTransferERC20(agentKey, token, to, n(amount), runID, taskID, "")
	}
	for _, c := range []struct {
		want string
		from party
		data []byte
	}{
		{"NotOperator(?," + stranger.addr.Hex() + ")", stranger, of(agentKey)},
		{"NotOperator(?," + owner.addr.Hex() + ")", owner, of(agentKey)},
		{"Inactive(?)", client, of(otherKey)},
		{"OverTransactionCap(101,100)", client, call(v.payee, 101, nil)},
		{"BadTarget(" + v.at.Hex() + ")", client, call(v.at, 1, nil)},
		{"BadTarget(" + v.at.Hex() + ")", client, call(v.at, 0, treasuryABI.PackPause())},
		{"BadTarget(0x0000000000000000000000000000000000000000)", client, call(common.Address{}, 1, nil)},
		{"BadData(3)", client, call(v.payee, 1, []byte{1, 2, 3})},
		{"AddressEmptyCode(" + nobody.Hex() + ")", client, call(nobody, 1, payeeABI.PackPay(n(1)))},
		{"TokenCall(" + v.token.Hex() + ",?)", client, call(v.token, 0, tokenABI.PackTransfer(client.addr, n(900)))},
		{"TokenCall(" + v.token.Hex() + ",?)", client, call(v.token, 0, tokenABI.PackName())},
		{"TokenCall(" + v.token.Hex() + ",?)", client, call(v.token, 0, nil)},
		{"BadData(4)", client, call(v.payee, 1, make([]byte, 4))},
		{"BadData(36)", client, call(v.payee, 1, make([]byte, 36))},
		{"CallNotAllowed(?," + unlisted.Hex() + ",?)", client,
			call(unlisted, 0, tokenABI.PackApprove(client.addr, n(900)))},
		{"CallNotAllowed(?," + unlisted.Hex() + ",?)", client, call(unlisted, 0, nil)},
		{"CallNotAllowed(?," + v.payee.Hex() + ",?)", client, call(v.payee, 0, payeeABI.PackFail())},
		{"CallNotAllowed(?," + wallet.addr.Hex() + ",?)", client, call(wallet.addr, 1, nil)},
		{"TokenNotAllowed(?," + unlisted.Hex() + ")", client, token(unlisted, client.addr, 1)},
		{"OverTransactionCap(101,100)", client, token(v.token, client.addr, 101)},
		{"BadRecipient(" + v.at.Hex() + ")", client, token(v.token, v.at, 1)},
		{"BadRecipient(" + v.token.Hex() + ")", client, token(v.token, v.token, 1)},
		{"BadRecipient(0x0000000000000000000000000000000000000000)", client, token(v.token, common.Address{}, 1)},
	} {
		v.wantRevert(c.want, c.from, v.at, c.data)
	}
}

// TestTreasuryPairs takes a target with one selector, and neither with another.
func TestTreasuryPairs(t *testing.T) {
	v := newVault(t)
	pay, other := payeeABI.PackPay(n(1)), v.deploy(fixtures.PayeeMetaData.Bin, nil)
	r := v.send(owner, v.at, treasuryABI.PackSetCall(agentKey, other, [4]byte(payeeABI.PackFail()), true))
	e, err := treasuryABI.UnpackCallAllowedEvent(r.Logs[0])
	v.check(err)
	if e.AgentKey != agentKey || e.Target != other || [4]byte(e.Selector[:4]) != [4]byte(payeeABI.PackFail()) ||
		!e.Allowed {
		t.Errorf("event %+v", e)
	}
	// the selector is another target's
	v.wantRevert("CallNotAllowed(?,"+other.Hex()+",?)", client, v.at, call(other, 1, pay))
	v.wantRevert("CallNotAllowed(?,"+other.Hex()+",?)", client, v.at, call(other, 1, nil))
	v.allow(agentKey, other, nil)
	v.send(client, v.at, call(other, 1, nil))
	v.wantRevert("CallNotAllowed(?,"+other.Hex()+",?)", client, v.at, call(other, 1, pay)) // payments alone
	v.send(owner, v.at, treasuryABI.PackSetCall(agentKey, other, [4]byte{}, false))
	v.wantRevert("CallNotAllowed(?,"+other.Hex()+",?)", client, v.at, call(other, 1, nil))
	v.policy(otherKey, wallet.addr, 100, 100)
	data := treasuryABI.PackExecuteCall(otherKey, v.payee, n(1), pay, runID, taskID, "")
	v.wantRevert("CallNotAllowed(?,"+v.payee.Hex()+",?)", wallet, v.at, data) // the pair is another agent's
	for _, target := range []common.Address{{}, v.at} {
		v.wantRevert("BadTarget("+target.Hex()+")", owner, v.at,
			treasuryABI.PackSetCall(agentKey, target, [4]byte{1}, true))
	}
}

// TestTreasuryToken keeps a token under its caps that was allowed once, or to another.
func TestTreasuryToken(t *testing.T) {
	v := newVault(t)
	v.send(owner, v.at, treasuryABI.PackSetToken(agentKey, v.token, false, n(0), n(0)))
	v.wantRevert("TokenNotAllowed(?,"+v.token.Hex()+")", client, v.at, v.pay(client.addr, 1))
	v.wantRevert("TokenCall("+v.token.Hex()+",?)", client, v.at, call(v.token, 0, tokenABI.PackName()))
	v.policy(otherKey, stranger.addr, 100, 100)
	data := treasuryABI.PackExecuteCall(otherKey, v.token, n(0), tokenABI.PackName(), runID, taskID, "")
	v.wantRevert("TokenCall("+v.token.Hex()+",?)", stranger, v.at, data)
	v.wantRevert("TokenCall("+v.token.Hex()+",?)", owner, v.at,
		treasuryABI.PackSetCall(otherKey, v.token, [4]byte(tokenABI.PackName()), true))
}

func TestTreasuryPause(t *testing.T) {
	v := newVault(t)
	v.send(owner, v.at, treasuryABI.PackPause())
	v.wantRevert("EnforcedPause()", client, v.at, call(v.payee, 1, nil))
	v.wantRevert("EnforcedPause()", client, v.at, v.pay(client.addr, 1))
	if got := v.nativeLeft(); got != 0 {
		t.Errorf("%d wei may move while paused", got)
	}
	v.send(owner, v.at, treasuryABI.PackWithdraw(owner.addr, n(400)))
	v.send(owner, v.at, treasuryABI.PackUnpause())
	v.send(client, v.at, call(v.payee, 1, nil))
}

func TestTreasuryRelayer(t *testing.T) {
	v := newVault(t)
	v.policy(otherKey, wallet.addr, 100, 100)
	v.send(owner, v.at, treasuryABI.PackSetRelayer(agentKey, stranger.addr, true))
	r := v.send(stranger, v.at, call(v.payee, 5, nil))
	if e, err := treasuryABI.UnpackNativeExecutedEvent(r.Logs[0]); err != nil || e.Operator != client.addr ||
		e.Caller != stranger.addr {
		t.Errorf("event %+v, error %v: want the policy's operator and the relayer", e, err)
	}
	r = v.send(stranger, v.at, v.pay(wallet.addr, 5))
	if e, err := treasuryABI.UnpackERC20TransferredEvent(r.Logs[0]); err != nil || e.Operator != client.addr ||
		e.Caller != stranger.addr {
		t.Errorf("event %+v, error %v: want the policy's operator and the relayer", e, err)
	}
	other := treasuryABI.PackExecuteCall(otherKey, v.payee, n(1), nil, runID, taskID, "")
	v.wantRevert("NotOperator(?,"+stranger.addr.Hex()+")", stranger, v.at, other)
	v.send(owner, v.at, treasuryABI.PackSetRelayer(agentKey, stranger.addr, false))
	v.wantRevert("NotOperator(?,"+stranger.addr.Hex()+")", stranger, v.at, call(v.payee, 5, nil))
}

// TestTreasuryRelayerEnds drops the relayers of an operator with it, also where it comes back.
func TestTreasuryRelayerEnds(t *testing.T) {
	v := newVault(t)
	// nobody's relayer
	v.wantRevert("BadOperator()", owner, v.at, treasuryABI.PackSetRelayer(otherKey, stranger.addr, true))
	v.send(owner, v.at, treasuryABI.PackSetRelayer(agentKey, stranger.addr, true))
	v.policy(agentKey, client.addr, 90, 240)
	v.send(stranger, v.at, call(v.payee, 5, nil)) // the operator is the same
	for _, operator := range []party{wallet, client} {
		v.policy(agentKey, operator.addr, 100, 250)
		v.wantRevert("NotOperator(?,"+stranger.addr.Hex()+")", stranger, v.at, call(v.payee, 5, nil))
		v.wantRevert("NotOperator(?,"+stranger.addr.Hex()+")", stranger, v.at, v.pay(stranger.addr, 5))
		if get(v.world, v.at, treasuryABI.PackApprovedRelayers(agentKey, stranger.addr),
			treasuryABI.UnpackApprovedRelayers) {
			t.Error("a relayer of an operator before is approved")
		}
		v.send(operator, v.at, call(v.payee, 5, nil))
	}
	r := v.send(owner, v.at, treasuryABI.PackSetRelayer(agentKey, stranger.addr, true))
	if e, err := treasuryABI.UnpackRelayerApprovedEvent(r.Logs[0]); err != nil || e.Operator != client.addr ||
		e.Relayer != stranger.addr {
		t.Errorf("event %+v, %v", e, err)
	}
	v.send(stranger, v.at, call(v.payee, 5, nil))
}

// TestTreasuryOwner has every configuring function refuse everybody else.
func TestTreasuryOwner(t *testing.T) {
	v := newVault(t)
	for name, data := range map[string][]byte{
		"setPolicy":     treasuryABI.PackSetPolicy(agentKey, true, client.addr, n(1), n(1), n(1)),
		"setCall":       treasuryABI.PackSetCall(agentKey, v.payee, [4]byte{1}, true),
		"setToken":      treasuryABI.PackSetToken(agentKey, v.token, true, n(1), n(1)),
		"setRelayer":    treasuryABI.PackSetRelayer(agentKey, client.addr, true),
		"pause":         treasuryABI.PackPause(),
		"unpause":       treasuryABI.PackUnpause(),
		"withdraw":      treasuryABI.PackWithdraw(client.addr, n(1)),
		"withdrawERC20": treasuryABI.PackWithdrawERC20(v.token, client.addr, n(1)),
		"transfer":      treasuryABI.PackTransferOwnership(client.addr),
		"renounce":      treasuryABI.PackRenounceOwnership(),
	} {
		if got, want := v.revert(client, v.at, data), "OwnableUnauthorizedAccount("+client.addr.Hex()+")"; got != want {
			t.Errorf("%s reverted with %q, want %q", name, got, want)
		}
	}
	v.wantRevert("OwnerNeeded()", owner, v.at, treasuryABI.PackRenounceOwnership())
	v.wantRevert("BadOperator()", owner, v.at, treasuryABI.PackSetPolicy(agentKey, true, common.Address{}, n(1), n(1),
		n(1)))
	v.wantRevert("BadWindow(400000000)", owner, v.at, treasuryABI.PackSetPolicy(agentKey, true, client.addr, n(1), n(1),
		n(400000000)))
}

// TestTreasuryReentry has payee and token call back in the middle of a transaction.
func TestTreasuryReentry(t *testing.T) {
	v := newVault(t)
	v.policy(otherKey, v.payee, 100, 250)
	v.allow(otherKey, stranger.addr, nil)
	again := treasuryABI.PackExecuteCall(otherKey, stranger.addr, n(1), nil, runID, taskID, "")
	v.send(client, v.payee, payeeABI.PackCallback(v.at, again))
	v.wantRevert("ReentrancyGuardReentrantCall()", client, v.at, call(v.payee, 1, payeeABI.PackPay(n(1))))
	v.policy(otherKey, v.token, 100, 250)
	v.send(client, v.token, tokenABI.PackCallback(v.at, again))
	v.wantRevert("ReentrancyGuardReentrantCall()", client, v.at, v.pay(client.addr, 1))
}

// TestTreasuryCallsAlone runs foreign code that writes to its first storage slots, where the
// treasury keeps its owner: it writes to its own. The treasury has no instruction that
// would let code of others work on its storage.
func TestTreasuryCallsAlone(t *testing.T) {
	v := newVault(t)
	v.allow(agentKey, v.payee, payeeABI.PackCallback(stranger.addr, nil))
	v.send(client, v.at, call(v.payee, 0, payeeABI.PackCallback(stranger.addr, nil)))
	if got := get(v.world, v.at, treasuryABI.PackOwner(), treasuryABI.UnpackOwner); got != owner.addr {
		t.Errorf("the owner is %s", got)
	}
	code, err := v.client.CodeAt(t.Context(), v.at, nil)
	v.check(err)
	metadata := int(code[len(code)-2])<<8 | int(code[len(code)-1])
	code = code[:len(code)-2-metadata]
	for i := 0; i < len(code); i++ {
		switch op := vm.OpCode(code[i]); {
		case op == vm.DELEGATECALL || op == vm.CALLCODE || op == vm.SELFDESTRUCT:
			t.Errorf("%s at %d", op, i)
		case op.IsPush():
			i += int(op - vm.PUSH0)
		}
	}
}

func TestTreasuryGreedyToken(t *testing.T) {
	v := newVault(t)
	v.send(client, v.token, tokenABI.PackTakeExtra(n(3)))
	v.wantRevert(fmt.Sprintf("TokenTookMore(%s,8,5)", v.token.Hex()), client, v.at, v.pay(client.addr, 5))
}

func TestTreasuryFactory(t *testing.T) {
	w := &world{chain: &shared, t: t}
	factory := w.deploy(bindings.OpenFiTreasuryFactoryMetaData.Bin, nil)
	salt := crypto.Keccak256Hash([]byte(t.Name()))
	want := get(w, factory, factoryABI.PackTreasuryAddress(client.addr, owner.addr, salt),
		factoryABI.UnpackTreasuryAddress)
	r := w.send(client, factory, factoryABI.PackCreateTreasury(owner.addr, salt))
	at := slices.IndexFunc(r.Logs, func(l *types.Log) bool { return l.Address == factory })
	e, err := factoryABI.UnpackTreasuryCreatedEvent(r.Logs[at])
	w.check(err)
	if e.Treasury != want || e.Owner != owner.addr || e.Creator != client.addr || e.Salt != salt {
		t.Errorf("event %+v, want treasury %s", e, want)
	}
	if got := get(w, want, treasuryABI.PackOwner(), treasuryABI.UnpackOwner); got != owner.addr {
		t.Errorf("owner %s", got)
	}
	if !get(w, factory, factoryABI.PackIsTreasury(want), factoryABI.UnpackIsTreasury) {
		t.Error("the factory does not know its treasury")
	}
	w.wantRevert("", client, factory, factoryABI.PackCreateTreasury(owner.addr, salt)) // a salt serves once
}
