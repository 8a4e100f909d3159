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
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
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
	e, _ := counter(New(db, []string{"never"}, "/kept/:id"))
	write := func() {
		err := db.InTx(t.Context(), pgx.TxOptions{}, "write", func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "insert into denied (kind, value, reason) values ('host', gen_random_uuid()::text, 'x')")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := ask(e, "/kept/1")
	if again := ask(e, "/kept/1"); again.Body.String() != first.Body.String() || again.Header().Get("ETag") != `"e"` ||
		again.Header().Get("Content-Type") != first.Header().Get("Content-Type") {
		t.Errorf("%q, then %q, %v", first.Body, again.Body, again.Header())
	}
	if other := ask(e, "/kept/2"); other.Body.String() == first.Body.String() {
		t.Error("another path has the same answer")
	}
	if not := ask(e, "/kept/1", "If-None-Match", `"a", W/"e"`); not.Code != http.StatusNotModified || not.Body.Len() > 0 {
		t.Errorf("%d %q", not.Code, not.Body)
	}
	write()
	if later := ask(e, "/kept/1"); later.Body.String() == first.Body.String() {
		t.Error("an answer outlived a write")
	}
	for _, target := range []string{"/other", "/kept/1?plain=1", "/kept/1?never=1", "/kept/1?long=12"} {
		if a, b := ask(e, target), ask(e, target); a.Body.String() == b.Body.String() {
			t.Errorf("%s was kept", target)
		}
	}
}

// heldUp returns a server with the kept route /kept, whose state never changes. asked counts how often its answer was
// made. The first time closes first and lasts until end is closed.
func heldUp(t *testing.T) (e *echo.Echo, c *Cache, asked *atomic.Int64, first, end chan struct{}) {
	t.Helper()
	e, c = echo.New(), New(opened(t), nil, "/kept")
	c.states = &states{ask: func(context.Context) (string, error) { return "same", nil }} // whatever others write
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

// A state that is asked for is never that of a question sent before, however the calls interleave.
func TestStateIsNeverOlderThanItsCall(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var clock atomic.Int64
		s := &states{ask: func(context.Context) (string, error) { return fmt.Sprintf("%09d", clock.Load()), nil }}
		var all sync.WaitGroup
		var wrong atomic.Int64
		for range rapid.IntRange(1, 20).Draw(t, "callers") {
			all.Go(func() {
				for range 20 {
					began := fmt.Sprintf("%09d", clock.Add(1))
					if got, err := s.current(context.Background()); err != nil || got < began {
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

// A caller that leaves does not wait, and a failed question fails its callers alone.
func TestStateFails(t *testing.T) {
	t.Parallel()
	fails, hold := errors.New("fails"), make(chan struct{})
	s := &states{ask: func(context.Context) (string, error) { <-hold; return "", fails }}
	left, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.current(left); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(hold)
	if _, err := s.current(context.Background()); !errors.Is(err, fails) {
		t.Error(err)
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
