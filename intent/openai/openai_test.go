package openai_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/intent"
	"repute/intent/openai"
)

const key = "sk-test-0123456789abcdef"

// serve returns an embedder of three dimensions that asks a server with the handler.
func serve(t *testing.T, h http.HandlerFunc) *openai.Embedder {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	e, err := openai.New(server.Client(), openai.Config{URL: server.URL + "/v1/", Model: "m", Dim: 3, Key: key,
		Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// answer returns a handler that always answers with the body.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// honest answers with the length of each text, in reverse order.
func honest(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model          string   `json:"model"`
		Input          []string `json:"input"`
		EncodingFormat string   `json:"encoding_format"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model != "m" ||
		request.EncodingFormat != "float" || r.URL.Path != "/v1/embeddings" || r.Method != http.MethodPost ||
		r.Header.Get("Authorization") != "Bearer "+key || slices.Contains(request.Input, "") {
		http.Error(w, fmt.Sprintf("%v %+v", err, request), http.StatusBadRequest)
		return
	}
	var data []map[string]any
	for i, text := range slices.Backward(request.Input) {
		data = append(data, map[string]any{"index": i, "embedding": []int{len(text), 1, 0}, "object": "embedding"})
	}
	json.NewEncoder(w).Encode(map[string]any{"data": data, "usage": map[string]int{"total_tokens": 3}})
}

func TestEmbed(t *testing.T) {
	e := serve(t, honest)
	got, err := e.Embed(t.Context(), []string{"a", "", "ccc"})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != "[[1 1 0] [0 0 0] [3 1 0]]" {
		t.Errorf("vectors %v", got)
	}
	if e.Dim() != 3 || e.ID() != "m/3" {
		t.Errorf("dim %d, id %s", e.Dim(), e.ID())
	}
}

func TestIndexOfServer(t *testing.T) {
	index, err := intent.New(serve(t, honest))
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Add(t.Context(), intent.Item{ID: "short", Name: "ab"}, intent.Item{ID: "long", Name: "abcdefghij"},
		intent.Item{ID: "empty"}); err != nil {
		t.Fatal(err)
	}
	r, err := index.Search(t.Context(), intent.Query{Text: "12345678901"})
	if err != nil || r.Matches[0].ID != "long" || r.Matches[2].ID != "empty" || r.Matches[2].Similarity != 0 {
		t.Errorf("%+v: %v", r, err)
	}
}

func TestLies(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"html":       {"<html>", "not one of the embeddings API"},
		"empty":      {"", "not one of the embeddings API"},
		"null":       {"null", "0 vectors for 1 texts"},
		"array":      {"[]", "not one of the embeddings API"},
		"no vectors": {`{"data": []}`, "0 vectors for 1 texts"},
		"two vectors": {`{"data": [{"index": 0, "embedding": [1,2,3]}, {"index": 0, "embedding": [1,2,3]}]}`,
			"2 vectors"},
		"no index":  {`{"data": [{"embedding": [1,2,3]}]}`, "one vector for each"},
		"index 1":   {`{"data": [{"index": 1, "embedding": [1,2,3]}]}`, "one vector for each"},
		"index -1":  {`{"data": [{"index": -1, "embedding": [1,2,3]}]}`, "one vector for each"},
		"2 values":  {`{"data": [{"index": 0, "embedding": [1,2]}]}`, "2 dimensions, 3 are configured"},
		"4 values":  {`{"data": [{"index": 0, "embedding": [1,2,3,4]}]}`, "4 dimensions, 3 are configured"},
		"no values": {`{"data": [{"index": 0, "embedding": null}]}`, "0 dimensions"},
		"NaN":       {`{"data": [{"index": 0, "embedding": [1,NaN,3]}]}`, "not one of the embeddings API"},
		"text NaN":  {`{"data": [{"index": 0, "embedding": [1,"NaN",3]}]}`, "not one of the embeddings API"},
		"infinite":  {`{"data": [{"index": 0, "embedding": [1,1e999,3]}]}`, "not one of the embeddings API"},
		"base64":    {`{"data": [{"index": 0, "embedding": "AAAA"}]}`, "not one of the embeddings API"},
		"more":      {`{"data": [{"index": 0, "embedding": [1,2,3]}]} {}`, "not one of the embeddings API"},
		"deep":      {strings.Repeat("[", 60_000), "not one of the embeddings API"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, answer(http.StatusOK, c.body)).Embed(t.Context(), []string{"a"})
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	echo := `{"error": {"message": "Incorrect API key provided: ` + key + `, ` + strings.Repeat("x", 5000) + `"}}`
	for status, kind := range map[int]error{401: nil, 400: nil, 404: nil, 201: nil, 307: nil, 429: repute.ErrLimited,
		500: repute.ErrUnavailable, 503: repute.ErrUnavailable} {
		e := serve(t, answer(status, echo))
		_, err := e.Embed(t.Context(), []string{"a"})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("status ", status)) || len(err.Error()) > 400 {
			t.Errorf("%d: error %v", status, err)
		}
		for _, k := range []error{repute.ErrLimited, repute.ErrUnavailable} {
			if errors.Is(err, k) != (k == kind) {
				t.Errorf("%d: error %v, of kind %v: %v", status, err, k, errors.Is(err, k))
			}
		}
		if shown := fmt.Sprintf("%v %+v %#v", err, e, e); strings.Contains(shown, key) {
			t.Errorf("%d: the key is in %s", status, shown)
		}
	}
}

func TestRedirect(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := e.Embed(t.Context(), []string{"a"}); err == nil || asked {
		t.Errorf("error %v, the other server was asked: %v", err, asked)
	}
}

// TestEndless has a server answer with more than any honest one would, as text and compressed.
func TestEndless(t *testing.T) {
	zeros := bytes.Repeat([]byte("0,"), 25<<20)
	plain := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"data": [{"index": 0, "embedding": [`)
		w.Write(zeros)
	}
	compressed := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(zeros)
		z.Close()
	}
	for name, h := range map[string]http.HandlerFunc{"plain": plain, "compressed": compressed} {
		_, err := serve(t, h).Embed(t.Context(), []string{"a"})
		if err == nil || !strings.Contains(err.Error(), "larger than") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestHang has a server that never answers, and one that never ends its answer.
func TestHang(t *testing.T) {
	for name, head := range map[string]string{"silent": "", "dripping": `{"data": [`} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if head != "" {
					io.WriteString(w, head)
					w.(http.Flusher).Flush()
				}
				<-done
			}))
			defer server.Close()
			defer close(done)
			e, err := openai.New(server.Client(), openai.Config{URL: server.URL, Model: "m", Dim: 3,
				Timeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Embed(t.Context(), []string{"a"}); !errors.Is(err, repute.ErrUnavailable) {
				t.Errorf("after the timeout: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = e.Embed(ctx, []string{"a"})
			if !errors.Is(err, context.Canceled) || errors.Is(err, repute.ErrUnavailable) {
				t.Errorf("after the caller gave up: %v", err)
			}
		})
	}
}

