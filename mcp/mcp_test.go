package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute"
	"repute/mcp"
)

type question struct {
	What  string   `json:"what" enum:"size,panic,wait,error,secret,null,id" doc:"to do"`
	Size  int      `json:"size,omitempty" minimum:"0" maximum:"1000000" doc:"of the answer in bytes"`
	Whose mcp.Text `json:"whose,omitempty" doc:"an id"`
	Deep  struct {
		Words []string `json:"words,omitempty" maxItems:"3" doc:"some"`
	} `json:"deep,omitzero" doc:"goes on below"`
}

type reply struct {
	Text string  `json:"text"`
	Part *part   `json:"part"`
	Kind *string `json:"kind" enum:"a,b"`
}

type part struct {
	More []string `json:"more"`
}

// waits tells of calls that wait, and how they ended.
type waits struct {
	begun, ended chan struct{}
}

func newServer(t *testing.T, o mcp.Options) (*mcp.Server, *waits) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	s := mcp.New(o)
	w := &waits{make(chan struct{}, 1), make(chan struct{}, 1)}
	err := mcp.Add(s, mcp.Tool[question, reply]{Name: "ask", Description: "answers",
		Do: func(ctx context.Context, q question) (reply, error) {
			switch q.What {
			case "panic":
				panic("a secret")
			case "wait":
				w.begun <- struct{}{}
				<-ctx.Done()
				w.ended <- struct{}{}
				return reply{}, ctx.Err()
			case "error":
				return reply{}, repute.Invalid("what", "is wrong", "another")
			case "secret":
				return reply{}, errors.New("a secret")
			case "id":
				return reply{Text: string(q.Whose)}, nil
			}
			return reply{Text: strings.Repeat("<", q.Size)}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

func connect(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func serve(t *testing.T, s *mcp.Server) *httptest.Server {
	t.Helper()
	h := httptest.NewServer(s.Handler())
	t.Cleanup(h.Close)
	return h
}

func ask(t *testing.T, c *sdk.ClientSession, arguments string) (text string, failed bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask", Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// Whatever a tool does, its caller gets an answer that says no more than it should.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, mcp.Options{Output: 1000, Timeout: 500 * time.Millisecond})
	c := connect(t, &sdk.StreamableClientTransport{Endpoint: serve(t, s).URL, DisableStandaloneSSE: true})
	for _, q := range []struct {
		arguments, says string
		failed          bool
	}{
		{`{"what":"size","size":3}`, `{"text":"\u003c\u003c\u003c","part":null,"kind":null}`, false},
		{`{"what":"id","whose":115792089237316195423570985008687907853269984665640564039457584007913129639935}`,
			`"text":"115792089237316195423570985008687907853269984665640564039457584007913129639935"`, false},
		{`{"what":"id","whose":"8453:22"}`, `"text":"8453:22"`, false},
		{`{"what":"size","size":900}`, "limited: the answer would have 5", true},
		{`{"what":"panic"}`, "internal: something broke on our side; it has been logged", true},
		{`{"what":"secret"}`, "internal: something broke on our side; it has been logged", true},
		{`{"what":"error"}`, "invalid: what: is wrong. Fix: another", true},
		{`{"what":"wait"}`, "timeout: the answer took longer than the server allows", true},
		{`{"what":"dance"}`, `invalid: what: must be one of "size, panic`, true},
		{`{}`, "invalid: what: is missing. Fix: to do", true},
		{`{"waht":"size"}`, "invalid: waht: is no field of this tool. Fix: known are deep, size, what, whose", true},
		{`{"what":null}`, "invalid: what: must be string", true},
		{`{"what":"size","size":-1}`, "invalid: size: must be number >= 0", true},
		{`{"what":"size","size":"3"}`, "invalid: size: must be integer. Fix: of the answer in bytes", true},
		{`{"what":"size","whose":1.5}`, "invalid: whose: must be text or a whole number", true},
		{`{"what":"size","deep":{"words":["a",1]}}`, "invalid: deep.words[1]: must be string", true},
		{`{"what":"size","deep":{"wrods":[]}}`, "invalid: deep.wrods: is no field", true},
		{`{"what":"size","deep":{"words":["a","b","c","d"]}}`, "invalid: deep.words: must be array length <= 3", true},
		{`{"what":"size","deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`,
			"invalid: arguments.deep: nests too deep", true},
		{`{"what":"id","whose":"\ud800"}`, "invalid: arguments.whose: has half a surrogate pair", true},
		{`{"what":"id","whose":"\u0000"}`, "invalid: arguments.whose: has NUL", true},
	} {
		if text, failed := ask(t, c, q.arguments); failed != q.failed || !strings.Contains(text, q.says) ||
			strings.Contains(text, "a secret") {
			t.Errorf("%.200s: %t %s", q.arguments, failed, text)
		}
	}
}

// What is always written and may be null says so.
func TestSchemasAdmitNull(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, mcp.Options{})
	c := connect(t, &sdk.StreamableClientTransport{Endpoint: serve(t, s).URL, DisableStandaloneSSE: true})
	list, err := c.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 {
		t.Fatal(list, err)
	}
	raw, err := json.Marshal(list.Tools[0].OutputSchema)
	if err != nil || !strings.Contains(string(raw),
		`"part":{"properties":{"more":{"items":{"type":"string"},"type":"array"}},"type":["object","null"]}`) ||
		!strings.Contains(string(raw), `["a","b",null]`) || strings.Contains(string(raw), "additionalProperties") {
		t.Errorf("%s %v", raw, err)
	}
}

// The end of a caller is the end of its call, in the protocols of before 2026 too.
func TestCallerGoesAway(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		s, w := newServer(t, mcp.Options{})
		h := serve(t, s)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			r := post(ctx, t, h.URL, call(version, `{"what":"wait"}`), version)
			if resp, err := http.DefaultClient.Do(r); err == nil {
				b, _ := io.ReadAll(resp.Body)
				t.Errorf("%s: %d %s", version, resp.StatusCode, b)
			}
		}()
		await(t, w.begun)
		leave()
		await(t, w.ended)
		await(t, gone)
	}
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("waited in vain")
	}
}

