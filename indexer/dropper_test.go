package indexer

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

// dropper is a node that loses logs: it stands before an honest one and leaves
// logs out of its answers.
type dropper struct {
	*httptest.Server
	mu       sync.Mutex
	lose     func(types.Log) bool
	single   bool   // also of questions about one block
	receipts bool   // also out of receipts
	refused  string // a method it does not have
	lie      func(c rpcCall, answer map[string]json.RawMessage)
	calls    map[string]int
}

func newDropper(t *testing.T, url string) *dropper {
	t.Helper()
	d := &dropper{calls: map[string]int{}}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	t.Cleanup(func() {
		d.CloseClientConnections()
		d.Close()
	})
	return d
}

// set says what is lost from now on.
func (d *dropper) set(lose func(types.Log) bool, single, receipts bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose, d.single, d.receipts = lose, single, receipts
}

// refuse makes the node lack a method.
func (d *dropper) refuse(method string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = method
}

func (d *dropper) count(method string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[method]
}

type rpcCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

func (d *dropper) change(question, answer []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !bytes.HasPrefix(bytes.TrimSpace(question), []byte("[")) {
		var c rpcCall
		var a map[string]json.RawMessage
		if json.Unmarshal(question, &c) != nil || json.Unmarshal(answer, &a) != nil {
			return answer
		}
		d.one(c, a)
		out, _ := json.Marshal(a)
		return out
	}
	var calls []rpcCall
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

// one changes the answer to one call.
func (d *dropper) one(c rpcCall, a map[string]json.RawMessage) {
	d.calls[c.Method]++
	if c.Method == d.refused {
		delete(a, "result")
		a["error"] = json.RawMessage(`{"code":-32601,"message":"the method does not exist/is not available"}`)
	}
	if d.lie != nil {
		d.lie(c, a)
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

func oneBlock(c rpcCall) bool {
	var q struct{ FromBlock, ToBlock, BlockHash string }
	_ = json.Unmarshal(c.Params[0], &q)
	return q.BlockHash != "" || q.FromBlock == q.ToBlock
}

// without keeps the text of the logs that stay.
func (d *dropper) without(raw json.RawMessage) json.RawMessage {
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
