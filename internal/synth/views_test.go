package synth

import (
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"repute/contracts"
	"repute/contracts/bindings"
)

// asker sends view calls and fails the test where one is refused.
type asker struct {
	served
	t          *testing.T
	identity   *bindings.IdentityRegistry
	reputation *bindings.ReputationRegistry
	validation *bindings.ValidationRegistry
}

func ask(t *testing.T, h *History) asker {
	return asker{serve(t, h), t, bindings.NewIdentityRegistry(), bindings.NewReputationRegistry(),
		bindings.NewValidationRegistry()}
}

func (a asker) view(to common.Address, data []byte) []byte {
	a.t.Helper()
	raw, err := a.CallContract(a.t.Context(), ethereum.CallMsg{To: &to, Data: data}, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return raw
}

// value takes a result apart from its error.
func value[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// replayed gives what the events of a history amount to.
func replayed(t *testing.T, h *History) *legality {
	t.Helper()
	l := newLegality()
	l.check(t, records(t, h))
	return l
}

func TestAgentViews(t *testing.T) {
	h := get(t)
	l, a := replayed(t, h), ask(t, h)
	for n := uint64(0); n < uint64(len(l.owner)); n += 3 {
		id := new(big.Int).SetUint64(n)
		owner := value[common.Address](t)(a.identity.UnpackOwnerOf(a.view(identityAddress, a.identity.PackOwnerOf(id))))
		wallet := value[common.Address](t)(a.identity.UnpackGetAgentWallet(a.view(identityAddress,
			a.identity.PackGetAgentWallet(id))))
		approved := value[common.Address](t)(a.identity.UnpackGetApproved(a.view(identityAddress,
			a.identity.PackGetApproved(id))))
		uri := value[string](t)(a.identity.UnpackTokenURI(a.view(identityAddress, a.identity.PackTokenURI(id))))
		if owner != l.owner[n] || wallet != l.wallet[n] || approved != l.approved[n] || uri != l.uri[n] {
			t.Fatalf("agent %d: %s %s %s %q, want %s %s %s %q", n, owner, wallet, approved, uri,
				l.owner[n], l.wallet[n], l.approved[n], l.uri[n])
		}
		for _, key := range metadataKeys[:3] {
			got := value[[]byte](t)(a.identity.UnpackGetMetadata(a.view(identityAddress,
				a.identity.PackGetMetadata(id, key))))
			if string(got) != l.metadata[n][key] {
				t.Fatalf("agent %d, key %q: %q, want %q", n, key, got, l.metadata[n][key])
			}
		}
	}
	raw, err := a.StorageAt(t.Context(), identityAddress, contracts.AgentCountSlot(), nil)
	if err != nil || new(big.Int).SetBytes(raw).Uint64() != uint64(len(l.owner)) {
		t.Errorf("agent count %x, %v, want %d", raw, err, len(l.owner))
	}
	for pair, want := range l.acting {
		data := a.identity.PackIsApprovedForAll(pair[0], pair[1])
		if got := value[bool](t)(a.identity.UnpackIsApprovedForAll(a.view(identityAddress, data))); got != want {
			t.Errorf("operator %s of %s: %v", pair[1], pair[0], got)
		}
	}
}

func TestRatingViews(t *testing.T) {
	h := get(t)
	l, a := replayed(t, h), ask(t, h)
	asked := 0
	for of, last := range l.last {
		id := new(big.Int).SetUint64(of.token)
		got := value[uint64](t)(a.reputation.UnpackGetLastIndex(a.view(reputationAddress,
			a.reputation.PackGetLastIndex(id, of.client))))
		if got != last {
			t.Fatalf("%+v: last index %d, want %d", of, got, last)
		}
		for _, index := range []uint64{1, last} {
			e := l.ratings[ratingOf{of, index}]
			r := value[bindings.ReadFeedbackOutput](t)(a.reputation.UnpackReadFeedback(
				a.view(reputationAddress, a.reputation.PackReadFeedback(id, of.client, index))))
			if r.Value.Cmp(e.Value) != 0 || r.ValueDecimals != e.Decimals || r.Tag1 != e.Tag1 || r.Tag2 != e.Tag2 ||
				r.IsRevoked != l.revoked[ratingOf{of, index}] {
				t.Fatalf("%+v %d: %+v, want %+v", of, index, r, e)
			}
		}
		if asked++; asked == 300 {
			break
		}
	}
	for of, from := range l.responses {
		id := new(big.Int).SetUint64(of.token)
		count := func(client common.Address, index uint64, responders ...common.Address) uint64 {
			data := a.reputation.PackGetResponseCount(id, client, index, responders)
			return value[uint64](t)(a.reputation.UnpackGetResponseCount(a.view(reputationAddress, data)))
		}
		if got := count(of.client, of.index); got != uint64(len(from)) {
			t.Errorf("%+v has %d responses, want %d", of, got, len(from))
		}
		if got := count(of.client, of.index, from[0], from[0]); got < 2 || got%2 != 0 {
			t.Errorf("%+v: a responder named twice counts %d", of, got)
		}
		if count(common.Address{}, 0) < count(of.client, 0) || count(of.client, 0) < uint64(len(from)) {
			t.Errorf("%+v: sums are less than parts", of)
		}
	}
}

func TestValidationViews(t *testing.T) {
	h := get(t)
	l, a := replayed(t, h), ask(t, h)
	if len(l.answers) == 0 || len(l.answers) == len(l.requests) {
		t.Errorf("%d of %d requests are answered", len(l.answers), len(l.requests))
	}
	for hash, q := range l.requests {
		v := value[bindings.GetValidationStatusOutput](t)(a.validation.UnpackGetValidationStatus(
			a.view(validationAddress, a.validation.PackGetValidationStatus(hash))))
		e := l.answers[hash]
		if v.ValidatorAddress != q.Validator || v.AgentId.Uint64() != q.TokenID.Uint64() || v.Response != e.Response ||
			v.ResponseHash != e.ResponseHash || v.Tag != e.Tag || v.LastUpdate.Uint64() < genesisTime {
			t.Errorf("%s: %+v, want %+v of %+v", hash, v, e, q)
		}
	}
}

func TestReverts(t *testing.T) {
	h := get(t)
	a := ask(t, h)
	none := big.NewInt(1 << 40)
	for _, c := range []struct {
		to   common.Address
		data []byte
		want string
		raw  string // start of the revert's data
	}{
		{identityAddress, a.identity.PackOwnerOf(none), "execution reverted", "0x7e273289"},
		{identityAddress, a.identity.PackTokenURI(none), "execution reverted", "0x7e273289"},
		{reputationAddress, a.reputation.PackReadFeedback(big.NewInt(0), common.Address{9}, 1), "index out of bounds",
			"0x08c379a0"},
		{reputationAddress, a.reputation.PackReadFeedback(big.NewInt(0), common.Address{9}, 0), "index must be > 0",
			"0x08c379a0"},
		{validationAddress, a.validation.PackGetValidationStatus([32]byte{1}), "unknown", "0x08c379a0"},
		{identityAddress, []byte{1, 2, 3, 4}, "execution reverted", "0x"},
	} {
		_, err := a.CallContract(t.Context(), ethereum.CallMsg{To: &c.to, Data: c.data}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%x: %v, want %s", c.data[:4], err, c.want)
			continue
		}
		if e, ok := err.(rpc.DataError); !ok || !strings.HasPrefix(e.ErrorData().(string), c.raw) {
			t.Errorf("%x: %+v", c.data[:4], err)
		}
	}
	wallet := a.view(identityAddress, a.identity.PackGetAgentWallet(none))
	if common.BytesToAddress(wallet) != (common.Address{}) {
		t.Errorf("wallet of nobody: %x", wallet)
	}
	last := a.view(reputationAddress, a.reputation.PackGetLastIndex(none, common.Address{}))
	if new(big.Int).SetBytes(last).Sign() != 0 {
		t.Errorf("last index of nobody: %x", last)
	}
}

// Only the final state is kept: older blocks are refused, the finalized one and
// those named by hash are answered.
func TestStateOfBlocks(t *testing.T) {
	h := get(t)
	a := ask(t, h)
	_, hash, err := h.Header(h.finalized())
	if err != nil {
		t.Fatal(err)
	}
	msg := map[string]any{"to": identityAddress, "input": hexutil.Bytes(a.identity.PackOwnerOf(big.NewInt(0)))}
	var owner hexutil.Bytes
	batch := []rpc.BatchElem{
		{Method: "eth_call", Args: []any{msg, "finalized"}, Result: &owner},
		{Method: "eth_call", Args: []any{msg, map[string]any{"blockHash": hash, "requireCanonical": true}},
			Result: &owner},
		{Method: "eth_call", Args: []any{msg, hexutil.Uint64(h.LastEvent())}, Result: &owner},
		{Method: "eth_call", Args: []any{msg, hexutil.Uint64(h.LastEvent() - 1)}, Result: &owner},
		{Method: "eth_call", Args: []any{msg, hexutil.Uint64(h.Head() + 1)}, Result: &owner},
	}
	if err := a.Client.Client().BatchCallContext(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for i, e := range batch {
		if refused := i > 2; (e.Error != nil) != refused {
			t.Errorf("call %d: %v", i, e.Error)
		}
	}
}
