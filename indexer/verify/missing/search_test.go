package missing

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"repute"
	"repute/internal/eventlog"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

var (
	registries = eventlog.Registries{Identity: common.Address{1}, Reputation: common.Address{2},
		Validation: common.Address{3}}
	chain = repute.Chain{ID: 1, Identity: registries.Identity, Reputation: registries.Reputation,
		Validations: []common.Address{registries.Validation}, Gateways: []repute.WatchedContract{{Address: eventlog.Gateway}}}
)

// eventsOf are events of every kind that a gap can be of, about one agent and one client.
func eventsOf(agent uint64, client common.Address) []repute.Event {
	id, owner := eventlog.Token(agent), eventlog.Account(50+agent)
	return []repute.Event{
		repute.Transfer{From: owner, To: client, TokenID: id},
		repute.Registered{TokenID: id, Owner: owner, URI: "u"},
		repute.URIUpdated{TokenID: id, UpdatedBy: owner, URI: "v"},
		repute.MetadataSet{TokenID: id, Key: "k", Value: []byte{1}},
		repute.Approval{Owner: owner, Approved: client, TokenID: id},
		repute.ApprovalForAll{Owner: owner, Operator: client, Approved: true},
		repute.NewFeedback{TokenID: id, Client: client, Index: 3, Value: big.NewInt(7), Tag1: "t"},
		repute.FeedbackRevoked{TokenID: id, Client: client, Index: 3},
		repute.ResponseAppended{TokenID: id, Client: client, Index: 3, Responder: owner},
		repute.ValidationRequest{Validator: client, TokenID: id, RequestHash: common.Hash{9}},
		repute.ValidationResponse{Validator: client, TokenID: id, RequestHash: common.Hash{9}, Response: 80},
		repute.TicketConsumed{TicketID: common.Hash{8}, Payer: client, TokenID: id, Agent: owner},
		repute.MetadataUpdate{TokenID: id},
		repute.Upgraded{Implementation: owner},
	}
}

// gapOf is the gap of an event as a comparison of states, or what waits for it, names it.
func gapOf(e repute.Event) chaindb.Gap {
	r := repute.BlockRange{From: 1, To: 9}
	switch e := e.(type) {
	case repute.ApprovalForAll:
		return OfOperator(verifydb.OperatorThen{Owner: e.Owner, Operator: e.Operator}, r, true)
	case repute.NewFeedback:
		return OfClient(e.Kind(), e.TokenID, e.Client, r, "")
	case repute.FeedbackRevoked:
		return OfClient(e.Kind(), e.TokenID, e.Client, r, "")
	case repute.ResponseAppended:
		return OfClient(e.Kind(), e.TokenID, e.Client, r, "")
	}
	if id, ok := repute.AgentOf(e); ok {
		return OfAgent(e.Kind(), id, r, "")
	}
	return New(e.Kind(), "all", r, "")
}

// The searches for a gap find the log of the very event that is missing, and the bloom of its block admits it. Those
// for one agent, client or owner leave out the events of others, of which there may be millions.
func TestSearchesFindWhatIsMissing(t *testing.T) {
	t.Parallel()
	mine, others := eventsOf(7, eventlog.Account(1)), eventsOf(8, eventlog.Account(2))
	for i, e := range mine {
		log, other := registries.Log(e), registries.Log(others[i])
		searches := Searches(chain, gapOf(e))
		if !slices.ContainsFunc(searches, func(s Search) bool { return s.Matches(&log) }) {
			t.Errorf("%s is not found by %+v", e.Kind(), searches)
		}
		if !slices.ContainsFunc(searches, func(s Search) bool { return s.May(Bloom([]types.Log{log})) }) {
			t.Errorf("%s is excluded by the bloom of its own block", e.Kind())
		}
		switch e.(type) {
		case repute.TicketConsumed, repute.MetadataUpdate, repute.Upgraded: // searched by kind alone
			continue
		}
		if slices.ContainsFunc(searches, func(s Search) bool { return s.Matches(&other) }) {
			t.Errorf("%s: the search finds the event of another", e.Kind())
		}
	}
}

// A block whose bloom a search excludes holds no log that it matches.
func TestBloomsExcludeNoMatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.Custom(func(t *rapid.T) common.Hash { return common.Hash{31: rapid.ByteRange(1, 4).Draw(t, "byte")} })
		address := rapid.Custom(func(t *rapid.T) common.Address {
			return common.BytesToAddress(word.Draw(t, "word").Bytes())
		})
		s := Search{Addresses: rapid.SliceOfN(address, 1, 2).Draw(t, "addresses"),
			Topics: rapid.SliceOfN(rapid.SliceOfN(word, 0, 2), 0, 4).Draw(t, "topics")}
		l := types.Log{Address: address.Draw(t, "address"), Topics: rapid.SliceOfN(word, 0, 4).Draw(t, "log")}
		if s.Matches(&l) && !s.May(Bloom([]types.Log{l})) {
			t.Fatalf("%+v matches %+v, and its bloom is excluded", s, l)
		}
	})
}
