package eventlog

import (
	"math/big"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/contracts"
)

var (
	hashes = rapid.Custom(func(t *rapid.T) (h common.Hash) {
		copy(h[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes"))
		return h
	})
	addresses = rapid.Custom(func(t *rapid.T) common.Address { return common.Address(hashes.Draw(t, "hash").Bytes()[:20]) })
	tokens    = rapid.Custom(func(t *rapid.T) (id repute.TokenID) {
		h := hashes.Draw(t, "hash")
		id.SetBytes32(h[:])
		return id
	})
	// texts are of any bytes, as on the chain.
	texts  = rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "text")) })
	values = rapid.Custom(func(t *rapid.T) *big.Int {
		v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 15).Draw(t, "value"))
		if rapid.Bool().Draw(t, "negative") {
			v.Neg(v)
		}
		return v
	})
)

// events draws an event of any kind that Log knows.
func events(t *rapid.T) repute.Event {
	id, a, b, h := tokens.Draw(t, "id"), addresses.Draw(t, "a"), addresses.Draw(t, "b"), hashes.Draw(t, "h")
	n, small, text := rapid.Uint64().Draw(t, "n"), rapid.Uint8().Draw(t, "small"), texts.Draw(t, "text")
	return rapid.SampledFrom([]repute.Event{
		repute.Transfer{From: a, To: b, TokenID: id},
		repute.Registered{TokenID: id, Owner: a, URI: text},
		repute.URIUpdated{TokenID: id, UpdatedBy: a, URI: text},
		repute.MetadataSet{TokenID: id, Key: text, Value: []byte(texts.Draw(t, "value"))},
		repute.MetadataUpdate{TokenID: id},
		repute.BatchMetadataUpdate{From: id, To: tokens.Draw(t, "to")},
		repute.Approval{Owner: a, Approved: b, TokenID: id},
		repute.ApprovalForAll{Owner: a, Operator: b, Approved: small%2 == 0},
		repute.NewFeedback{TokenID: id, Client: a, Index: n, Value: values.Draw(t, "value"), Decimals: small, Tag1: text,
			Tag2: texts.Draw(t, "tag2"), Endpoint: texts.Draw(t, "endpoint"), URI: texts.Draw(t, "uri"), FeedbackHash: h},
		repute.FeedbackRevoked{TokenID: id, Client: a, Index: n},
		repute.ResponseAppended{TokenID: id, Client: a, Responder: b, Index: n, URI: text, ResponseHash: h},
		repute.ValidationRequest{Validator: a, TokenID: id, RequestHash: h, URI: text},
		repute.ValidationResponse{Validator: a, TokenID: id, RequestHash: h, Response: small, URI: text,
			ResponseHash: hashes.Draw(t, "response"), Tag: texts.Draw(t, "tag")},
		repute.TicketConsumed{TicketID: h, Payer: a, TokenID: id, Agent: b, FeedbackHash: hashes.Draw(t, "feedback")},
		repute.Upgraded{Implementation: a},
		repute.Initialized{Version: n},
		repute.OwnershipTransferred{Previous: a, New: b},
		repute.EIP712DomainChanged{},
	}).Draw(t, "event")
}

// What the ABIs encode, the decoders that are written by hand read as it was: every argument in its place.
func TestLogsDecodeToTheirEvents(t *testing.T) {
	t.Parallel()
	registries := Registries{Identity: common.Address{1}, Reputation: common.Address{2}, Validation: common.Address{3}}
	rapid.Check(t, func(t *rapid.T) {
		e := events(t)
		got, err := contracts.Decode(registries.Log(e))
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Fatalf("%+v is read as %+v, %v", e, got, err)
		}
	})
}
