package contracts

import (
	"bytes"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"repute"
	"repute/contracts/bindings"
)

var (
	alice = common.HexToAddress("0xa11ce00000000000000000000000000000000001")
	bob   = common.HexToAddress("0xb0b0000000000000000000000000000000000002")
	hash1 = common.HexToHash("0x1111")
	hash2 = common.HexToHash("0x2222")
)

// declared finds an event in the registries' ABIs.
func declared(t testing.TB, kind repute.EventKind) abi.Event {
	t.Helper()
	for _, a := range []*abi.ABI{
		parse(t, &bindings.IdentityRegistryMetaData),
		parse(t, &bindings.ReputationRegistryMetaData),
		parse(t, &bindings.ValidationRegistryMetaData),
	} {
		if e, ok := a.Events[kind.String()]; ok {
			return e
		}
	}
	t.Fatalf("no registry declares %s", kind)
	return abi.Event{}
}

// encode makes the log of an event from its arguments in order of declaration,
// with go-ethereum's encoder.
func encode(t testing.TB, kind repute.EventKind, values ...any) types.Log {
	t.Helper()
	e := declared(t, kind)
	l := types.Log{Topics: []common.Hash{e.ID}}
	var rest []any
	for i, in := range e.Inputs {
		if !in.Indexed {
			rest = append(rest, values[i])
			continue
		}
		topics, err := abi.MakeTopics([]any{values[i]})
		if err != nil {
			t.Fatal(err)
		}
		l.Topics = append(l.Topics, topics[0][0])
	}
	data, err := e.Inputs.NonIndexed().Pack(rest...)
	if err != nil {
		t.Fatal(err)
	}
	l.Data = data
	return l
}

func token(n uint64) repute.TokenID { return *uint256.NewInt(n) }

// samples has one log of every kind and what it means.
func samples(t testing.TB) map[repute.EventKind]struct {
	log  types.Log
	want repute.Event
} {
	seven, nine := big.NewInt(7), big.NewInt(9)
	list := []struct {
		values []any
		want   repute.Event
	}{
		{[]any{alice, bob, seven}, repute.Transfer{From: alice, To: bob, TokenID: token(7)}},
		{[]any{seven, "ipfs://x", alice}, repute.Registered{TokenID: token(7), URI: "ipfs://x", Owner: alice}},
		{[]any{seven, "", alice}, repute.URIUpdated{TokenID: token(7), UpdatedBy: alice}},
		{[]any{seven, "k\x00\xff", "k\x00\xff", []byte{1, 2}},
			repute.MetadataSet{TokenID: token(7), Key: "k\x00\xff", Value: []byte{1, 2}}},
		{[]any{seven}, repute.MetadataUpdate{TokenID: token(7)}},
		{[]any{seven, nine}, repute.BatchMetadataUpdate{From: token(7), To: token(9)}},
		{[]any{alice, bob, seven}, repute.Approval{Owner: alice, Approved: bob, TokenID: token(7)}},
		{[]any{alice, bob, true}, repute.ApprovalForAll{Owner: alice, Operator: bob, Approved: true}},
		{[]any{seven, bob, uint64(3), big.NewInt(-32), uint8(1), "yield", "yield", "month", "e", "u", [32]byte(hash1)},
			repute.NewFeedback{TokenID: token(7), Client: bob, Index: 3, Value: big.NewInt(-32), Decimals: 1,
				Tag1: "yield", Tag2: "month", Endpoint: "e", URI: "u", FeedbackHash: hash1}},
		{[]any{seven, bob, uint64(3)}, repute.FeedbackRevoked{TokenID: token(7), Client: bob, Index: 3}},
		{[]any{seven, bob, uint64(3), alice, "u", [32]byte(hash1)},
			repute.ResponseAppended{TokenID: token(7), Client: bob, Index: 3, Responder: alice, URI: "u",
				ResponseHash: hash1}},
		{[]any{alice, seven, "u", [32]byte(hash1)},
			repute.ValidationRequest{Validator: alice, TokenID: token(7), URI: "u", RequestHash: hash1}},
		{[]any{alice, seven, [32]byte(hash1), uint8(100), "u", [32]byte(hash2), "tag"},
			repute.ValidationResponse{Validator: alice, TokenID: token(7), RequestHash: hash1, Response: 100,
				URI: "u", ResponseHash: hash2, Tag: "tag"}},
		{[]any{alice}, repute.Upgraded{Implementation: alice}},
		{[]any{uint64(2)}, repute.Initialized{Version: 2}},
		{[]any{alice, bob}, repute.OwnershipTransferred{Previous: alice, New: bob}},
		{nil, repute.EIP712DomainChanged{}},
	}
	all := make(map[repute.EventKind]struct {
		log  types.Log
		want repute.Event
	})
	for _, s := range list {
		kind := s.want.Kind()
		all[kind] = struct {
			log  types.Log
			want repute.Event
		}{encode(t, kind, s.values...), s.want}
	}
	return all
}

