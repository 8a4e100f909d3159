package rpctest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// Proxy is a node that lies and loses logs: it stands before an honest one, of any
// kind, and changes its answers.
type Proxy struct {
	*httptest.Server
	// Lie, when not nil, may change the members of any answer; it is to be set while
	// nobody asks.
	Lie func(c ProxyCall, answer map[string]json.RawMessage)

	mu       sync.Mutex
	lose     func(types.Log) bool
	single   bool   // also of questions about one block
	receipts bool   // also out of receipts
	refused  string // a method it does not have
	calls    map[string]int
	requests int
}

// NewProxy stands before the node at url until the test ends. It is honest at first.
func NewProxy(t *testing.T, url string) *Proxy {
	t.Helper()
	return NewProxyAt(t, "127.0.0.1", url)
}

// NewProxyAt is NewProxy on another host of this machine, such as 127.0.0.2: a node counts as
// another witness only there.
func NewProxyAt(t *testing.T, host, url string) *Proxy {
	t.Helper()
	d := &Proxy{calls: map[string]int{}}
	d.Server = serveAt(t, host, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		resp, err := http.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(d.change(body, answer))
	}))
	return d
}

// Lose says which logs are left out from now on: of ranges, of questions about a
// single block too, and of receipts.
func (d *Proxy) Lose(lose func(types.Log) bool, single, receipts bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose, d.single, d.receipts = lose, single, receipts
}

// Refuse makes the node lack a method; "" gives all of them back.
func (d *Proxy) Refuse(method string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = method
}

// Count tells how often a method was called.
func (d *Proxy) Count(method string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[method]
}

// Requests tells how many requests came, each with one call or more.
func (d *Proxy) Requests() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests
}

// ProxyCall is one call of a request.
type ProxyCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

func (d *Proxy) change(question, answer []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests++
	if !bytes.HasPrefix(bytes.TrimSpace(question), []byte("[")) {
		var c ProxyCall
		var a map[string]json.RawMessage
		if json.Unmarshal(question, &c) != nil || json.Unmarshal(answer, &a) != nil {
			return answer
		}
		d.one(c, a)
		out, _ := json.Marshal(a)
		return out
	}
	var calls []ProxyCall
	var answers []map[string]json.RawMessage
	if json.Unmarshal(question, &calls) != nil || json.Unmarshal(answer, &answers) != nil {
		return answer
	}
	for _, c := range calls {
		for _, a := range answers {
			if bytes.Equal(a["id"], c.ID) {
				d.one(c, a)
			}
		}
	}
	out, _ := json.Marshal(answers)
	return out
}

// Loses tells whether a log is left out now.
func (d *Proxy) Loses(l types.Log) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lose != nil && d.lose(l)
}

// one changes the answer to one call.
func (d *Proxy) one(c ProxyCall, a map[string]json.RawMessage) {
	d.calls[c.Method]++
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

func oneBlock(c ProxyCall) bool {
	var q struct{ FromBlock, ToBlock, BlockHash string }
	_ = json.Unmarshal(c.Params[0], &q)
	return q.BlockHash != "" || q.FromBlock == q.ToBlock
}

// without keeps the text of the logs that stay.
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