func call(version, arguments string) string {
	meta := ""
	if version >= "2026" {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version +
			`","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":` + arguments + meta + `}}`
}

func post(ctx context.Context, t *testing.T, url, body, version string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", version)
	if version >= "2026" {
		r.Header.Set("Mcp-Method", "tools/call")
		r.Header.Set("Mcp-Name", "ask")
	}
	return r
}

// What is no request of the protocol, and messages without end, are refused before a tool is
// asked.
func TestRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, mcp.Options{Input: 1000})
	h := serve(t, s)
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		status int
	}{
		{"a program", func(*http.Request) {}, 200},
		{"get", func(r *http.Request) { r.Method = http.MethodGet }, 405},
		{"delete", func(r *http.Request) { r.Method = http.MethodDelete }, 405},
		{"another type", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"no JSON", func(r *http.Request) { fill(r, "{") }, 400},
		{"huge", func(r *http.Request) { fill(r, call("", `{"what":"`+strings.Repeat("x", 2000)+`"}`)) }, 413},
		{"huge, of unknown length", func(r *http.Request) {
			fill(r, call("", `{"what":"`+strings.Repeat("x", 2000)+`"}`))
			r.ContentLength = -1
		}, 413},
		{"another protocol", func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "1999-01-01") }, 400},
	} {
		r := post(t.Context(), t, h.URL, call("", `{"what":"null"}`), "2025-06-18")
		c.change(r)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if _ = resp.Body.Close(); resp.StatusCode != c.status {
			t.Errorf("%s: %d, not %d", c.name, resp.StatusCode, c.status)
		}
	}
}

func fill(r *http.Request, body string) {
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
}

// On a pair of streams the caller's end is the end, and a message without end too.
func TestStdio(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, mcp.Options{Input: 1000})
	in, asking := io.Pipe()
	answers, out := io.Pipe()
	var token atomic.Value
	if err := mcp.Add(s, mcp.Tool[struct{}, reply]{Name: "who", Description: "asks",
		Do: func(ctx context.Context, _ struct{}) (reply, error) {
			token.Store(mcp.Token(ctx))
			return reply{}, nil
		}}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Stdio(t.Context(), in, out, "a token") }()
	c := connect(t, &sdk.IOTransport{Reader: answers, Writer: asking})
	if text, failed := ask(t, c, `{"what":"size","size":1}`); failed || !strings.Contains(text, "u003c") {
		t.Error(text)
	}
	if r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "who"}); err != nil || r.IsError ||
		token.Load() != "a token" {
		t.Errorf("%+v %v: token %v", r, err, token.Load())
	}
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing"}); err == nil {
		t.Error("a tool that is not there answers")
	}
	_, _ = io.WriteString(asking, `"`+strings.Repeat("x", 5000)+"\n")
	select {
	case err := <-done:
		if err == nil {
			t.Error("a huge message is taken")
		}
	case <-time.After(30 * time.Second):
		t.Error("a huge message is read for ever")
	}
}

// What is no message is told by an error of JSON-RPC, with the id where there is one.
func TestFramesThatAreNone(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t, mcp.Options{Input: 4096})
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{"garbage", 400, `"id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":7,"method":"foo"}`, 400, `"id":7,"error":{"code":-32601,"message":"method: \"foo\" is`},
		{`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":5}`, 200, `"code":-32602,`},
		{`[]`, 400, `"id":null,"error":{"code":-32600,`},
		{`{}`, 400, `"id":null,"error":{"code":-32600,`},
		{``, 400, `"id":null,"error":{"code":-32`},
		{`"` + strings.Repeat("x", 5000) + `"`, 413, `"code":-32600,`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, 200, `"result":{}`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.status || !strings.Contains(string(text), c.want) ||
			!strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%.60s: %d %s %s", c.body, res.StatusCode, res.Header.Get("Content-Type"), text)
		}
	}
}
