package evmtest

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts/bindings/fixtures"
)

var receiverABI = fixtures.NewMintReceiver()

// step is one call made inside the mint callback; the id in it is a placeholder.
type step = fixtures.MintReceiverStep

// receiver is a contract that registers agents and acts while they are minted.
type receiver struct {
	*world
	addr common.Address
}

func (w *world) newReceiver() receiver {
	w.t.Helper()
	return receiver{w, w.deploy(fixtures.MintReceiverMetaData.Bin, nil)}
}

func (r receiver) run(registration []byte, steps ...step) *types.Receipt {
	r.t.Helper()
	return r.send(owner, r.addr, receiverABI.PackRun(r.identity, registration, steps))
}

func (r receiver) setURI(uri string) step {
	return step{Data: identityABI.PackSetAgentURI(n(0), uri), IdArgument: n(0)}
}

func (r receiver) setMetadata(key string, value []byte) step {
	return step{Data: identityABI.PackSetMetadata(n(0), key, value), IdArgument: n(0)}
}

func (r receiver) transfer(to common.Address) step {
	return step{Data: identityABI.PackTransferFrom(r.addr, to, n(0)), IdArgument: n(2)}
}

func (r receiver) unsetWallet() step {
	return step{Data: identityABI.PackUnsetAgentWallet(n(0)), IdArgument: n(0)}
}

func (r receiver) setWallet(id *big.Int, p party) step {
	deadline := r.in(200)
	return step{Data: identityABI.PackSetAgentWallet(id, p.addr, deadline,
		r.sign(p, r.consent(id, p.addr, r.addr, deadline))), IdArgument: n(0)}
}

// What the registry logs around the callback's own logs.
func (r receiver) registered(id *big.Int, uri string) []repute.Event {
	return []repute.Event{repute.Registered{TokenID: token(id), URI: uri, Owner: r.addr}, walletSet(id, r.addr[:])}
}

func uriSet(id *big.Int, uri string, by common.Address) []repute.Event {
	return []repute.Event{repute.MetadataUpdate{TokenID: token(id)},
		repute.URIUpdated{TokenID: token(id), URI: uri, UpdatedBy: by}}
}

func (r receiver) moved(id *big.Int, to common.Address) []repute.Event {
	return []repute.Event{walletSet(id, []byte{}), repute.Transfer{From: r.addr, To: to, TokenID: token(id)}}
}

func join(parts ...[]repute.Event) (all []repute.Event) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// The callback's URI stays, although Registered comes later with none.
func TestCallbackSetsURI(t *testing.T) {
	r := newWorld(t).newReceiver()
	id := n(0)
	r.wantEvents(r.run(identityABI.PackRegister(), r.setURI("https://cb.example"), r.setMetadata("k", []byte{1})),
		join([]repute.Event{mint(r.addr, id)}, uriSet(id, "https://cb.example", r.addr),
			[]repute.Event{repute.MetadataSet{TokenID: token(id), Key: "k", Value: []byte{1}}},
			r.registered(id, ""))...)
	if r.uri(id) != "https://cb.example" || r.agentWallet(id) != r.addr {
		t.Errorf("uri %q, wallet %s", r.uri(id), r.agentWallet(id))
	}
}

// The last wallet event is wrong: the transfer inside the callback cleared it.
func TestCallbackTransfers(t *testing.T) {
	r := newWorld(t).newReceiver()
	id := n(0)
	r.wantEvents(r.run(identityABI.PackRegister(), r.transfer(stranger.addr)),
		join([]repute.Event{mint(r.addr, id)}, r.moved(id, stranger.addr), r.registered(id, ""))...)
	if r.ownerOf(id) != stranger.addr || r.agentWallet(id) != (common.Address{}) {
		t.Errorf("owner %s, wallet %s", r.ownerOf(id), r.agentWallet(id))
	}
}

// The last wallet event is older than it looks: the wallet was written before the
// mint, so what the callback did with it stays.
func TestCallbackChangesWallet(t *testing.T) {
	for name, c := range map[string]struct {
		value []byte
		step  func(r receiver) step
	}{
		"unset": {[]byte{}, func(r receiver) step { return r.unsetWallet() }},
		"set":   {wallet.addr[:], func(r receiver) step { return r.setWallet(n(0), wallet) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWorld(t).newReceiver()
			id := n(0)
			r.wantEvents(r.run(identityABI.PackRegister(), c.step(r)),
				join([]repute.Event{mint(r.addr, id), walletSet(id, c.value)}, r.registered(id, ""))...)
			if got := r.agentWallet(id); got != common.BytesToAddress(c.value) {
				t.Errorf("wallet %s", got)
			}
		})
	}
}

// An empty URI that was given replaces the callback's, and is told from none by
// the MetadataUpdate before Registered.
func TestCallbackSetsURIAndEmptyParameter(t *testing.T) {
	r := newWorld(t).newReceiver()
	id := n(0)
	r.wantEvents(r.run(identityABI.PackRegisterURI(""), r.setURI("https://cb.example")),
		join([]repute.Event{mint(r.addr, id)}, uriSet(id, "https://cb.example", r.addr),
			[]repute.Event{repute.MetadataUpdate{TokenID: token(id)}}, r.registered(id, ""))...)
	if r.uri(id) != "" {
		t.Errorf("uri %q", r.uri(id))
	}
}

// With a URI parameter, the parameter wins over the callback's.
func TestCallbackSetsAllAndTransfers(t *testing.T) {
	r := newWorld(t).newReceiver()
	id := n(0)
	r.wantEvents(r.run(identityABI.PackRegisterURI("https://param.example"), r.setURI("https://cb.example"),
		r.setMetadata("k", []byte{1}), r.transfer(stranger.addr)),
		join([]repute.Event{mint(r.addr, id)}, uriSet(id, "https://cb.example", r.addr),
			[]repute.Event{repute.MetadataSet{TokenID: token(id), Key: "k", Value: []byte{1}}},
			r.moved(id, stranger.addr), []repute.Event{repute.MetadataUpdate{TokenID: token(id)}},
			r.registered(id, "https://param.example"))...)
	if r.uri(id) != "https://param.example" || r.ownerOf(id) != stranger.addr ||
		r.agentWallet(id) != (common.Address{}) || !bytes.Equal(r.metadata(id, "k"), []byte{1}) {
		t.Errorf("uri %q, owner %s, wallet %s", r.uri(id), r.ownerOf(id), r.agentWallet(id))
	}
}

// A contract that cannot receive tokens cannot register.
func TestRegistrantMustReceive(t *testing.T) {
	w := newWorld(t)
	code := w.deploy(fixtures.ContractWalletMetaData.Bin, fixtureWallet.PackConstructor(owner.addr))
	w.wantRevert("ERC721InvalidReceiver("+code.Hex()+")", party{addr: code}, w.identity, identityABI.PackRegister())
}
