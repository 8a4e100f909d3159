package registry_test

import (
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/holiman/uint256"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/store"
)

type nothing struct{}

// Run implements agent.Handler.
func (nothing) Run(context.Context, capability.Call) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

// process runs the upkeep of an agent; the returned function ends it.
func process(t *testing.T, w *paytest.World, db *store.DB) (stop func()) {
	t.Helper()
	c, err := capability.New(capability.Definition{Name: "echo", Version: "1.0.0", InputSchema: json.RawMessage(`{}`),
		OutputSchema: json.RawMessage(`{}`)})
	ok(t, err)
	id := repute.AgentID{ChainID: w.Chain().ID, Registry: w.Chain().Identity, TokenID: *uint256.NewInt(0)}
	router, err := agent.NewRouter(db, agent.Options{ID: id, Signer: w.Signer(paytest.OwnerAccount), Version: "1.0.0",
		Services: []*agent.Service{{Capability: c, Handler: nothing{}}}})
	ok(t, err)
	u := &agent.Upkeep{Router: router, Registry: open(t, w, 0, w.RPCURL()), Watch: 20 * time.Millisecond}
	ok(t, u.Start(t.Context()))
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	return func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("%v", err)
		}
	}
}

// stored are the names of events in the log, in order.
func stored(t *testing.T, db *store.DB, names ...string) (out []string) {
	t.Helper()
	rows, err := db.Pool().Query(t.Context(),
		`select outcome from agent_receipts where kind = 'event' and outcome = any($1)
		order by at, number`, names)
	ok(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		ok(t, rows.Scan(&name))
		out = append(out, name)
	}
	return out
}

// TestEventsWhileDown: events of a time without a process are in the log after the next start, each
// once, also with two processes and after a reorganization of the chain.
func TestEventsWhileDown(t *testing.T) {
	t.Parallel()
	w := paytest.New(t, devnet.Options{})
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	owner, other := w.Account(paytest.OwnerAccount), w.Account(paytest.StrangerAccount)
	mine := func(change func(b *devnet.Batch)) {
		b := w.Batch()
		change(b)
		_, err := b.Mine(t.Context())
		ok(t, err)
	}
	rate := func(b *devnet.Batch) { b.GiveFeedback(other, devnet.Rating{Agent: 0, Value: big.NewInt(80)}) }
	await := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			got := strings.Join(stored(t, db, "URIUpdated", "NewFeedback", "ValidationRequest"), " ")
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("stored: %s; want %s", got, want)
			}
		}
	}
	mine(func(b *devnet.Batch) { b.Register(owner, "https://a.example/0") })
	mine(rate) // before the first start: not replayed
	for range 70 {
		mine(func(*devnet.Batch) {})
	}
	first := process(t, w, db)
	for len(stored(t, db, "watched")) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	mine(rate)
	await("NewFeedback")
	first()

	for range 1100 { // more blocks than one question has
		mine(func(*devnet.Batch) {})
	}
	mine(func(b *devnet.Batch) { b.SetAgentURI(owner, 0, "https://a.example/new") })
	mine(rate)
	one, two := process(t, w, db), process(t, w, db)
	await("NewFeedback URIUpdated NewFeedback")
	ok(t, w.Reorg(t.Context(), 1, 2)) // the rating is gone
	mine(rate)
	await("NewFeedback URIUpdated NewFeedback NewFeedback")
	time.Sleep(200 * time.Millisecond) // both have read it again
	await("NewFeedback URIUpdated NewFeedback NewFeedback")
	one()
	two()
}
