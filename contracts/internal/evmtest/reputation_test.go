package evmtest

import (
	"math/big"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
)

var one = common.HexToHash("0x1111111111111111111111111111111111111111111111111111111111111111")

// opinion is what a client says; the other arguments of giveFeedback have no
// effect on state.
type opinion struct {
	value      *big.Int
	decimals   uint8
	tag1, tag2 string
}

func (o opinion) pack(id *big.Int) []byte {
	return reputationABI.PackGiveFeedback(id, o.value, o.decimals, o.tag1, o.tag2, "https://e", "ipfs://f", one)
}

func (w *world) rate(p party, id *big.Int, o opinion) {
	w.t.Helper()
	w.send(p, w.reputation, o.pack(id))
}

func (w *world) summary(id *big.Int, tag1, tag2 string, clients ...common.Address) bindings.GetSummaryOutput {
	w.t.Helper()
	return get(w, w.reputation, reputationABI.PackGetSummary(id, clients, tag1, tag2), reputationABI.UnpackGetSummary)
}

func (w *world) wantSummary(got bindings.GetSummaryOutput, count uint64, value *big.Int, decimals uint8) {
	w.t.Helper()
	if got.Count != count || got.SummaryValue.Cmp(value) != 0 || got.SummaryValueDecimals != decimals {
		w.t.Errorf("summary %d × %s@%d, want %d × %s@%d", got.Count, got.SummaryValue,
			got.SummaryValueDecimals, count, value, decimals)
	}
}

func (w *world) lastIndex(id *big.Int, p party) uint64 {
	w.t.Helper()
	return get(w, w.reputation, reputationABI.PackGetLastIndex(id, p.addr), reputationABI.UnpackGetLastIndex)
}

func (w *world) clients(id *big.Int) []common.Address {
	w.t.Helper()
	return get(w, w.reputation, reputationABI.PackGetClients(id), reputationABI.UnpackGetClients)
}

func TestGiveFeedback(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	if w.lastIndex(id, client) != 0 || len(w.clients(id)) != 0 {
		t.Error("feedback before any")
	}
	o := opinion{n(9977), 2, "uptime", "week"}
	w.wantEvents(w.send(client, w.reputation, o.pack(id)), repute.NewFeedback{TokenID: token(id),
		Client: client.addr, Index: 1, Value: n(9977), Decimals: 2, Tag1: "uptime", Tag2: "week",
		Endpoint: "https://e", URI: "ipfs://f", FeedbackHash: one})
	w.rate(stranger, id, opinion{n(-32), 1, "", ""})
	w.rate(client, id, opinion{n(0), 0, "", ""})
	if w.lastIndex(id, client) != 2 || w.lastIndex(id, stranger) != 1 {
		t.Error("indexes are not per client")
	}
	if got := w.clients(id); !reflect.DeepEqual(got, []common.Address{client.addr, stranger.addr}) {
		t.Errorf("clients %v", got)
	}
	f := get(w, w.reputation, reputationABI.PackReadFeedback(id, stranger.addr, 1), reputationABI.UnpackReadFeedback)
	if f.Value.Cmp(n(-32)) != 0 || f.ValueDecimals != 1 || f.Tag1 != "" || f.IsRevoked {
		t.Errorf("%+v", f)
	}
	identity := get(w, w.reputation, reputationABI.PackGetIdentityRegistry(), reputationABI.UnpackGetIdentityRegistry)
	if identity != w.identity {
		t.Errorf("identity registry %s", identity)
	}
}

