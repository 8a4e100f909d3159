package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"repute"
	"repute/api/feed"
	"repute/api/webhook"
	"repute/api/wire/push"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/webhookdb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a time that passes as soon as somebody waits for it.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	pauses []time.Duration
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Pause(_ context.Context, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.pauses = c.now.Add(d), append(c.pauses, d)
}

// pass lets time pass.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// buffer is a log that several loggers write to.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// world is a database with a receiver.
type world struct {
	t     *testing.T
	db    *store.DB
	url   string // of the database
	clock *clock
	sink  *sink
	log   *buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := pgtest.New(t)
	w := &world{t: t, url: url, db: open(t, url), clock: newClock(), log: &buffer{}}
	w.sink = newSink(t)
	return w
}

func open(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{MaxConns: 8})
	ok(t, err)
	t.Cleanup(db.Close)
	return db
}

// change adds n changes of an agent to the feed and returns their cursors.
func (w *world) change(n int, kind, data string) (cursors []string) {
	w.t.Helper()
	for range n {
		var c string
		ok(w.t, w.db.Pool().QueryRow(w.t.Context(), `
			insert into changes (chain_id, kind, block, log_index, token_id, data) values (9, $1, 0, 0, 7, $2)
			returning xid::text || '-' || seq`, kind, data).Scan(&c))
		cursors = append(cursors, c)
	}
	return cursors
}

// hook adds a webhook for the sink that begins at the oldest change.
func (w *world) hook(f webhookdb.Filter) webhookdb.Webhook {
	w.t.Helper()
	h, err := webhookdb.Add(w.t.Context(), w.db,
		webhookdb.Webhook{URL: w.sink.server.URL + "/secret-path", Filter: f, By: "ann"})
	ok(w.t, err)
	return h
}

// run starts a deliverer, which stops when the returned function is called or the test ends.
func (w *world) run(db *store.DB) (stop func()) {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := webhook.New(db, webhook.Options{Feed: feed.New(db, log), Client: &http.Client{}, UserAgent: "test",
		Clock: w.clock, Log: log,
		Timeout: 300 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	w.t.Cleanup(stop)
	return stop
}

// await waits until a webhook is in a state.
func (w *world) await(id, what string, is func(*webhookdb.Webhook) bool) webhookdb.Webhook {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		h, err := webhookdb.Read(w.t.Context(), w.db, id)
		ok(w.t, err)
		if is(&h) {
			return h
		}
		if time.Since(began) > time.Minute {
			w.t.Fatalf("%s: not after 30 s: %+v", what, h)
		}
	}
}

// All changes arrive, in order, although the receiver fails, hangs and redirects, and the sender dies again and again.
func TestDeliversAllInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hook(webhookdb.Filter{})
	want := w.change(40, "agent.uri", `{}`)
	w.sink.answers(func(rw http.ResponseWriter, n int) {
		switch rand.IntN(6) {
		case 0:
			rw.WriteHeader(http.StatusInternalServerError)
		case 1:
			rw.WriteHeader(http.StatusFound)
		case 2:
			if n%5 == 0 {
				rw.WriteHeader(http.StatusServiceUnavailable)
				rw.(*recorder).ResponseWriter.(http.Flusher).Flush()
				time.Sleep(400 * time.Millisecond) // longer than the sender waits
			}
		}
	})
	for began := time.Now(); len(w.sink.ids()) < len(want) && time.Since(began) < 50*time.Second; {
		stop := w.run(w.db)
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		stop()
	}
	if got := w.sink.ids(); !slices.Equal(got, want) {
		t.Errorf("received %v\nwant %v", got, want)
	}
	w.run(w.db)
	last := w.await(h.ID, "all delivered", func(h *webhookdb.Webhook) bool { return h.Cursor == want[len(want)-1] })
	if last.Delivered != 40 || last.Failure.Attempts != 0 {
		t.Errorf("counted %d, failure %+v", last.Delivered, last.Failure)
	}
}

// Two processes share webhooks: each message is sent by one of them, once.
func TestTwoProcessesSendOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hook(webhookdb.Filter{})
	first := w.run(w.db)
	w.run(open(t, w.url))
	want := w.change(30, "agent.uri", `{}`)
	w.await(h.ID, "half delivered", func(h *webhookdb.Webhook) bool { return h.Delivered >= 15 })
	first() // the other one takes over if this one was the sender
	want = append(want, w.change(10, "agent.uri", `{}`)...)
	w.await(h.ID, "all delivered", func(h *webhookdb.Webhook) bool { return h.Cursor == want[len(want)-1] })
	if got := w.sink.ids(); !slices.Equal(got, want) {
		t.Errorf("received %v\nwant %v", got, want)
	}
	if n := len(w.sink.all()); n > len(want)+1 { // a message in flight is sent again after its sender stops
		t.Errorf("%d messages for %d changes", n, len(want))
	}
	if most := w.sink.most.Load(); most > 1 {
		t.Errorf("%d messages at once", most)
	}
}

