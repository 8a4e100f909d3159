package rpctest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

// Call is one JSON-RPC request as a rule sees it.
type Call struct {
	Method string
	Params []json.RawMessage
	N      int // how often the method was asked before
}

// Answer replaces the true one. Raw, Status and Hang concern the whole HTTP
// response, also of a batch; Result and Error the one call.
type Answer struct {
	Result any               // marshaled as it is; nil gives null
	Error  *Error            // wins over Result
	Raw    []byte            // the HTTP body, instead of JSON
	Status int               // HTTP status, 200 when zero
	Header map[string]string // of the HTTP response, with Raw or Status
	Delay  time.Duration     // before answering
	Hang   bool              // never answer: until the client gives up
	Honest bool              // after Delay, answer truthfully
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Rule decides about a call; nil leaves it alone. Rules run in the order they
// were injected and the first answer counts. They may mine and fork.
type Rule func(Call) *Answer

type rule struct{ fn Rule }

type filter struct {
	fn func([]types.Log) []types.Log
}

// Inject adds a rule and returns what removes it.
func (c *Chain) Inject(fn Rule) (undo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &rule{fn}
	c.rules = append(c.rules, r)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rules = without(c.rules, r)
	}
}

// MapLogs changes the answers of eth_getLogs; fn gets its own copy.
func (c *Chain) MapLogs(fn func([]types.Log) []types.Log) (undo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &filter{fn}
	c.filters = append(c.filters, f)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.filters = without(c.filters, f)
	}
}

func without[T comparable](list []T, gone T) []T {
	var kept []T
	for _, x := range list {
		if x != gone {
			kept = append(kept, x)
		}
	}
	return kept
}

// Calls counts the requests of a method so far.
func (c *Chain) Calls(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[method]
}

type request struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}

type failure struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *Error          `json:"error"`
}

// ServeHTTP answers a JSON-RPC call or batch.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" && !c.isDark() {
		c.socket(w, r)
		return
	}
	c.sync()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if c.isDark() {
		hangUp(w)
		return
	}
	batch := bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))
	var calls []request
	if !batch {
		body = append(append([]byte("["), body...), ']')
	}
	if err := json.Unmarshal(body, &calls); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := make([]any, 0, len(calls))
	tooMany := c.tooMany(len(calls))
	for _, call := range calls {
		reply, done := c.one(w, r, call, tooMany)
		if done {
			return
		}
		out = append(out, reply)
	}
	w.Header().Set("Content-Type", "application/json")
	var reply any = out
	if !batch {
		reply = out[0]
	}
	raw, err := json.Marshal(reply)
	must(err)
	_, _ = w.Write(raw) // the client may have gone
}

// one answers a call, or the whole HTTP request (done).
func (c *Chain) one(w http.ResponseWriter, r *http.Request, call request, a *Answer) (reply any, done bool) {
	if a == nil {
		a = c.decide(call)
	}
	if a != nil && a.Hang {
		<-r.Context().Done()
		return nil, true
	}
	if a != nil && a.Delay > 0 {
		select {
		case <-time.After(a.Delay):
		case <-r.Context().Done():
			return nil, true
		}
	}
	switch {
	case a == nil || a.Honest:
		result, fail := c.answer(call)
		if fail != nil {
			return failure{"2.0", call.ID, fail}, false
		}
		return response{"2.0", call.ID, result}, false
	case a.Raw != nil || a.Status != 0:
		for name, value := range a.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(max(a.Status, http.StatusOK))
		_, _ = w.Write(a.Raw)
		return nil, true
	case a.Error != nil:
		return failure{"2.0", call.ID, a.Error}, false
	}
	return response{"2.0", call.ID, a.Result}, false
}

func (c *Chain) decide(call request) *Answer {
	c.mu.Lock()
	rules := append([]*rule(nil), c.rules...)
	seen := Call{Method: call.Method, Params: call.Params, N: c.calls[call.Method]}
	c.calls[call.Method]++
	c.mu.Unlock()
	for _, r := range rules {
		if a := r.fn(seen); a != nil {
			return a
		}
	}
	return nil
}

func (c *Chain) isDark() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dark
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
