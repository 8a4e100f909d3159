package subgraph_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/api/subgraph"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/docdb"
	"repute/store/eventdb"
)

const chainID = 8453

func addr(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xa000 + n))) }

func token(n uint64) (id repute.TokenID) {
	id.SetUint64(n)
	return id
}

// ledger writes chain 8453 block by block.
type ledger struct {
	t     testing.TB
	db    *store.DB
	chain repute.Chain
	tip   repute.Block
	pause int64                        // seconds between blocks, besides those of secondsOf
	files map[string]docdb.FetchResult // what URIs return
}

// newLedger opens a fresh database with the chain.
func newLedger(t testing.TB) *ledger {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	l := &ledger{t: t, db: db, files: map[string]docdb.FetchResult{}, chain: repute.Chain{ID: chainID, Name: "Base",
		Identity:   common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"),
		Reputation: common.HexToAddress("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63"), StartBlock: 1,
		Validations: []common.Address{addr(900)}}}
	if err := chaindb.AddChain(t.Context(), db, l.chain); err != nil {
		t.Fatal(err)
	}
	if l.tip, err = chaindb.Cursor(t.Context(), db, chainID); err != nil {
		t.Fatal(err)
	}
	return l
}

// secondsOf is the time of a block.
func secondsOf(block uint64) int64 { return 1_750_000_000 + 2*int64(block) }

// hashOf is the hash of the transaction of a log.
func hashOf(block uint64, log int) common.Hash {
	return common.BigToHash(new(big.Int).SetUint64(block<<16 | uint64(log)))
}

// add puts events into one new block.
func (l *ledger) add(events ...repute.Event) repute.Block {
	l.t.Helper()
	n := l.tip.Number + 1
	b := repute.Block{Number: n, Parent: l.tip.Hash, Time: time.Unix(secondsOf(n)+l.pause*int64(n), 0).UTC(),
		Hash: common.BigToHash(new(big.Int).SetUint64(1<<32 | n))}
	batch := eventdb.Batch{ChainID: chainID, Parent: l.tip, To: b, Blocks: []repute.Block{b}}
	for i, e := range events {
		at := l.chain.Identity
		switch e.Kind() {
		case repute.KindNewFeedback, repute.KindFeedbackRevoked, repute.KindResponseAppended:
			at = l.chain.Reputation
		case repute.KindValidationRequest, repute.KindValidationResponse:
			at = addr(900)
		}
		batch.Records = append(batch.Records, repute.Record{Time: b.Time, Event: e, Log: types.Log{Address: at,
			Topics: []common.Hash{{1}}, BlockNumber: n, BlockHash: b.Hash, Index: uint(i), TxHash: hashOf(n, i)}})
	}
	if err := eventdb.Apply(l.t.Context(), l.db, batch); err != nil {
		l.t.Fatal(err)
	}
	l.tip = b
	return b
}

