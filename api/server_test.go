package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/api"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/searchdb"
	"repute/store/verifydb"
)

// open gives the index in a database of its own.
func open(t testing.TB, dbURL string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), dbURL, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// unlimited are the options of a server whose callers may ask as often as they like.
func unlimited() httpapi.ServerOptions {
	return httpapi.ServerOptions{Limits: httpapi.Limits{Rate: -1}}
}

// serve runs the routes of the index; quiet unless the test asks for its log.
func serve(t testing.TB, o api.Options, with ...httpapi.ServerOptions) *httptest.Server {
	t.Helper()
	var options httpapi.ServerOptions
	if len(with) > 0 {
		options = with[0]
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	server, err := httpapi.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	o.Server = server
	// The first to set them wins: a search of a busy machine takes as long as it needs.
	searchdb.SetTimeouts(o.DB, searchdb.Timeouts{Search: time.Minute, Count: time.Minute})
	if _, err := api.New(o); err != nil {
		t.Fatal(err)
	}
	h, err := server.Handler()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// reply is an answer with its body read.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func get(t testing.TB, s *httptest.Server, path string, headers ...string) reply {
	t.Helper()
	return do(t, s, http.MethodGet, path, nil, headers...)
}

func do(t testing.TB, s *httptest.Server, method, path string, body io.Reader, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, raw}
}

// as decodes a 200 into B and refuses members that B does not have.
func as[B any](t testing.TB, r reply) B {
	t.Helper()
	var b B
	if r.status != http.StatusOK {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	if err := json.Unmarshal(r.body, &b); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return b
}

// problemOf decodes an answer that is not 200.
func problemOf(t testing.TB, r reply) httpapi.ErrorBody {
	t.Helper()
	var b httpapi.ErrorBody
	if err := json.Unmarshal(r.body, &b); err != nil {
		t.Fatalf("status %d, %v in %s", r.status, err, r.body)
	}
	if ct := r.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %s", ct)
	}
	if b.Status != r.status {
		t.Errorf("status %d, body says %d", r.status, b.Status)
	}
	return b
}

func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return "?" + v.Encode()
}

// ledger writes a chain block by block through the store.
type ledger struct {
	t     testing.TB
	db    *store.DB
	chain repute.Chain
	tip   repute.Block
}

func addr(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xa000 + n))) }

func newLedger(t testing.TB, db *store.DB, chainID uint64) *ledger {
	t.Helper()
	l := &ledger{t: t, db: db, chain: repute.Chain{
		ID: chainID, Name: fmt.Sprintf("chain %d", chainID),
		Identity:    common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"),
		Reputation:  common.HexToAddress("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63"),
		Validations: []common.Address{addr(900)},
		StartBlock:  1,
	}}
	if err := chaindb.AddChain(context.Background(), db, l.chain); err != nil {
		t.Fatal(err)
	}
	tip, err := chaindb.Cursor(context.Background(), db, chainID)
	if err != nil {
		t.Fatal(err)
	}
	l.tip = tip
	return l
}

// verified says that all was compared with the chain up to the tip.
func (l *ledger) verified() {
	l.t.Helper()
	var kinds []repute.EventKind
	for k := repute.KindTransfer; k < repute.KindUndecoded; k++ {
		kinds = append(kinds, k)
	}
	ctx, proof := context.Background(),
		verifydb.BlockProof{Blocks: repute.BlockRange{From: l.chain.StartBlock, To: l.tip.Number}, Hash: l.tip.Hash}
	err := errors.Join(verifydb.SetVerified(ctx, l.db, l.chain.ID, store.Lease{}, kinds, l.tip.Number),
		verifydb.SaveBlockProof(ctx, l.db, l.chain.ID, store.Lease{}, proof))
	if err != nil {
		l.t.Fatal(err)
	}
}

// finalize says that the first block is final.
func (l *ledger) finalize() {
	l.t.Helper()
	if _, err := l.db.Pool().Exec(context.Background(),
		"update chains set finalized_block = start_block where chain_id = $1", l.chain.ID); err != nil {
		l.t.Fatal(err)
	}
}

// add puts events into one new block. Validation events come from the contract
// at addr(900), unless wrapped in from.
func (l *ledger) add(events ...repute.Event) repute.Block {
	l.t.Helper()
	n := l.tip.Number + 1
	b := repute.Block{
		Number: n, Parent: l.tip.Hash, Time: time.Unix(1_750_000_000+int64(n)*2, 0).UTC(),
		Hash: common.BigToHash(new(big.Int).SetUint64(l.chain.ID<<32 | n)),
	}
	batch := eventdb.Batch{ChainID: l.chain.ID, Parent: l.tip, To: b, Blocks: []repute.Block{b}}
	for i, e := range events {
		log := types.Log{
			Address: l.emitter(&e), Topics: []common.Hash{{1}}, BlockNumber: n, BlockHash: b.Hash, Index: uint(i),
			TxHash: common.BigToHash(new(big.Int).SetUint64(n<<16 | uint64(i))),
		}
		batch.Records = append(batch.Records, repute.Record{Log: log, Time: b.Time, Event: e})
	}
	if err := eventdb.Apply(context.Background(), l.db, batch); err != nil {
		l.t.Fatal(err)
	}
	l.tip = b
	return b
}

