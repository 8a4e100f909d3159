package graph

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	graphqlws "github.com/graph-gophers/graphql-transport-ws"
	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
)

// Bounds of one connection for subscriptions.
const (
	// maxMessage is the most bytes of a message of the client: a query with its variables.
	maxMessage = 64 << 10
	// maxSubscriptions is how many subscriptions a connection may have at the same time.
	maxSubscriptions = 16
	// slowAfter is how long a client may accept no event before it is disconnected.
	slowAfter = 10 * time.Second
	// writeTimeout bounds the writing of a message, and the time until a client begins. It is longer than slowAfter, so
	// that a client that reads again learns why it was disconnected.
	writeTimeout = 30 * time.Second
)

// Codes by which the server closes a connection, besides those of graphql-transport-ws. A client may connect again after
// each of them.
const (
	closeStopping = 1001 // the server stops
	closeFailed   = 1013 // the feed cannot be read now
	closeSlow     = 4008 // the client accepted no event for too long
	closeGone     = 4410 // the next changes are no longer kept: read the state again
)

// socket is the network connection of a client, below the WebSocket protocol. It knows where frames end, so that it can
// put a close frame between those that the library writes.
type socket struct {
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

// Write writes bytes of frames, and the close frame behind the last one if the connection is to be closed. What comes
// after it is discarded.
func (s *socket) Write(p []byte) (int, error) {
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
func (s *socket) atEnd() bool { return s.left == 0 && len(s.header) == 0 }

// count follows the frames in written bytes. Frames of a server have no mask.
func (s *socket) count(p []byte) {
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

// close closes the connection with a code: now, or when the frame that is being written ends.
func (s *socket) close(code uint16, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil {
		return
	}
	s.closing = binary.BigEndian.AppendUint16([]byte{0x88, byte(2 + len(reason))}, code)
	s.closing = append(s.closing, reason...)
	if s.upgraded && !s.writing && s.atEnd() {
		s.finish()
	}
}

// finish writes the close frame and closes the connection. The caller holds mu.
func (s *socket) finish() {
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
func (s *socket) Close() error {
	s.once.Do(func() { close(s.done); s.ended() })
	return s.Conn.Close()
}

// socketKey is the context key of the connection of a subscription.
type socketKey struct{}

// socketOf returns the connection of a subscription, nil outside of one.
func socketOf(ctx context.Context) *socket {
	s, _ := ctx.Value(socketKey{}).(*socket)
	return s
}

// hijacked is a response whose connection becomes a socket.
type hijacked struct {
	http.ResponseWriter
	socket *socket
}

// Hijack returns the connection below a socket.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.socket.Conn = conn
	return h.socket, rw, nil
}

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// upgrade serves subscriptions over a WebSocket until the client leaves, reads too slowly, or the server stops.
func (e *Endpoint) upgrade(c echo.Context) error {
	r := c.Request()
	if !e.server.KnowsOrigin(r) {
		return httpapi.ForeignOrigin()
	}
	caller := httpapi.CallerOf(r.Context())
	if err := e.o.Streams.Enter(caller); err != nil {
		return err
	}
	s := &socket{done: make(chan struct{}), ended: func() { e.o.Streams.Leave(caller) }}
	serve := graphqlws.NewHandlerFunc(e, nil, graphqlws.WithCheckOrigin(e.server.KnowsOrigin),
		graphqlws.WithReadLimit(maxMessage), graphqlws.WithWriteTimeout(writeTimeout),
		graphqlws.WithMaxSubscriptions(maxSubscriptions), graphqlws.WithContextGenerator(graphqlws.ContextGeneratorFunc(
			func(_ context.Context, r *http.Request) (context.Context, error) { // the request's context ends with its handler
				return context.WithValue(context.WithoutCancel(r.Context()), socketKey{}, s), nil
			})))
	serve(hijacked{c.Response(), s}, r)
	if s.Conn == nil { // the handshake was refused, and answered
		s.ended()
		return nil
	}
	go func() {
		select {
		case <-e.o.Done:
			s.close(closeStopping, "the server stops")
		case <-s.done:
		}
	}()
	return nil
}
