package indexer

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/internal/rpctest"
)

// world mines random but possible histories on a scripted chain: ids, feedback
// indexes and request hashes follow the registries' rules, also across forks.
type world struct {
	*rpctest.Chain
	mu    sync.Mutex // a fault may fork from a request's goroutine
	rnd   *rand.Rand
	now   state
	after map[uint64]state // by block
}

// state is what the registries would hold.
type state struct {
	owners   []common.Address // by agent
	given    map[ratingKey]uint64
	revoked  map[ratingKey]uint64 // up to this index
	requests []request
	salt     uint64
}

type ratingKey struct{ agent, client uint64 }

type request struct {
	agent     uint64
	validator common.Address
	hash      common.Hash
}

func newWorld(c *rpctest.Chain, seed uint64) *world {
	w := &world{Chain: c, rnd: rand.New(rand.NewPCG(seed, 8004)), after: map[uint64]state{}}
	w.now = state{given: map[ratingKey]uint64{}, revoked: map[ratingKey]uint64{}}
	w.after[c.Head().Number()] = w.now.clone()
	return w
}

func (s state) clone() state {
	s.owners = append([]common.Address(nil), s.owners...)
	s.given, s.revoked = maps.Clone(s.given), maps.Clone(s.revoked)
	s.requests = append([]request(nil), s.requests...)
	return s
}

// grow mines n blocks, about half of them with events.
func (w *world) grow(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mine(n)
}

func (w *world) mine(n int) {
	for range n {
		var txs [][]types.Log
		for range w.rnd.IntN(4) * w.rnd.IntN(2) {
			txs = append(txs, w.tx())
		}
		b := w.Mine(txs...)
		w.after[b.Number()] = w.now.clone()
	}
}

// fork replaces everything above at by n new blocks.
func (w *world) fork(at uint64, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Fork(at)
	salt := w.now.salt
	w.now = w.after[at].clone()
	w.now.salt = salt
	w.mine(n)
}

func (w *world) account() common.Address { return rpctest.Account(w.rnd.Uint64N(5)) }

func (w *world) tx() []types.Log {
	if len(w.now.owners) == 0 || w.rnd.IntN(6) == 0 {
		return w.register()
	}
	id := w.rnd.Uint64N(uint64(len(w.now.owners)))
	owner := w.now.owners[id]
	switch w.rnd.IntN(9) {
	case 0:
		to := w.account()
		w.now.owners[id] = to
		return w.Move(id, owner, to)
	case 1:
		return w.SetURI(id, owner, fmt.Sprintf("https://example.org/%d", w.rnd.IntN(20)))
	case 2:
		return w.Tx(repute.MetadataSet{TokenID: rpctest.Token(id), Key: fmt.Sprintf("k%d", w.rnd.IntN(3)),
			Value: []byte{byte(w.rnd.IntN(250)), 0}})
	case 3:
		return w.Tx(repute.Approval{Owner: owner, Approved: w.account(), TokenID: rpctest.Token(id)})
	case 4:
		return w.Tx(repute.ApprovalForAll{Owner: owner, Operator: w.account(), Approved: w.rnd.IntN(2) == 0})
	case 5:
		return w.validate(id)
	case 6:
		return w.revokeOrAnswer(id)
	}
	return w.rate(id)
}

func (w *world) register() []types.Log {
	id, owner := uint64(len(w.now.owners)), w.account()
	w.now.owners = append(w.now.owners, owner)
	uri := []string{"", "data:application/json,{}", "\x00\xff", "ipfs://x"}[w.rnd.IntN(4)]
	return w.Register(id, owner, uri)
}

func (w *world) rate(id uint64) []types.Log {
	k := ratingKey{id, w.rnd.Uint64N(4)}
	w.now.given[k]++
	if k.client == gatewayClient {
		return w.rateThroughGateway(k)
	}
	return w.Tx(repute.NewFeedback{TokenID: rpctest.Token(id), Client: rpctest.Account(k.client), Index: w.now.given[k],
		Value: big.NewInt(w.rnd.Int64N(200) - 100), Decimals: uint8(w.rnd.IntN(3)),
		Tag1: fmt.Sprintf("t%d", w.rnd.IntN(3)),
		Tag2: []string{"", "x"}[w.rnd.IntN(2)], Endpoint: "https://a", URI: ""})
}

// gatewayClient is the client of ratings that come through the gateway.
const gatewayClient = 3

// clientOf returns the address of a client.
func clientOf(n uint64) common.Address {
	if n == gatewayClient {
		return rpctest.Gateway
	}
	return rpctest.Account(n)
}

// rateThroughGateway gives a rating of the gateway, most often with one ticket.
func (w *world) rateThroughGateway(k ratingKey) []types.Log {
	var events []repute.Event
	for range []int{1, 1, 1, 0, 2}[w.rnd.IntN(5)] {
		events = append(events, repute.TicketConsumed{Payer: w.account(), TokenID: rpctest.Token(k.agent)})
	}
	events = append(events, repute.NewFeedback{TokenID: rpctest.Token(k.agent), Client: rpctest.Gateway,
		Index: w.now.given[k], Value: big.NewInt(w.rnd.Int64N(100)), Tag1: "t0"})
	w.rnd.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return w.Tx(events...)
}

func (w *world) revokeOrAnswer(id uint64) []types.Log {
	k := ratingKey{id, w.rnd.Uint64N(4)}
	switch given := w.now.given[k]; {
	case given == 0:
		return w.rate(id)
	case w.now.revoked[k] < given && w.rnd.IntN(2) == 0:
		w.now.revoked[k]++
		return w.Tx(repute.FeedbackRevoked{TokenID: rpctest.Token(id), Client: clientOf(k.client),
			Index: w.now.revoked[k]})
	default:
		return w.Tx(repute.ResponseAppended{TokenID: rpctest.Token(id), Client: clientOf(k.client),
			Index: 1 + w.rnd.Uint64N(given), Responder: w.account(), URI: "ipfs://r", ResponseHash: common.Hash{1}})
	}
}

func (w *world) validate(id uint64) []types.Log {
	if n := len(w.now.requests); n > 0 && w.rnd.IntN(2) == 0 {
		r := w.now.requests[w.rnd.IntN(n)]
		return w.Tx(repute.ValidationResponse{Validator: r.validator, TokenID: rpctest.Token(r.agent),
			RequestHash: r.hash,
			Response:    uint8(w.rnd.IntN(101)), URI: "", Tag: "soft"})
	}
	w.now.salt++
	r := request{id, w.account(), common.BigToHash(new(big.Int).SetUint64(w.now.salt))}
	w.now.requests = append(w.now.requests, r)
	return w.Tx(repute.ValidationRequest{Validator: r.validator, TokenID: rpctest.Token(id), URI: "https://job",
		RequestHash: r.hash})
}