// from is an event of another contract than the default.
type from struct {
	repute.Event
	address common.Address
}

func (l *ledger) emitter(e *repute.Event) common.Address {
	if f, wrapped := (*e).(from); wrapped {
		*e = f.Event
		return f.address
	}
	switch (*e).Kind() {
	case repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended:
		return l.chain.Reputation
	case repute.KindValidationRequest, repute.KindValidationResponse:
		return addr(900)
	}
	return l.chain.Identity
}

func token(n uint64) (id repute.TokenID) {
	id.SetUint64(n)
	return id
}

// mint are the events of a registration.
func mint(n uint64, owner common.Address, uri string) []repute.Event {
	return []repute.Event{
		repute.Transfer{To: owner, TokenID: token(n)},
		repute.Registered{TokenID: token(n), URI: uri, Owner: owner},
	}
}

func ratingOf(agent uint64, client int, index uint64, value int64, decimals uint8,
	tag1, tag2 string) repute.NewFeedback {
	return repute.NewFeedback{
		TokenID: token(agent), Client: addr(client), Index: index, Value: big.NewInt(value), Decimals: decimals,
		Tag1: tag1, Tag2: tag2, Endpoint: "https://agent.example/mcp", URI: "ipfs://feedback",
		FeedbackHash: common.Hash{1},
	}
}

// Hostile strings as they are found on chain.
const (
	hostileTag = "</script><script>alert(1)</script>\x00\xff"
	hostileURI = "javascript:alert(1)//\xf0\x28"
)

// crowd is how many agents populate makes on chain 8453.
const crowd = 60

// populate fills chain 8453 with a crowd, of whom agent 7 has a history, and
// chain 1 with one agent.
func populate(t testing.TB, db *store.DB) *ledger {
	t.Helper()
	l := newLedger(t, db, 8453)
	var births, ratings []repute.Event
	for n := uint64(0); n < crowd; n++ {
		births = append(births, mint(n, addr(int(n%5)), fmt.Sprintf("https://agent.example/%d.json", n))...)
		for client := range int(n % 4) {
			ratings = append(ratings, ratingOf(n, 100+client, 1, int64(n), 0, "quality", "web"))
		}
	}
	l.add(births...)
	l.add(ratings...)
	l.add(
		repute.MetadataSet{TokenID: token(7), Key: "agentWallet", Value: addr(77).Bytes()},
		repute.MetadataSet{TokenID: token(7), Key: "model", Value: []byte("gpt")},
		repute.MetadataSet{TokenID: token(7), Key: hostileTag, Value: []byte{0, 255}},
		repute.URIUpdated{TokenID: token(7), URI: hostileURI, UpdatedBy: addr(2)},
	)
	for i := uint64(1); i <= 12; i++ {
		l.add(ratingOf(7, 200, i, int64(i), 0, "speed", ""))
	}
	l.add(ratingOf(7, 201, 1, 9950, 2, "quality", "web"), ratingOf(7, 202, 1, -5, 0, "", ""),
		ratingOf(7, 203, 1, 80, 0, hostileTag, "x"))
	l.add(repute.FeedbackRevoked{TokenID: token(7), Client: addr(200), Index: 3})
	l.add(repute.ResponseAppended{TokenID: token(7), Client: addr(201), Index: 1, Responder: addr(2),
		URI: "https://answer.example", ResponseHash: common.Hash{2}})
	untrusted := addr(901)
	l.add(
		repute.ValidationRequest{Validator: addr(50), TokenID: token(7), URI: "ipfs://work",
			RequestHash: common.Hash{0xaa}},
		repute.ValidationRequest{Validator: addr(50), TokenID: token(7), URI: "ipfs://work",
			RequestHash: common.Hash{0xbb}},
		from{repute.ValidationRequest{Validator: addr(51), TokenID: token(7), URI: "", RequestHash: common.Hash{0xcc}},
			untrusted},
	)
	l.add(
		repute.ValidationResponse{Validator: addr(50), TokenID: token(7), RequestHash: common.Hash{0xaa}, Response: 0,
			Tag: "tee"},
		from{repute.ValidationResponse{Validator: addr(51), TokenID: token(7), RequestHash: common.Hash{0xcc},
			Response: 100, Tag: "sure"}, untrusted},
	)
	newLedger(t, db, 1).add(mint(0, addr(1), "data:application/json,{}")...)
	l.verified()
	return l
}

// populated is a database with populate's content and its server.
func populated(t testing.TB, o api.Options, with ...httpapi.ServerOptions) (*httptest.Server, *ledger) {
	t.Helper()
	o.DB = open(t, pgtest.New(t))
	l := populate(t, o.DB)
	return serve(t, o, with...), l
}
