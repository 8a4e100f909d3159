package evmtest

import (
	"bytes"
	"math/big"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"repute"
	"repute/contracts/bindings"
)

const walletKey = "agentWallet"

// entry is a metadata entry of the three-argument registration.
type entry = bindings.IdentityRegistryMetadataEntry

func n(v int64) *big.Int { return big.NewInt(v) }

func token(id *big.Int) repute.TokenID { return *uint256.MustFromBig(id) }

// register registers an agent and gives its id.
func (w *world) register(p party, uri string) *big.Int {
	w.t.Helper()
	return w.minted(w.send(p, w.identity, identityABI.PackRegisterURI(uri)))
}

// minted gives the id in the receipt's first log, the mint.
func (w *world) minted(r *types.Receipt) *big.Int {
	w.t.Helper()
	id := w.events(r)[0].(repute.Transfer).TokenID
	return id.ToBig()
}

func (w *world) agentWallet(id *big.Int) common.Address {
	w.t.Helper()
	return get(w, w.identity, identityABI.PackGetAgentWallet(id), identityABI.UnpackGetAgentWallet)
}

func (w *world) ownerOf(id *big.Int) common.Address {
	w.t.Helper()
	return get(w, w.identity, identityABI.PackOwnerOf(id), identityABI.UnpackOwnerOf)
}

func (w *world) uri(id *big.Int) string {
	w.t.Helper()
	return get(w, w.identity, identityABI.PackTokenURI(id), identityABI.UnpackTokenURI)
}

func (w *world) metadata(id *big.Int, key string) []byte {
	w.t.Helper()
	return get(w, w.identity, identityABI.PackGetMetadata(id, key), identityABI.UnpackGetMetadata)
}

// wantEvents checks all logs of a receipt, in order.
func (w *world) wantEvents(r *types.Receipt, want ...repute.Event) {
	w.t.Helper()
	got := w.events(r)
	if reflect.DeepEqual(got, want) {
		return
	}
	w.t.Errorf("logs differ\ngot  %+v\nwant %+v", got, want)
}

func mint(to common.Address, id *big.Int) repute.Event {
	return repute.Transfer{To: to, TokenID: token(id)}
}

func walletSet(id *big.Int, value []byte) repute.Event {
	return repute.MetadataSet{TokenID: token(id), Key: walletKey, Value: value}
}

func TestRegister(t *testing.T) {
	w := newWorld(t)
	a := owner.addr
	tail := func(id *big.Int, uri string) []repute.Event {
		return []repute.Event{repute.Registered{TokenID: token(id), URI: uri, Owner: a}, walletSet(id, a[:])}
	}
	w.wantEvents(w.send(owner, w.identity, identityABI.PackRegister()),
		append([]repute.Event{mint(a, n(0))}, tail(n(0), "")...)...)
	w.wantEvents(w.send(owner, w.identity, identityABI.PackRegisterURI("ipfs://a")),
		append([]repute.Event{mint(a, n(1)), repute.MetadataUpdate{TokenID: token(n(1))}},
			tail(n(1), "ipfs://a")...)...)
	w.wantEvents(w.send(owner, w.identity, identityABI.PackRegisterURI("")),
		append([]repute.Event{mint(a, n(2)), repute.MetadataUpdate{TokenID: token(n(2))}}, tail(n(2), "")...)...)
	meta := []entry{{MetadataKey: "k", MetadataValue: []byte{1}}, {MetadataKey: "", MetadataValue: []byte{}}}
	want := append([]repute.Event{mint(a, n(3)), repute.MetadataUpdate{TokenID: token(n(3))}}, tail(n(3), "u")...)
	want = append(want, repute.MetadataSet{TokenID: token(n(3)), Key: "k", Value: []byte{1}},
		repute.MetadataSet{TokenID: token(n(3)), Value: []byte{}})
	w.wantEvents(w.send(owner, w.identity, identityABI.PackRegisterWithMetadata("u", meta)), want...)
	for id := int64(0); id < 4; id++ {
		if got := w.agentWallet(n(id)); got != a || w.ownerOf(n(id)) != a {
			t.Errorf("agent %d: wallet %s", id, got)
		}
	}
	if !bytes.Equal(w.metadata(n(3), "k"), []byte{1}) || w.uri(n(3)) != "u" || w.uri(n(0)) != "" {
		t.Error("registration data not stored")
	}
}

