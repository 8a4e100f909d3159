package agentdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/agentdb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
	return db
}

func payment(owner string) agentdb.Payment {
	return agentdb.Payment{ID: "p", Agent: "a", Capability: "echo", TaskHash: common.Hash{1}, Payload: [32]byte{2},
		Payer: common.Address{3}, Settlement: agentdb.X402, RequestID: "r-" + owner, Owner: owner, PaymentID: "name"}
}

// TestClaim: one owner works on a payment until its time ends; then another one goes on where it
// stopped, and the first one can store nothing any more.
func TestClaim(t *testing.T) {
	t.Parallel()
	db := open(t)
	one, err := agentdb.Claim(t.Context(), db, payment("one"), 300*time.Millisecond)
	ok(t, err)
	ok(t, agentdb.SetRunning(t.Context(), db, one))
	if _, err := agentdb.Claim(t.Context(), db, payment("two"), time.Minute); !errors.Is(err, agentdb.ErrWorkedOn) {
		t.Fatalf("%v", err)
	}
	for _, change := range []func(*agentdb.Payment){func(p *agentdb.Payment) { p.TaskHash[0]++ },
		func(p *agentdb.Payment) { p.Payload[0]++ }, func(p *agentdb.Payment) { p.Capability = "other" },
		func(p *agentdb.Payment) { p.Agent = "other" }, func(p *agentdb.Payment) { p.ID = "same name" }} {
		p := payment("two")
		change(&p)
		if _, err := agentdb.Claim(t.Context(), db, p, time.Minute); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	time.Sleep(400 * time.Millisecond)
	two, err := agentdb.Claim(t.Context(), db, payment("two"), time.Minute)
	ok(t, err)
	if two.Owner != "two" || two.State != agentdb.Running || two.RequestID != "r-one" {
		t.Errorf("%+v", two)
	}
	for name, err := range map[string]error{"renew": agentdb.Renew(t.Context(), db, one, time.Minute),
		"ran":     agentdb.SetRan(t.Context(), db, one, json.RawMessage(`1`)),
		"settled": agentdb.SetSettled(t.Context(), db, one, json.RawMessage(`1`)),
		"end": agentdb.End(t.Context(), db, one, agentdb.Done, json.RawMessage(`1`),
			agentdb.Entry{Kind: agentdb.Execution, Outcome: "200"})} {
		if !errors.Is(err, repute.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ok(t, agentdb.SetRan(t.Context(), db, two, json.RawMessage(`{"x": 1}`)))
	ok(t, agentdb.End(t.Context(), db, two, agentdb.Done, json.RawMessage(`{}`),
		agentdb.Entry{Kind: agentdb.Execution, Outcome: "200",
			Agent: "a", Amount: big.NewInt(10), Settlement: agentdb.X402}))
	three, err := agentdb.Claim(t.Context(), db, payment("three"), time.Minute)
	ok(t, err)
	if three.State != agentdb.Done || string(three.Output) != `{"x": 1}` || three.Owner == "three" {
		t.Errorf("%+v", three)
	}
	paid, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: "a", Paid: true})
	ok(t, err)
	if len(paid) != 1 {
		t.Errorf("%+v", paid)
	}
}

// TestRetention: only whole months that are older than the retention are dropped.
func TestRetention(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, sql := range []string{
		`create table agent_receipts_2020_01 partition of agent_receipts for values from ('2020-01-01 00:00:00+00') to ('2020-02-01 00:00:00+00')`,
		`insert into agent_receipts (at, kind, agent, outcome) values ('2020-01-05', 'event', 'a', 'old')`,
		`insert into agent_receipts (kind, agent, outcome) values ('event', 'a', 'new')`} {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	if err := agentdb.Maintain(t.Context(), db, agentdb.MinRetention-1); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("%v", err)
	}
	ok(t, agentdb.Maintain(t.Context(), db, 40_000))
	left, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: "a"})
	ok(t, err)
	if len(left) != 2 {
		t.Fatalf("%+v", left)
	}
	ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
	left, err = agentdb.Entries(t.Context(), db, agentdb.Query{Agent: "a"})
	ok(t, err)
	if len(left) != 1 || left[0].Outcome != "new" {
		t.Errorf("%+v", left)
	}
}

