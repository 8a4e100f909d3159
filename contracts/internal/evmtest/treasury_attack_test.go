package evmtest

import (
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"

	"repute/contracts/bindings/fixtures"
)

var (
	wideABI  = fixtures.NewWideToken()
	poolABI  = fixtures.NewLendingPool()
	vaultABI = fixtures.NewTokenVault()
	loudABI  = fixtures.NewLoud()
)

// escape is a call by which a holder of tokens loses them, or lets another take them.
type escape struct {
	name          string
	token, target common.Address // what is lost, and what is called for it
	data          []byte
}

// escapes gives the treasury 900 of each token, and lists the functions that would take them.
func (v *vault) escapes() []escape {
	v.t.Helper()
	wide := v.deploy(fixtures.WideTokenMetaData.Bin, nil)
	v.send(admin, wide, wideABI.PackMint(v.at, n(900)))
	shares := v.deploy(fixtures.TokenVaultMetaData.Bin, vaultABI.PackConstructor(v.token))
	pool := v.deploy(fixtures.LendingPoolMetaData.Bin, nil)
	receipt := get(v.world, pool, poolABI.PackReceipt(), poolABI.UnpackReceipt)
	v.send(admin, v.token, tokenABI.PackMint(admin.addr, n(1800)))
	for _, spender := range []common.Address{shares, pool} {
		v.send(admin, v.token, tokenABI.PackApprove(spender, n(900)))
	}
	v.send(admin, shares, vaultABI.PackDeposit(n(900), v.at))
	v.send(admin, pool, poolABI.PackSupply(v.token, n(900), v.at, 0))
	all, thief := n(900), client.addr
	send := fixtures.WideTokenSendParam{DstEid: 1, To: common.BytesToHash(thief[:]), AmountLD: all, MinAmountLD: all}
	return []escape{
		{"transfer", wide, wide, wideABI.PackTransfer(thief, all)},
		{"approve", wide, wide, wideABI.PackApprove(thief, all)},
		{"push", wide, wide, wideABI.PackPush(thief, all)},
		{"move", wide, wide, wideABI.PackMove(v.at, thief, all)},
		{"increaseApproval", wide, wide, wideABI.PackIncreaseApproval(thief, all)},
		{"transferShares", wide, wide, wideABI.PackTransferShares(thief, all)},
		{"withdrawTo", wide, wide, wideABI.PackWithdrawTo(thief, all)},
		{"multicall", wide, wide, wideABI.PackMulticall([][]byte{wideABI.PackTransfer(thief, all)})},
		{"OFT send", wide, wide,
			wideABI.PackSend(send, fixtures.WideTokenMessagingFee{NativeFee: new(big.Int), LzTokenFee: new(big.Int)},
				thief)},
		{"ERC-777 burn", wide, wide, wideABI.PackBurn(all, nil)},
		{"ERC-4626 redeem", shares, shares, vaultABI.PackRedeem(all, thief, v.at)},
		{"Aave withdraw", receipt, pool, poolABI.PackWithdraw(v.token, all, thief)},
	}
}

// TestTreasuryTokensStay tries every function by which tokens leave their holder, under a cap of
// 250 of 900, on tokens that are listed and on tokens that are not.
func TestTreasuryTokensStay(t *testing.T) {
	v := newVault(t)
	list := v.escapes()
	try := func(e escape) {
		t.Helper()
		if got := v.revert(client, v.at, call(e.target, 0, e.data)); !strings.HasPrefix(got, "CallNotAllowed(") &&
			!strings.HasPrefix(got, "TokenCall(") {
			t.Errorf("%s reverted with %q", e.name, got)
		}
	}
	for _, e := range list {
		try(e)
	}
	for _, e := range list {
		v.send(owner, v.at, treasuryABI.PackSetToken(agentKey, e.token, true, n(100), n(250)))
		try(e)
		if e.target != e.token {
			continue // a pair that names the pool would be the owner's decision
		}
		if got := v.revert(owner, v.at, treasuryABI.PackSetCall(agentKey, e.target, [4]byte(e.data),
			true)); !strings.HasPrefix(got, "TokenCall(") {
			t.Errorf("%s was put on the list: %q", e.name, got)
		}
	}
}