// Messages verify with the library of others: after a rotation with both secrets for a day, then with the new one
// alone.
func TestSignatures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hook(webhookdb.Filter{})
	w.run(w.db)
	verifies := func(m message, s webhookdb.Secret) bool {
		key, err := standardwebhooks.NewWebhook(s.Text())
		ok(t, err)
		return key.VerifyIgnoringTimestamp(m.body, m.header) == nil
	}
	next := func() message {
		t.Helper()
		cursor := w.change(1, "agent.uri", `{"uri":"x"}`)[0]
		w.await(h.ID, "delivered", func(h *webhookdb.Webhook) bool { return h.Cursor == cursor })
		all := w.sink.all()
		m := all[len(all)-1]
		if m.id != cursor {
			t.Fatalf("message %s, want %s", m.id, cursor)
		}
		return m
	}
	m := next()
	key, err := standardwebhooks.NewWebhook(h.Secret.Text())
	ok(t, err)
	ok(t, key.Verify(m.body, m.header))
	var body struct {
		Type      string
		Timestamp time.Time
		Data      json.RawMessage
	}
	ok(t, json.Unmarshal(m.body, &body))
	list, _, err := w.db.Changes(t.Context(), "", 1, store.ChangeFilter{})
	ok(t, err)
	shown, err := json.Marshal(push.EncodeChange(&list[0]))
	ok(t, err)
	if body.Type != "agent.uri" || !body.Timestamp.Equal(list[0].At) || string(body.Data) != string(shown) {
		t.Errorf("body %s\nwant the data %s", m.body, shown)
	}
	m.body = append(m.body, ' ')
	if verifies(m, h.Secret) {
		t.Error("a changed body verifies")
	}
	fresh, err := webhookdb.Rotate(t.Context(), w.db, h.ID)
	ok(t, err)
	time.Sleep(2 * time.Second) // until the sender has seen it
	if m = next(); !verifies(m, h.Secret) || !verifies(m, fresh) {
		t.Error("after the rotation not both secrets verify")
	}
	w.clock.pass(25 * time.Hour)
	if m = next(); verifies(m, h.Secret) || !verifies(m, fresh) {
		t.Error("a day later the former secret still signs, or the new one does not")
	}
}

// A redirect is a failure, wherever it points: nobody else gets the message.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var inner atomic.Int32
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner.Add(1) }))
	defer private.Close()
	w.sink.answers(func(rw http.ResponseWriter, _ int) {
		rw.Header().Set("Location", private.URL)
		rw.WriteHeader(http.StatusTemporaryRedirect)
	})
	h := w.hook(webhookdb.Filter{})
	w.change(1, "agent.uri", `{}`)
	w.run(w.db)
	got := w.await(h.ID, "refused", func(h *webhookdb.Webhook) bool { return h.Failure.Attempts > 2 })
	if got.Failure.Status != http.StatusTemporaryRedirect || inner.Load() != 0 {
		t.Errorf("status %d, %d requests inward", got.Failure.Status, inner.Load())
	}
}

// A receiver that fails for three days is given up, with a reason; one that asks for patience gets it, within a bound.
func TestGivesUpAfterThreeDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink.answers(func(rw http.ResponseWriter, n int) {
		if n == 3 {
			rw.Header().Set("Retry-After", "7200")
		}
		if n == 4 {
			rw.Header().Set("Retry-After", "99999999")
		}
		rw.WriteHeader(http.StatusInternalServerError)
	})
	h := w.hook(webhookdb.Filter{})
	w.change(2, "agent.uri", `{}`)
	began := w.clock.Now()
	w.run(w.db)
	got := w.await(h.ID, "disabled", func(h *webhookdb.Webhook) bool { return h.Disabled != "" })
	took := w.clock.Now().Sub(began)
	if took < 72*time.Hour || took > 74*time.Hour || !strings.Contains(got.Disabled, "72 hours") ||
		!strings.Contains(got.Disabled, "500") {
		t.Errorf("disabled after %s: %s", took, got.Disabled)
	}
	if got.Delivered != 0 || got.Cursor != "" {
		t.Errorf("delivered %d, at %q", got.Delivered, got.Cursor)
	}
	p := w.clock.pauses
	if p[0] > 7*time.Second || p[2] != 2*time.Hour || p[3] != 6*time.Hour || slices.Max(p[4:]) > 75*time.Minute {
		t.Errorf("pauses %v", p)
	}
	// The operator continues it where it stopped, once the receiver works again.
	w.sink.answers(func(http.ResponseWriter, int) {})
	ok(t, webhookdb.Replay(t.Context(), w.db, h.ID, got.Cursor))
	w.await(h.ID, "delivered", func(h *webhookdb.Webhook) bool { return h.Delivered == 2 && h.Disabled == "" })
}

