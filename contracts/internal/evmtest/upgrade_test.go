package evmtest

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
)

// The storage namespaces of the deployed registries (ERC-7201).
var namespaces = map[string]string{
	"erc8004.identity.registry":     "0xa040f782729de4970518741823ec1276cbcd41a0c7493f62d173341566a04e00",
	"erc8004.reputation.registry.2": "0xa03d7693f2b3746b2d03f163c788147b71aa82854399a21fdf4de143ba778300",
	"erc8004.validation.registry":   "0x21543a2dd0df813994fbf82c69c61d1aafcdce183d68d2ef40068bdce1481100",
}

func TestNamespaces(t *testing.T) {
	for name, want := range namespaces {
		inner := new(big.Int).SetBytes(crypto.Keccak256([]byte(name)))
		slot := crypto.Keccak256Hash(common.LeftPadBytes(inner.Sub(inner, n(1)).Bytes(), 32))
		slot[31] = 0
		if slot.Hex() != want {
			t.Errorf("%s is at %s", name, slot)
		}
	}
}

// mapped is the slot of a mapping's value.
func mapped(key, slot common.Hash) common.Hash { return crypto.Keccak256Hash(key[:], slot[:]) }

func TestStorage(t *testing.T) {
	w := newWorld(t)
	for i := 0; i < 3; i++ {
		w.register(owner, "")
	}
	identity := common.HexToHash(namespaces["erc8004.identity.registry"])
	if got := w.word(w.identity, identity).Big(); got.Cmp(n(3)) != 0 {
		t.Errorf("number of agents %s", got)
	}
	for _, at := range []common.Address{w.reputation, w.validation} {
		if got := common.BytesToAddress(w.word(at, common.Hash{}).Bytes()); got != w.identity {
			t.Errorf("slot 0 holds %s", got)
		}
	}
	w.rate(client, n(2), opinion{n(1), 0, "", ""})
	reputation := common.HexToHash(namespaces["erc8004.reputation.registry.2"])
	last := mapped(common.BytesToHash(client.addr[:]), mapped(common.BigToHash(n(2)), reputation))
	if got := w.word(w.reputation, last).Big(); got.Cmp(n(1)) != 0 {
		t.Errorf("last index %s", got)
	}
	w.send(owner, w.validation, validationABI.PackValidationRequest(validator.addr, n(2), "", one))
	validation := common.HexToHash(namespaces["erc8004.validation.registry"])
	if got := common.BytesToAddress(w.word(w.validation, mapped(one, validation)).Bytes()); got != validator.addr {
		t.Errorf("validator %s", got)
	}
	implementation := common.HexToHash("0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc")
	if got := common.BytesToAddress(w.word(w.identity, implementation).Bytes()); got != w.identityImpl {
		t.Errorf("implementation %s", got)
	}
}

// What a proxy logs before its first domain event.
func TestProxyEvents(t *testing.T) {
	w := newWorld(t)
	r := w.transact(admin, nil, append(common.FromHex(bindings.ERC1967ProxyMetaData.Bin),
		proxyABI.PackConstructor(w.minimal, bootstrapABI.PackInitialize(admin.addr))...))
	w.wantEvents(r, repute.Upgraded{Implementation: w.minimal},
		repute.OwnershipTransferred{New: admin.addr}, repute.Initialized{Version: 1})
	at := r.ContractAddress
	if got := get(w, at, bootstrapABI.PackGetVersion(), bootstrapABI.UnpackGetVersion); got != "0.0.1" {
		t.Errorf("bootstrap version %q", got)
	}
	w.wantEvents(w.send(admin, at, identityABI.PackUpgradeToAndCall(w.identityImpl, identityABI.PackInitialize())),
		repute.Upgraded{Implementation: w.identityImpl}, repute.Initialized{Version: 2})
	code, err := w.client.CodeAt(t.Context(), at, nil)
	if err != nil || len(code) != 130 {
		t.Errorf("proxy code of %d bytes, %v", len(code), err)
	}
}

func TestInitialize(t *testing.T) {
	w := newWorld(t)
	link := reputationABI.PackInitialize(w.identity)
	for _, at := range []common.Address{w.reputation, w.validation, w.reputationImpl, w.validationImpl} {
		w.wantRevert("InvalidInitialization()", admin, at, link)
	}
	for _, at := range []common.Address{w.identity, w.identityImpl} {
		w.wantRevert("InvalidInitialization()", admin, at, identityABI.PackInitialize())
	}
	w.wantRevert("InvalidInitialization()", admin, w.minimal, bootstrapABI.PackInitialize(admin.addr))
	at := w.bootstrapped()
	for _, implementation := range []common.Address{w.reputationImpl, w.validationImpl} {
		w.wantRevert("bad identity", admin, at,
			identityABI.PackUpgradeToAndCall(implementation, reputationABI.PackInitialize(common.Address{})))
	}
	w.wantRevert("InvalidInitialization()", admin, at, bootstrapABI.PackInitialize(stranger.addr))
}