func TestDown(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	e, err := openai.New(server.Client(), openai.Config{URL: server.URL, Model: "m", Dim: 3})
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	if _, err := e.Embed(t.Context(), []string{"a"}); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

func TestConfig(t *testing.T) {
	good := openai.Config{URL: "http://127.0.0.1:1/v1", Model: "m", Dim: 3}
	if _, err := openai.New(http.DefaultClient, good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*openai.Config){
		"no URL":    func(c *openai.Config) { c.URL = "" },
		"file":      func(c *openai.Config) { c.URL = "file:///etc/passwd" },
		"user":      func(c *openai.Config) { c.URL = "http://user:secret@127.0.0.1/" },
		"query":     func(c *openai.Config) { c.URL += "?key=1" },
		"no model":  func(c *openai.Config) { c.Model = "" },
		"no dim":    func(c *openai.Config) { c.Dim = 0 },
		"large dim": func(c *openai.Config) { c.Dim = 5000 },
		"timeout":   func(c *openai.Config) { c.Timeout = -1 },
		"two lines": func(c *openai.Config) { c.Key = "a\r\nX: b" },
	} {
		c := good
		change(&c)
		_, err := openai.New(http.DefaultClient, c)
		if !errors.Is(err, repute.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzAnswer checks that any answer gives an error or as many finite values as were asked for.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"data": [{"index": 0, "embedding": [1,2,3]}]}`))
	f.Add([]byte(`{"data": [{"index": 0, "embedding": [1,2,1e39]}]}`))
	f.Add([]byte(`{"error": {"message": "no"}}`))
	var body []byte
	transport := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
	})
	e, err := openai.New(&http.Client{Transport: transport}, openai.Config{URL: "http://127.0.0.1", Model: "m", Dim: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		body = b
		vectors, err := e.Embed(t.Context(), []string{"a"})
		if err != nil {
			return
		}
		if len(vectors) != 1 || len(vectors[0]) != 3 {
			t.Fatalf("vectors %v", vectors)
		}
		if _, err := intent.NewVector(e.ID(), vectors[0]); err != nil {
			t.Fatal(err)
		}
	})
}

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