// 410 means that nobody listens any more.
func TestGoneDisablesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sink.answers(func(rw http.ResponseWriter, _ int) { rw.WriteHeader(http.StatusGone) })
	h := w.hook(webhookdb.Filter{})
	w.change(3, "agent.uri", `{}`)
	w.run(w.db)
	got := w.await(h.ID, "disabled", func(h *webhookdb.Webhook) bool { return h.Disabled != "" })
	time.Sleep(1200 * time.Millisecond) // a worker that would begin again does so within a second
	if !strings.Contains(got.Disabled, "410") || w.sink.count() != 1 {
		t.Errorf("%d requests: %s", w.sink.count(), got.Disabled)
	}
}

// A webhook whose place in the feed was pruned is disabled; the reason says from where it can be replayed.
func TestPrunedPlaceDisables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cursors := w.change(5, "agent.uri", `{}`)
	h, err := webhookdb.Add(t.Context(), w.db, webhookdb.Webhook{URL: w.sink.server.URL, Cursor: cursors[0], By: "ann"})
	ok(t, err)
	_, err = w.db.Pool().Exec(t.Context(), "update changes set created_at = now() - interval '2 hours' where seq <= 3")
	ok(t, err)
	if n, err := w.db.PruneChanges(t.Context(), time.Hour); n != 3 || err != nil {
		t.Fatalf("pruned %d: %v", n, err)
	}
	w.run(w.db)
	got := w.await(h.ID, "disabled", func(h *webhookdb.Webhook) bool { return h.Disabled != "" })
	if !strings.Contains(got.Disabled, "replay") || !strings.Contains(got.Disabled, cursors[3]) {
		t.Errorf("disabled: %s", got.Disabled)
	}
	ok(t, webhookdb.Replay(t.Context(), w.db, h.ID, cursors[3]))
	w.await(h.ID, "delivered", func(h *webhookdb.Webhook) bool { return h.Delivered == 1 })
	if got := w.sink.ids(); !slices.Equal(got, cursors[4:]) {
		t.Errorf("received %v, want %v", got, cursors[4:])
	}
}

// Only what the filter selects is sent, and the place in the feed moves past the rest.
func TestFilterOfScores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	below := 20.0
	h := w.hook(webhookdb.Filter{Agent: "9:7", Below: &below})
	score := func(mode string, old, is float64) string {
		return fmt.Sprintf(`{"mode":%q,"old":{"status":"rated","score":%g,"tier":1},"new":{"status":"rated","score":%g,"tier":1},
			"asOf":{"block":1,"hash":"0x"}}`, mode, old, is)
	}
	w.change(1, "agent.uri", `{}`)
	w.change(1, "score.changed", score("provisional", 40, 20))
	want := w.change(1, "score.changed", score("provisional", 20, 19.999))
	w.change(1, "score.changed", score("final", 20, 10))
	want = append(want, w.change(1, "score.changed", score("provisional", 19.999, 30))...)
	w.change(3, "agent.uri", `{}`)
	w.run(w.db)
	w.await(h.ID, "delivered", func(h *webhookdb.Webhook) bool { return h.Delivered == 2 })
	if got := w.sink.ids(); !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
}

// No log and no answer shows a secret or the path of a URL.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hook(webhookdb.Filter{})
	w.sink.answers(func(rw http.ResponseWriter, n int) {
		if n > 2 {
			rw.WriteHeader(http.StatusGone)
			return
		}
		panic(http.ErrAbortHandler)
	})
	w.change(1, "agent.uri", `{}`)
	stop := w.run(w.db)
	got := w.await(h.ID, "disabled",
		func(h *webhookdb.Webhook) bool { return h.Disabled != "" && w.log.String() != "" })
	stop()
	shown, err := json.Marshal(push.EncodeWebhook(got))
	ok(t, err)
	whole, err := json.Marshal(got)
	ok(t, err)
	secret := strings.TrimPrefix(h.Secret.Text(), "whsec_")
	for what, text := range map[string]string{"log": w.log.String(), "list": string(shown), "json": string(whole),
		"text": fmt.Sprintf("%v %+v %#v %s", got, got, got.Secret, got.Secret)} {
		if strings.Contains(text, secret) || strings.Contains(text, string(h.Secret)) {
			t.Errorf("%s shows the secret: %s", what, text)
		}
	}
	if w.log.String() == "" || strings.Contains(w.log.String(), "secret-path") {
		t.Errorf("log: %s", w.log)
	}
}

// A test tells how the receiver answered, without moving the webhook.
func TestTest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hook(webhookdb.Filter{})
	d := webhook.New(w.db, webhook.Options{Feed: feed.New(w.db, slog.Default()), Client: &http.Client{}})
	got, err := d.Test(t.Context(), h.ID)
	ok(t, err)
	if got.Status != 200 || got.Reason != "" || len(w.sink.all()) != 1 ||
		!strings.Contains(string(w.sink.all()[0].body), "webhook.test") {
		t.Errorf("%+v, received %v", got, w.sink.all())
	}
	w.sink.server.Close()
	if got, err = d.Test(t.Context(), h.ID); err != nil || got.Status != 0 || got.Reason == "" ||
		strings.Contains(got.Reason, "secret-path") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := d.Test(t.Context(), "wh_none"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an unknown one: %v", err)
	}
}
