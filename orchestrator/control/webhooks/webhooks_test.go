package webhooks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"repute"
	"repute/api/wire/push"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/control/webhooks"
	"repute/store"
)

const token = "a-token-that-is-long-enough"

// sender notes what was tested.
type sender struct{ tested []string }

func (s *sender) Test(_ context.Context, id string) (push.WebhookTest, error) {
	s.tested = append(s.tested, id)
	return push.WebhookTest{Status: 204}, nil
}

// routes are the routes over a database.
type routes struct {
	t      *testing.T
	db     *store.DB
	url    string
	sender sender
}

func newRoutes(t *testing.T) *routes {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	server, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{"ann": token},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := &routes{t: t, db: db}
	webhooks.Mount(rest.New(server, false), webhooks.Options{DB: db, Sender: &r.sender,
		Allowed: func(u *url.URL) error {
			if u.Scheme != "https" && u.Hostname() != "localhost" {
				return repute.Invalid("scheme", "plain http", "https")
			}
			return nil
		}})
	h, err := server.Handler()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	r.url = s.URL
	return r
}

// ask sends a request and decodes its answer, of which it returns the text.
func (r *routes) ask(method, path, body string, status int, into any) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+"/v1/webhooks"+path,
		bytes.NewBufferString(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		r.t.Fatalf("%s %s %s: %d, want %d: %s (%v)", method, path, body, res.StatusCode, status, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			r.t.Fatalf("%v in %s", err, text)
		}
	}
	return string(text)
}

// A webhook is added, shown without its secret, tested, rotated, replayed and removed.
func TestWebhookRoutes(t *testing.T) {
	t.Parallel()
	r := newRoutes(t)
	var added, rotated push.WebhookWithSecret
	r.ask(http.MethodPost, "", `{"url":"https://example.com/hook","filter":{"agent":"9:7","below":20}}`,
		http.StatusCreated, &added)
	if added.By != "ann" || added.State != "active" || !strings.HasPrefix(added.Secret, "whsec_") ||
		*added.Filter.Below != 20 {
		t.Errorf("added %+v", added)
	}
	var list push.WebhookList
	shown := r.ask(http.MethodGet, "", "", http.StatusOK, &list) +
		r.ask(http.MethodGet, "/"+added.ID, "", http.StatusOK, nil)
	if len(list.Webhooks) != 1 || list.Webhooks[0].ID != added.ID || strings.Contains(shown, "whsec_") ||
		strings.Contains(shown, added.Secret[6:]) {
		t.Errorf("shown %s", shown)
	}
	r.ask(http.MethodPost, "/"+added.ID+"/test", "", http.StatusOK, nil)
	if len(r.sender.tested) != 1 || r.sender.tested[0] != added.ID {
		t.Errorf("tested %v", r.sender.tested)
	}
	r.ask(http.MethodPost, "/"+added.ID+"/rotate", "", http.StatusOK, &rotated)
	if rotated.Secret == added.Secret || rotated.ID != added.ID {
		t.Errorf("rotated %+v", rotated)
	}
	r.ask(http.MethodPost, "/"+added.ID+"/replay", `{"since":""}`, http.StatusOK, nil)
	r.ask(http.MethodPost, "/"+added.ID+"/replay", `{}`, http.StatusOK, nil)
	r.ask(http.MethodDelete, "/"+added.ID, "", http.StatusOK, nil)
	for _, path := range []string{"/" + added.ID, "/wh_none"} {
		r.ask(http.MethodGet, path, "", http.StatusNotFound, nil)
		r.ask(http.MethodPost, path+"/rotate", "", http.StatusNotFound, nil)
		r.ask(http.MethodPost, path+"/replay", "", http.StatusNotFound, nil)
		r.ask(http.MethodDelete, path, "", http.StatusNotFound, nil)
	}
}

// What is wrong with a webhook is said before it is stored.
func TestWebhooksThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRoutes(t)
	for body, status := range map[string]int{
		`{}`:                                     http.StatusBadRequest,
		`{"url":"x"}`:                            http.StatusBadRequest,
		`{"url":"http://example.com"}`:           http.StatusBadRequest,
		`{"url":"https://example.com","more":1}`: http.StatusBadRequest,
		`{"url":"https://example.com","since":"x"}`:                                  http.StatusBadRequest,
		`{"url":"https://example.com","since":"1-1"}`:                                http.StatusGone,
		`{"url":"https://example.com","filter":{"kinds":["x"]}}`:                     http.StatusBadRequest,
		`{"url":"https://example.com","filter":{"agent":"7"}}`:                       http.StatusBadRequest,
		`{"url":"https://example.com","filter":{"below":101}}`:                       http.StatusBadRequest,
		`{"url":"https://example.com","filter":{"kinds":["agent.uri"],"tier":true}}`: http.StatusBadRequest,
		`{"url":"http://localhost:1/x"}`:                                             http.StatusCreated,
	} {
		r.ask(http.MethodPost, "", body, status, nil)
	}
	var list push.WebhookList
	if r.ask(http.MethodGet, "", "", http.StatusOK, &list); len(list.Webhooks) != 1 {
		t.Errorf("%d webhooks are stored", len(list.Webhooks))
	}
}

// There is a bound, because each webhook is followed by its own worker.
func TestWebhooksAreBounded(t *testing.T) {
	t.Parallel()
	r := newRoutes(t)
	for range 100 {
		r.ask(http.MethodPost, "", `{"url":"https://example.com/hook"}`, http.StatusCreated, nil)
	}
	r.ask(http.MethodPost, "", `{"url":"https://example.com/hook"}`, http.StatusTooManyRequests, nil)
}
