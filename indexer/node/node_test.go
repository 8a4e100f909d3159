package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/indexer/node/jsonrpc"
	"repute/internal/rpctest"
)

func nodeOf(t *testing.T, c *rpctest.Chain, o Options) *Node {
	t.Helper()
	n, err := New(c.URL(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// nodeOn is an endpoint behind a URL.
func nodeOn(t *testing.T, url string) *Node {
	t.Helper()
	n, err := New(url, Options{Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func queryOf(c *rpctest.Chain, from, to uint64, linked bool) Query {
	return Query{From: from, To: to, Linked: linked, Topics: contracts.Topics(),
		Addresses: []common.Address{c.Identity, c.Reputation, c.Validation}}
}

func TestNodeHeads(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{ChainID: 77})
	c.MineEmpty(9)
	n := nodeOf(t, c, Options{})
	h, err := n.Heads(t.Context())
	if err != nil || h.ChainID != 77 || h.Latest.Number != 9 || h.Safe != 0 || h.Finalized != 0 {
		t.Fatalf("without finality: %+v, %v", h, err)
	}
	head := c.Head()
	if h.Latest.Hash != head.Hash() || h.Latest.Parent != head.Header.ParentHash ||
		h.Latest.Time.Unix() != int64(head.Header.Time) {
		t.Errorf("head %+v is not block %d", h.Latest, head.Number())
	}
	c.Finalize(7, 4)
	if h, err = n.Heads(t.Context()); err != nil || h.Safe != 7 || h.Finalized != 4 {
		t.Errorf("with finality: %+v, %v", h, err)
	}
}

func TestNodeSpan(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(2)
	c.Mine(c.Register(0, rpctest.Account(1), "ipfs://x"), c.Register(1, rpctest.Account(2), ""))
	c.MineEmpty(2)
	n := nodeOf(t, c, Options{})
	for _, linked := range []bool{false, true} {
		q := queryOf(c, 1, 5, linked)
		span, err := n.Span(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(q.numbers()); len(span.Logs) != 8 || len(span.Headers) != want {
			t.Errorf("linked %t: %d logs, %d headers, want 8 and %d", linked, len(span.Logs), len(span.Headers), want)
		}
		if err := span.Check(q); err != nil {
			t.Error(err)
		}
	}
}

// Every answer that is no answer must be an error, and the error must tell
// whether a shorter range may help.
func TestNodeRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		rule      rpctest.Rule
		transient bool
	}{
		{"HTML", rpctest.Always(rpctest.Answer{Raw: []byte("<html>Bad gateway</html>")}), false},
		{"truncated", rpctest.Always(rpctest.Answer{Raw: []byte(`[{"jsonrpc":"2.0","id":1,"result":[{"addr`)}), false},
		{"empty body", rpctest.Always(rpctest.Answer{Raw: []byte{}}), false},
		{"null logs", rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{})), false},
		{"null header", rpctest.On("eth_getBlockByNumber", rpctest.Always(rpctest.Answer{})), true},
		{"range refused", rpctest.LimitRange(2, rpctest.Error{Code: -32005, Message: "some new wording"}), false},
		{"range refused in data", rpctest.LimitRange(2, rpctest.Error{Code: -32602, Message: "invalid params",
			Data: map[string]any{"range": "4 > 2"}}), false},
		{"rate limit", rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{Error: &rpctest.Error{Code: -32005,
			Message: "project ID request rate exceeded"}})), true},
		{"429", rpctest.Always(rpctest.Answer{Status: 429, Raw: []byte("slow down")}), true},
		{"413", rpctest.Always(rpctest.Answer{Status: 413, Raw: []byte("too large")}), false},
		{"502", rpctest.Always(rpctest.Answer{Status: 502, Raw: []byte("<html>")}), true},
		{"hangs", rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{Hang: true})), false},
		{"log without topics",
			rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{Result: []map[string]any{{"address": "0x"}}})),
			false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			c.Mine(c.Register(0, rpctest.Account(1), ""))
			c.MineEmpty(3)
			c.Inject(tt.rule)
			n := nodeOf(t, c, Options{Timeout: 300 * time.Millisecond})
			_, err := n.Span(t.Context(), queryOf(c, 1, 4, false))
			if err == nil {
				t.Fatal("no error")
			}
			if got := jsonrpc.IsTransient(err); got != tt.transient {
				t.Errorf("transient %t, want %t: %v", got, tt.transient, err)
			}
		})
	}
}

func TestNodeAnswerTooLarge(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), strings.Repeat("x", 10_000)))
	n := nodeOf(t, c, Options{MaxBytes: 5_000})
	if _, err := n.Span(t.Context(), queryOf(c, 1, 1, false)); err == nil || jsonrpc.IsTransient(err) {
		t.Errorf("an answer above the limit: %v", err)
	}
}

func TestNodeDownHidesKey(t *testing.T) {
	t.Parallel()
	n, err := New("http://127.0.0.1:1/v3/secret-key", Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Heads(t.Context())
	if err == nil || !jsonrpc.IsTransient(err) {
		t.Fatalf("nobody listens: %v", err)
	}
	if strings.Contains(err.Error(), "secret-key") {
		t.Errorf("the error shows the endpoint's key: %v", err)
	}
	for _, bad := range []string{"", "localhost:8545", "ftp://host", "http://"} {
		if _, err := New(bad, Options{}); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("New(%q): %v", bad, err)
		}
	}
}

