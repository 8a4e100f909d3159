package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/searchdb"
)

// world is a made-up chain: what happened on it, as records, and a random
// source for more. The tests recompute from Records, in the plainest way, what
// the store must answer.
type world struct {
	chain   repute.Chain
	rng     *rand.Rand
	records []repute.Record
	blocks  []repute.Block
	agents  int
	last    map[string]uint64 // feedback index per agent and client
	asked   []repute.ValidationRequest
	askedOf []common.Address // the contracts of asked
}

var (
	worldTags  = []string{"", "starred", "uptime", "a\x00b", "\xff\xfe", "responseTime"}
	trustedOne = common.HexToAddress("0x8004cc8439f36fd5f9f049d9ff86523df6daab58")
	stranger   = common.HexToAddress("0x00000000000000000000000000000000000000bd")
)

// worldStart is the time of a made-up chain's first block.
var worldStart = time.Unix(1_750_000_000, 0).UTC()

func newWorld(id, start uint64, seed uint64) *world {
	return &world{
		chain: repute.Chain{
			ID: id, Name: fmt.Sprintf("chain %d", id), StartBlock: start,
			Identity:    common.BigToAddress(new(big.Int).SetUint64(0x1d0000 + id)),
			Reputation:  common.BigToAddress(new(big.Int).SetUint64(0x2e0000 + id)),
			Validations: []common.Address{trustedOne},
		},
		rng:  rand.New(rand.NewPCG(seed, id)),
		last: map[string]uint64{},
	}
}

func (w *world) id(token int) repute.AgentID {
	return repute.AgentID{ChainID: w.chain.ID, Registry: w.chain.Identity, TokenID: tokenID(token)}
}

func tokenID(n int) (id repute.TokenID) {
	id.SetUint64(uint64(n))
	return id
}

func person(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xc0de00 + n))) }

func (w *world) tip() repute.Block {
	if len(w.blocks) == 0 {
		return repute.Block{Number: w.chain.StartBlock - 1}
	}
	return w.blocks[len(w.blocks)-1]
}

// mine adds a block with the events, each from the contract that emits such.
func (w *world) mine(events ...repute.Event) repute.Block {
	parent := w.tip()
	var seed [16]byte
	binary.BigEndian.PutUint64(seed[:], w.chain.ID)
	binary.BigEndian.PutUint64(seed[8:], parent.Number+1)
	b := repute.Block{
		Number: parent.Number + 1, Hash: crypto.Keccak256Hash(seed[:]), Parent: parent.Hash,
		Time: worldStart.Add(time.Duration(len(w.blocks)*12+int(w.chain.ID)) * time.Second),
	}
	w.blocks = append(w.blocks, b)
	for i, e := range events {
		w.records = append(w.records, repute.Record{Log: w.log(b, i, e), Time: b.Time, Event: e})
	}
	return b
}

func (w *world) log(b repute.Block, i int, e repute.Event) types.Log {
	l := types.Log{
		Address: w.chain.Identity, BlockNumber: b.Number, BlockHash: b.Hash, Index: uint(3 * i), TxIndex: uint(i),
		TxHash: crypto.Keccak256Hash(b.Hash[:], []byte{byte(i)}), Topics: []common.Hash{{byte(e.Kind())}},
	}
	switch v := e.(type) {
	case repute.NewFeedback, repute.FeedbackRevoked, repute.ResponseAppended:
		l.Address = w.chain.Reputation
	case repute.ValidationRequest:
		l.Address = w.contractOf(v.RequestHash)
	case repute.ValidationResponse:
		l.Address = w.contractOf(v.RequestHash)
	}
	return l
}

func (w *world) contractOf(request common.Hash) common.Address {
	for i, a := range w.asked {
		if a.RequestHash == request {
			return w.askedOf[i]
		}
	}
	return trustedOne
}

// grow mines random blocks.
func (w *world) grow(blocks int) {
	for range blocks {
		var events []repute.Event
		for range w.rng.IntN(6) {
			events = append(events, w.event()...)
		}
		w.mine(events...)
	}
}