// TestRetentionOfEach: agents of one database keep their logs for as long as each of them says.
func TestRetentionOfEach(t *testing.T) {
	t.Parallel()
	db := open(t)
	now := time.Now().UTC()
	old := time.Date(now.Year(), now.Month()-9, 1, 0, 0, 0, 0, time.UTC)
	for i, of := range []string{"long", "short"} { // a month of each agent alone
		month := old.AddDate(0, i, 0)
		_, err := db.Pool().Exec(t.Context(),
			`create table agent_receipts_`+month.Format("2006_01")+` partition of agent_receipts
			for values from ('`+month.Format(time.RFC3339)+`') to ('`+month.AddDate(0, 1, 0).Format(time.RFC3339)+`')`)
		ok(t, err)
		_, err = db.Pool().Exec(t.Context(),
			`insert into agent_receipts (at, kind, agent, outcome) values ($1, 'event', $2, 'old')`,
			month.AddDate(0, 0, 3), of)
		ok(t, err)
	}
	ok(t, agentdb.Keep(t.Context(), db, "long", 100))
	ok(t, agentdb.Keep(t.Context(), db, "long", 400))
	ok(t, agentdb.Keep(t.Context(), db, "short", agentdb.MinRetention))
	if err := agentdb.Keep(t.Context(), db, "short", 10); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("%v", err)
	}
	left := func(of string) int {
		list, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: of})
		ok(t, err)
		return len(list)
	}
	ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention)) // as the other agent's process does
	if left("long") != 1 || left("short") != 0 {
		t.Errorf("long has %d entries, short %d", left("long"), left("short"))
	}
	ok(t, agentdb.Keep(t.Context(), db, "long", agentdb.MinRetention))
	ok(t, agentdb.Maintain(t.Context(), db, agentdb.MinRetention))
	if left("long") != 0 {
		t.Error("it is kept for ever")
	}
}

// TestPending: who takes over from an owner that ended without a word does not know whether a settlement was asked
// for; one that stopped in order says so. Payments whose end is open are kept.
func TestPending(t *testing.T) {
	t.Parallel()
	db := open(t)
	take := func(owner string, pending bool) agentdb.Payment {
		t.Helper()
		p, err := agentdb.Claim(t.Context(), db, payment(owner), 20*time.Millisecond)
		ok(t, err)
		if p.Owner != owner || p.Pending != pending || p.Fresh != (owner == "one") {
			t.Errorf("%+v", p)
		}
		return p
	}
	p := take("one", false)
	ok(t, agentdb.Yield(t.Context(), db, p))
	take("two", false) // and it is killed
	time.Sleep(50 * time.Millisecond)
	ok(t, agentdb.PrunePayments(t.Context(), db, p.Agent, 0))
	p = take("three", true)
	ok(t, agentdb.Yield(t.Context(), db, p))
	ok(t, agentdb.PrunePayments(t.Context(), db, p.Agent, 0))
	p = take("four", true)
	p.Pending = false // the chain told
	ok(t, agentdb.Yield(t.Context(), db, p))
	p = take("five", false)
	ok(t, agentdb.SetSettled(t.Context(), db, p, json.RawMessage(`{}`)))
	ok(t, agentdb.Yield(t.Context(), db, p))
	ok(t, agentdb.PrunePayments(t.Context(), db, "another agent", 0))
	if _, err := agentdb.ReadPayment(t.Context(), db, p.ID); err != nil {
		t.Errorf("the retention of one agent dropped a payment of another: %v", err)
	}
	ok(t, agentdb.PrunePayments(t.Context(), db, p.Agent, 0))
	if _, err := agentdb.ReadPayment(t.Context(), db, p.ID); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestStepAndLog: a step and its lines of the log are stored together, in order, or neither is.
func TestStepAndLog(t *testing.T) {
	t.Parallel()
	db := open(t)
	lines := func(outcomes ...string) (out []agentdb.Entry) {
		for _, o := range outcomes {
			out = append(out, agentdb.Entry{Kind: agentdb.Verification, Agent: "a", Outcome: o, Amount: big.NewInt(7),
				ClientSignature: []byte{1}, Detail: json.RawMessage(`{"n": 1}`)})
		}
		return out
	}
	p, err := agentdb.Claim(t.Context(), db, payment("one"), time.Minute, lines("a", "b", "c")...)
	ok(t, err)
	_, err = agentdb.Claim(t.Context(), db, payment("two"), time.Minute, lines("never")...)
	if !errors.Is(err, agentdb.ErrWorkedOn) {
		t.Fatal(err)
	}
	stranger := p
	stranger.Owner = "two"
	if err := agentdb.SetRan(t.Context(), db, stranger, nil, lines("never")...); !errors.Is(err, repute.ErrFenced) {
		t.Fatal(err)
	}
	ok(t, agentdb.SetRunning(t.Context(), db, p, lines("d")...))
	ok(t, agentdb.End(t.Context(), db, p, agentdb.Done, json.RawMessage(`1`), lines("e", "f")...))
	list, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: "a"})
	ok(t, err)
	got := ""
	for _, e := range slices.Backward(list) {
		got += e.Outcome
		if e.Amount.Int64() != 7 || len(e.ClientSignature) != 1 || string(e.Detail) != `{"n": 1}` ||
			e.Settlement != agentdb.NoSettlement {
			t.Errorf("%+v", e)
		}
	}
	if got != "abcdef" {
		t.Errorf("the log is %s", got)
	}
}