// A proxy created on the real implementation has no owner, and so nobody can
// initialize it.
func TestDirectProxyIsStillborn(t *testing.T) {
	w := newWorld(t)
	at := w.deploy(bindings.ERC1967ProxyMetaData.Bin, proxyABI.PackConstructor(w.identityImpl, nil))
	w.wantRevert("OwnableUnauthorizedAccount("+admin.addr.Hex()+")", admin, at, identityABI.PackInitialize())
	if got := get(w, at, identityABI.PackOwner(), identityABI.UnpackOwner); got != (common.Address{}) {
		t.Errorf("owner %s", got)
	}
}

func TestUpgradeKeepsState(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "ipfs://kept")
	w.send(owner, w.identity, identityABI.PackSetMetadata(id, "k", []byte{1}))
	w.rate(client, id, opinion{n(5), 0, "a", "b"})
	w.send(owner, w.reputation, reputationABI.PackAppendResponse(id, client.addr, 1, "u", one))
	w.send(owner, w.validation, validationABI.PackValidationRequest(validator.addr, id, "", one))
	w.send(validator, w.validation, respond(one, 80, "t"))
	for at, bin := range map[common.Address]string{
		w.identity:   bindings.IdentityRegistryMetaData.Bin,
		w.reputation: bindings.ReputationRegistryMetaData.Bin,
		w.validation: bindings.ValidationRegistryMetaData.Bin,
	} {
		fresh := w.deploy(bin, nil)
		w.wantEvents(w.send(admin, at, identityABI.PackUpgradeToAndCall(fresh, nil)),
			repute.Upgraded{Implementation: fresh})
	}
	if w.uri(id) != "ipfs://kept" || len(w.metadata(id, "k")) != 1 || w.agentWallet(id) != owner.addr {
		t.Error("identity lost state")
	}
	w.wantSummary(w.summary(id, "a", "b", client.addr), 1, n(5), 0)
	if w.responses(id, client.addr, 1) != 1 || w.validations(id, "t") != [2]uint64{1, 80} {
		t.Error("reputation or validation lost state")
	}
	if next := w.register(owner, ""); next.Cmp(n(1)) != 0 {
		t.Errorf("next agent has id %s", next)
	}
}

func TestUpgradeIsGuarded(t *testing.T) {
	w := newWorld(t)
	for at, implementation := range map[common.Address]common.Address{
		w.identity: w.identityImpl, w.reputation: w.reputationImpl, w.validation: w.validationImpl,
	} {
		upgrade := identityABI.PackUpgradeToAndCall(implementation, nil)
		w.wantRevert("OwnableUnauthorizedAccount("+stranger.addr.Hex()+")", stranger, at, upgrade)
		w.wantRevert("UUPSUnauthorizedCallContext()", admin, implementation, upgrade)
		w.wantRevert("", admin, at, identityABI.PackUpgradeToAndCall(common.Address{}, nil))
		w.wantRevert("", admin, at, identityABI.PackUpgradeToAndCall(stranger.addr, nil))
	}
	w.wantRevert("ERC1967InvalidImplementation("+w.reputation.Hex()+")", admin, w.identity,
		identityABI.PackUpgradeToAndCall(w.reputation, nil))
}

func TestOwnership(t *testing.T) {
	w := newWorld(t)
	give := identityABI.PackTransferOwnership(stranger.addr)
	w.wantRevert("OwnableUnauthorizedAccount("+client.addr.Hex()+")", client, w.identity, give)
	w.wantEvents(w.send(admin, w.identity, give), repute.OwnershipTransferred{Previous: admin.addr, New: stranger.addr})
	upgrade := identityABI.PackUpgradeToAndCall(w.identityImpl, nil)
	w.wantRevert("OwnableUnauthorizedAccount("+admin.addr.Hex()+")", admin, w.identity, upgrade)
	w.send(stranger, w.identity, upgrade)
	w.wantEvents(w.send(stranger, w.identity, identityABI.PackRenounceOwnership()),
		repute.OwnershipTransferred{Previous: stranger.addr})
	w.wantRevert("OwnableUnauthorizedAccount("+stranger.addr.Hex()+")", stranger, w.identity, upgrade)
}