// TestTreasuryPairBeforeListing has a pair on a token end where the token is listed, and no token
// is listed that was called before: what it allowed others cannot be known.
func TestTreasuryPairBeforeListing(t *testing.T) {
	v := newVault(t)
	token := func(e escape) (at common.Address, list []byte) {
		at = v.deploy(fixtures.WideTokenMetaData.Bin, nil)
		v.send(admin, at, wideABI.PackMint(v.at, n(900)))
		v.allow(agentKey, at, e.data)
		return at, treasuryABI.PackSetToken(agentKey, at, true, n(100), n(250))
	}
	for _, e := range v.escapes()[:10] { // those of the WideToken
		at, list := token(e)
		v.send(owner, v.at, list)
		v.wantRevert("TokenCall("+at.Hex()+",?)", client, v.at, call(at, 0, e.data))
		at, list = token(e)
		v.send(client, v.at, call(at, 0, e.data))
		if !get(v.world, v.at, treasuryABI.PackCalledContracts(at), treasuryABI.UnpackCalledContracts) {
			t.Errorf("%s: the call is not remembered", e.name)
		}
		v.wantRevert("TokenWasCalled("+at.Hex()+")", owner, v.at, list)
	}
}

// TestTreasuryAllowanceBeforeListing takes an allowance by an allowed pair and has the token
// listed with a cap: that is refused, whatever became of the pair.
func TestTreasuryAllowanceBeforeListing(t *testing.T) {
	v := newVault(t)
	token := v.deploy(fixtures.WideTokenMetaData.Bin, nil)
	approve := wideABI.PackApprove(client.addr, n(900))
	v.allow(agentKey, token, approve)
	v.send(client, v.at, call(token, 0, approve))
	v.send(owner, v.at, treasuryABI.PackSetCall(agentKey, token, [4]byte(approve), false))
	for _, key := range []common.Hash{agentKey, otherKey} {
		v.wantRevert("TokenWasCalled("+token.Hex()+")", owner, v.at, treasuryABI.PackSetToken(key, token, true, n(100),
			n(250)))
	}
	v.send(owner, v.at, treasuryABI.PackSetToken(agentKey, token, false, n(0), n(0)))
}

// TestTreasuryReturnBomb bounds what of an answer is copied: a relayer pays for no more.
func TestTreasuryReturnBomb(t *testing.T) {
	v := newVault(t)
	loud := v.deploy(fixtures.LoudMetaData.Bin, nil)
	v.allow(agentKey, loud, loudABI.PackAnswer(n(0)))
	v.allow(agentKey, loud, loudABI.PackFail(n(0)))
	const most = 4096
	for _, size := range []int64{0, 1, 31, 32, 33, most, most + 1, 1 << 20} {
		gas := v.send(client, v.at, call(loud, 0, loudABI.PackAnswer(n(size)))).GasUsed
		// The target itself pays 3 gas a word and a square for its memory, the treasury for 4,096 bytes.
		words := uint64(size+31) / 32
		if bound := 120_000 + 3*words + words*words/512; gas > bound {
			t.Errorf("an answer of %d bytes costs %d gas, want at most %d", size, gas, bound)
		}
		got, err := treasuryABI.UnpackExecuteCall(v.callAs(client, v.at, call(loud, 0, loudABI.PackAnswer(n(size)))))
		v.check(err)
		if want := min(size, most); int64(len(got)) != want {
			t.Errorf("of %d bytes %d came back, want %d", size, len(got), want)
		}
		want := 2 + 2*int(min(size, most)) // digits
		if size < 4 {
			want = map[int64]int{0: len("FailedCall()"), 1: 0}[size]
		}
		if got := v.revert(client, v.at, call(loud, 0, loudABI.PackFail(n(size)))); len(got) != want {
			t.Errorf("a revert with %d bytes gave %d digits, want %d: %.40s", size, len(got), want, got)
		}
	}
	v.send(owner, v.at, treasuryABI.PackWithdraw(owner.addr, n(920)))
	v.wantRevert("InsufficientBalance(80,90)", client, v.at, call(stranger.addr, 90, nil))
}

// callAs makes a call without a transaction, which must succeed.
func (w *world) callAs(from party, to common.Address, data []byte) []byte {
	w.t.Helper()
	out, err := w.client.CallContract(w.t.Context(), ethereum.CallMsg{From: from.addr, To: &to, Data: data}, nil)
	w.check(err)
	return out
}
