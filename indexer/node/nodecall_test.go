package node

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"repute/indexer/node/jsonrpc"
	"repute/internal/rpctest"
	"repute/internal/synth"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// TestStatusWithAnswer: a body that is JSON-RPC counts under any status, and
// what HTTP said is kept beside it.
func TestStatusWithAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   string
	}{
		{413, `[{"id":1,"error":{"code":-32614,"message":"eth_getLogs is limited to a 10,000 range"}}]`,
			"limited to a 10,000 range"},
		{429, `{"id":null,"error":{"code":-32005,"message":"slow"}}`, "slow"},
		{503, `<html>down</html>`, "HTTP status 503 Service Unavailable: <html>down"},
		{301, ``, "HTTP status 301 Moved Permanently"},
		{200, `<html>login</html>`, "<html>login"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}))
		t.Cleanup(s.Close)
		n, err := New(s.URL, Options{})
		if err != nil {
			t.Fatal(err)
		}
		batch := []rpc.BatchElem{{Method: "eth_x"}}
		err = errors.Join(n.BatchCallContext(t.Context(), batch), batch[0].Error)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("status %d: %v, want %q", tt.status, err, tt.want)
		}
		var refusal *jsonrpc.Refusal
		if errors.As(err, &refusal) && (refusal.Status != tt.status || refusal.Retry.Seconds() != 7) {
			t.Errorf("status %d: the refusal says %d and retry %s", tt.status, refusal.Status, refusal.Retry)
		}
	}
}

func TestNodeSpanByHash(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(2)
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	c.MineEmpty(60)
	n := nodeOf(t, c, Options{MaxBatch: 5})
	q := queryOf(c, 1, hashedRange, true)
	q.AnyAddress = q.Topics[:1]
	span, err := n.Span(t.Context(), q)
	if err != nil || len(span.Logs) == 0 || len(span.Headers) != hashedRange || len(span.Sealed) != hashedRange ||
		span.Bytes == 0 || span.From != strings.TrimPrefix(c.URL(), "http://") {
		t.Fatalf("%d logs, %d headers, %d blooms, %d bytes from %s: %v", len(span.Logs), len(span.Headers),
			len(span.Sealed), span.Bytes, span.From, err)
	}
	if calls := c.Calls("eth_getLogs"); calls != 2*hashedRange {
		t.Errorf("%d calls of eth_getLogs, want one per block and filter", calls)
	}
	// The block is replaced between the two batches: its logs are asked by the old
	// hash, so those of the new one cannot be taken for them.
	c.Inject(rpctest.Times(1, rpctest.On("eth_getLogs", func(rpctest.Call) *rpctest.Answer {
		c.Fork(2)
		c.Mine(c.Register(7, rpctest.Account(7), ""))
		c.MineEmpty(60)
		return &rpctest.Answer{Honest: true}
	})))
	again, err := n.Span(t.Context(), q)
	if err != nil || !reflect.DeepEqual(again.Logs, span.Logs) {
		t.Errorf("after a fork between header and logs: %d logs, %v", len(again.Logs), err)
	}
}

// BenchmarkSpan compares the reading of one large answer with go-ethereum's
// client, which decodes it several times over.
func BenchmarkSpan(b *testing.B) {
	h, err := synth.Open(b.Context(), b.TempDir(), synth.Spec{Shape: synth.Base, Seed: 1, Events: 20_000})
	if err != nil {
		b.Fatal(err)
	}
	server, err := synth.NewServer(h)
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(server)
	b.Cleanup(s.Close)
	ask := func() ([]rpc.BatchElem, *[]types.Log) {
		var logs []types.Log
		var first, last *jsonrpc.Header
		filter := map[string]any{"fromBlock": "0x64", "toBlock": "0x600"}
		return []rpc.BatchElem{byNumber(100, &first), byFilter(filter, &logs), byNumber(0x600, &last)}, &logs
	}
	measure := func(b *testing.B, call func(batch []rpc.BatchElem) error) {
		read := 0
		b.ReportAllocs()
		for b.Loop() {
			batch, logs := ask()
			if err := errors.Join(call(batch), batch[0].Error, batch[1].Error, batch[2].Error); err != nil {
				b.Fatal(err)
			}
			read += len(*logs)
		}
		b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "logs/s")
	}
	b.Run("node", func(b *testing.B) {
		n, err := New(s.URL, Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer n.Close()
		measure(b, func(batch []rpc.BatchElem) error { return n.BatchCallContext(b.Context(), batch) })
	})
	b.Run("go-ethereum", func(b *testing.B) {
		client, err := rpc.DialContext(b.Context(), s.URL)
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()
		measure(b, func(batch []rpc.BatchElem) error { return client.BatchCallContext(b.Context(), batch) })
	})
}

// An outage and a range too large have the same words at some proxies: the first
// time the range shrinks, from the second on it is an outage, until it is over.
func TestDoubtfulRefusal(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.MineEmpty(4)
	n := nodeOf(t, c, Options{})
	undo := c.Inject(rpctest.On("eth_getLogs", rpctest.Always(rpctest.Answer{
		Error: &rpctest.Error{Code: -32011, Message: "no backend is currently healthy to serve traffic"}})))
	for i, transient := range []bool{false, true, true} {
		if _, err := n.Span(t.Context(), queryOf(c, 1, 4, false)); err == nil || jsonrpc.IsTransient(err) != transient {
			t.Errorf("time %d: %v, want transient %t", i+1, err, transient)
		}
	}
	undo()
	if _, err := n.Span(t.Context(), queryOf(c, 1, 4, false)); err != nil {
		t.Error(err)
	}
}

// An answer with exactly as many logs as a provider gives at most is asked for
// again in shorter ranges; one block is believed.
func TestSuspiciousCount(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	for range 2 {
		logs := c.Register(0, rpctest.Account(1), "")
		for len(logs) < 1_000 {
			logs = append(logs, c.Feedback(0, rpctest.Account(2), uint64(len(logs)), 5, "")...)
		}
		c.Mine(logs)
		c.MineEmpty(1)
	}
	n := nodeOf(t, c, Options{})
	_, err := n.Span(t.Context(), queryOf(c, 1, 2, false))
	if err == nil || jsonrpc.IsTransient(err) || !strings.Contains(err.Error(), "exactly 1000 logs") {
		t.Errorf("1,000 logs of two blocks: %v", err)
	}
	for _, r := range [][2]uint64{{1, 1}, {1, 4}} {
		if _, err := n.Span(t.Context(), queryOf(c, r[0], r[1], false)); err != nil {
			t.Errorf("blocks %d..%d: %v", r[0], r[1], err)
		}
	}
}

// TestNodeSmallBatches: an endpoint that takes two calls in a request gets two.
func TestNodeSmallBatches(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]rpctest.Answer{
		"status": {Status: 400,
			Raw: []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Batch of more than 2 requests are not allowed on free tier"}}`)},
		"each one": {Error: &rpctest.Error{Code: -32003, Message: "batch too large"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rpctest.New(t, rpctest.Options{})
			c.MineEmpty(9)
			c.LimitBatch(2, refusal)
			n := nodeOf(t, c, Options{})
			if _, err := n.Span(t.Context(), queryOf(c, 1, 9, true)); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Heads(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
