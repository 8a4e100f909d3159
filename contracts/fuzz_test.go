package contracts

import (
	"bytes"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"repute"
)

// reference decodes the unindexed arguments with go-ethereum's decoder.
func reference(e abi.Event, data []byte) ([]any, error) {
	inputs := e.Inputs.NonIndexed()
	if len(inputs) == 0 {
		return nil, nil
	}
	return inputs.Unpack(data)
}

// dataArguments gives an event's unindexed arguments in order of declaration, as
// go-ethereum would type them.
func dataArguments(e repute.Event) []any {
	switch e := e.(type) {
	case repute.Registered:
		return []any{e.URI}
	case repute.URIUpdated:
		return []any{e.URI}
	case repute.MetadataSet:
		return []any{e.Key, e.Value}
	case repute.MetadataUpdate:
		return []any{e.TokenID.ToBig()}
	case repute.BatchMetadataUpdate:
		return []any{e.From.ToBig(), e.To.ToBig()}
	case repute.ApprovalForAll:
		return []any{e.Approved}
	case repute.NewFeedback:
		return []any{e.Index, e.Value, e.Decimals, e.Tag1, e.Tag2, e.Endpoint, e.URI, [32]byte(e.FeedbackHash)}
	case repute.ResponseAppended:
		return []any{e.Index, e.URI, [32]byte(e.ResponseHash)}
	case repute.ValidationRequest:
		return []any{e.URI}
	case repute.ValidationResponse:
		return []any{e.Response, e.URI, [32]byte(e.ResponseHash), e.Tag}
	case repute.Initialized:
		return []any{e.Version}
	}
	return nil
}

// topicArguments gives an event's indexed arguments as topics.
func topicArguments(e repute.Event) []common.Hash {
	id := func(n repute.TokenID) common.Hash { return n.Bytes32() }
	acct := func(a common.Address) common.Hash { return common.BytesToHash(a[:]) }
	switch e := e.(type) {
	case repute.Transfer:
		return []common.Hash{acct(e.From), acct(e.To), id(e.TokenID)}
	case repute.Registered:
		return []common.Hash{id(e.TokenID), acct(e.Owner)}
	case repute.URIUpdated:
		return []common.Hash{id(e.TokenID), acct(e.UpdatedBy)}
	case repute.MetadataSet:
		return []common.Hash{id(e.TokenID), hashOf(e.Key)}
	case repute.Approval:
		return []common.Hash{acct(e.Owner), acct(e.Approved), id(e.TokenID)}
	case repute.ApprovalForAll:
		return []common.Hash{acct(e.Owner), acct(e.Operator)}
	case repute.NewFeedback:
		return []common.Hash{id(e.TokenID), acct(e.Client), hashOf(e.Tag1)}
	case repute.FeedbackRevoked:
		return []common.Hash{id(e.TokenID), acct(e.Client), id(*uint256.NewInt(e.Index))}
	case repute.ResponseAppended:
		return []common.Hash{id(e.TokenID), acct(e.Client), acct(e.Responder)}
	case repute.ValidationRequest:
		return []common.Hash{acct(e.Validator), id(e.TokenID), e.RequestHash}
	case repute.ValidationResponse:
		return []common.Hash{acct(e.Validator), id(e.TokenID), e.RequestHash}
	case repute.Upgraded:
		return []common.Hash{acct(e.Implementation)}
	case repute.OwnershipTransferred:
		return []common.Hash{acct(e.Previous), acct(e.New)}
	}
	return nil
}