func TestFeedbackLimits(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	most := new(big.Int).Exp(n(10), n(38), nil)
	over := new(big.Int).Add(most, n(1))
	least := new(big.Int).Neg(most)
	w.rate(client, id, opinion{most, 0, "", ""})
	w.rate(client, id, opinion{least, 18, "", ""})
	w.rate(client, id, opinion{n(1000), 0, "", ""}) // there is no bound of 100
	for want, o := range map[string]opinion{
		"too many decimals": {over, 19, "", ""}, // checked before the value
		"value too large":   {over, 18, "", ""},
	} {
		w.wantRevert(want, client, w.reputation, o.pack(id))
	}
	w.wantRevert("value too large", client, w.reputation, opinion{new(big.Int).Neg(over), 0, "", ""}.pack(id))
	w.wantRevert("value too large", owner, w.reputation, opinion{over, 0, "", ""}.pack(id)) // before the author
	w.wantRevert("ERC721NonexistentToken(999)", client, w.reputation, opinion{n(1), 0, "", ""}.pack(n(999)))
}

// An account that may act for the agent may not rate it, at the time of rating.
func TestSelfFeedback(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.send(owner, w.identity, identityABI.PackSetApprovalForAll(stranger.addr, true))
	w.send(owner, w.identity, identityABI.PackApprove(wallet.addr, id))
	o := opinion{n(1), 0, "", ""}
	for _, p := range []party{owner, stranger, wallet} {
		w.wantRevert("Self-feedback not allowed", p, w.reputation, o.pack(id))
	}
	w.send(owner, w.identity, identityABI.PackTransferFrom(owner.addr, client.addr, id))
	w.rate(owner, id, o) // a former owner may
	w.wantRevert("Self-feedback not allowed", client, w.reputation, o.pack(id))
}

func TestRevokeFeedback(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.rate(client, id, opinion{n(1), 0, "", ""})
	w.wantRevert("index must be > 0", client, w.reputation, reputationABI.PackRevokeFeedback(id, 0))
	w.wantRevert("index out of bounds", client, w.reputation, reputationABI.PackRevokeFeedback(id, 2))
	w.wantRevert("index out of bounds", stranger, w.reputation, reputationABI.PackRevokeFeedback(id, 1))
	w.wantRevert("index out of bounds", owner, w.reputation, reputationABI.PackRevokeFeedback(id, 1))
	w.wantEvents(w.send(client, w.reputation, reputationABI.PackRevokeFeedback(id, 1)),
		repute.FeedbackRevoked{TokenID: token(id), Client: client.addr, Index: 1})
	w.wantRevert("Already revoked", client, w.reputation, reputationABI.PackRevokeFeedback(id, 1))
	f := get(w, w.reputation, reputationABI.PackReadFeedback(id, client.addr, 1), reputationABI.UnpackReadFeedback)
	if !f.IsRevoked || len(w.clients(id)) != 1 || w.lastIndex(id, client) != 1 {
		t.Error("a revoked feedback is still listed, as revoked")
	}
	w.wantSummary(w.summary(id, "", "", client.addr), 0, n(0), 0)
	w.wantRevert("index must be > 0", owner, w.reputation, reputationABI.PackReadFeedback(id, client.addr, 0))
	w.wantRevert("index out of bounds", owner, w.reputation, reputationABI.PackReadFeedback(id, client.addr, 2))
}

func (w *world) responses(id *big.Int, client common.Address, index uint64, from ...common.Address) uint64 {
	w.t.Helper()
	return get(w, w.reputation, reputationABI.PackGetResponseCount(id, client, index, from),
		reputationABI.UnpackGetResponseCount)
}

