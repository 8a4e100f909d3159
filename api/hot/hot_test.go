package hot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"
	"pgregory.net/rapid"

	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
)

// counter answers with how often it was asked.
func counter(c *Cache) (e *echo.Echo, asked *atomic.Int64) {
	e, asked = echo.New(), new(atomic.Int64)
	e.Use(c.Middleware)
	say := func(c echo.Context) error {
		n := asked.Add(1)
		if c.QueryParam("plain") == "" {
			c.Response().Header().Set("ETag", `"e"`)
		}
		return c.String(http.StatusOK, fmt.Sprint(n, strings.Repeat("x", len(c.QueryParam("long"))*httpapi.MaxKept)))
	}
	e.GET("/kept/:id", say)
	e.GET("/other", say)
	return e, asked
}

func ask(e *echo.Echo, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// opened returns an index of its own.
func opened(t *testing.T) *store.DB {
	t.Helper()
	return openedAt(t, pgtest.New(t))
}

func openedAt(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// An answer is sent again until any transaction writes anything.
func TestKeptUntilSomethingIsWritten(t *testing.T) {
	t.Parallel()
	db := opened(t)
	c := patient(New(db, []string{"never"}, "/kept/:id"))
	c.states.age = time.Hour // so that only a write that is known counts
	e, _ := counter(c)
	first := ask(e, "/kept/1")
	if again := ask(e, "/kept/1"); again.Body.String() != first.Body.String() || again.Header().Get("ETag") != `"e"` ||
		again.Header().Get("Content-Type") != first.Header().Get("Content-Type") {
		t.Errorf("%q, then %q, %v", first.Body, again.Body, again.Header())
	}
	if other := ask(e, "/kept/2"); other.Body.String() == first.Body.String() {
		t.Error("another path has the same answer")
	}
	if not := ask(e, "/kept/1", "If-None-Match", `"a", W/"e"`); not.Code != http.StatusNotModified ||
		not.Body.Len() > 0 {
		t.Errorf("%d %q", not.Code, not.Body)
	}
	write(t, db)
	if later := ask(e, "/kept/1"); later.Body.String() == first.Body.String() {
		t.Error("an answer outlived a write")
	}
	for _, target := range []string{"/other", "/kept/1?plain=1", "/kept/1?never=1", "/kept/1?n%65ver=1",
		"/kept/1?long=12"} {
		if a, b := ask(e, target), ask(e, target); a.Body.String() == b.Body.String() {
			t.Errorf("%s was kept", target)
		}
	}
}

// patient keeps answers of a cache for an hour, and asks for the state until the database tells it, however slow the
// machine is.
func patient(c *Cache) *Cache {
	ask := c.states.ask
	c.age, c.states.ask = time.Hour, func(ctx context.Context) (state string, err error) {
		for {
			if state, err = ask(ctx); err == nil {
				return state, nil
			}
		}
	}
	return c
}

// write writes anything.
func write(t *testing.T, db *store.DB) {
	t.Helper()
	err := db.InTx(t.Context(), pgx.TxOptions{}, "write", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(),
			"insert into denied (kind, value, reason) values ('host', gen_random_uuid()::text, 'x')")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A write of another process ends an answer when the state is asked for again: after the age, for a request that
// demands a block, and once a change was handed out here.
func TestWritesOfOtherProcesses(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db, other := openedAt(t, url), openedAt(t, url)
	c := patient(New(db, nil, "/kept/:id"))
	e, _ := counter(c)
	written := 0
	for name, step := range map[string]struct {
		target string
		age    time.Duration
		learn  func()
		stays  bool
	}{
		"not known": {"/kept/1", time.Hour, func() {}, true},
		"age":       {"/kept/2", 0, func() {}, false},
		"minBlock":  {"/kept/3?minBlock=1", time.Hour, func() {}, false},
		"encoded":   {"/kept/4?min%42lock=1", time.Hour, func() {}, false},
		"change":    {"/kept/4", time.Hour, func() { awaitChanges(t, db, written) }, false},
	} {
		c.states.age = step.age
		before := ask(e, step.target)
		write(t, other)
		if _, err := other.Pool().Exec(t.Context(),
			"insert into changes (chain_id, kind, block, log_index, data) values (1, 'operator', 1, 0, '{}')"); err != nil {
			t.Fatal(err)
		}
		written++
		step.learn()
		if after := ask(e, step.target); (after.Body.String() == before.Body.String()) != step.stays {
			t.Errorf("%s: %q, then %q", name, before.Body, after.Body)
		}
	}
}

// awaitChanges returns once the feed of db has handed out so many changes. Transactions of other tests on the same
// server hold changes back for a while.
func awaitChanges(t *testing.T, db *store.DB, n int) {
	t.Helper()
	for {
		list, _, err := db.Changes(t.Context(), "", n, store.ChangeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// heldUp returns a server with the kept route /kept, whose state never changes. asked counts how often its answer was
// made. The first time closes first and lasts until end is closed.
func heldUp(t *testing.T) (e *echo.Echo, c *Cache, asked *atomic.Int64, first, end chan struct{}) {
	t.Helper()
	e, c = echo.New(), New(opened(t), nil, "/kept")
	c.states = &states{ask: func(context.Context) (string, error) { return "same", nil }, // whatever others write
		writes: func() uint64 { return 0 }}
	asked, first, end = new(atomic.Int64), make(chan struct{}), make(chan struct{})
	e.Use(c.Middleware)
	e.GET("/kept", func(c echo.Context) error {
		if asked.Add(1) == 1 {
			close(first)
			<-end
		}
		c.Response().Header().Set("ETag", `"e"`)
		return c.String(http.StatusOK, "answer")
	})
	return e, c, asked, first, end
}

// Callers who ask for the same at once share one answer.
func TestAnswersAreMadeOnce(t *testing.T) {
	t.Parallel()
	e, c, asked, first, others := heldUp(t)
	var all sync.WaitGroup
	send := func() {
		all.Go(func() {
			if w := ask(e, "/kept"); w.Code != http.StatusOK || w.Body.String() != "answer" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	send()
	<-first
	for range 20 {
		send()
	}
	close(others)
	if all.Wait(); asked.Load() > 10 { // 1, unless a caller is held up for longer than an answer is kept
		t.Errorf("made %d times", asked.Load())
	}
	_, end := c.begin("key")
	made, none := c.begin("key")
	if end(); none != nil {
		t.Error("two make one answer")
	}
	<-made
}

// A caller who is answered slowly does not hold up others.
func TestSlowCallerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	e, _, asked, first, end := heldUp(t)
	var slow sync.WaitGroup
	slow.Go(func() { ask(e, "/kept") })
	<-first
	if w := ask(e, "/kept"); w.Code != http.StatusOK || asked.Load() != 2 { // hangs until the test's end otherwise
		t.Errorf("%d, asked %d times", w.Code, asked.Load())
	}
	close(end)
	slow.Wait()
}

// A state that is asked for is never that of a question sent before, however the calls interleave, and a recent one is
// never from before a write that the process knows of.
func TestStateIsNeverOlderThanItsCall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var clock, writes atomic.Int64
		s := &states{age: time.Hour, writes: func() uint64 { return uint64(writes.Load()) },
			ask: func(context.Context) (string, error) { return fmt.Sprintf("%09d", clock.Load()), nil }}
		var all sync.WaitGroup
		var wrong atomic.Int64
		for range rapid.IntRange(1, 20).Draw(t, "callers") {
			all.Go(func() {
				for i := range 20 {
					began, read := fmt.Sprintf("%09d", clock.Add(1)), s.current
					if i%2 == 0 { // a write of this process
						writes.Add(1)
						read = s.recent
					}
					if got, err := read(context.Background()); err != nil || got < began {
						wrong.Add(1)
					}
				}
			})
		}
		if all.Wait(); wrong.Load() > 0 {
			t.Fatalf("%d states were older than their calls", wrong.Load())
		}
	})
}

// Callers share a recent state, so that no question is sent for most of them.
func TestRecentStateIsShared(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := &states{age: time.Hour, writes: func() uint64 { return 0 },
		ask: func(context.Context) (string, error) { return fmt.Sprint(asked.Add(1)), nil }}
	for range 10 {
		if got, err := s.recent(t.Context()); err != nil || got != "1" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if s.age = 0; asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
	if got, err := s.recent(t.Context()); err != nil || got != "2" {
		t.Errorf("too old: %q, %v", got, err)
	}
}

// A caller that leaves does not wait, and a failed question fails its callers alone.
func TestStateFails(t *testing.T) {
	t.Parallel()
	fails, hold := errors.New("fails"), make(chan struct{})
	s := &states{age: time.Hour, writes: func() uint64 { return 0 },
		ask: func(context.Context) (string, error) { <-hold; return "", fails }}
	left, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.current(left); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(hold)
	for range 2 { // a failure is not kept
		if _, err := s.recent(context.Background()); !errors.Is(err, fails) {
			t.Error(err)
		}
	}
}

// The memory of all answers together is bounded.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	c := New(nil, nil)
	for i := range 400 {
		c.put(fmt.Sprint(i), &answer{state: "s", Kept: httpapi.Kept{Body: make([]byte, httpapi.MaxKept)}})
		c.put(fmt.Sprint(i), &answer{state: "s", Kept: httpapi.Kept{Body: make([]byte, httpapi.MaxKept)}})
	}
	sum := 0
	for _, k := range c.kept.Keys() {
		a, _ := c.kept.Peek(k)
		sum += a.size(k)
	}
	if sum != c.bytes || sum > maxBytes || sum < maxBytes/2 {
		t.Errorf("%d bytes are kept, %d are counted, at most %d", sum, c.bytes, maxBytes)
	}
}