// agree checks a decoded log against go-ethereum's reading of the same bytes.
func agree(t testing.TB, declared abi.Event, l types.Log, got repute.Event) {
	t.Helper()
	want, err := reference(declared, l.Data)
	if err != nil {
		t.Fatalf("%s: go-ethereum refuses what Decode accepts: %v", got.Kind(), err)
	}
	args := dataArguments(got)
	if len(args) != len(want) {
		t.Fatalf("%s: %d arguments, want %d", got.Kind(), len(args), len(want))
	}
	for i := range want {
		if !equal(args[i], want[i]) {
			t.Fatalf("%s argument %d: %v, want %v", got.Kind(), i, args[i], want[i])
		}
	}
	for i, topic := range topicArguments(got) {
		if topic != l.Topics[i+1] {
			t.Fatalf("%s topic %d: %s, want %s", got.Kind(), i+1, topic, l.Topics[i+1])
		}
	}
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case *big.Int:
		return a.Cmp(b.(*big.Int)) == 0
	case []byte:
		return bytes.Equal(a, b.([]byte))
	}
	return a == b
}

// Every recorded log of the current ABI decodes, and as go-ethereum reads it.
func TestDecodeRecordedLogs(t *testing.T) {
	for _, name := range recordings {
		for i, l := range recordedLogs(t, dataFile(t, name)) {
			got, err := Decode(l)
			if err != nil {
				t.Errorf("%s %d: %v", name, i, err)
				continue
			}
			agree(t, declared(t, got.Kind()), l, got)
		}
	}
}

// FuzzDecode feeds any bytes. Decode must not panic, must give exactly one kind
// of error, and what it accepts go-ethereum must read the same way.
func FuzzDecode(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(flatten(s.log.Topics), s.log.Data)
	}
	for _, name := range recordings {
		if raw, ok := readData(f, name); ok {
			for _, l := range recordedLogs(f, raw) {
				f.Add(flatten(l.Topics), l.Data)
			}
		}
	}
	events := make(map[repute.EventKind]abi.Event)
	for _, s := range shapes {
		events[s.kind] = declared(f, s.kind)
	}
	f.Fuzz(func(t *testing.T, topics, data []byte) {
		l := types.Log{Data: data}
		for ; len(topics) >= 32 && len(l.Topics) < 5; topics = topics[32:] {
			l.Topics = append(l.Topics, common.Hash(topics[:32]))
		}
		got, err := Decode(l)
		if err != nil {
			oneKind(t, err)
			return
		}
		agree(t, events[got.Kind()], l, got)
	})
}

func flatten(topics []common.Hash) (b []byte) {
	for _, topic := range topics {
		b = append(b, topic[:]...)
	}
	return b
}

func oneKind(t *testing.T, err error) {
	t.Helper()
	n := 0
	for _, kind := range []error{ErrForeign, ErrLegacy, ErrMalformed} {
		if errors.Is(err, kind) {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%v is of %d kinds", err, n)
	}
}

// Whatever go-ethereum encodes for feedback comes back, and every way of cutting
// the data short before its last string's end is refused.
func TestDecodeFeedbackProperty(t *testing.T) {
	event := declared(t, repute.KindNewFeedback)
	rapid.Check(t, func(r *rapid.T) {
		text := func(name string) string {
			return string(rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(r, name))
		}
		value := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 15).Draw(r, "value"))
		if rapid.Bool().Draw(r, "negative") {
			value.Neg(value)
		}
		tag1 := text("tag1")
		l := encode(t, repute.KindNewFeedback, big.NewInt(rapid.Int64Min(0).Draw(r, "token")), bob,
			rapid.Uint64().Draw(r, "index"), value, rapid.Uint8().Draw(r, "decimals"),
			tag1, tag1, text("tag2"), text("endpoint"), text("uri"), [32]byte(hash1))
		got, err := Decode(l)
		if err != nil {
			r.Fatal(err)
		}
		agree(t, event, l, got)
		uri := got.(repute.NewFeedback).URI
		padding := (32 - len(uri)%32) % 32
		l.Data = l.Data[:rapid.IntRange(0, len(l.Data)-padding-1).Draw(r, "cut")]
		if _, err := Decode(l); !errors.Is(err, ErrMalformed) {
			r.Fatalf("cut to %d bytes: %v", len(l.Data), err)
		}
	})
}
