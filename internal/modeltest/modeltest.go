// Package modeltest is a language model that follows a script, for tests and the demo. It is a server that speaks
// Anthropic's Messages, OpenAI's Chat Completions and Google's Gemini API, with and without streams: the path of a
// request says which one. Tests run the real clients against it, and programs of others as well.
//
// New gives turns in order. A Script decides by the number of the request and by what it says, for conversations whose
// order is not fixed. A Turn can also be what providers do wrong: a refusal, a stream that ends early, an answer that
// counts no tokens, a body that is none. Seen has the requests until now, with the texts and tools that a test looks
// at.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Turn is one answer of the script.
type Turn struct {
	// Text is the answer's text; it is streamed in words.
	Text  string
	Calls []Call
	// Status is that of a refusal, such as 429; 0 for an answer.
	Status int
	// Cut ends the stream in the middle, without the end of the answer.
	Cut bool
	// Length says that the model's tokens were used up.
	Length bool
	// Refused says that the provider or the model declined.
	Refused bool
	// Raw replaces the body, for answers that are no answers.
	Raw string
	// Wait is closed before the answer begins; nil for none.
	Wait <-chan struct{}
	// Input and Output are the tokens that the answer says; 0 for 10 and 5.
	Input, Output int
	// Uncounted says that the answer reports no tokens.
	Uncounted bool
}

// Call is a call of a tool in an answer.
type Call struct {
	Name  string
	Input string // what the model wrote; it need not be JSON
}

// Request is what the model was asked, as far as scripts look at it.
type Request struct {
	Path   string
	Header http.Header
	Body   map[string]json.RawMessage
	// Tools are the names of the tools, Texts all texts of the messages in order, the system's first.
	Tools, Texts []string
}

// Server is a model that follows a script. It is an http.Handler and safe for concurrent use.
type Server struct {
	// Script returns the answer to the n-th request, from 0.
	Script func(n int, r *Request) Turn

	mu   sync.Mutex
	seen []*Request
}

// New returns a server that gives answers in order; the last one is repeated.
func New(turns ...Turn) *Server {
	return &Server{Script: func(n int, _ *Request) Turn { return turns[min(n, len(turns)-1)] }}
}

// Seen returns the requests until now.
func (s *Server) Seen() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// maxRequest bounds a request, in bytes.
const maxRequest = 16 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	asked := &Request{Path: r.URL.Path, Header: r.Header.Clone()}
	if err != nil || json.Unmarshal(raw, &asked.Body) != nil {
		http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
		return
	}
	asked.read()
	s.mu.Lock()
	n := len(s.seen)
	s.seen = append(s.seen, asked)
	s.mu.Unlock()
	turn := s.Script(n, asked)
	if turn.Wait != nil {
		select {
		case <-turn.Wait:
		case <-r.Context().Done():
			return
		}
	}
	google, streams := isGoogle(r.URL.Path)
	var speaks speaker = openaiSpeaker{}
	switch {
	case google:
		speaks = googleSpeaker{}
	case strings.HasSuffix(r.URL.Path, "/messages"):
		speaks = anthropicSpeaker{}
	}
	if turn.Status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(turn.Status)
		fmt.Fprint(w, refusal(r.URL.Path, turn.Status))
		return
	}
	respond(w, speaks, turn, streams || string(asked.Body["stream"]) == "true")
}

// respond writes an answer.
func respond(w http.ResponseWriter, s speaker, t Turn, stream bool) {
	if t.Input == 0 && t.Output == 0 && !t.Uncounted {
		t.Input, t.Output = 10, 5
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.whole(t)) // the client went away
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if t.Raw != "" {
		_, _ = io.WriteString(w, t.Raw) // the client went away
		return
	}
	events := s.events(t)
	if t.Cut {
		events = events[:len(events)/2]
	}
	for _, e := range events {
		_, _ = io.WriteString(w, e) // the client went away
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

// read fills Tools and Texts from the body, in either form.
func (r *Request) read() {
	var tools []struct {
		Name     string
		Function struct{ Name string }
		Google   []struct{ Name string } `json:"functionDeclarations"`
	}
	_ = json.Unmarshal(r.Body["tools"], &tools) // absent: none
	for _, t := range tools {
		if name := t.Name + t.Function.Name; name != "" {
			r.Tools = append(r.Tools, name)
		}
		for _, f := range t.Google {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	var v any
	for _, member := range []string{"system", "systemInstruction", "messages", "contents"} {
		if json.Unmarshal(r.Body[member], &v) == nil {
			r.collect(v)
		}
	}
}

// collect appends the texts of a value.
func (r *Request) collect(v any) {
	switch v := v.(type) {
	case string:
		r.Texts = append(r.Texts, v)
	case []any:
		for _, x := range v {
			r.collect(x)
		}
	case map[string]any:
		for _, name := range []string{"text", "content", "parts", "functionResponse", "response", "output", "error"} {
			if x, ok := v[name]; ok {
				r.collect(x)
			}
		}
	}
}

// Contains reports whether a text of the request contains another.
func (r *Request) Contains(part string) bool {
	return slices.ContainsFunc(r.Texts, func(text string) bool { return strings.Contains(text, part) })
}

// speaker writes answers in the form of a provider.
type speaker interface {
	whole(t Turn) any
	events(t Turn) []string
}

// words splits a text into the parts of a stream.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.SplitAfter(text, " ")
}