func TestURIs(t *testing.T) {
	w := newWorld(t)
	for _, uri := range []string{"https://agent.example/a.json", "ipfs://bafy/a.json",
		"data:application/json;base64,e30=",
		"not a uri", "\x00\xff", string(bytes.Repeat([]byte("x"), 8365))} {
		id := w.register(owner, uri)
		if got := w.uri(id); got != uri {
			t.Errorf("%.40q read back as %.40q", uri, got)
		}
		w.wantEvents(w.send(owner, w.identity, identityABI.PackSetAgentURI(id, uri+"2")),
			repute.MetadataUpdate{TokenID: token(id)},
			repute.URIUpdated{TokenID: token(id), URI: uri + "2", UpdatedBy: owner.addr})
		if got := w.uri(id); got != uri+"2" {
			t.Errorf("updated to %.40q", got)
		}
	}
	w.wantRevert("Not authorized", stranger, w.identity, identityABI.PackSetAgentURI(n(0), "x"))
}

func TestMetadata(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	for key, value := range map[string][]byte{"category": []byte("DeFi"), "": {}, "AgentWallet": {9}, "nul\x00": {0}} {
		w.wantEvents(w.send(owner, w.identity, identityABI.PackSetMetadata(id, key, value)),
			repute.MetadataSet{TokenID: token(id), Key: key, Value: value})
		if got := w.metadata(id, key); !bytes.Equal(got, value) {
			t.Errorf("%q is %x", key, got)
		}
	}
	w.send(owner, w.identity, identityABI.PackSetMetadata(id, "category", nil))
	if got := w.metadata(id, "category"); len(got) != 0 {
		t.Errorf("overwritten with nothing, but %x", got)
	}
	w.wantRevert("reserved key", owner, w.identity, identityABI.PackSetMetadata(id, walletKey, []byte{1}))
	w.wantRevert("reserved key", owner, w.identity,
		identityABI.PackRegisterWithMetadata("", []entry{{MetadataKey: walletKey, MetadataValue: owner.addr[:]}}))
	w.wantRevert("Not authorized", stranger, w.identity, identityABI.PackSetMetadata(id, "k", nil))
}

// Operators and the approved address may write all that the owner may.
func TestAuthorized(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	write := identityABI.PackSetMetadata(id, "k", []byte{1})
	allowed := func(p party) bool {
		return get(w, w.identity, identityABI.PackIsAuthorizedOrOwner(p.addr, id),
			identityABI.UnpackIsAuthorizedOrOwner)
	}
	if !allowed(owner) || allowed(stranger) || allowed(client) {
		t.Error("authorized before any approval")
	}
	w.wantEvents(w.send(owner, w.identity, identityABI.PackApprove(stranger.addr, id)),
		repute.Approval{Owner: owner.addr, Approved: stranger.addr, TokenID: token(id)})
	w.wantEvents(w.send(owner, w.identity, identityABI.PackSetApprovalForAll(client.addr, true)),
		repute.ApprovalForAll{Owner: owner.addr, Operator: client.addr, Approved: true})
	for _, p := range []party{stranger, client} {
		if !allowed(p) {
			t.Errorf("%s is not authorized", p.addr)
		}
		w.send(p, w.identity, write)
		w.send(p, w.identity, identityABI.PackSetAgentURI(id, "x"))
		w.send(p, w.identity, identityABI.PackUnsetAgentWallet(id))
	}
	w.send(owner, w.identity, identityABI.PackSetApprovalForAll(client.addr, false))
	w.wantRevert("Not authorized", client, w.identity, write)
	w.wantRevert("ERC721NonexistentToken(77)", owner, w.identity,
		identityABI.PackIsAuthorizedOrOwner(owner.addr, n(77)))
}

