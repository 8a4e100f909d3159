package node

import (
	"encoding/json"
	"testing"

	"repute"
	"repute/internal/rpctest"

	"github.com/ethereum/go-ethereum/common"
)

// A host is told apart by its name or address, however the URL writes it.
func TestHost(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://Node.Example:8545/key":    "node.example",
		"wss://node.example./v3/key":      "node.example",
		"https://node.example":            "node.example",
		"https://user:word@node.example":  "node.example",
		"https://other.node.example":      "other.node.example",
		"http://127.0.0.1:8545":           "127.0.0.1",
		"http://127.0.0.1:8546":           "127.0.0.1",
		"http://127.0.0.2:8545":           "127.0.0.2",
		"http://[::ffff:127.0.0.1]:8545":  "127.0.0.1",
		"http://[::1]:8545":               "::1",
		"http://[0:0:0:0:0:0:0:1]":        "::1",
		"http://[2001:DB8::1]:8545/x?k=1": "2001:db8::1",
	} {
		n, err := New(url, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n.Close(); n.Host() != want {
			t.Errorf("%s is of %s, want %s", url, n.Host(), want)
		}
	}
}

// Logs that nothing proves count once for all ports of a host.
func TestReceiptsAreShownByHosts(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{Genesis: 0})
	b := c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
	c.MineEmpty(3)
	for host, want := range map[string]int{"127.0.0.1": 1, "127.0.0.2": 2} {
		one, two := rpctest.NewProxy(t, c.URL()), rpctest.NewProxyAt(t, host, c.URL())
		one.Lie = func(call rpctest.ProxyCall, a map[string]json.RawMessage) {
			if call.Method == "eth_getBlockByNumber" && len(a["result"]) > len("null") {
				a["result"] = rpctest.Edited(a["result"], map[string]string{"receiptsRoot": common.Hash{7}.Hex()})
			}
		}
		two.Lie = one.Lie
		p := poolOf(t, PoolOptions{}, one.URL, two.URL)
		e, err := p.Receipts(t.Context(), repute.Block{Number: b.Number(), Hash: b.Hash()}, nil)
		if err != nil || e.Proven || e.Shown != want {
			t.Errorf("beside %s: shown by %d, proven %t, %v; want %d", host, e.Shown, e.Proven, err, want)
		}
	}
}
