package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/agent"
	"repute/agent/remoteserver"
	"repute/internal/httpapi"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/remote"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/trust/explain"
)

const operatorToken = "a-token-that-is-long-enough"

// office is an orchestrator with its HTTP surface. Agents without a proof of their identity do not
// work there.
type office struct {
	url string
	db  *store.DB
}

func newOffice(t *testing.T, db *store.DB) *office {
	t.Helper()
	rules, err := policy.Parse([]byte("version: \"1\"\n"))
	ok(t, err)
	current := func() *policy.Policy { return rules }
	client, err := tasks.NewClient(db)
	ok(t, err)
	replay, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	quiet := slog.New(slog.DiscardHandler)
	server, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{"ann": operatorToken},
		Logger: quiet})
	ok(t, err)
	_, err = control.New(control.Options{Server: server, DB: db, Client: client, Policy: current, Replay: replay,
		Agents: http.DefaultClient})
	ok(t, err)
	h, err := server.Handler()
	ok(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	e, err := orchestrator.New(db, orchestrator.Options{Policy: current, Hold: 2 * time.Second, Log: quiet,
		Remote: func(known repute.Module) (orchestrator.Module, error) {
			return remote.Stored(known, remote.Options{Client: http.DefaultClient})
		}})
	ok(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return &office{web.URL, db}
}

// call sends a request of the operator, and decodes the answer of a status.
func (o *office) call(t *testing.T, method, path, body string, status int, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, o.url+path, bytes.NewBufferString(body))
	ok(t, err)
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	res, err := http.DefaultClient.Do(r)
	ok(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	ok(t, err)
	if res.StatusCode != status {
		t.Fatalf("%s %s: %d %.600s", method, path, res.StatusCode, raw)
	}
	ok(t, json.Unmarshal(raw, into))
}

// indexed makes an agent of an owner on an indexed chain.
func indexed(t *testing.T, db *store.DB, id repute.AgentID, owner common.Address) {
	t.Helper()
	ok(t, chaindb.AddChain(t.Context(), db, repute.Chain{ID: id.ChainID, Name: "chain", Identity: id.Registry,
		Reputation: common.HexToAddress("0x8005"), StartBlock: 1}))
	parent, err := chaindb.Cursor(t.Context(), db, id.ChainID)
	ok(t, err)
	block := repute.Block{Number: 1, Parent: parent.Hash, Hash: common.Hash{1}, Time: time.Unix(1_750_000_000, 0).UTC()}
	batch := eventdb.Batch{ChainID: id.ChainID, Parent: parent, To: block, Blocks: []repute.Block{block}}
	for i, e := range []repute.Event{repute.Transfer{To: owner, TokenID: id.TokenID},
		repute.Registered{Owner: owner, TokenID: id.TokenID}} {
		log := types.Log{Address: id.Registry, Topics: []common.Hash{{1}}, BlockNumber: 1, BlockHash: block.Hash,
			Index: uint(i)}
		batch.Records = append(batch.Records, repute.Record{Log: log, Time: block.Time, Event: e})
	}
	ok(t, eventdb.Apply(t.Context(), db, batch))
}

// register registers an agent whose key proves its identity, as repute agent register does.
func (o *office) register(t *testing.T, id repute.AgentID, slug, url string) {
	t.Helper()
	soon := time.Now().Add(time.Minute).Unix()
	sig, err := crypto.Sign(accounts.TextHash([]byte(control.ClaimText(slug, url, id, soon))), signer(t).Key)
	ok(t, err)
	var registered map[string]any
	o.call(t, http.MethodPost, "/v1/agents", fmt.Sprintf(
		`{"slug":%q,"url":%q,"agentId":"%d:%s","proof":{"expires":%d,"signature":%q}}`, slug, url, id.ChainID,
		id.TokenID.Dec(), soon, hexutil.Encode(sig)), http.StatusCreated, &registered)
}

// run submits a task and waits for its end.
func (o *office) run(t *testing.T, task map[string]any) control.Run {
	t.Helper()
	body, err := json.Marshal(task)
	ok(t, err)
	var submitted control.Task
	o.call(t, http.MethodPost, "/v1/tasks", string(body), http.StatusCreated, &submitted)
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var r control.Run
		o.call(t, http.MethodGet, "/v1/runs/"+submitted.RunID, "", http.StatusOK, &r)
		if r.Status.Ended() {
			return r
		}
		if time.Now().After(end) {
			t.Fatalf("run %s does not end: %s", r.ID, r.Status)
		}
	}
}

// TestOrchestrator: an orchestrator registers the agent by its URL and the owner's signature, gives it
// tasks through its trust gate, and checks what the agent says of its work.
func TestOrchestrator(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	s := w.open(t, agent.Options{}, service(t, "for-free", h, nil, nil), service(t, "for-money", h, w.price(), nil))
	o := newOffice(t, database(t, w.url))
	indexed(t, o.db, s.router.ID(), signer(t).Address())
	o.register(t, s.router.ID(), "echo-agent", s.URL+remoteserver.Path)

	free := o.run(t, map[string]any{"goal": "echo", "coordinatorSlug": "echo-agent", "tags": []string{"for-free"},
		"input": map[string]any{"text": "hello"}})
	if raw, err := json.Marshal(free); err != nil || free.Status != repute.RunCompleted || h.count() != 1 ||
		!strings.Contains(string(raw), `for-free answered with`) {
		t.Errorf("%d runs of the handler: %s %v", h.count(), raw, err)
	}
	pays := w.Pay(t, w.Requirements(10))
	task := map[string]any{"goal": "echo", "coordinatorSlug": "echo-agent",
		"input": map[string]any{"capability": "for-money", "input": map[string]any{"text": "hello"}, "payment": pays}}
	for range 2 { // the second task has the first one's answer
		if paid := o.run(t, task); paid.Status != repute.RunCompleted || h.count() != 2 || w.paid(t) != 10 {
			t.Errorf("%s %s: %d runs of the handler, %d paid", paid.Status, paid.Error, h.count(), w.paid(t))
		}
	}
	for what, task := range map[string]map[string]any{
		"payment_required": {"tags": []string{"for-money"}, "input": map[string]any{"text": "hello"}},
		"text":             {"tags": []string{"for-free"}, "input": map[string]any{"txt": "hello"}},
		"capability":       {"input": map[string]any{"text": "hello"}},
		"trust.unrated": {"tags": []string{"for-free"}, "input": map[string]any{"text": "hello"},
			"threshold": map[string]any{"minReputation": 50}},
	} {
		task["goal"], task["coordinatorSlug"] = "echo", "echo-agent"
		r := o.run(t, task)
		if told := r.Error + fmt.Sprint(r.Reasons); r.Status == repute.RunCompleted || h.count() != 2 ||
			!strings.Contains(strings.ToLower(told), what) {
			t.Errorf("%s: %s %s, %d runs of the handler", what, r.Status, told, h.count())
		}
	}
	if w.paid(t) != 10 {
		t.Errorf("%d were paid", w.paid(t))
	}
}
