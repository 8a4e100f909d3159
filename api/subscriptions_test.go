package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"repute/api"
	"repute/api/wire/push"
	"repute/internal/httpapi"
)

// client is a client of graphql-transport-ws.
type client struct {
	t    *testing.T
	conn *websocket.Conn
}

// answerOf is a message of the server.
type answerOf struct {
	ID, Type string
	Payload  json.RawMessage
}

// dial opens a connection; headers are pairs.
func dial(s *httptest.Server, headers ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	d := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}, ReadBufferSize: 1024}
	return d.Dial(strings.Replace(s.URL, "http", "ws", 1)+"/graphql", h)
}

// connected is a client that has been acknowledged.
func connected(t *testing.T, s *httptest.Server) *client {
	t.Helper()
	conn, _, err := dial(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &client{t, conn}
	c.send(map[string]any{"type": "connection_init"})
	if got := c.next(); got.Type != "connection_ack" {
		t.Fatalf("%+v", got)
	}
	return c
}

func (c *client) send(m map[string]any) {
	c.t.Helper()
	if err := c.conn.WriteJSON(m); err != nil {
		c.t.Fatal(err)
	}
}

// subscribe begins an operation.
func (c *client) subscribe(id, query string, variables map[string]any) {
	c.t.Helper()
	c.send(map[string]any{"id": id, "type": "subscribe",
		"payload": map[string]any{"query": query, "variables": variables}})
}

func (c *client) next() (a answerOf) {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if err := c.conn.ReadJSON(&a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// data reads the data of the next event.
func (c *client) data(into any) {
	c.t.Helper()
	a := c.next()
	var body struct {
		Data   json.RawMessage
		Errors json.RawMessage
	}
	if err := json.Unmarshal(a.Payload, &body); err != nil || a.Type != "next" || body.Errors != nil {
		c.t.Fatalf("%s %s: %v", a.Type, a.Payload, err)
	}
	if err := json.Unmarshal(body.Data, into); err != nil {
		c.t.Fatalf("%s: %v", body.Data, err)
	}
}

const everyChange = `subscription ($since: String) {
	changes(filter: {since: $since}) { cursor kind chainId agent block logIndex data retracts at } }`

// A subscription has the changes of the pages, in order and alike, and then what comes.
func TestSubscriptionToChanges(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{}, unlimited())
	all := wholeFeed(t, s, l, "")
	c := connected(t, s)
	c.subscribe("1", everyChange, map[string]any{"since": ""})
	for i := range all {
		var got struct{ Changes json.RawMessage }
		c.data(&got)
		var change push.Change
		if err := json.Unmarshal(got.Changes, &change); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(change)
		b, _ := json.Marshal(all[i])
		if string(a) != string(b) {
			t.Fatalf("event %d is %s\nwant %s", i, a, b)
		}
	}
	l.add(mint(77, addr(1), "data:,x")...)
	var got struct{ Changes struct{ Cursor, Kind string } }
	c.data(&got)
	if got.Changes.Kind != "agent.transferred" {
		t.Errorf("%+v", got)
	}
}

// The subscription of an agent shows it at once and after each change, and the one of its reputation what crosses a
// bound.
func TestSubscriptionsToAnAgent(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{}, unlimited())
	wholeFeed(t, s, l, "") // transactions of other tests hold changes back for a while
	c := connected(t, s)
	id := fmt.Sprintf("%d:0", l.chain.ID)
	c.subscribe("agent",
		`subscription ($id: ID!) { agent(id: $id) { change { kind } agent { id owner feedback(first: 3) { nodes { index } } } } }`,
		map[string]any{"id": id})
	var got struct {
		Agent struct {
			Change *struct{ Kind string }
			Agent  struct{ ID, Owner string }
		}
	}
	c.data(&got)
	if got.Agent.Change != nil || !strings.HasSuffix(got.Agent.Agent.ID, ":0") {
		t.Fatalf("%+v", got)
	}
	c.subscribe("score",
		`subscription ($id: ID!) { reputation(id: $id, below: 20) { cursor mode old { score } new { score status } } }`,
		map[string]any{"id": id})
	time.Sleep(500 * time.Millisecond) // until both follow
	data := func(old, is string) string {
		return `{"mode":"provisional","old":{"score":` + old + `,"status":"rated"},"new":{"score":` + is +
			`,"status":"rated"},"asOf":{"block":1,"hash":"0x"}}`
	}
	for _, d := range []string{data("40", "20"), data("20", "19.5")} {
		if _, err := l.db.Pool().Exec(t.Context(),
			`insert into changes (chain_id, kind, block, log_index, token_id, data)
			values ($1, 'score.changed', 1, 0, 0, $2)`, int64(l.chain.ID), d); err != nil {
			t.Fatal(err)
		}
	}
	agents := 0
	for scores := 0; scores < 1 || agents < 2; {
		a := c.next()
		switch {
		case a.ID == "agent" && a.Type == "next" && strings.Contains(string(a.Payload), `"kind":"score.changed"`):
			agents++
		case a.ID == "score" && strings.Contains(string(a.Payload), `"old":{"score":20}`) &&
			strings.Contains(string(a.Payload), `"new":{"score":19.5,"status":"rated"}`):
			scores++
		default:
			t.Fatalf("%s %s %s", a.ID, a.Type, a.Payload)
		}
	}
}

// What is wrong with a subscription is an error of the operation, with a code; the connection stays.
func TestSubscriptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{}, unlimited())
	c := connected(t, s)
	for query, code := range map[string]string{
		`subscription { changes(filter: {since: "1-1"}) { cursor } }`:           "GONE",
		`subscription { changes(filter: {since: "x"}) { cursor } }`:             "INVALID",
		`subscription { changes(filter: {kinds: ["nothing"]}) { cursor } }`:     "INVALID",
		`subscription { changes { nothing } }`:                                  "BAD_QUERY",
		`subscription { agent(id: "9999:1") { agent { id } } }`:                 "NOT_FOUND",
		`mutation { refreshDocument(id: "1:1") { __typename } }`:                "INVALID",
		`subscription { changes { cursor } agent(id: "1:1") { agent { id } } }`: "BAD_QUERY",
	} {
		c.subscribe(query, query, nil)
		if a := c.next(); a.Type != "next" || !strings.Contains(string(a.Payload), `"code":"`+code+`"`) {
			t.Errorf("%s: %s %s", query, a.Type, a.Payload)
		}
		if a := c.next(); a.Type != "complete" {
			t.Errorf("%s: then %s %s", query, a.Type, a.Payload)
		}
	}
	c.subscribe("q", `{ status { version } }`, nil)
	if a := c.next(); a.Type != "next" || strings.Contains(string(a.Payload), "errors") {
		t.Errorf("a query: %s %s", a.Type, a.Payload)
	}
	got := get(t, s, "/graphql"+query("query", "subscription { changes { cursor } }"))
	if !strings.Contains(string(got.body), "errors") {
		t.Errorf("over HTTP: %d %s", got.status, got.body)
	}
}