func TestTransfer(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "ipfs://kept")
	w.send(owner, w.identity, identityABI.PackSetMetadata(id, "k", []byte{7}))
	w.send(owner, w.identity, identityABI.PackApprove(client.addr, id))
	w.wantEvents(w.send(client, w.identity, identityABI.PackTransferFrom(owner.addr, stranger.addr, id)),
		walletSet(id, []byte{}),
		repute.Transfer{From: owner.addr, To: stranger.addr, TokenID: token(id)})
	if w.agentWallet(id) != (common.Address{}) || len(w.metadata(id, walletKey)) != 0 {
		t.Error("the wallet survived")
	}
	approved := get(w, w.identity, identityABI.PackGetApproved(id), identityABI.UnpackGetApproved)
	if approved != (common.Address{}) {
		t.Error("the approval survived")
	}
	if w.uri(id) != "ipfs://kept" || !bytes.Equal(w.metadata(id, "k"), []byte{7}) {
		t.Error("URI or metadata did not survive")
	}
	// To itself, and with the wallet already empty: the same two logs.
	w.wantEvents(w.send(stranger, w.identity, identityABI.PackSafeTransferFrom(stranger.addr, stranger.addr, id)),
		walletSet(id, []byte{}),
		repute.Transfer{From: stranger.addr, To: stranger.addr, TokenID: token(id)})
	w.wantRevert("ERC721InsufficientApproval("+client.addr.Hex()+",0)", client, w.identity,
		identityABI.PackTransferFrom(stranger.addr, client.addr, id))
	w.wantRevert("ERC721InvalidReceiver("+common.Address{}.Hex()+")", stranger, w.identity,
		identityABI.PackTransferFrom(stranger.addr, common.Address{}, id))
}

func TestUnknownAgent(t *testing.T) {
	w := newWorld(t)
	for _, data := range [][]byte{
		identityABI.PackSetAgentURI(n(999), "x"),
		identityABI.PackSetMetadata(n(999), "k", nil),
		identityABI.PackSetMetadata(n(999), walletKey, nil),
		identityABI.PackTokenURI(n(999)),
		identityABI.PackOwnerOf(n(999)),
		identityABI.PackUnsetAgentWallet(n(999)),
		identityABI.PackSetAgentWallet(n(999), wallet.addr, n(0), nil),
	} {
		w.wantRevert("ERC721NonexistentToken(999)", owner, w.identity, data)
	}
	if w.agentWallet(n(999)) != (common.Address{}) || len(w.metadata(n(999), "k")) != 0 {
		t.Error("an unknown agent has a wallet or metadata")
	}
	w.wantRevert("", owner, w.identity, common.FromHex("18160ddd")) // totalSupply()
}

func TestConstants(t *testing.T) {
	w := newWorld(t)
	for want, got := range map[string]string{
		"AgentIdentity": get(w, w.identity, identityABI.PackName(), identityABI.UnpackName),
		"AGENT":         get(w, w.identity, identityABI.PackSymbol(), identityABI.UnpackSymbol),
		"5.0.0": get(w, w.identity, identityABI.PackUPGRADEINTERFACEVERSION(),
			identityABI.UnpackUPGRADEINTERFACEVERSION),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, at := range []common.Address{w.identity, w.reputation, w.validation} {
		if got := get(w, at, identityABI.PackGetVersion(), identityABI.UnpackGetVersion); got != "2.0.0" {
			t.Errorf("version %q", got)
		}
		if got := get(w, at, identityABI.PackOwner(), identityABI.UnpackOwner); got != admin.addr {
			t.Errorf("owner %s", got)
		}
	}
	for id, want := range map[[4]byte]bool{
		{0x80, 0xac, 0x58, 0xcd}: true,  // ERC-721
		{0x49, 0x06, 0x49, 0x06}: true,  // ERC-4906
		{0x78, 0x0e, 0x9d, 0x63}: false, // ERC-721 Enumerable
	} {
		if get(w, w.identity, identityABI.PackSupportsInterface(id), identityABI.UnpackSupportsInterface) != want {
			t.Errorf("interface %x", id)
		}
	}
}