// TestNodeHidesKeyInAnswers: servers repeat the path, the query and the user in
// their error pages and in JSON-RPC errors.
func TestNodeHidesKeyInAnswers(t *testing.T) {
	t.Parallel()
	secrets := []string{"SECRETKEY123", "s%2Fecret", "s/ecret", "QUERYKEY", "alice", "pa55word"}
	for name, answer := range map[string]func(http.ResponseWriter, string){
		"status": func(w http.ResponseWriter, echo string) { http.Error(w, "Cannot POST "+echo, http.StatusNotFound) },
		"long": func(w http.ResponseWriter, echo string) {
			http.Error(w, strings.Repeat("x", 180)+echo, http.StatusNotFound)
		},
		"batch": func(w http.ResponseWriter, echo string) {
			fmt.Fprintf(w, `[{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":%q}}]`, "no route "+echo)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user, password, _ := r.BasicAuth()
				answer(w, fmt.Sprint(r.RequestURI, " ", r.URL.Path, " ", r.URL.Query(), " ", user, ":", password))
			}))
			t.Cleanup(s.Close)
			n, err := New(strings.Replace(s.URL, "://", "://alice:pa55word@", 1)+
				"/v3/SECRETKEY123/s%2Fecret?key=QUERYKEY",
				Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			_, err = n.Heads(t.Context())
			if err == nil || len(err.Error()) > 400 {
				t.Fatalf("error %v", err)
			}
			for _, secret := range secrets {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("shows %s: %v", secret, err)
				}
			}
		})
	}
}

// A block that is replaced between the two reads of one batch must be noticed.
func TestNodeSpanSeesFork(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(20)
	c.Inject(rpctest.Times(1, rpctest.On("eth_getLogs", func(rpctest.Call) *rpctest.Answer {
		c.Fork(2)
		c.MineEmpty(18)
		return &rpctest.Answer{Honest: true}
	})))
	n := nodeOf(t, c, Options{})
	if _, err := n.Span(context.Background(), queryOf(c, 1, 20, true)); err == nil {
		t.Error("a fork inside the batch went unnoticed")
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	first := func(l types.Log) bool { return l.BlockNumber == 2 && l.Index == 0 }
	tests := map[string]func([]types.Log) []types.Log{
		"removed":       rpctest.Corrupt(first, func(l *types.Log) { l.Removed = true }),
		"above":         rpctest.Corrupt(first, func(l *types.Log) { l.BlockNumber = 9 }),
		"below":         rpctest.Corrupt(first, func(l *types.Log) { l.BlockNumber = 0 }),
		"address":       rpctest.Corrupt(first, func(l *types.Log) { l.Address[0]++ }),
		"topic":         rpctest.Corrupt(first, func(l *types.Log) { l.Topics[0][0]++ }),
		"anonymous":     rpctest.Corrupt(first, func(l *types.Log) { l.Topics = []common.Hash{} }),
		"block hash":    rpctest.Corrupt(first, func(l *types.Log) { l.BlockHash[0]++ }),
		"no block hash": rpctest.Corrupt(first, func(l *types.Log) { l.BlockHash = common.Hash{} }),
		"position":      rpctest.Corrupt(first, func(l *types.Log) { l.Index = 1 }),
		"hash of to":    rpctest.Corrupt(rpctest.AtBlock(3), func(l *types.Log) { l.BlockHash[0]++ }),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			c.Mine()
			c.Mine(c.Register(0, rpctest.Account(1), ""))
			c.Mine(c.Register(1, rpctest.Account(1), ""))
			n, q := nodeOf(t, c, Options{}), queryOf(c, 1, 3, false)
			honest, err := n.Span(t.Context(), q)
			if err == nil {
				err = honest.Check(q)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.MapLogs(change)
			span, err := n.Span(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			var bad *jsonrpc.AnswerError
			if err := span.Check(q); !errors.As(err, &bad) {
				t.Errorf("check: %v, want a refusal", err)
			}
		})
	}
}

func TestCheckOrdersAndDropsRepetitions(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	c.Mine(c.Register(1, rpctest.Account(1), ""))
	c.MapLogs(rpctest.Duplicate(rpctest.Every))
	c.MapLogs(func(logs []types.Log) []types.Log {
		for i, j := 0, len(logs)-1; i < j; i, j = i+1, j-1 {
			logs[i], logs[j] = logs[j], logs[i]
		}
		return logs
	})
	n, q := nodeOf(t, c, Options{}), queryOf(c, 1, 2, true)
	span, err := n.Span(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(span.Logs) != 16 {
		t.Fatalf("the node sent %d logs, the test wants 16", len(span.Logs))
	}
	if err := span.Check(q); err != nil {
		t.Fatal(err)
	}
	if len(span.Logs) != 8 {
		t.Fatalf("%d logs are left, want 8", len(span.Logs))
	}
	for i, l := range span.Logs {
		if l.BlockNumber != uint64(1+i/4) || l.Index != uint(i%4) {
			t.Errorf("log %d is block %d index %d", i, l.BlockNumber, l.Index)
		}
	}
}