func TestDecodeEveryKind(t *testing.T) {
	all := samples(t)
	if len(all) != len(shapes) {
		t.Fatalf("%d samples for %d events", len(all), len(shapes))
	}
	for kind, s := range all {
		got, err := Decode(s.log)
		if err != nil || !reflect.DeepEqual(got, s.want) {
			t.Errorf("%s: got %#v, %v\nwant %#v", kind, got, err, s.want)
		}
	}
}

func TestDecodeLimits(t *testing.T) {
	max128 := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))
	min128 := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 127))
	for _, v := range []*big.Int{max128, min128, big.NewInt(0), big.NewInt(-1), big.NewInt(1 << 62),
		new(big.Int).Lsh(big.NewInt(1), 63), new(big.Int).Lsh(big.NewInt(-1), 63), new(big.Int).Lsh(big.NewInt(-1), 64),
		new(big.Int).SetUint64(1<<64 - 1), new(big.Int).Neg(new(big.Int).SetUint64(1<<64 - 1))} {
		l := encode(t, repute.KindNewFeedback, big.NewInt(0), bob, uint64(1<<64-1), v, uint8(255), "", "", "", "", "",
			[32]byte{})
		got, err := Decode(l)
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		e := got.(repute.NewFeedback)
		if e.Value.Cmp(v) != 0 || e.Index != 1<<64-1 || e.Decimals != 255 {
			t.Errorf("%s decoded as %+v", v, e)
		}
	}
	huge := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	got, err := Decode(encode(t, repute.KindTransfer, common.Address{}, alice, huge))
	if err != nil {
		t.Fatal(err)
	}
	if id := got.(repute.Transfer).TokenID; id.Dec() != huge.String() {
		t.Errorf("token %s, want %s", id.Dec(), huge)
	}
}

func TestDecodeForeignAndLegacy(t *testing.T) {
	if _, err := Decode(types.Log{}); !errors.Is(err, ErrForeign) {
		t.Errorf("anonymous log: %v", err)
	}
	if _, err := Decode(types.Log{Topics: []common.Hash{hash1}}); !errors.Is(err, ErrForeign) {
		t.Errorf("unknown topic: %v", err)
	}
	for i, topic := range LegacyTopics() {
		_, err := Decode(types.Log{Topics: []common.Hash{topic}})
		var legacy *LegacyError
		if !errors.As(err, &legacy) || !errors.Is(err, ErrLegacy) || legacy.Signature != legacySignatures[i] {
			t.Errorf("%s: %v", legacySignatures[i], err)
		}
		if errors.Is(err, ErrForeign) || errors.Is(err, ErrMalformed) ||
			!strings.Contains(err.Error(), legacy.Signature) {
			t.Errorf("%s: %v is of two kinds", legacySignatures[i], err)
		}
	}
}

// put overwrites the n-th word of the data.
func put(l types.Log, n int, word []byte) types.Log {
	l.Data = bytes.Clone(l.Data)
	copy(l.Data[32*n:], common.LeftPadBytes(word, 32))
	return l
}