// read stores the documents of all URIs that wait.
func (l *ledger) read() {
	l.t.Helper()
	if _, err := docdb.PlanFiles(l.t.Context(), l.db, 1000); err != nil {
		l.t.Fatal(err)
	}
	for {
		due, err := docdb.DueURIs(l.t.Context(), l.db, "", 100)
		if err != nil {
			l.t.Fatal(err)
		}
		if len(due) == 0 {
			return
		}
		for _, u := range due {
			r, found := l.files[u.URI]
			if !found {
				r.Reason = "timeout"
			}
			r.URIID, r.FetchedAt, r.ParserVersion, r.Source = u.ID, time.Unix(secondsOf(0), 0), 1, "https"
			if err := docdb.SaveDocuments(l.t.Context(), l.db, r); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}

// registration makes a URI return a registration file.
func (l *ledger) registration(uri string, r *repute.Registration) {
	l.files[uri] = docdb.FetchResult{Body: []byte(uri), MediaType: "application/json", Registration: r}
}

// feedbackFile makes a URI return a feedback file.
func (l *ledger) feedbackFile(uri string, f *repute.FeedbackFile) {
	l.files[uri] = docdb.FetchResult{Body: []byte(uri), MediaType: "application/json", FileOnly: true,
		Files: []docdb.FileParse{{Kind: repute.FeedbackDocument, Feedback: f}}}
}

// mint are the events of a registration.
func mint(n uint64, owner common.Address, uri string) []repute.Event {
	return []repute.Event{
		repute.Transfer{To: owner, TokenID: token(n)},
		repute.Registered{TokenID: token(n), URI: uri, Owner: owner},
		repute.MetadataSet{TokenID: token(n), Key: "agentWallet", Value: owner.Bytes()},
	}
}

// server serves the subgraph of a database.
type server struct {
	t testing.TB
	*httptest.Server
}

func serve(t testing.TB, db *store.DB) *server {
	t.Helper()
	s, err := httpapi.NewServer(httpapi.ServerOptions{Limits: httpapi.Limits{Rate: -1},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := subgraph.Mount(s, db); err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	out := &server{t, httptest.NewServer(h)}
	t.Cleanup(out.Close)
	return out
}

// post sends a body and returns the status and the body of the answer.
func (s *server) post(path, body string) (int, []byte) {
	s.t.Helper()
	r, err := s.Client().Post(s.URL+path, "application/json", bytes.NewBufferString(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.StatusCode, answer
}

// ask runs a query and returns its answer, which must have status 200.
func (s *server) ask(query string, variables any) []byte {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		s.t.Fatal(err)
	}
	status, answer := s.post(fmt.Sprintf("/subgraphs/%d", chainID), string(body))
	if status != http.StatusOK {
		s.t.Fatalf("status %d: %s\n%s", status, answer, query)
	}
	return answer
}

// answered decodes the data of an answer without errors.
func answered[D any](t testing.TB, answer []byte) (data D) {
	t.Helper()
	var out struct {
		Data   D
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal(answer, &out); err != nil || len(out.Errors) > 0 {
		t.Fatalf("%v: %.600s", err, answer)
	}
	return out.Data
}

// refused returns the messages of an answer with errors and without data.
func refused(t testing.TB, answer []byte) (messages []string) {
	t.Helper()
	var out struct {
		Data   any
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal(answer, &out); err != nil || len(out.Errors) == 0 || out.Data != nil {
		t.Fatalf("no refusal, %v: %.600s", err, answer)
	}
	for _, e := range out.Errors {
		messages = append(messages, e.Message)
	}
	return messages
}

// story is a chain with one of each: three agents, of which the first has a file and a history.
func story(t testing.TB) *ledger {
	t.Helper()
	l := newLedger(t)
	yes := true
	l.registration("https://agent.example/1.json",
		&repute.Registration{Name: "Alpha 100%_", Description: "adds numbers",
			Image: "https://agent.example/1.png", Active: &yes, X402: &yes,
			SupportedTrust: []string{"reputation", "tee"},
			Services: []repute.Service{
				{Name: "MCP", Endpoint: "https://agent.example/mcp", Version: "2025-06-18", Tools: []string{"add"},
					Prompts:   []string{"p"},
					Resources: []string{"r"}},
				{Name: "A2A", Endpoint: "https://agent.example/card", Version: "0.3", Skills: []string{"sum"}},
				{Name: "OASF", Endpoint: "https://agent.example/oasf", Skills: []string{"math/add"},
					Domains: []string{"math"}},
				{Name: "ENS", Endpoint: "alpha.eth"}, {Name: "DID", Endpoint: "did:web:agent.example"},
				{Name: "web", Endpoint: "https://agent.example"}, {Name: "email", Endpoint: "a@agent.example"},
				{Name: "agentWallet", Endpoint: "eip155:8453:0x742D35Cc6634C0532925A3B844bC9e7595f0bEB7"}}})
	l.registration("ipfs://bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
		&repute.Registration{Name: "beta"})
	l.feedbackFile("https://rater.example/f.json",
		&repute.FeedbackFile{Text: "well done", Value: "995", Tag1: "not shown",
			Tag2: "from the file", MCP: repute.FeedbackMCP{Tool: "add"},
			A2A:     repute.FeedbackA2A{Skills: []string{"sum"}},
			Payment: &repute.PaymentClaim{From: "0x01", To: "0x02", ChainID: "8453", TxHash: "0x03"}})
	l.add(mint(1, addr(1), "https://agent.example/1.json")...)
	l.add(mint(2, addr(2), "ipfs://bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku")...)
	l.add(mint(10, addr(1), "data:application/json;base64,e30=")...)
	l.add(repute.MetadataSet{TokenID: token(1), Key: "model", Value: []byte("gpt")},
		repute.Approval{Owner: addr(1), Approved: addr(40), TokenID: token(1)},
		repute.ApprovalForAll{Owner: addr(1), Operator: addr(41), Approved: true})
	l.add(repute.NewFeedback{TokenID: token(1), Client: addr(201), Index: 1, Value: big.NewInt(9950), Decimals: 2,
		Tag1: "quality", Endpoint: "https://agent.example/mcp", URI: "https://rater.example/f.json",
		FeedbackHash: common.Hash{7}},
		repute.NewFeedback{TokenID: token(1), Client: addr(202), Index: 1, Value: big.NewInt(-5), Tag1: "speed",
			Tag2: "web"},
		repute.NewFeedback{TokenID: token(2), Client: addr(201), Index: 1, Value: new(big.Int).Lsh(big.NewInt(1), 126),
			Decimals: 18})
	l.add(repute.FeedbackRevoked{TokenID: token(1), Client: addr(202), Index: 1},
		repute.ResponseAppended{TokenID: token(1), Client: addr(201), Index: 1, Responder: addr(1),
			URI: "https://answer.example", ResponseHash: common.Hash{2}})
	l.add(repute.ValidationRequest{Validator: addr(50), TokenID: token(1), URI: "ipfs://work",
		RequestHash: common.Hash{0xaa}},
		repute.ValidationRequest{Validator: addr(50), TokenID: token(1), URI: "ipfs://more",
			RequestHash: common.Hash{0xbb}})
	l.add(repute.ValidationResponse{Validator: addr(50), TokenID: token(1), RequestHash: common.Hash{0xaa},
		Response: 90,
		Tag:      "tee"})
	l.read()
	return l
}
