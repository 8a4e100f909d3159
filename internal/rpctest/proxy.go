package rpctest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"repute/internal/chainserver"
)

// Proxy is a node that lies and loses logs: it asks an honest one, of any kind, and changes its
// answers.
type Proxy struct {
	*httptest.Server
	// Lie, when not nil, may change the members of any answer; it MUST be set while
	// no request is running.
	Lie func(c ProxyCall, answer map[string]json.RawMessage)

	url    string // of the honest node
	server *chainserver.Server

	mu       sync.Mutex
	lose     func(types.Log) bool
	single   bool   // also of questions about one block
	receipts bool   // also out of receipts
	refused  string // a method it does not have
}

// ProxyCall is one call of a request.
type ProxyCall = chainserver.Call

// NewProxy asks the node at url until the test ends. It is honest at first.
func NewProxy(t *testing.T, url string) *Proxy {
	t.Helper()
	return NewProxyAt(t, "127.0.0.1", url)
}

// NewProxyAt is NewProxy on another host of this machine, such as 127.0.0.2: a node counts as
// another witness only there.
func NewProxyAt(t *testing.T, host, url string) *Proxy {
	t.Helper()
	d := &Proxy{url: url}
	d.server = chainserver.New(relay{d})
	d.Server = serveAt(t, host, d.server)
	return d
}

// relay answers what the honest node does, changed. It asks without a limit of time: the test's own ends it.
type relay struct{ d *Proxy }

// Answer implements chainserver.Source.
func (r relay) Answer(c *ProxyCall) (any, *Error) {
	question, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": c.Method, "params": c.Params})
	must(err)
	resp, err := http.Post(r.d.url, "application/json", bytes.NewReader(question))
	if err != nil {
		return nil, chainserver.Internal(err)
	}
	defer resp.Body.Close()
	var answer map[string]json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, chainserver.Internal(err)
	}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	r.d.one(*c, answer)
	if raw := answer["error"]; raw != nil {
		var fail Error
		must(json.Unmarshal(raw, &fail))
		return nil, &fail
	}
	return answer["result"], nil
}

// Lose says which logs are left out from now on: of ranges, of questions about a
// single block too, and of receipts.
func (d *Proxy) Lose(lose func(types.Log) bool, single, receipts bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose, d.single, d.receipts = lose, single, receipts
}

// Refuse makes the node lack a method; "" restores all of them.
func (d *Proxy) Refuse(method string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = method
}

// Count returns how often a method was called.
func (d *Proxy) Count(method string) int { return d.server.Calls(method) }

// Requests returns how many requests came, each with one call or more.
func (d *Proxy) Requests() int { return int(d.server.Stats().Requests) }

// Loses reports whether a log is left out now.
func (d *Proxy) Loses(l types.Log) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lose != nil && d.lose(l)
}

// one changes the answer to one call. A refused method is lied about too, so that a lie may bring it back; logs are
// lost last. d.mu is held.
func (d *Proxy) one(c ProxyCall, a map[string]json.RawMessage) {
	if c.Method == d.refused {
		delete(a, "result")
		a["error"] = json.RawMessage(`{"code":-32601,"message":"the method does not exist/is not available"}`)
	}
	if d.Lie != nil {
		d.Lie(c, a)
	}
	if d.lose == nil || a["result"] == nil {
		return
	}
	switch c.Method {
	case "eth_getLogs":
		if d.single || !oneBlock(c) {
			a["result"] = d.without(a["result"])
		}
	case "eth_getBlockReceipts":
		var receipts []map[string]json.RawMessage
		if !d.receipts || json.Unmarshal(a["result"], &receipts) != nil {
			return
		}
		for _, r := range receipts {
			r["logs"] = d.without(r["logs"])
		}
		a["result"], _ = json.Marshal(receipts)
	case "eth_getTransactionReceipt":
		var r map[string]json.RawMessage
		if d.receipts && json.Unmarshal(a["result"], &r) == nil && r != nil {
			r["logs"] = d.without(r["logs"])
			a["result"], _ = json.Marshal(r)
		}
	}
}

// oneBlock reports whether a question is about a single block, which careless nodes often answer rightly.
func oneBlock(c ProxyCall) bool {
	var q struct{ FromBlock, ToBlock, BlockHash string }
	_ = json.Unmarshal(c.Params[0], &q)
	return q.BlockHash != "" || q.FromBlock == q.ToBlock
}

// without keeps the text of the logs that stay: members that this package does not know are passed on. What is no list
// is passed on as it is. d.mu is held.
func (d *Proxy) without(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return raw
	}
	list = slices.DeleteFunc(list, func(one json.RawMessage) bool {
		var l types.Log
		return json.Unmarshal(one, &l) == nil && d.lose(l)
	})
	if list == nil {
		list = []json.RawMessage{}
	}
	out, _ := json.Marshal(list)
	return out
}