// swap overwrites a topic.
func swap(l types.Log, n int, topic common.Hash) types.Log {
	l.Topics = append([]common.Hash{}, l.Topics...)
	l.Topics[n] = topic
	return l
}

func TestDecodeMalformed(t *testing.T) {
	all := samples(t)
	feedback, registered := all[repute.KindNewFeedback].log, all[repute.KindRegistered].log
	wide := bytes.Repeat([]byte{0xff}, 32)
	bit127 := append([]byte{1}, make([]byte, 16)...)
	short := registered
	short.Data = short.Data[:65]
	for name, l := range map[string]types.Log{
		"index wider than uint64":      put(feedback, 0, append([]byte{1}, make([]byte, 8)...)),
		"value not sign-extended":      put(feedback, 1, append([]byte{0x80}, make([]byte, 15)...)),
		"value wider than int128":      put(feedback, 1, bit127),
		"negative with upper gap":      put(feedback, 1, append([]byte{0xff, 0xfe}, bytes.Repeat([]byte{0xff}, 30)...)),
		"decimals wider than uint8":    put(feedback, 2, []byte{1, 0}),
		"offset of all ones":           put(feedback, 3, wide),
		"offset at the end":            put(feedback, 3, big.NewInt(int64(len(feedback.Data))).Bytes()),
		"offset near the end":          put(feedback, 3, big.NewInt(int64(len(feedback.Data)-31)).Bytes()),
		"offset into the head":         put(feedback, 4, []byte{32}),
		"offset of 2^63":               put(feedback, 3, append([]byte{0x80}, make([]byte, 7)...)),
		"length of all ones":           put(feedback, 8, wide),
		"length of 2^62":               put(feedback, 8, append([]byte{0x40}, make([]byte, 7)...)),
		"tag hash of another tag":      swap(feedback, 3, emptyHash),
		"key hash of another key":      swap(all[repute.KindMetadataSet].log, 2, walletKeyHash),
		"client wider than an address": swap(feedback, 2, common.Hash(wide)),
		"boolean two":                  put(all[repute.KindApprovalForAll].log, 0, []byte{2}),
		"boolean of two bytes":         put(all[repute.KindApprovalForAll].log, 0, []byte{1, 0}),
		"response wider than uint8":    put(all[repute.KindValidationResponse].log, 0, []byte{1, 0}),
		"revoked index wider":          swap(all[repute.KindFeedbackRevoked].log, 3, common.Hash(wide)),
		"string cut off":               short,
	} {
		if e, err := Decode(l); !errors.Is(err, ErrMalformed) || e != nil {
			t.Errorf("%s: got %#v, %v", name, e, err)
		}
	}
}

// A log with a topic more or fewer, or with a head cut short, is malformed: so is
// an ERC-20 Transfer, which has this topic but only three of them.
// Read loses no log of a followed contract: what Decode refuses is kept as
// Undecoded, but for other contracts' events.
func TestReadKeepsWhatDecodeRefuses(t *testing.T) {
	whole := samples(t)[repute.KindNewFeedback].log
	cut := whole
	cut.Data = cut.Data[:40]
	old := whole
	old.Topics = append([]common.Hash{LegacyTopics()[0]}, old.Topics[1:]...)
	for want, l := range map[repute.UndecodedReason]types.Log{repute.MalformedEvent: cut, repute.LegacyEvent: old} {
		if e, err := Read(l); err != nil || e != (repute.Undecoded{Reason: want}) {
			t.Errorf("%v, %v, want %s", e, err, want)
		}
	}
	if e, err := Read(whole); err != nil || e.Kind() != repute.KindNewFeedback {
		t.Errorf("%v, %v, want the event", e, err)
	}
	if _, err := Read(types.Log{Topics: []common.Hash{{1}}}); !errors.Is(err, ErrForeign) {
		t.Errorf("%v, want ErrForeign", err)
	}
}