// Pages of other sites cannot open a connection; programs, own pages and those of configured origins can.
func TestSubscriptionOrigins(t *testing.T) {
	t.Parallel()
	o := unlimited()
	o.Origins = []string{"https://app.example"}
	s, _ := populated(t, api.Options{}, o)
	for origin, admitted := range map[string]bool{"": true, s.URL: true, "https://app.example": true,
		"https://evil.example": false, "null": false, "https://app.example.evil.example": false} {
		conn, res, err := dial(s, "Origin", origin)
		if origin == "" {
			conn, res, err = dial(s)
		}
		if (err == nil) != admitted || !admitted && res.StatusCode != http.StatusForbidden {
			t.Errorf("origin %q: %v", origin, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// A caller has a bounded number of connections, each with a bounded number of subscriptions; what ends is given back.
func TestSubscriptionBounds(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{Streams: 2}, unlimited())
	one := connected(t, s)
	connected(t, s)
	if _, res, err := dial(s); err == nil || res.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("a third connection: %v", err)
	}
	for i := range 17 {
		one.subscribe(fmt.Sprint(i), `subscription { changes { cursor } }`, nil)
	}
	if a := one.next(); a.Type != "error" || a.ID != "16" {
		t.Errorf("the seventeenth subscription: %+v", a)
	}
	_ = one.conn.Close()
	waitFor(t, "a free connection", func() bool {
		conn, _, err := dial(s)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Operations over a connection count for the rate of their caller.
func TestSubscriptionRate(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{}, httpapi.ServerOptions{Limits: httpapi.Limits{Rate: 0.001, Burst: 4}})
	c := connected(t, s)
	refused := false
	for i := range 5 {
		c.subscribe(fmt.Sprint(i), `subscription { changes { cursor } }`, nil)
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var a answerOf
	if err := c.conn.ReadJSON(&a); err == nil {
		refused = a.Type == "error" && strings.Contains(string(a.Payload), "too many requests")
	}
	if !refused {
		t.Errorf("%+v", a)
	}
}

// A client that does not read is disconnected with a code, although it gets all that was sent before.
func TestSlowReaderIsCutOff(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{SlowAfter: 300 * time.Millisecond}, unlimited())
	if _, err := l.db.Pool().Exec(t.Context(), `
		insert into changes (chain_id, kind, block, log_index, data)
		select 1, 'rewound', 1, 0, jsonb_build_object('text', repeat('x', 20000)) from generate_series(1, 3000)`); err != nil {
		t.Fatal(err)
	}
	for pause := 3 * time.Second; ; pause *= 3 { // a busy machine sends slowly, and must be kept waiting longer
		closed, got := readAfter(t, s, pause)
		if closed == nil && pause < time.Minute {
			continue
		}
		if closed == nil || closed.Code != 4008 || got == 0 {
			t.Errorf("%v after %d messages", closed, got)
		}
		return
	}
}

// readAfter subscribes to all changes and begins to read them after a pause. It returns how many messages came before
// the server closed the connection; closed is nil if nearly all came.
func readAfter(t *testing.T, s *httptest.Server, pause time.Duration) (closed *websocket.CloseError, got int) {
	t.Helper()
	c := connected(t, s)
	c.subscribe("1", everyChange, map[string]any{"since": ""})
	time.Sleep(pause)
	for ; got <= 2900; got++ {
		_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute)) // of each message
		_, message, err := c.conn.ReadMessage()
		if errors.As(err, &closed) {
			return closed, got
		}
		if err != nil {
			t.Fatalf("after %d messages: %v", got, err)
		}
		if !json.Valid(message) {
			t.Fatalf("message %d is broken: %.100s", got, message)
		}
	}
	return nil, got
}

// A server that stops says so, and a client may connect again.
func TestSubscriptionEndsWithTheServer(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	s, _ := populated(t, api.Options{Done: done}, unlimited())
	c := connected(t, s)
	c.subscribe("1", `subscription { changes { cursor } }`, nil)
	close(done)
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, _, err := c.conn.ReadMessage()
	if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("%v", err)
	}
}
