// Package socket ends the WebSockets of subscriptions with a code that says why. The library that speaks
// graphql-transport-ws closes connections by itself alone, so that a Conn lies below it: it follows the frames that the
// library writes, and puts a close frame behind the last whole one.
//
// A connection is made for a request (New), put below the library (Accept), and found again by subscriptions in their
// context (With, Of). End may be called at any time and from any goroutine, also while a frame is written: the close
// frame then follows it, and what the library writes later is discarded. The caller learns of the end by Done.
package socket

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"sync"
	"time"
)

// Code is why the server closes a connection, besides the codes of graphql-transport-ws. A client may connect again
// after each of them.
type Code uint16

// Codes of closed connections.
const (
	Stopping Code = 1001 // the server stops
	Failed   Code = 1013 // the feed cannot be read now
	Slow     Code = 4008 // the client accepted no event for too long
	Gone     Code = 4410 // the next changes are no longer kept: read the state again
)

// Conn is the network connection of a client, below the WebSocket protocol. It knows where frames end, so that it can
// put a close frame between those that the library writes. Make one with New.
type Conn struct {
	net.Conn
	ended func() // called once when the connection is closed
	once  sync.Once
	done  chan struct{}

	mu       sync.Mutex
	writing  bool // a write is under way
	upgraded bool // the answer to the handshake was written
	header   []byte
	left     uint64 // bytes of the current frame that are not written yet
	closing  []byte // close frame to be written at the end of the current frame, nil for none
}

// New returns a connection that has not begun: Accept gives it the one of a request. ended is called once when the
// connection is closed.
func New(ended func()) *Conn { return &Conn{ended: ended, done: make(chan struct{})} }

// Accept returns the response whose connection, once it is hijacked, is that of s.
func (s *Conn) Accept(w http.ResponseWriter) http.ResponseWriter { return hijacked{w, s} }

// IsBegun reports whether the connection was hijacked. Otherwise the handshake was refused.
func (s *Conn) IsBegun() bool { return s.Conn != nil }

// Done is closed when the connection is closed.
func (s *Conn) Done() <-chan struct{} { return s.done }

// Write writes bytes of frames, and the close frame behind the last one if the connection is to be closed. What comes
// after it is discarded.
func (s *Conn) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.closing != nil && s.atEnd() {
		s.mu.Unlock()
		return len(p), nil
	}
	s.writing = true
	s.mu.Unlock()
	n, err := s.Conn.Write(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	if !s.upgraded {
		s.upgraded = true
		return n, err
	}
	s.count(p[:n])
	if err == nil && s.closing != nil && s.atEnd() {
		s.finish()
	}
	return n, err
}

// atEnd reports whether the bytes that were written end with a whole frame.
func (s *Conn) atEnd() bool { return s.left == 0 && len(s.header) == 0 }

// count follows the frames in written bytes. Frames of a server have no mask.
func (s *Conn) count(p []byte) {
	for len(p) > 0 {
		if s.left > 0 {
			n := min(s.left, uint64(len(p)))
			s.left, p = s.left-n, p[n:]
			continue
		}
		s.header, p = append(s.header, p[0]), p[1:]
		if size, whole := payload(s.header); whole {
			s.left, s.header = size, s.header[:0]
		}
	}
}

// payload returns the size of the payload that a frame's header tells, and whether the header is whole.
func payload(header []byte) (size uint64, whole bool) {
	if len(header) < 2 {
		return 0, false
	}
	switch short := header[1] & 127; {
	case short == 126:
		if len(header) < 4 {
			return 0, false
		}
		return uint64(binary.BigEndian.Uint16(header[2:])), true
	case short == 127:
		if len(header) < 10 {
			return 0, false
		}
		return binary.BigEndian.Uint64(header[2:]), true
	default:
		return uint64(short), true
	}
}

// End closes the connection with a code: now, or when the frame that is being written ends.
func (s *Conn) End(code Code, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil {
		return
	}
	s.closing = binary.BigEndian.AppendUint16([]byte{0x88, byte(2 + len(reason))}, uint16(code))
	s.closing = append(s.closing, reason...)
	if s.upgraded && !s.writing && s.atEnd() {
		s.finish()
	}
}

// finish writes the close frame and closes the connection. The caller holds mu.
func (s *Conn) finish() {
	_ = s.Conn.SetWriteDeadline(time.Now().Add(time.Second)) // a client that is gone learns nothing anyway
	_, _ = s.Conn.Write(s.closing)
	if tcp, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		_ = tcp.CloseWrite() // closing at once could discard what the client has not read yet
		_ = s.Conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		return
	}
	_ = s.Conn.Close()
}

// Close closes the connection.
func (s *Conn) Close() error {
	s.once.Do(func() { close(s.done); s.ended() })
	return s.Conn.Close()
}

// connKey is the context key of the connection of a subscription.
type connKey struct{}

// With returns a context of the subscriptions over a connection.
func With(ctx context.Context, s *Conn) context.Context { return context.WithValue(ctx, connKey{}, s) }

// Of returns the connection of a subscription, nil outside of one.
func Of(ctx context.Context) *Conn {
	s, _ := ctx.Value(connKey{}).(*Conn)
	return s
}

// hijacked is a response whose connection becomes that of a Conn.
type hijacked struct {
	http.ResponseWriter
	conn *Conn
}

// Hijack returns a Conn above the connection of the request.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	below, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn.Conn = below
	return h.conn, rw, nil
}
