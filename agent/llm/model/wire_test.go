package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute"
	"repute/agent/llm"
	"repute/agent/llm/modelfile"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

// golden compares a value with a golden file of JSON.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got.Bytes(), want)
	}
}

// providers are the providers whose wire formats are compared.
func providers() []string { return []string{modelfile.OpenAI, modelfile.Anthropic, modelfile.Google} }

// asked is a request as a provider gets it.
type asked struct {
	Method, URL string
	Headers     map[string]string
	Body        any
}

// recorder answers every request with 400, and keeps it.
type recorder struct{ got []asked }

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	a := asked{Method: req.Method, URL: req.URL.String(), Headers: map[string]string{}}
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Anthropic-Version", "Content-Type"} {
		if v := req.Header.Get(name); v != "" {
			a.Headers[name] = v
		}
	}
	if err := json.NewDecoder(req.Body).Decode(&a.Body); err != nil {
		return nil, err
	}
	r.got = append(r.got, a)
	return &http.Response{StatusCode: http.StatusBadRequest, Request: req, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(`{"error":{"code":400,"message":"seen"}}`))}, nil
}

// newModel returns a client of a provider that asks through hc.
func newModel(t *testing.T, e modelfile.Entry, key string, hc *http.Client) (m llm.Model) {
	t.Helper()
	var err error
	switch e.Provider {
	case modelfile.Anthropic:
		m = newAnthropic(e, key, hc)
	case modelfile.OpenAI:
		m = newOpenAI(e, key, hc)
	default:
		m, err = newGoogle(t.Context(), e, key, hc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// conversation is a request that has everything that a request can have.
func conversation() llm.Request {
	zero := 0.0
	return llm.Request{Model: "m-1", System: "You add <numbers> & more.", MaxTokens: 500, Temperature: &zero,
		Tools: []llm.ToolDef{
			{Name: "add", Description: "adds", Schema: json.RawMessage(
				`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)},
			{Name: "now", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{
			{Role: llm.RoleUser, Text: "What is the sum? é\u2028"},
			{Role: llm.RoleAssistant, Text: "I ask.", Calls: []llm.ToolCall{
				{ID: "c1", Name: "add", Input: `{"a":7}`, Signature: "c2lnbmVk"},
				{ID: "c2", Name: "now", Input: `{}`}}},
			{Role: llm.RoleTool, Results: []llm.ToolResult{
				{ID: "c1", Name: "add", Text: "seven"}, {ID: "c2", Name: "now", Text: "no clock", Failed: true}}},
			{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: "c3", Name: "now", Input: `{}`}}},
			{Role: llm.RoleTool, Results: []llm.ToolResult{{ID: "c3", Name: "now", Text: ""}}},
			{Role: llm.RoleAssistant, Text: "Seven."},
			{Role: llm.RoleUser, Text: "Thanks."},
		}}
}

// Every provider is asked at its address, with its key and in its form.
func TestRequests(t *testing.T) {
	got := map[string]asked{}
	plain := llm.Request{Model: "m/2", MaxTokens: 50, Messages: []llm.Message{{Role: llm.RoleUser, Text: "Hello."}}}
	warm := 0.7
	plain.Temperature = &warm
	for _, provider := range providers() {
		for name, c := range map[string]struct {
			entry modelfile.Entry
			key   string
			req   llm.Request
		}{
			"own": {modelfile.Entry{}, "secret", conversation()},
			"server": {modelfile.Entry{BaseURL: "http://models.example/api/v1", MaxTokens: 90}, "secret",
				conversation()},
			"server, no key": {modelfile.Entry{BaseURL: "http://models.example:81/"}, "", plain},
			"untempered": {modelfile.Entry{MaxTokens: 7}, "secret",
				llm.Request{Model: "m", Messages: plain.Messages}},
			"only instructions": {modelfile.Entry{}, "secret", llm.Request{Model: "m", MaxTokens: 5, System: "x"}},
		} {
			seen := &recorder{}
			c.entry.Provider = provider
			m := newModel(t, c.entry, c.key, &http.Client{Transport: seen})
			if _, err := m.Turn(t.Context(), c.req, nil); !errors.Is(err, repute.ErrInvalid) ||
				!strings.Contains(err.Error(), "seen") || len(seen.got) != 1 {
				t.Fatalf("%s, %s: %v after %d requests", provider, name, err, len(seen.got))
			}
			got[provider+", "+name] = seen.got[0]
		}
	}
	golden(t, "requests.json", got)
}

// A refused request is repeated twice where another attempt may help, and never otherwise. The error has the status and
// the provider's words.
func TestRetries(t *testing.T) {
	type outcome struct {
		Requests int
		Error    string
	}
	got := map[string]outcome{}
	for _, provider := range providers() {
		for name, c := range map[string]struct {
			status int
			header [2]string
		}{
			"400": {400, [2]string{}}, "401": {401, [2]string{}}, "404": {404, [2]string{}}, "408": {408, [2]string{}},
			"409": {409, [2]string{}}, "413": {413, [2]string{}}, "429": {429, [2]string{}}, "500": {500, [2]string{}},
			"502": {502, [2]string{}}, "529": {529, [2]string{}}, "302": {302, [2]string{}},
			"400, told to":  {400, [2]string{"X-Should-Retry", "true"}},
			"500, told not": {500, [2]string{"X-Should-Retry", "false"}},
		} {
			n := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n++
				w.Header().Set("Retry-After-Ms", "1")
				w.Header().Set("Location", "/elsewhere")
				if c.header[0] != "" {
					w.Header().Set(c.header[0], c.header[1])
				}
				w.WriteHeader(c.status)
				_, _ = fmt.Fprintf(w, `{"type":"error","error":{"code":%d,"type":"refused","message":"too \"much\""}}`,
					c.status)
			}))
			m, err := New(t.Context(), modelfile.Entry{Provider: provider, BaseURL: srv.URL},
				func(string) string { return "" })
			if err != nil {
				t.Fatal(err)
			}
			reply, err := m.Turn(t.Context(), conversation(), nil)
			srv.Close()
			if err == nil || c.status != 302 && reply.Usage != (llm.Usage{}) {
				t.Errorf("%s, %s: %v, %+v", provider, name, err, reply)
			}
			got[provider+", "+name] = outcome{n, kindOf(err)}
		}
	}
	golden(t, "retries.json", got)
}

// kindOf is an error as goldens have it: the provider's words, and otherwise only its kind.
func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case strings.HasPrefix(err.Error(), "the provider"):
		return err.Error()
	case errors.Is(err, repute.ErrInvalid):
		return "invalid"
	case errors.Is(err, repute.ErrUnavailable):
		return "unavailable"
	}
	return err.Error()
}

// canned answers with one body.
type canned struct{ body string }

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body:   io.NopCloser(strings.NewReader(c.body))}, nil
}

// What servers send is read as far as it makes sense, and refused otherwise.
func TestStreams(t *testing.T) {
	type outcome struct {
		Reply llm.Reply
		Said  []string
		Error string
	}
	for _, provider := range providers() {
		got := map[string]outcome{}
		raw, err := os.ReadFile(filepath.Join("testdata", provider+".streams.json"))
		if err != nil {
			t.Fatal(err)
		}
		var streams map[string][]string
		if err := json.Unmarshal(raw, &streams); err != nil {
			t.Fatal(err)
		}
		for name, lines := range streams {
			m := newModel(t, modelfile.Entry{Provider: provider, BaseURL: "http://models.example"}, "k",
				&http.Client{Transport: canned{strings.Join(lines, "")}})
			var o outcome
			o.Reply, err = m.Turn(t.Context(), conversation(), func(s string) { o.Said = append(o.Said, s) })
			o.Error = kindOf(err)
			got[name] = o
		}
		golden(t, provider+".replies.json", got)
	}
}

// An answer ends with its context, and one that is too long is refused.
func TestBoundedAnswer(t *testing.T) {
	for _, provider := range providers() {
		sent := make(chan int, 1)
		endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n := 0
			defer func() { sent <- n }()
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := io.WriteString(w, "data: "+strings.Repeat("x", 1<<20)); err != nil {
					return
				}
				n++
			}
		}))
		m, err := New(t.Context(), modelfile.Entry{Provider: provider, BaseURL: endless.URL},
			func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Turn(t.Context(), conversation(), nil); err == nil {
			t.Errorf("%s: an answer without end has an end", provider)
		}
		if n := <-sent; n > 2*maxBody>>20 {
			t.Errorf("%s: the client took %d MiB", provider, n)
		}
		endless.Close()

		begun := make(chan struct{})
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(begun)
			<-r.Context().Done()
		}))
		if m, err = New(t.Context(), modelfile.Entry{Provider: provider, BaseURL: silent.URL},
			func(string) string { return "" }); err != nil {
			t.Fatal(err)
		}
		stopped := errors.New("stopped")
		ctx, stop := context.WithCancelCause(t.Context())
		go func() { <-begun; stop(stopped) }()
		if _, err := m.Turn(ctx, conversation(), nil); !errors.Is(err, stopped) {
			t.Errorf("%s: %v", provider, err)
		}
		silent.Close()
	}
}
