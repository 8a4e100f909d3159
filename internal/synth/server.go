package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Stats are what a server counted since it started. It gives them as JSON at
// /stats.
type Stats struct {
	Requests int64            `json:"requests"` // HTTP requests answered with calls
	Limited  int64            `json:"limited"`  // refused with status 429
	Bytes    int64            `json:"bytes"`    // of answers
	Calls    map[string]int64 `json:"calls"`    // by method, each one of a batch
}

// Server answers JSON-RPC over HTTP, singly and in batches, as a node of the
// history's chain. Answers over ranges are copied from the file to the socket,
// not through memory.
type Server struct {
	h       *History
	mode    Mode
	cuts    []cut // empty unless lossy
	limiter *rate.Limiter
	abis    registryABIs

	mu    sync.Mutex
	stats Stats
}

// NewServer makes a Server over a history, which must stay open.
func NewServer(h *History, m Mode) (*Server, error) {
	s := &Server{h: h, mode: m, stats: Stats{Calls: map[string]int64{}}}
	if m.PerSecond > 0 {
		s.limiter = rate.NewLimiter(rate.Limit(m.PerSecond), m.PerSecond)
	}
	if m.Lossy {
		var err error
		if s.cuts, err = h.cuts(); err != nil {
			return nil, err
		}
	}
	var err error
	s.abis, err = newABIs()
	return s, err
}

// Serve answers on a listener until ctx ends, which is no error. Requests being
// answered have five seconds to end.
func Serve(ctx context.Context, l net.Listener, h *History, m Mode) error {
	s, err := NewServer(h, m)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve history: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		err = errors.Join(err, server.Close())
		return fmt.Errorf("serve history: %w", err)
	}
	return nil
}

// Stats gives what was counted so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.stats
	out.Calls = make(map[string]int64, len(s.stats.Calls))
	for method, n := range s.stats.Calls {
		out.Calls[method] = n
	}
	return out
}

// maxRequest bounds a request's body.
const maxRequest = 16 << 20

// ServeHTTP answers /stats, and calls at any other path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stats" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Stats()) // the client is gone
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
		return
	}
	if !s.delay(r.Context()) {
		return
	}
	if s.limiter != nil && !s.limiter.Allow() {
		s.refuse(w)
		return
	}
	s.count(func(st *Stats) { st.Requests++ })
	n, err := s.reply(raw).send(w, filepath.Join(s.h.dir, logsFile))
	s.count(func(st *Stats) { st.Bytes += n })
	if err != nil {
		abort(w)
	}
}

// abort cuts the connection: the client must not take half an answer for a whole
// one.
func abort(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	if conn, _, err := h.Hijack(); err == nil {
		conn.Close()
	}
}

func (s *Server) count(fn func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&s.stats)
}

// delay waits for the mode's latency; false when the client left.
func (s *Server) delay(ctx context.Context) bool {
	if s.mode.Latency == 0 {
		return true
	}
	t := time.NewTimer(s.mode.Latency)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (s *Server) refuse(w http.ResponseWriter) {
	s.count(func(st *Stats) { st.Limited++ })
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"rate limit exceeded"}}`)
}

// call is one JSON-RPC request.
type call struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// rpcError is a JSON-RPC error, as a node words it.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

// reply answers a body: one call or a batch.
func (s *Server) reply(raw []byte) *body {
	out := &body{}
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' {
		var c call
		if err := json.Unmarshal(raw, &c); err != nil {
			out.text(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`)
			return out
		}
		s.answer(c, out)
		return out
	}
	var batch []call
	if err := json.Unmarshal(raw, &batch); err != nil || len(batch) == 0 {
		out.text(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}`)
		return out
	}
	for i, c := range batch {
		out.text([]string{"[", ","}[min(i, 1)])
		s.answer(c, out)
	}
	out.text("]")
	return out
}

// answer appends the answer to one call.
func (s *Server) answer(c call, out *body) {
	s.count(func(st *Stats) { st.Calls[c.Method]++ })
	id := string(c.ID)
	if id == "" {
		id = "null"
	}
	out.text(`{"jsonrpc":"2.0","id":` + id)
	result, err := s.dispatch(c)
	switch result := result.(type) {
	case *body:
		if err == nil {
			out.text(`,"result":`)
			out.parts = append(out.parts, result.parts...)
			out.text("}")
			return
		}
	default:
		raw, e := json.Marshal(result)
		if err == nil && e == nil {
			out.text(`,"result":`)
			out.bytes(raw)
			out.text("}")
			return
		}
		err = errors.Join(err, e)
	}
	out.text(`,"error":`)
	out.bytes(wireError(err))
	out.text("}")
}

func wireError(err error) []byte {
	var known *rpcError
	if !errors.As(err, &known) {
		known = &rpcError{Code: -32603, Message: err.Error()}
	}
	raw, err := json.Marshal(known)
	if err != nil {
		return []byte(`{"code":-32603,"message":"internal error"}`)
	}
	return raw
}

// body is an answer in pieces: bytes, runs of the file of logs, and logs picked
// out of such runs.
type body struct{ parts []part }

type part struct {
	raw        []byte
	start, end uint64 // of the file, when raw is nil
	filter     *filter
}

func (b *body) text(s string)    { b.bytes([]byte(s)) }
func (b *body) bytes(raw []byte) { b.parts = append(b.parts, part{raw: raw}) }

// size is the body's length, -1 when only sending will tell.
func (b *body) size() int64 {
	n := int64(0)
	for _, p := range b.parts {
		if p.filter != nil {
			return -1
		}
		n += int64(len(p.raw)) + int64(p.end-p.start)
	}
	return n
}

// send writes the body. With a known length the runs go from file to socket
// within the kernel.
func (b *body) send(w http.ResponseWriter, path string) (n int64, err error) {
	w.Header().Set("Content-Type", "application/json")
	if size := b.size(); size >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	}
	var f *os.File
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	for _, p := range b.parts {
		if p.raw == nil && f == nil {
			if f, err = os.Open(path); err != nil {
				return n, err
			}
		}
		sent, err := p.send(w, f)
		if n += sent; err != nil {
			return n, err
		}
	}
	return n, nil
}

func (p part) send(w io.Writer, f *os.File) (int64, error) {
	if p.raw != nil {
		n, err := w.Write(p.raw)
		return int64(n), err
	}
	if _, err := f.Seek(int64(p.start), io.SeekStart); err != nil {
		return 0, err
	}
	run := &io.LimitedReader{R: f, N: int64(p.end - p.start)}
	if p.filter != nil {
		return p.filter.copy(w, run)
	}
	return io.Copy(w, run)
}