// TestTakeFree: processes that count at once give away what the limit allows, and no more.
func TestTakeFree(t *testing.T) {
	t.Parallel()
	db := open(t)
	var taken atomic.Int64
	var all sync.WaitGroup
	f := agentdb.Free{Agent: "a", Client: "c", Capability: "echo", Since: time.Now().Add(-time.Minute)}
	for range 20 {
		all.Go(func() {
			got, err := agentdb.TakeFree(t.Context(), db, f, 5)
			if err != nil {
				t.Error(err)
			}
			if got {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	f.Client = "other"
	if other, err := agentdb.TakeFree(t.Context(), db, f, 5); err != nil || !other || taken.Load() != 5 {
		t.Errorf("%d taken; %v %v", taken.Load(), other, err)
	}
}

// TestChainEvents: an event of the chain is stored once, however many processes see it, and again from
// another block; how far they were followed is what was stored last.
func TestChainEvents(t *testing.T) {
	t.Parallel()
	db := open(t)
	ctx := t.Context()
	if n, err := agentdb.Watched(ctx, db, "a"); n != 0 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	e := agentdb.ChainEvent{Agent: "a", Name: "NewFeedback", Block: 7, BlockHash: common.Hash{7}, Index: 3,
		Transaction: common.Hash{9}}
	var added atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if new, err := agentdb.AddChainEvent(ctx, db, e); err != nil {
				t.Error(err)
			} else if new {
				added.Add(1)
			}
		})
	}
	all.Wait()
	if added.Load() != 1 {
		t.Errorf("stored %d times", added.Load())
	}
	for _, change := range []func(*agentdb.ChainEvent){func(e *agentdb.ChainEvent) { e.Index++ },
		func(e *agentdb.ChainEvent) { e.BlockHash = common.Hash{8} }, func(e *agentdb.ChainEvent) { e.Agent = "b" }} {
		other := e
		change(&other)
		if new, err := agentdb.AddChainEvent(ctx, db, other); !new || err != nil {
			t.Errorf("%+v is not stored: %v", other, err)
		}
	}
	for _, block := range []uint64{8, 1 << 40} {
		ok(t, agentdb.SaveFollowedTo(ctx, db, "a", block))
		if n, err := agentdb.Watched(ctx, db, "a"); n != block || err != nil {
			t.Errorf("%d %v", n, err)
		}
	}
}

// TestEarlyAnswer: an answer that is stored before the request that it answers is judged.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	db, ctx, hash := open(t), t.Context(), common.Hash{1}
	detail, err := json.Marshal(map[string]any{"validation": hash, "document": "{}"})
	ok(t, err)
	ok(t, agentdb.Add(ctx, db, agentdb.Entry{Kind: agentdb.Execution, Agent: "a", Outcome: "200", Detail: detail}))
	ok(t, agentdb.AddValidation(ctx, db, "a", hash, agentdb.ValidationAnswered, map[string]any{"response": 90}))
	ok(t, agentdb.AddValidation(ctx, db, "a", hash, agentdb.ValidationRequested, map[string]any{"transaction": "x"}))
	list, err := agentdb.OpenValidations(ctx, db, "a", 10)
	ok(t, err)
	if len(list) != 1 || list[0].Step != agentdb.ValidationAnswered {
		t.Errorf("%+v", list)
	}
	ok(t, agentdb.AddValidation(ctx, db, "a", hash, agentdb.ValidationJudged, map[string]any{"counts": true}))
	if list, err = agentdb.OpenValidations(ctx, db, "a", 10); err != nil || len(list) != 0 {
		t.Errorf("%+v %v", list, err)
	}
}

