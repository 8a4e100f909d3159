package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/api/wire/push"
	"repute/internal/pgtest"
	"repute/store"
)

// openReplica opens the primary with the replica for reads.
func openReplica(t *testing.T, r *pgtest.Replica) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), r.Primary, store.Options{ReadURL: r.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// A replica that is behind says so: answers are of an older block, a demanded block is 503 until it is there, and the
// change feed of every process is that of the primary.
func TestReadReplica(t *testing.T) {
	t.Parallel()
	r := pgtest.NewReplica(t)
	l := newLedger(t, open(t, r.Primary), 8453)
	l.add(mint(0, addr(1), "https://a.example")...)
	var processes []*httptest.Server
	for range 2 {
		processes = append(processes, serve(t, api.Options{DB: openReplica(t, r)}, unlimited()))
	}
	s := processes[0]
	waitFor(t, "the replica", func() bool { return get(t, s, "/agents/8453:0?minBlock=1").status == http.StatusOK })
	before := as[push.ChangeList](t, get(t, s, "/changes"))
	r.Pause()
	l.add(mint(1, addr(1), "https://b.example")...)
	if got := get(t, s, "/agents/8453:1"); got.status != http.StatusNotFound {
		t.Errorf("an agent that the replica does not know: %d %s", got.status, got.body)
	}
	if a := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:0")); a.AsOf.Block != 1 {
		t.Errorf("the answer is of block %d, want 1", a.AsOf.Block)
	}
	late := get(t, s, "/agents/8453:1?minBlock=8453:2")
	if b := problemOf(t, late); late.status != http.StatusServiceUnavailable || late.header.Get("Retry-After") == "" ||
		b.Code != "unavailable" {
		t.Errorf("a block that the replica does not have: %d %+v", late.status, b)
	}
	for i, process := range processes {
		waitFor(t, "the feed", func() bool {
			list := as[push.ChangeList](t, get(t, process, "/changes?since="+before.Next))
			return len(list.Changes) > 0 && list.Changes[0].Block == 2
		})
		if t.Failed() {
			t.Fatalf("process %d", i)
		}
	}
	r.Resume()
	waitFor(t, "block 2", func() bool { return get(t, s, "/agents/8453:1?minBlock=2").status == http.StatusOK })
}

// The change feed must not be read from a replica: a cursor that the primary gave is unknown there, which would tell a
// reader that changes are lost. The rule that orders the feed holds on both: a change waits for older open writes.
func TestFeedOfAReplica(t *testing.T) {
	t.Parallel()
	r := pgtest.NewReplica(t)
	primary, replica := open(t, r.Primary), open(t, r.URL)
	l := newLedger(t, primary, 8453)
	l.add(mint(0, addr(1), "https://a.example")...)
	caughtUp := func() {
		t.Helper()
		at := r.Position()
		waitFor(t, "the replica", func() bool { return r.Reached(at) })
	}
	caughtUp()
	since := newestOf(t, replica)
	if since != newestOf(t, primary) || since == "" {
		t.Fatalf("the newest change is %q", since)
	}
	open, err := primary.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	insert := `insert into changes (chain_id, kind, block, log_index, data) values (8453, 'operator', 2, 0, '{}')`
	if _, err := open.Exec(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	if _, err := primary.Pool().Exec(t.Context(), insert); err != nil { // a later transaction that ends first
		t.Fatal(err)
	}
	caughtUp()
	if list, _, err := replica.Changes(t.Context(), since, 10, store.ChangeFilter{}); err != nil || len(list) != 0 {
		t.Errorf("%d changes while an older one is being written, %v", len(list), err)
	}
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	caughtUp()
	waitFor(t, "both changes", func() bool {
		list, _, err := replica.Changes(t.Context(), since, 10, store.ChangeFilter{})
		return err == nil && len(list) == 2
	})
	r.Pause()
	l.add(mint(1, addr(1), "https://b.example")...)
	waitFor(t, "the feed of the primary", func() bool { return newestOf(t, primary) != newestOf(t, replica) })
	if _, _, err := replica.Changes(t.Context(), newestOf(t, primary), 10, store.ChangeFilter{}); !errors.Is(err,
		repute.ErrGone) {
		t.Errorf("a cursor of the future: %v", err)
	}
	r.Resume()
}

func newestOf(t *testing.T, db *store.DB) string {
	t.Helper()
	cursor, err := db.NewestChange(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return cursor
}

// minBlock names the chain where several are indexed, and a wrong one is refused.
func TestMinBlockChecks(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	one := newLedger(t, db, 1)
	one.add(mint(0, addr(1), "https://a.example")...)
	s := serve(t, api.Options{DB: db}, unlimited())
	if got := get(t, s, "/agents?minBlock=1"); got.status != http.StatusOK {
		t.Errorf("of the only chain: %d %s", got.status, got.body)
	}
	newLedger(t, db, 2)
	for path, want := range map[string]int{"/agents?minBlock=1": 400, "/agents?minBlock=1:1": 200,
		"/agents?minBlock=3:1": 404,
		"/agents?minBlock=x":   400, "/agents?minBlock=" + fmt.Sprint("1:", uint64(1)<<63): 400,
		"/agents?minBlock=1:2": 503} {
		if got := get(t, s, path); got.status != want {
			t.Errorf("%s: %d %s, want %d", path, got.status, got.body, want)
		}
	}
}

// GraphQL, and the tools that are asked before a payment, take minBlock as the routes do.
func TestMinBlockElsewhere(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	newLedger(t, db, 1).add(mint(0, addr(1), "https://a.example")...)
	s := serve(t, api.Options{DB: db, Tools: newTools(t)}, unlimited())
	const body = `{"query":"{ agent(id: \"1:0\") { id } chains { name } }"}`
	post := func(minBlock string) reply {
		return do(t, s, http.MethodPost, "/graphql?minBlock="+minBlock, strings.NewReader(body))
	}
	if r := post("1:1"); len(as[answer](t, r).Errors) > 0 {
		t.Errorf("a block that is there: %s", r.body)
	}
	late := as[answer](t, post("2"))
	if len(late.Errors) != 1 || late.Errors[0].Extensions["code"] != "UNAVAILABLE" ||
		late.Errors[0].Extensions["retryAfter"] == nil || len(late.Data) > 0 ||
		!strings.Contains(fmt.Sprint(late.Errors[0].Extensions["hint"]), "leave minBlock out") {
		t.Errorf("a block that is not there: %+v", late)
	}
	if r := get(t, s, "/graphql"+query("query", "{ chains { name } }", "minBlock", "x")); problemOf(t,
		r).Errors[0].Field != "minBlock" {
		t.Errorf("no block: %d %s", r.status, r.body)
	}
	if r := get(t, s, "/graphql?minBlock=x", "Connection", "Upgrade", "Upgrade",
		"websocket"); problemOf(t, r).Errors[0].Field != "minBlock" {
		t.Errorf("no block on a WebSocket: %d %s", r.status, r.body)
	}
	b := connect(t, s)
	for _, name := range []string{"repute_get_reputation", "repute_decide"} {
		if r := b.call(name, `{"agentId":"1:0","minBlock":"1:1"}`); r.IsError {
			t.Errorf("%s: %s", name, said(r))
		}
		if r := b.call(name, `{"agentId":"1:0","minBlock":2}`); !r.IsError ||
			!strings.Contains(said(r), "not indexed yet") ||
			!strings.Contains(said(r), "leave minBlock out") {
			t.Errorf("%s of a block that is not there: %s", name, said(r))
		}
	}
}
