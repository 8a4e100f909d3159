package validation_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"repute"
	"repute/agent/capability"
	"repute/agent/validation"
	"repute/contracts/bindings"
	"repute/internal/pgtest"
	"repute/orchestrator/transaction"
	"repute/resolver"
	"repute/store"
	"repute/store/agentdb"
)

var (
	askedIn = common.Address{4}
	self    = common.Address{5}
)

// around is what a validator needs: a chain, a wallet, documents and a handler.
type around struct {
	mu       sync.Mutex
	sent     map[string][]byte // data by intent
	runs     int               // of the handler
	run      func(n int, input string) (string, error)
	answered map[common.Hash]bool   // on the chain
	about    map[common.Hash]uint64 // agent ids by requests that the chain has
}

// SendValidationAnswer implements validation.Answerer.
func (a *around) SendValidationAnswer(_ context.Context, in transaction.Intent) (transaction.Sent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old, known := a.sent[in.ID]; known && string(old) != string(in.Data) {
		return transaction.Sent{}, fmt.Errorf("another answer: %w", repute.ErrConflict)
	}
	a.sent[in.ID] = in.Data
	return transaction.Sent{OK: true, Hash: common.Hash{9}}, nil
}

// Run implements validation.Handler.
func (a *around) Run(_ context.Context, c capability.Call) (json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs++
	if !strings.Contains(string(c.Input), `"capability":"code"`) || c.Capability != "code" {
		return nil, errors.New("the handler does not get the request")
	}
	out, err := a.run(a.runs, string(c.Input))
	return json.RawMessage(out), err
}

// Read implements validation.Documents.
func (*around) Read(_ context.Context, uri string) ([]byte, error) {
	return resolver.Inline(uri, 1<<20)
}

// Call implements validation.Chain: getValidationStatus.
func (a *around) Call(_ context.Context, _ uint64, _, _ common.Address, data []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	hash := common.BytesToHash(data[4:36])
	m := bindings.NewValidationRegistry().GetABI().Methods["getValidationStatus"]
	id, known := a.about[hash]
	if !known {
		return nil, fmt.Errorf("unknown: %w", repute.ErrInvalid)
	}
	var response [32]byte
	if a.answered[hash] {
		response[0] = 1
	}
	return m.Outputs.Pack(self, uint256.NewInt(id).ToBig(), uint8(0), response, "", common.Big1)
}