func TestAppendResponse(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.rate(client, id, opinion{n(1), 0, "", ""})
	w.rate(client, id, opinion{n(2), 0, "", ""})
	w.rate(stranger, id, opinion{n(3), 0, "", ""})
	w.send(client, w.reputation, reputationABI.PackRevokeFeedback(id, 1))
	answer := func(p party, to common.Address, index uint64, uri string) []byte {
		return reputationABI.PackAppendResponse(id, to, index, uri, one)
	}
	w.wantRevert("Empty URI", owner, w.reputation, answer(owner, client.addr, 1, ""))
	w.wantRevert("index must be > 0", owner, w.reputation, answer(owner, client.addr, 0, "u"))
	w.wantRevert("index out of bounds", owner, w.reputation, answer(owner, client.addr, 3, "u"))
	// The official contract checks in this order: index, URI, bounds.
	w.wantRevert("index must be > 0", owner, w.reputation, answer(owner, client.addr, 0, ""))
	w.wantRevert("Empty URI", owner, w.reputation, answer(owner, client.addr, 99, ""))
	// To a revoked feedback, twice, and by a third party.
	for _, p := range []party{owner, owner, wallet} {
		w.wantEvents(w.send(p, w.reputation, answer(p, client.addr, 1, "ipfs://r")), repute.ResponseAppended{
			TokenID: token(id), Client: client.addr, Index: 1, Responder: p.addr, URI: "ipfs://r", ResponseHash: one})
	}
	w.send(owner, w.reputation, answer(owner, client.addr, 2, "u"))
	w.send(owner, w.reputation, answer(owner, stranger.addr, 1, "u"))
	all := common.Address{}
	for _, c := range []struct {
		want   uint64
		client common.Address
		index  uint64
		from   []common.Address
	}{
		{5, all, 0, nil},
		{4, all, 0, []common.Address{owner.addr}},
		{4, client.addr, 0, nil},
		{1, client.addr, 0, []common.Address{wallet.addr}},
		{3, client.addr, 1, nil},
		{2, client.addr, 1, []common.Address{owner.addr}},
		{4, client.addr, 1, []common.Address{owner.addr, owner.addr}},
		{0, client.addr, 1, []common.Address{client.addr}},
		{1, stranger.addr, 1, nil},
		{0, wallet.addr, 0, nil},
		{0, client.addr, 9, nil},
	} {
		if got := w.responses(id, c.client, c.index, c.from...); got != c.want {
			t.Errorf("responses to %s %d by %v: %d, want %d", c.client, c.index, c.from, got, c.want)
		}
	}
}

func TestReadAllFeedback(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.rate(client, id, opinion{n(1), 0, "a", "x"})
	w.rate(client, id, opinion{n(2), 1, "a", "y"})
	w.rate(stranger, id, opinion{n(-3), 2, "b", "x"})
	w.rate(client, id, opinion{n(4), 3, "", ""})
	w.send(client, w.reputation, reputationABI.PackRevokeFeedback(id, 2))
	for _, c := range []struct {
		clients []common.Address
		tag1    string
		tag2    string
		revoked bool
		want    []int64
	}{
		{nil, "", "", true, []int64{1, 2, 4, -3}},
		{nil, "", "", false, []int64{1, 4, -3}},
		{nil, "a", "", true, []int64{1, 2}},
		{nil, "a", "y", true, []int64{2}},
		{nil, "a", "y", false, nil},
		{nil, "", "x", false, []int64{1, -3}},
		{[]common.Address{stranger.addr}, "", "", false, []int64{-3}},
		{[]common.Address{stranger.addr, stranger.addr}, "", "", false, []int64{-3, -3}},
		{[]common.Address{wallet.addr}, "", "", false, nil},
	} {
		all := get(w, w.reputation, reputationABI.PackReadAllFeedback(id, c.clients, c.tag1, c.tag2, c.revoked),
			reputationABI.UnpackReadAllFeedback)
		var got []int64
		for _, v := range all.Values {
			got = append(got, v.Int64())
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q %q %v: %v, want %v", c.tag1, c.tag2, c.revoked, got, c.want)
		}
	}
	all := get(w, w.reputation, reputationABI.PackReadAllFeedback(id, nil, "", "", true),
		reputationABI.UnpackReadAllFeedback)
	want := bindings.ReadAllFeedbackOutput{
		Clients:         []common.Address{client.addr, client.addr, client.addr, stranger.addr},
		FeedbackIndexes: []uint64{1, 2, 3, 1},
		Values:          all.Values,
		ValueDecimals:   []uint8{0, 1, 3, 2},
		Tag1s:           []string{"a", "a", "", "b"},
		Tag2s:           []string{"x", "y", "", "x"},
		RevokedStatuses: []bool{false, true, false, false},
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v", all)
	}
}
