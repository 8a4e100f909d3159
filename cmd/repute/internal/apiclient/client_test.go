package apiclient

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"repute"
)

// A refusal has the kind that the same failure has on the database, so that a script sees one exit code either way.
func TestRefusalHasTheKindOfTheFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		answer string
		kind   error
		want   string
	}{
		{401, `{"detail":"no"}`, repute.ErrInvalid, "token: is missing or not known to the orchestrator"},
		{404, `{"detail":"no task x"}`, repute.ErrNotFound, "no task x: "},
		{404, `{"detail":"no task x","hint":"look"}`, repute.ErrNotFound, "(look)"},
		{404, ``, repute.ErrNotFound, "Not Found: "},
		{409, `{"detail":"the task ended"}`, repute.ErrConflict, "the task ended"},
		{429, `{}`, repute.ErrUnavailable, "Too Many Requests: "},
		{500, `<html>`, repute.ErrUnavailable, "Internal Server Error: "},
		{503, `{"detail":"busy"}`, repute.ErrUnavailable, "busy: "},
		{400, `{"detail":"limit: is 0","hint":"1 to 100"}`, repute.ErrInvalid, "refuses: limit: is 0 (1 to 100)"},
		{403, `[]`, repute.ErrInvalid, "refuses: Forbidden (it answered 403)"},
		{302, ``, repute.ErrInvalid, "it answered 302"},
	} {
		err := Refusal(c.status, []byte(c.answer))
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %s: %v, want %q", c.status, c.answer, err, c.want)
		}
	}
}

// A server's text cannot act on the terminal of the caller, whatever the status that it comes with.
func TestRefusalIsSafeForTerminals(t *testing.T) {
	t.Parallel()
	answer, err := json.Marshal(map[string]string{"detail": "a\x1b[2Jb\u202ec", "hint": "d\x07e\nf"})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{400, 404, 409, 429, 500} {
		if text := Refusal(status, answer).Error(); strings.ContainsAny(text, "\x1b\x07\n\u202e") {
			t.Errorf("%d: %q", status, text)
		}
	}
}

// Only a URL of HTTP with a host is asked, and the error of another one does not quote it: it may hold a password.
func TestRequestRefusesOtherURLs(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "localhost:8080", "ftp://secret@host", "http://", "/v1",
		"http://secret:x y@host",
		"http://host:secret", "file:///etc/secret", "http://secret@ho st"} {
		_, err := (&Client{URL: wrong}).Request(t.Context(), http.MethodGet, "/v1/tasks", nil)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != "orchestrator" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	_, err := (&Client{URL: "http://host"}).Request(t.Context(), http.MethodPost, "/v1/tasks", json.RawMessage("{"))
	var input *repute.InputError
	if !errors.As(err, &input) || input.Field != "input" {
		t.Errorf("a body that is no JSON: %v", err)
	}
}

// The flag wins over the environment, and without both no header is sent.
func TestTokenOfFlagOrEnvironment(t *testing.T) {
	for _, c := range []struct{ flag, environment, want string }{
		{"a", "b", "Bearer a"}, {"", "b", "Bearer b"}, {"a", "", "Bearer a"}, {"", "", ""},
	} {
		t.Setenv("REPUTE_TOKEN", c.environment)
		req, err := (&Client{URL: "http://host/", Token: c.flag}).Request(t.Context(), http.MethodGet, "/v1/tasks", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := req.Header.Get("Authorization"); got != c.want || req.URL.String() != "http://host/v1/tasks" {
			t.Errorf("%+v: %q to %s", c, got, req.URL)
		}
	}
}

// The flags fill the client that they were added from.
func TestFlags(t *testing.T) {
	t.Parallel()
	var c Client
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Flags(set)
	if err := set.Parse([]string{"--orchestrator", "http://host", "--token", "t"}); err != nil {
		t.Fatal(err)
	}
	if (c != Client{URL: "http://host", Token: "t"}) {
		t.Errorf("%+v", c)
	}
}

// A call sends JSON and decodes JSON, and an answer that nobody asked for is not read as one.
func TestCall(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/echo":
			if r.Header.Get("Content-Type") != "application/json" {
				w.WriteHeader(http.StatusUnsupportedMediaType)
			}
			_, _ = w.Write(body)
		case "/page":
			_, _ = w.Write([]byte("<html>"))
		case "/long":
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", 16<<20) + `"`))
		case "/cut":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("{"))
		}
	}))
	t.Cleanup(server.Close)
	c := Client{URL: server.URL, Token: "t"}
	var got struct{ A int }
	if err := c.Call(t.Context(), http.MethodPost, "/echo", map[string]int{"a": 7}, &got); err != nil || got.A != 7 {
		t.Errorf("echo: %+v, %v", got, err)
	}
	if err := c.Call(t.Context(), http.MethodGet, "/page", nil, nil); err != nil {
		t.Errorf("an answer that is not read: %v", err)
	}
	for path, kind := range map[string]error{"/page": repute.ErrInvalid, "/long": repute.ErrInvalid,
		"/cut": repute.ErrUnavailable} {
		var into any
		if err := c.Call(t.Context(), http.MethodGet, path, nil, &into); !errors.Is(err, kind) {
			t.Errorf("%s: %v", path, err)
		}
	}
	server.Close()
	if err := c.Call(t.Context(), http.MethodGet, "/echo", nil, nil); !errors.Is(err, repute.ErrUnavailable) ||
		!strings.Contains(err.Error(), "--orchestrator") {
		t.Errorf("nobody answers: %v", err)
	}
}

// A server that redirects to another host does not learn there which token it was called with.
func TestTokenStaysWithItsHost(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.80.5.1:0")
	if err != nil {
		t.Skip("no second loopback address")
	}
	seen := make(chan string, 1)
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		_, _ = w.Write([]byte("{}"))
	}))
	_ = other.Listener.Close()
	other.Listener = l
	other.Start()
	t.Cleanup(other.Close)
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(first.Close)
	c := Client{URL: first.URL, Token: "secret"}
	if err := c.Call(t.Context(), http.MethodPost, "/v1/tasks", map[string]string{}, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "" {
		t.Errorf("the other host was sent %q", got)
	}
}