// asks is an event that names a validator, and the document of its request.
func (a *around) asks(who common.Address, id uint64, document string) repute.Record {
	hash := crypto.Keccak256Hash([]byte(document))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.about[hash] = id
	return repute.Record{Log: types.Log{Address: askedIn}, Event: repute.ValidationRequest{Validator: who,
		TokenID: *uint256.NewInt(id), RequestHash: hash,
		URI: "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(document))}}
}

// validator runs two processes of an agent on one database.
func validator(t *testing.T, a *around, daily int) (*store.DB, *validation.Answers) {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
	a.sent, a.about, a.answered = map[string][]byte{}, map[common.Hash]uint64{}, map[common.Hash]bool{}
	var first *validation.Answers
	for range 2 {
		s := validation.NewAnswers(validation.AnswerOptions{DB: db, ID: repute.AgentID{ChainID: 7},
			Registries: []common.Address{askedIn}, Validator: self, Sender: a, Slug: "validator", Daily: daily,
			Handlers: map[string]validation.Handler{"code": a}, Documents: a, Chain: a,
			Log: slog.New(slog.DiscardHandler), Every: 5 * time.Millisecond})
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		t.Cleanup(func() { stop(); ok(t, <-ended) })
		first = s
	}
	return db, first
}

// outcomes waits until a request has a last step, and returns the details of its steps.
func outcomes(t *testing.T, db *store.DB, last agentdb.AskedStep, n int) (details string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var got int
		ok(t, db.Pool().QueryRow(t.Context(), `select count(*) filter (where outcome = $1),
			coalesce(string_agg(detail::text, ' '), '') from agent_receipts where outcome like 'request %'`, last).Scan(&got, &details))
		if got == n {
			return details
		}
		if time.Now().After(end) {
			t.Fatalf("%d entries %s, want %d: %s", got, last, n, details)
		}
	}
}

// TestAnswers: a request to the agent is judged and answered once, by two processes and although its event is
// seen again; the answer says what the handler said.
func TestAnswers(t *testing.T) {
	t.Parallel()
	a := &around{run: func(n int, _ string) (string, error) {
		if n < 3 {
			return "", fmt.Errorf("handler: %w", repute.ErrUnavailable)
		}
		return fmt.Sprintf(`{"response":%d,"tag":"re-execution","report":{"run":%d}}`, 80+n, n), nil
	}}
	db, s := validator(t, a, 10)
	about := repute.AgentID{ChainID: 7, TokenID: *uint256.NewInt(3)}
	e := a.asks(self, 3, fmt.Sprintf(`{"agent":%q,"capability":"code"}`, about.String()))
	ok(t, s.Take(t.Context(), e))
	ok(t, s.Take(t.Context(), e))
	outcomes(t, db, agentdb.AskedAnswered, 1)
	ok(t, s.Take(t.Context(), e))
	time.Sleep(50 * time.Millisecond)
	outcomes(t, db, agentdb.AskedReceived, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sent) != 1 {
		t.Fatalf("%d answers", len(a.sent))
	}
	for _, data := range a.sent {
		in, err := bindings.NewValidationRegistry().GetABI().Methods["validationResponse"].Inputs.Unpack(data[4:])
		ok(t, err)
		report, err := resolver.Inline(in[2].(string), 1<<20)
		ok(t, err)
		response := in[1].(uint8)
		if response < 83 || in[3].([32]byte) != crypto.Keccak256Hash(report) || in[4] != "re-execution" ||
			!strings.Contains(string(report), fmt.Sprintf(`"run":%d`, response-80)) {
			t.Errorf("%v: %s", in, report)
		}
	}
}

// TestUnansweredRequests: what is not the agent's to answer is refused or left out, and nothing is sent.
func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	a := &around{run: func(int, string) (string, error) { return `{"response":101}`, nil }}
	db, s := validator(t, a, 10)
	about := func(id uint64) string {
		return (&repute.AgentID{ChainID: 7, TokenID: *uint256.NewInt(id)}).String()
	}
	left := []repute.Record{a.asks(common.Address{6}, 3, `{"capability":"code","n":1}`),
		a.asks(self, 0, `{"capability":"code","n":2}`),
		{Log: types.Log{Address: askedIn}, Event: repute.ValidationResponse{}}}
	foreign := a.asks(self, 3, `{"capability":"code","n":3}`)
	foreign.Log.Address = common.Address{7}
	for _, e := range append(left, foreign) {
		ok(t, s.Take(t.Context(), e))
	}
	changed, long := a.asks(self, 3, `{"capability":"code","n":4}`), a.asks(self, 3, strings.Repeat(" ", 70_000))
	q := changed.Event.(repute.ValidationRequest)
	q.URI = "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(`{"capability":"code","n":5}`))
	changed.Event = q
	answered := a.asks(self, 3, `{"capability":"code","n":6}`)
	a.mu.Lock()
	a.answered[answered.Event.(repute.ValidationRequest).RequestHash] = true
	a.mu.Unlock()
	reasons := map[string]repute.Record{"another document than the hashed one": changed, "missing or too long": long,
		"is answered on the chain":       answered,
		`names capability \"cook\"`:      a.asks(self, 3, `{"capability":"cook"}`),
		"no document of a request":       a.asks(self, 3, `<html>`),
		"document of another request":    a.asks(self, 3, `{"capability":"code","agent":"`+about(4)+`"}`),
		"does not answer with a verdict": a.asks(self, 3, `{"capability":"code","n":7}`),
	}
	for _, e := range reasons {
		ok(t, s.Take(t.Context(), e))
	}
	details := outcomes(t, db, agentdb.AskedRefused, len(reasons))
	for want := range reasons {
		if !strings.Contains(details, want) {
			t.Errorf("no reason says %s: %s", want, details)
		}
	}
	outcomes(t, db, agentdb.AskedReceived, len(reasons))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sent) != 0 {
		t.Errorf("%d answers", len(a.sent))
	}
}

// TestDailyAnswers: no more requests than the bound are judged in a day, by all processes together, and a
// handler that fails counts.
func TestDailyAnswers(t *testing.T) {
	t.Parallel()
	a := &around{run: func(_ int, input string) (string, error) {
		if strings.Contains(input, `"n":0`) {
			return "", errors.New("crashed")
		}
		return `{"response":100}`, nil
	}}
	db, s := validator(t, a, 3)
	for n := range 8 {
		ok(t, s.Take(t.Context(), a.asks(self, 3, fmt.Sprintf(`{"capability":"code","n":%d}`, n))))
	}
	outcomes(t, db, agentdb.AskedJudged, 3)
	time.Sleep(100 * time.Millisecond)
	outcomes(t, db, agentdb.AskedJudged, 3)
	outcomes(t, db, agentdb.AskedAnswered, 3-1)
	outcomes(t, db, agentdb.AskedReceived, 8)
}
