// Package chainserver is a JSON-RPC server for chains that are not real: one call or a batch over
// HTTP, with faults that are injected, and counts of what was answered.
//
// A Source answers single calls truthfully. Serve makes one of a Chain, which knows its blocks and their
// logs, and answers the methods that all chains have in the same way for the scripted chains of tests and
// for the histories of benchmarks. A result may be a Stream, which is sent straight from a file with the
// length of the whole answer known before, so that a server is no bottleneck of a benchmark.
//
// Rules are asked before the Source, in the order in which they were injected: about whole HTTP requests
// first, about each call of them after that. An Answer can replace a result, an error, the HTTP response or
// its time. Changes of logs apply to true answers only. What breaks off in the middle is cut off at the
// connection, because half an answer must not look like a whole one.
package chainserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Call is one call of a request.
type Call struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
	N      int               `json:"-"` // how often the method was called before
}

// Param reads the i-th parameter. A missing one leaves the value alone.
func (c *Call) Param(i int, into any) *Error {
	if i >= len(c.Params) {
		return nil
	}
	if err := json.Unmarshal(c.Params[i], into); err != nil {
		return Errorf(-32602, "invalid argument %d: %v", i, err)
	}
	return nil
}

// Error is an error of JSON-RPC.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrorCode makes an Error one of go-ethereum's.
func (e *Error) ErrorCode() int { return e.Code }

// Errorf returns an error with a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Internal is the error for a failure of the source itself.
func Internal(err error) *Error { return Errorf(-32603, "%v", err) }

// NotFound is the error for a method that a source does not have.
func NotFound(method string) *Error {
	return Errorf(-32601, "the method %s does not exist/is not available", method)
}

// Source answers single calls truthfully. The result is a value to marshal, or a *Stream.
type Source interface {
	Answer(c *Call) (any, *Error)
}

// Stream is a result that is written as it is, without marshaling. Write MUST write Size bytes or fail: the length of
// the answer is sent before.
type Stream struct {
	Size  int64 // bytes that Write writes
	Write func(w io.Writer) (int64, error)
}

// Server serves a source over HTTP. Its methods are safe for concurrent use. Calls of a batch are answered one after
// the other, in their order, so that rules that count see them so.
type Server struct {
	source Source
	faults
}

// New returns a server of a source that is honest until a fault is injected.
func New(s Source) *Server {
	return &Server{source: s, faults: faults{stats: Stats{Calls: map[string]int64{}}}}
}

// maxRequest bounds a request's body, in bytes: more than any batch that the product sends.
const maxRequest = 16 << 20

// ServeHTTP answers a call or a batch.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "the request was cut short or is too large", http.StatusRequestEntityTooLarge)
		return
	}
	if s.Dark() {
		hangUp(w)
		return
	}
	out := &body{}
	calls, batch, fail := parse(raw)
	if fail != nil {
		out.fail(nil, fail)
		s.send(w, out)
		return
	}
	// Rules of whole requests come first. What they say without Raw and Status is the answer to every call of the request;
	// the delay was for all of them together.
	whole := s.decideRequest(calls)
	if whole != nil {
		if !wait(r.Context(), whole) || s.replace(w, whole) {
			return
		}
		if whole.Delay = 0; whole.Honest {
			whole = nil
		}
	}
	for i := range calls {
		if batch {
			out.text([]string{"[", ","}[min(i, 1)])
		}
		if !s.answer(w, r, &calls[i], whole, out) {
			return
		}
	}
	if batch {
		out.text("]")
	}
	s.send(w, out)
}

// parse reads a call or a batch. A batch of nothing is refused, as by go-ethereum. Members that are missing are empty:
// the source decides about a call without a method.
func parse(raw []byte) (calls []Call, batch bool, fail *Error) {
	raw = bytes.TrimSpace(raw)
	if batch = bytes.HasPrefix(raw, []byte("[")); !batch {
		calls = make([]Call, 1)
		if json.Unmarshal(raw, &calls[0]) != nil {
			return nil, false, Errorf(-32700, "parse error")
		}
		return calls, false, nil
	}
	if json.Unmarshal(raw, &calls) != nil || len(calls) == 0 {
		return nil, true, Errorf(-32600, "invalid request")
	}
	return calls, true, nil
}

