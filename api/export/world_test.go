package export_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"repute"
	"repute/api/export"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func ok(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// world is a chain in a database of its own, with a server of its exports.
type world struct {
	url    string
	db     *store.DB
	server *httptest.Server
	chain  repute.Chain
	tip    repute.Block
	agents uint64
	given  map[string]uint64 // last feedback index of a client for an agent
}

func openDB(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func serve(t testing.TB, db *store.DB) *httptest.Server {
	t.Helper()
	server, err := httpapi.NewServer(httpapi.ServerOptions{Limits: httpapi.Limits{Rate: -1},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	export.Mount(server, db)
	h, err := server.Handler()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{url: pgtest.New(t)}
	w.db = openDB(t, w.url)
	w.server = serve(t, w.db)
	w.begin(t, 8453)
	return w
}

// begin adds a chain, of which the world then is.
func (w *world) begin(t failer, id uint64) {
	t.Helper()
	w.chain = repute.Chain{ID: id, Name: fmt.Sprint("chain ", id), Identity: addr(1), Reputation: addr(2),
		StartBlock: 1}
	ok(t, chaindb.AddChain(context.Background(), w.db, w.chain))
	tip, err := chaindb.Cursor(context.Background(), w.db, id)
	ok(t, err)
	w.tip, w.agents, w.given = tip, 0, map[string]uint64{}
}

func addr(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xa000 + n))) }

func token(n uint64) (id repute.TokenID) {
	id.SetUint64(n)
	return id
}

// add mines a block with events.
func (w *world) add(t failer, events ...repute.Event) {
	t.Helper()
	n := w.tip.Number + 1
	b := repute.Block{Number: n, Parent: w.tip.Hash, Time: time.Unix(1_750_000_000+int64(n)*2, 0).UTC(),
		Hash: common.BigToHash(new(big.Int).SetUint64(w.chain.ID<<32 | n))}
	batch := eventdb.Batch{ChainID: w.chain.ID, Parent: w.tip, To: b, Blocks: []repute.Block{b}}
	for i, e := range events {
		address := w.chain.Identity
		if k := e.Kind(); k == repute.KindNewFeedback || k == repute.KindFeedbackRevoked {
			address = w.chain.Reputation
		}
		batch.Records = append(batch.Records, repute.Record{Time: b.Time, Event: e, Log: types.Log{Address: address,
			Topics: []common.Hash{{1}, {byte(i)}}, BlockNumber: n, BlockHash: b.Hash, Index: uint(i),
			Data:   fmt.Appendf(nil, "%v", e),
			TxHash: common.BigToHash(new(big.Int).SetUint64(n<<16 | uint64(i)))}})
	}
	ok(t, eventdb.Apply(context.Background(), w.db, batch))
	w.tip = b
}

// finalize says that every block up to n is final.
func (w *world) finalize(t failer, n uint64) {
	t.Helper()
	_, err := w.db.Pool().Exec(context.Background(), "update chains set finalized_block = $2 where chain_id = $1",
		int64(w.chain.ID), int64(n))
	ok(t, err)
}

// mint registers the next agent.
func (w *world) mint(uri string, owner int) []repute.Event {
	id := token(w.agents)
	w.agents++
	return []repute.Event{repute.Transfer{To: addr(owner), TokenID: id},
		repute.Registered{TokenID: id, URI: uri, Owner: addr(owner)}}
}

// rate gives the next rating of a client.
func (w *world) rate(agent uint64, client int, value *big.Int, decimals uint8, tag, uri string) repute.Event {
	key := fmt.Sprint(agent, "/", client)
	w.given[key]++
	return repute.NewFeedback{TokenID: token(agent), Client: addr(client), Index: w.given[key], Value: value,
		Decimals: decimals, Tag1: tag, Tag2: "t2", Endpoint: "https://a.example/" + tag, URI: uri,
		FeedbackHash: common.Hash{1}}
}

// text is hostile text: quotes, control characters, invalid UTF-8.
func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "https://a.example/\"x\"", "data:application/json,{\"a\":1}",
		"\xff\xfe",
		"line\nbreak\x00nul", "<b>&amp;", "世界"}), rapid.StringN(0, 20, 40))
}

// draw mines random blocks.
func (w *world) draw(t *rapid.T, blocks int) {
	for range blocks {
		var events []repute.Event
		for range rapid.IntRange(0, 4).Draw(t, "events") {
			events = append(events, w.event(t)...)
		}
		w.add(t, events...)
	}
}

// event draws an event that is valid now.
func (w *world) event(t *rapid.T) []repute.Event {
	if w.agents == 0 {
		return w.mint(text().Draw(t, "uri"), 10)
	}
	agent := rapid.Uint64Range(0, w.agents-1).Draw(t, "agent")
	client := rapid.IntRange(20, 23).Draw(t, "client")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return w.mint(text().Draw(t, "uri"), rapid.IntRange(10, 12).Draw(t, "owner"))
	case 1:
		return []repute.Event{repute.URIUpdated{TokenID: token(agent), URI: text().Draw(t, "uri"), UpdatedBy: addr(10)}}
	case 2:
		if last := w.given[fmt.Sprint(agent, "/", client)]; last > 0 {
			return []repute.Event{repute.FeedbackRevoked{TokenID: token(agent), Client: addr(client),
				Index: rapid.Uint64Range(1, last).Draw(t, "index")}}
		}
	}
	value := new(big.Int).Exp(big.NewInt(10), big.NewInt(rapid.Int64Range(0, 38).Draw(t, "magnitude")), nil)
	if rapid.Bool().Draw(t, "negative") {
		value.Neg(value)
	}
	return []repute.Event{w.rate(agent, client, value, uint8(rapid.IntRange(0, 18).Draw(t, "decimals")),
		strings.ToValidUTF8(text().Draw(t, "tag"), ""), text().Draw(t, "file"))}
}

// get asks a route.
func get(t failer, s *httptest.Server, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
	ok(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.Client().Do(r)
	ok(t, err)
	defer res.Body.Close()
	body, err := readAll(res)
	ok(t, err)
	return res, body
}