// TestValidations: an execution with a validation is open while the agent has a step to do; each step is
// stored once, and later details count.
func TestValidations(t *testing.T) {
	t.Parallel()
	db, ctx := open(t), t.Context()
	one, two, other := common.Hash{1}, common.Hash{2}, common.Hash{3}
	for _, hash := range []common.Hash{one, two} {
		detail, err := json.Marshal(map[string]any{"ms": 1, "validation": hash, "document": "{}"})
		ok(t, err)
		ok(t, agentdb.Add(ctx, db, agentdb.Entry{Kind: agentdb.Execution, Agent: "a", Outcome: "200", Detail: detail}))
	}
	ok(t, agentdb.Add(ctx, db, agentdb.Entry{Kind: agentdb.Execution, Agent: "a", Outcome: "200"}))
	steps := func() (out []agentdb.ValidationStep) {
		list, err := agentdb.OpenValidations(ctx, db, "a", 10)
		ok(t, err)
		for _, v := range list {
			out = append(out, v.Step)
		}
		return out
	}
	if got := steps(); len(got) != 2 || got[0] != "" || got[1] != "" {
		t.Errorf("%v", got)
	}
	add := func(hash common.Hash, s agentdb.ValidationStep, detail map[string]any) {
		t.Helper()
		ok(t, agentdb.AddValidation(ctx, db, "a", hash, s, detail))
	}
	add(one, agentdb.ValidationRequested, map[string]any{"validator": "x", "transaction": "first"})
	add(one, agentdb.ValidationRequested, map[string]any{"transaction": "second"})
	add(two, agentdb.ValidationFailed, map[string]any{"reason": "r"})
	if got := steps(); len(got) != 0 {
		t.Errorf("what waits for a validator is in the way: %v", got)
	}
	add(one, agentdb.ValidationAnswered, map[string]any{"validator": "y", "response": 90})
	if got := steps(); len(got) != 1 || got[0] != agentdb.ValidationAnswered {
		t.Errorf("%v", got)
	}
	add(one, agentdb.ValidationJudged, map[string]any{"counts": true})
	known, err := agentdb.Validations(ctx, db, "a", []common.Hash{one, two, other})
	ok(t, err)
	var d struct {
		Validator, Transaction string
		Response               int
		Counts                 bool
	}
	ok(t, json.Unmarshal(known[one].Detail, &d))
	if len(known) != 2 || len(steps()) != 0 || known[one].Step != agentdb.ValidationJudged ||
		known[two].Step != agentdb.ValidationFailed ||
		d.Validator != "y" || d.Transaction != "first" || d.Response != 90 || !d.Counts {
		t.Errorf("%+v %+v", known, d)
	}
	if known, err := agentdb.Validations(ctx, db, "b", []common.Hash{one}); err != nil || len(known) != 0 {
		t.Errorf("of another agent: %+v %v", known, err)
	}
}

// TestPaymentOfTaskUsesIndexes: looking a task up reads no more rows than it finds, however many payments there are.
func TestPaymentOfTaskUsesIndexes(t *testing.T) {
	t.Parallel()
	db := open(t)
	tx, err := db.Pool().Begin(t.Context())
	ok(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `set local enable_seqscan = off`) // the table is empty
	ok(t, err)
	rows, err := tx.Query(t.Context(), `explain select id from agent_payments where agent = 'a' and request_id = 'r'`)
	ok(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	ok(t, err)
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "agent_payments_request") {
		t.Errorf("%s", text)
	}
}

// A NUL character in the details of an entry, as the name that a client gave its task, keeps neither the entry from
// being stored nor others from being read. A text that only looks like one stays as it is.
func TestDetailsOfHostileClients(t *testing.T) {
	t.Parallel()
	db := open(t)
	given := json.RawMessage(`{"task":"a\u0000b","document":"{\"x\":\"\\u0000\"}"}`)
	kept := string(given)
	ok(t, agentdb.Add(t.Context(), db, agentdb.Entry{Kind: agentdb.Execution, Agent: "a", RequestID: "r",
		Outcome: "200", Detail: given}))
	list, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: "a"})
	ok(t, err)
	if want := `{"task":"a\ufffdb","document":"{\"x\":\"\\u0000\"}"}`; len(list) != 1 || string(list[0].Detail) != want {
		t.Errorf("stored %+v, want details %s", list, want)
	}
	if string(given) != kept {
		t.Errorf("the caller's details became %s", given)
	}
	if _, err := agentdb.OpenValidations(t.Context(), db, "a", 5); err != nil {
		t.Error(err)
	}
}