// answer appends the answer to one call. It reports false when the HTTP request has been answered
// or given up.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, c *Call, a *Answer, out *body) bool {
	if decided := s.decide(c); a == nil {
		a = decided
	}
	if a != nil && (!wait(r.Context(), a) || s.replace(w, a)) {
		return false
	}
	result, fail := s.resolve(c, a)
	if fail != nil {
		out.fail(c.ID, fail)
		return true
	}
	if stream, ok := result.(*Stream); ok {
		out.head(c.ID, "result")
		out.parts = append(out.parts, part{stream: stream})
		out.text("}")
		return true
	}
	raw, err := json.Marshal(result)
	if err != nil {
		out.fail(c.ID, Internal(err))
		return true
	}
	out.head(c.ID, "result")
	out.bytes(raw)
	out.text("}")
	return true
}

// Ask answers a call that did not come over HTTP. Faults of whole HTTP requests do not apply.
func (s *Server) Ask(c *Call) (any, *Error) { return s.resolve(c, s.decide(c)) }

// resolve returns what a fault says, or the truth.
func (s *Server) resolve(c *Call, a *Answer) (any, *Error) {
	switch {
	case a == nil || a.Honest:
		return s.source.Answer(c)
	case a.Error != nil:
		return nil, a.Error
	}
	return a.Result, nil
}

// wait reports false when the client left first.
func wait(ctx context.Context, a *Answer) bool {
	if a.Hang {
		<-ctx.Done()
		return false
	}
	if a.Delay == 0 {
		return true
	}
	t := time.NewTimer(a.Delay)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// replace answers the whole HTTP request where a says so.
func (s *Server) replace(w http.ResponseWriter, a *Answer) bool {
	if a.Honest || a.Raw == nil && a.Status == 0 {
		return false
	}
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(max(a.Status, http.StatusOK))
	_, _ = w.Write(a.Raw) // the client may have gone
	return true
}

// send writes an answer. It cuts the connection where that fails: the client must not take half an
// answer for a whole one.
func (s *Server) send(w http.ResponseWriter, b *body) {
	n, err := b.send(w)
	s.count(func(st *Stats) { st.Requests++; st.Bytes += n })
	if err != nil {
		hangUp(w)
	}
}

// hangUp closes the connection without an answer. After a part of an answer was written it cuts that off.
func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}

// body is an answer in parts.
type body struct{ parts []part }

// part is a piece of an answer: bytes, or a stream that is opened only when it is sent.
type part struct {
	raw    []byte
	stream *Stream // instead of raw
}

// text and bytes append to the last part, or begin one behind a stream.
func (b *body) text(s string) { b.bytes([]byte(s)) }

func (b *body) bytes(raw []byte) {
	if n := len(b.parts) - 1; n >= 0 && b.parts[n].stream == nil {
		b.parts[n].raw = append(b.parts[n].raw, raw...)
		return
	}
	b.parts = append(b.parts, part{raw: raw})
}

// head begins the answer to one call.
func (b *body) head(id json.RawMessage, member string) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	b.text(`{"jsonrpc":"2.0","id":` + string(id) + `,"` + member + `":`)
}

// fail is the answer to a call that failed.
func (b *body) fail(id json.RawMessage, fail *Error) {
	raw, err := json.Marshal(fail)
	if err != nil {
		raw = []byte(`{"code":-32603,"message":"internal error"}`)
	}
	b.head(id, "error")
	b.bytes(raw)
	b.text("}")
}

// send writes the parts, with their length: a stream of a file then goes to the socket within the kernel.
func (b *body) send(w http.ResponseWriter) (n int64, err error) {
	size := int64(0)
	for _, p := range b.parts {
		if size += int64(len(p.raw)); p.stream != nil {
			size += p.stream.Size
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	for _, p := range b.parts {
		var sent int64
		if p.stream != nil {
			sent, err = p.stream.Write(w)
		} else {
			var short int
			short, err = w.Write(p.raw)
			sent = int64(short)
		}
		if n += sent; err != nil {
			return n, err
		}
	}
	return n, nil
}
