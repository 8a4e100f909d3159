package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute"
	"repute/mcp"
)

// TestRaw: a tool of JSON gets arguments, _meta and headers as they are, also under its alias, over
// both transports of HTTP; its panic is an error without its text.
func TestRaw(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, mcp.Options{Name: "other", Instructions: "ask"})
	object := json.RawMessage(`{"type":"object"}`)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(s.AddRaw(mcp.Raw{Name: "say-it", Aliases: []string{"say_it"}, Input: object, Output: object,
		Meta: map[string]any{"price": "1"}, Do: func(_ context.Context, c mcp.Call) mcp.Result {
			if c.Meta["panic"] != nil {
				panic("a secret")
			}
			return mcp.Result{Text: string(c.Arguments), Structured: c.Arguments, Failed: c.Meta["fail"] != nil,
				Meta: map[string]any{"echo": c.Meta["x"]}}
		}}))
	for _, schema := range []string{`{"type":"string"}`, `{}`, `true`, ``} {
		if err := s.AddRaw(mcp.Raw{Name: "bad", Input: json.RawMessage(schema)}); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %v", schema, err)
		}
	}
	events := httptest.NewServer(s.Events())
	t.Cleanup(events.Close)
	t.Cleanup(s.Close) // before the server, which waits for its streams
	for name, transport := range map[string]sdk.Transport{
		"streamable": &sdk.StreamableClientTransport{Endpoint: serve(t, s).URL, DisableStandaloneSSE: true},
		"events":     &sdk.SSEClientTransport{Endpoint: events.URL}} {
		c := connect(t, transport)
		list, err := c.ListTools(t.Context(), nil)
		ok(err)
		if tool := list.Tools[1]; len(list.Tools) != 2 || tool.Name != "say-it" || tool.Meta["price"] != "1" {
			t.Errorf("%s: %+v", name, tool)
		}
		for _, called := range []string{"say-it", "say_it"} {
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: called, Arguments: map[string]any{"n": 1},
				Meta: sdk.Meta{"x": "y"}})
			ok(err)
			if r.IsError || fmt.Sprint(r.StructuredContent) != "map[n:1]" || r.Meta["echo"] != "y" {
				t.Errorf("%s, %s: %+v", name, called, r)
			}
		}
		for _, meta := range []string{"fail", "panic"} {
			r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "say-it", Meta: sdk.Meta{meta: true}})
			ok(err)
			if text := r.Content[0].(*sdk.TextContent).Text; !r.IsError ||
				text != map[string]string{"fail": "{}",
					"panic": "internal: something broke on our side; it has been logged"}[meta] {
				t.Errorf("%s, %s: %s", name, meta, text)
			}
		}
	}
}

// TestStreamsAfterClose: a stream that is no session yet when the server closes ends as well.
func TestStreamsAfterClose(t *testing.T) {
	t.Parallel()
	s := mcp.New(mcp.Options{Logger: slog.New(slog.DiscardHandler)})
	s.Close()
	events := httptest.NewServer(s.Events())
	t.Cleanup(events.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, events.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream does not end: %v", err)
	}
}