func TestDecodeCounts(t *testing.T) {
	for kind, s := range samples(t) {
		more, fewer := s.log, s.log
		more.Topics = append(append([]common.Hash{}, s.log.Topics...), hash1)
		if _, err := Decode(more); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s with a topic more: %v", kind, err)
		}
		if fewer.Topics = fewer.Topics[:len(fewer.Topics)-1]; len(fewer.Topics) > 0 {
			if _, err := Decode(fewer); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s with a topic fewer: %v", kind, err)
			}
		}
		cut := s.log
		for head := 32 * shapeOf[s.log.Topics[0]].words; head > 0; head -= 32 {
			cut.Data = s.log.Data[:head-1]
			if _, err := Decode(cut); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s with %d bytes: %v", kind, head-1, err)
			}
		}
	}
}

// What other encoders may do without changing the meaning.
func TestDecodeTolerates(t *testing.T) {
	l := encode(t, repute.KindMetadataSet, big.NewInt(7), "key", "key", []byte("value"))
	want := repute.MetadataSet{TokenID: token(7), Key: "key", Value: []byte("value")}
	trailing, padding, unpadded := l, l, l
	trailing.Data = append(bytes.Clone(l.Data), 1, 2, 3)
	padding.Data = bytes.Clone(l.Data)
	padding.Data[len(padding.Data)-1] = 0xff
	unpadded.Data = l.Data[:len(l.Data)-27]
	// The two tails in reverse order, at odd places.
	swapped := types.Log{Topics: l.Topics}
	swapped.Data = append(swapped.Data, common.LeftPadBytes([]byte{101}, 32)...)
	swapped.Data = append(swapped.Data, common.LeftPadBytes([]byte{64}, 32)...)
	swapped.Data = append(append(swapped.Data, common.LeftPadBytes([]byte{5}, 32)...), "value"...)
	swapped.Data = append(append(swapped.Data, common.LeftPadBytes([]byte{3}, 32)...), "key"...)
	for name, l := range map[string]types.Log{
		"canonical": l, "trailing bytes": trailing, "dirty padding": padding,
		"no padding": unpadded, "tails in any order": swapped,
	} {
		got, err := Decode(l)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v", name, got, err)
		}
	}
}

// An event outlives the log it came from.
func TestDecodeKeepsNoReference(t *testing.T) {
	l := encode(t, repute.KindMetadataSet, big.NewInt(7), "key", "key", []byte("value"))
	got, err := Decode(l)
	if err != nil {
		t.Fatal(err)
	}
	clear(l.Data)
	want := repute.MetadataSet{TokenID: token(7), Key: "key", Value: []byte("value")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the event changed with the log: %#v", got)
	}
}

// A cleared wallet has an empty value, not an absent one.
func TestDecodeClearedWallet(t *testing.T) {
	got, err := Decode(encode(t, repute.KindMetadataSet, big.NewInt(0), walletKey, walletKey, []byte{}))
	if err != nil {
		t.Fatal(err)
	}
	if e := got.(repute.MetadataSet); e.Value == nil || len(e.Value) != 0 || e.Key != walletKey {
		t.Errorf("got %#v", e)
	}
}

func TestDecodeAllocatesNoLiedLength(t *testing.T) {
	l := encode(t, repute.KindRegistered, big.NewInt(0), "", alice)
	lie := put(l, 1, []byte{0x7f, 0xff, 0xff, 0xff})
	n := testing.AllocsPerRun(100, func() {
		if _, err := Decode(lie); err == nil {
			t.Fatal("decoded")
		}
	})
	if n > 20 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecodeFeedback(b *testing.B) {
	l := encode(b, repute.KindNewFeedback, big.NewInt(7), bob, uint64(3), big.NewInt(9977), uint8(2), "uptime",
		"uptime", "week", "https://agent.example/a2a",
		"ipfs://bafkreifu6si3crqaejyxspc2gpfnpkagawibumki3p73aagyabniplkxwi",
		[32]byte(crypto.Keccak256Hash([]byte("x"))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(l); err != nil {
			b.Fatal(err)
		}
	}
}
