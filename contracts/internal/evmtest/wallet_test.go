package evmtest

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"repute/contracts/bindings/fixtures"
)

var fixtureWallet = fixtures.NewContractWallet()

// consent is the digest a wallet signs to serve an agent (EIP-712).
func (w *world) consent(id *big.Int, newWallet, agentOwner common.Address, deadline *big.Int) []byte {
	word := func(v *big.Int) []byte { return common.LeftPadBytes(v.Bytes(), 32) }
	acct := func(a common.Address) []byte { return common.LeftPadBytes(a[:], 32) }
	domain := crypto.Keccak256(
		crypto.Keccak256([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")),
		crypto.Keccak256([]byte("ERC8004IdentityRegistry")), crypto.Keccak256([]byte("1")),
		word(w.chainID()), acct(w.identity))
	typehash := common.HexToHash("0x678b53cd718d595370ab070ebf48edfdcd834beac116bf23e625fc7f4d5b7d32")
	message := crypto.Keccak256(typehash[:], word(id), acct(newWallet), acct(agentOwner), word(deadline))
	return crypto.Keccak256([]byte{0x19, 0x01}, domain, message)
}

func (w *world) sign(p party, digest []byte) []byte {
	w.t.Helper()
	sig, err := crypto.Sign(digest, p.key)
	w.check(err)
	sig[64] += 27
	return sig
}

// in is a deadline that many seconds after the newest block.
func (w *world) in(seconds int64) *big.Int { return new(big.Int).Add(w.now(), n(seconds)) }

func TestSetAgentWallet(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	deadline := w.in(200)
	data := identityABI.PackSetAgentWallet(id, wallet.addr, deadline,
		w.sign(wallet, w.consent(id, wallet.addr, owner.addr, deadline)))
	w.wantRevert("Not authorized", stranger, w.identity, data)
	w.wantEvents(w.send(owner, w.identity, data), walletSet(id, wallet.addr[:]))
	if got := w.agentWallet(id); got != wallet.addr {
		t.Errorf("wallet %s", got)
	}
	w.wantEvents(w.send(owner, w.identity, identityABI.PackUnsetAgentWallet(id)), walletSet(id, []byte{}))
	// There is no nonce: the same consent serves again, until it expires.
	w.send(owner, w.identity, data)
	// Two agents may share a wallet.
	other := w.register(owner, "")
	deadline = w.in(200)
	w.send(owner, w.identity, identityABI.PackSetAgentWallet(other, wallet.addr, deadline,
		w.sign(wallet, w.consent(other, wallet.addr, owner.addr, deadline))))
	if w.agentWallet(id) != w.agentWallet(other) {
		t.Error("not shared")
	}
}

func TestSetAgentWalletReverts(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	good := w.in(200)
	consent := func(p party, to common.Address, agentOwner party, deadline *big.Int) []byte {
		return identityABI.PackSetAgentWallet(id, to, deadline,
			w.sign(p, w.consent(id, to, agentOwner.addr, deadline)))
	}
	for name, c := range map[string]struct {
		want string
		data []byte
	}{
		"zero wallet": {"bad wallet", consent(wallet, common.Address{}, owner, good)},
		"expired": {"expired",
			consent(wallet, wallet.addr, owner, new(big.Int).Sub(w.now(), n(10)))},
		"too far":           {"deadline too far", consent(wallet, wallet.addr, owner, w.in(1000))},
		"signed by another": {"invalid wallet sig", consent(stranger, wallet.addr, owner, good)},
		"for another owner": {"invalid wallet sig", consent(wallet, wallet.addr, stranger, good)},
		"no signature": {"invalid wallet sig",
			identityABI.PackSetAgentWallet(id, wallet.addr, good, nil)},
		"wallet is no ERC-1271 contract": {"invalid wallet sig", consent(wallet, w.reputation, owner, good)},
	} {
		t.Run(name, func(t *testing.T) {
			at := *w
			at.t = t
			at.wantRevert(c.want, owner, w.identity, c.data)
		})
	}
	if w.agentWallet(id) != owner.addr {
		t.Error("the wallet changed")
	}
}

// A contract wallet answers for its own signatures (ERC-1271).
func TestContractWallet(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	contract := w.deploy(fixtures.ContractWalletMetaData.Bin, fixtureWallet.PackConstructor(wallet.addr))
	deadline := w.in(200)
	digest := w.consent(id, contract, owner.addr, deadline)
	w.wantRevert("invalid wallet sig", owner, w.identity,
		identityABI.PackSetAgentWallet(id, contract, deadline, w.sign(stranger, digest)))
	w.wantEvents(w.send(owner, w.identity,
		identityABI.PackSetAgentWallet(id, contract, deadline, w.sign(wallet, digest))), walletSet(id, contract[:]))
}

// An account with delegated code (EIP-7702) has code, but its key's signature
// still counts, and so does what the code accepts.
func TestDelegatedWallet(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	code := w.deploy(fixtures.ContractWalletMetaData.Bin, fixtureWallet.PackConstructor(stranger.addr))
	w.delegate(wallet, code)
	t.Cleanup(func() { w.delegate(wallet, common.Address{}) })
	deadline := w.in(200)
	digest := w.consent(id, wallet.addr, owner.addr, deadline)
	for _, signer := range []party{wallet, stranger} {
		w.send(owner, w.identity, identityABI.PackSetAgentWallet(id, wallet.addr, deadline, w.sign(signer, digest)))
		if w.agentWallet(id) != wallet.addr {
			t.Errorf("signed by %s", signer.addr)
		}
		w.send(owner, w.identity, identityABI.PackUnsetAgentWallet(id))
	}
	w.wantRevert("invalid wallet sig", owner, w.identity,
		identityABI.PackSetAgentWallet(id, wallet.addr, deadline, w.sign(client, digest)))
}

func (w *world) delegate(p party, code common.Address) {
	w.t.Helper()
	chainID := uint256.MustFromBig(w.chainID())
	auth, err := types.SignSetCode(p.key, types.SetCodeAuthorization{
		ChainID: *chainID, Address: code, Nonce: w.nonce(p)})
	w.check(err)
	w.mine(admin, &types.SetCodeTx{ChainID: chainID, Nonce: w.nonce(admin), To: admin.addr, Gas: 500_000,
		GasFeeCap: uint256.NewInt(5e10), GasTipCap: uint256.NewInt(1e9), AuthList: []types.SetCodeAuthorization{auth}})
}

// The consent dies with its deadline.
func TestConsentExpires(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	deadline := w.in(300)
	data := identityABI.PackSetAgentWallet(id, wallet.addr, deadline,
		w.sign(wallet, w.consent(id, wallet.addr, owner.addr, deadline)))
	w.send(owner, w.identity, data)
	w.pass(10 * time.Minute)
	w.wantRevert("expired", owner, w.identity, data)
}

func TestEIP712Domain(t *testing.T) {
	w := newWorld(t)
	d := get(w, w.identity, identityABI.PackEip712Domain(), identityABI.UnpackEip712Domain)
	if d.Name != "ERC8004IdentityRegistry" || d.Version != "1" || d.ChainId.Cmp(w.chainID()) != 0 ||
		d.VerifyingContract != w.identity || d.Fields != [1]byte{0x0f} || len(d.Extensions) != 0 {
		t.Errorf("%+v", d)
	}
	typ := "AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)"
	if got := crypto.Keccak256Hash([]byte(typ)); got.Hex() != "0x678b53cd718d595370ab070ebf48edfdcd834beac116bf23e625fc7f4d5b7d32" {
		t.Errorf("typehash %s", got)
	}
}