func (w *world) someone() common.Address { return person(w.rng.IntN(7)) }

func (w *world) tag() string { return worldTags[w.rng.IntN(len(worldTags))] }

func (w *world) event() []repute.Event {
	if w.agents == 0 || w.rng.IntN(8) == 0 {
		return w.mint(w.someone())
	}
	token := tokenID(w.rng.IntN(w.agents))
	switch w.rng.IntN(12) {
	case 0:
		return []repute.Event{repute.Transfer{From: w.someone(), To: w.someone(), TokenID: token}}
	case 1:
		return []repute.Event{repute.URIUpdated{TokenID: token, URI: w.uri(), UpdatedBy: w.someone()}}
	case 2:
		return []repute.Event{repute.MetadataSet{TokenID: token, Key: fmt.Sprint("k", w.rng.IntN(3)),
			Value: []byte{byte(w.rng.IntN(3)), 0}}}
	case 3:
		return []repute.Event{repute.MetadataSet{TokenID: token, Key: "agentWallet", Value: w.someone().Bytes()}}
	case 4:
		return w.revoke(token)
	case 5:
		return w.respond(token)
	case 6, 7:
		return w.validation(token)
	}
	return w.rate(token, w.someone(), w.amount(), w.tag(), w.tag())
}

func (w *world) uri() string {
	return fmt.Sprintf("https://h%d.example/%d", w.rng.IntN(3), w.rng.IntN(5))
}

func (w *world) mint(owner common.Address) []repute.Event {
	token := tokenID(w.agents)
	w.agents++
	return []repute.Event{
		repute.Transfer{To: owner, TokenID: token},
		repute.Registered{TokenID: token, URI: w.uri(), Owner: owner},
	}
}

// amount is now and then as large or as small as the registry allows.
func (w *world) amount() repute.Amount {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	switch w.rng.IntN(6) {
	case 0:
		return repute.Amount{Value: limit, Decimals: 0}
	case 1:
		return repute.Amount{Value: new(big.Int).Neg(limit), Decimals: uint8(w.rng.IntN(19))}
	}
	return repute.Amount{Value: big.NewInt(w.rng.Int64N(300) - 100), Decimals: uint8(w.rng.IntN(3))}
}

func pairOf(token repute.TokenID, client common.Address) string { return token.Dec() + client.Hex() }

func (w *world) rate(token repute.TokenID, client common.Address, a repute.Amount, tag1, tag2 string) []repute.Event {
	w.last[pairOf(token, client)]++
	return []repute.Event{repute.NewFeedback{
		TokenID: token, Client: client, Index: w.last[pairOf(token, client)], Value: a.Value, Decimals: a.Decimals,
		Tag1: tag1, Tag2: tag2, Endpoint: "e\x00", URI: w.uri(), FeedbackHash: common.Hash{byte(w.rng.IntN(2))},
	}}
}

func (w *world) revoke(token repute.TokenID) []repute.Event {
	client := w.someone()
	last := w.last[pairOf(token, client)]
	if last == 0 {
		return nil
	}
	return []repute.Event{repute.FeedbackRevoked{TokenID: token, Client: client, Index: 1 + w.rng.Uint64N(last)}}
}

func (w *world) respond(token repute.TokenID) (out []repute.Event) {
	client := w.someone()
	last := w.last[pairOf(token, client)]
	if last == 0 {
		return nil
	}
	index := 1 + w.rng.Uint64N(last)
	for range 1 + w.rng.IntN(7) {
		out = append(out, repute.ResponseAppended{
			TokenID: token, Client: client, Index: index, Responder: w.someone(), URI: w.uri(),
			ResponseHash: common.Hash{1},
		})
	}
	return out
}

