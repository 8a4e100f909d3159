package graph

import (
	"context"
	"net/http"
	"strings"
	"time"

	graphqlws "github.com/graph-gophers/graphql-transport-ws"
	"github.com/labstack/echo/v4"

	"repute/api/graph/socket"
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

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool { return strings.EqualFold(r.Header.Get("Upgrade"), "websocket") }

// upgrade serves subscriptions over a WebSocket until the client leaves, reads too slowly, or the server stops. The
// handler returns while the connection lives on, so that the connection has a context without the request's end. leave
// is called once: by the socket when it ends, or here when the handshake failed.
func (e *Endpoint) upgrade(c echo.Context) error {
	r := c.Request()
	if !e.server.KnowsOrigin(r) {
		return httpapi.ForeignOrigin()
	}
	caller := httpapi.CallerOf(r.Context())
	if err := e.o.Streams.Enter(caller); err != nil {
		return err
	}
	leave := func() { e.o.Streams.Leave(caller) }
	s := socket.New(leave)
	serve := graphqlws.NewHandlerFunc(e, nil, graphqlws.WithCheckOrigin(e.server.KnowsOrigin),
		graphqlws.WithReadLimit(maxMessage), graphqlws.WithWriteTimeout(writeTimeout),
		graphqlws.WithMaxSubscriptions(maxSubscriptions), graphqlws.WithContextGenerator(graphqlws.ContextGeneratorFunc(
			func(_ context.Context, r *http.Request) (context.Context, error) { // the request's context ends with its handler
				return socket.With(context.WithoutCancel(r.Context()), s), nil
			})))
	serve(s.Accept(c.Response()), r)
	if !s.IsBegun() { // the handshake was refused, and answered
		leave()
		return nil
	}
	go func() {
		select {
		case <-e.o.Done:
			s.End(socket.Stopping, "the server stops")
		case <-s.Done():
		}
	}()
	return nil
}