func (w *world) validation(token repute.TokenID) []repute.Event {
	if len(w.asked) > 0 && w.rng.IntN(2) == 0 {
		a := w.asked[w.rng.IntN(len(w.asked))]
		return []repute.Event{repute.ValidationResponse{
			Validator: a.Validator, TokenID: a.TokenID, RequestHash: a.RequestHash,
			Response: uint8(w.rng.IntN(101)), URI: w.uri(), Tag: w.tag(),
		}}
	}
	a := repute.ValidationRequest{
		Validator: w.someone(), TokenID: token, URI: w.uri(),
		RequestHash: crypto.Keccak256Hash([]byte{byte(len(w.asked)), byte(len(w.asked) >> 8)}),
	}
	w.asked = append(w.asked, a)
	w.askedOf = append(w.askedOf, []common.Address{trustedOne, stranger}[w.rng.IntN(2)])
	return []repute.Event{a}
}

// batch is everything above parent up to block n.
func (w *world) batch(parent repute.Block, n uint64) eventdb.Batch {
	b := eventdb.Batch{ChainID: w.chain.ID, Parent: parent, To: parent}
	for _, h := range w.blocks {
		if h.Number > parent.Number && h.Number <= n {
			b.Blocks = append(b.Blocks, h)
			b.To = h
		}
	}
	for _, r := range w.records {
		if r.Log.BlockNumber > parent.Number && r.Log.BlockNumber <= n {
			b.Records = append(b.Records, r)
		}
	}
	return b
}

// store applies everything up to block n that db does not have yet, in batches
// of random size.
func (w *world) store(t *testing.T, db *store.DB, n uint64) {
	t.Helper()
	ctx := context.Background()
	if err := chaindb.AddChain(ctx, db, w.chain); err != nil {
		t.Fatal(err)
	}
	for {
		cursor, err := chaindb.Cursor(ctx, db, w.chain.ID)
		if err != nil {
			t.Fatal(err)
		}
		if cursor.Number >= n {
			return
		}
		if err := eventdb.Apply(ctx, db, w.batch(cursor, min(n, cursor.Number+1+w.rng.Uint64N(20)))); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T) *store.DB {
	t.Helper()
	return openWith(t, store.Options{})
}

// hasty returns a DB whose searches are bounded as those of the API.
func hasty(t *testing.T) *store.DB {
	t.Helper()
	db := open(t)
	searchdb.SetTimeouts(db, searchdb.Timeouts{Search: 3 * time.Second, Count: time.Second})
	return db
}

func openWith(t *testing.T, o store.Options) *store.DB {
	t.Helper()
	o.MaxConns = 6
	db, err := store.Open(context.Background(), pgtest.New(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// rating is one piece of feedback as of some block, found by reading the
// records from the first to the last.
type rating struct {
	repute.NewFeedback
	point   repute.Point
	revoked *repute.Point
	answers int64
}

// ratings are the agent's, as of block n, in the order they were given.
func (w *world) ratings(token repute.TokenID, n uint64) []*rating {
	var out []*rating
	find := func(client common.Address, index uint64) *rating {
		for _, r := range out {
			if r.Client == client && r.Index == index {
				return r
			}
		}
		return nil
	}
	for _, r := range w.records {
		if r.Log.BlockNumber > n {
			break
		}
		switch e := r.Event.(type) {
		case repute.NewFeedback:
			if e.TokenID == token {
				out = append(out, &rating{NewFeedback: e, point: pointOf(r)})
			}
		case repute.FeedbackRevoked:
			if f := find(e.Client, e.Index); e.TokenID == token && f.revoked == nil {
				at := pointOf(r)
				f.revoked = &at
			}
		case repute.ResponseAppended:
			if e.TokenID == token {
				find(e.Client, e.Index).answers++
			}
		}
	}
	return out
}

func pointOf(r repute.Record) repute.Point {
	return repute.Point{Block: r.Log.BlockNumber, LogIndex: uint64(r.Log.Index), TxHash: r.Log.TxHash, Time: r.Time}
}

// mintBlock is when the agent was registered.
func (w *world) mintBlock(token repute.TokenID) uint64 {
	for _, r := range w.records {
		if e, ok := r.Event.(repute.Transfer); ok && e.TokenID == token && e.From == (common.Address{}) {
			return r.Log.BlockNumber
		}
	}
	return 0
}

// latest is the view most questions are asked of.
var latest = repute.At{Finality: repute.Latest}

func at(n uint64) repute.At { return repute.At{Block: n} }
