package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/go-json-experiment/json/jsontext"

	"repute/internal/rpctest"
	"repute/internal/synth"
)

const plainLog = `{"address":"0x8004a169fb4a3325136eb29fa0ceb6d2e539a432","topics":["0xc7f505b2f371ae2175ee4913f4499e1f2633a7b5936321eed1cdaeb6115181d2"],` +
	`"data":"0x00ff","blockNumber":"0x64","transactionHash":"0xe53507075120aa8106548251f65dfa32f53b1ee5c35e6036c0f6222f2714f996","transactionIndex":"0x2",` +
	`"blockHash":"0xb5b528ac330c58f057b6216f619012defa68e5e67d4e07ce9803764c1d1b3e5e","blockTimestamp":"0x6970cd08","logIndex":"0x7","removed":false}`

func readLogs(raw []byte) ([]types.Log, error) {
	r := objectReader{dec: jsontext.NewDecoder(bytes.NewReader(raw), lenient()...)}
	list, err := r.logs()
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows")
	}
	return list, nil
}

// FuzzLogs holds the reader of logs against encoding/json: what it accepts that
// accepts too, with the same logs, and what it refuses that refuses too, unless
// the log is of no mined block or of more topics than a log can have.
func FuzzLogs(f *testing.F) {
	for _, seed := range []string{`[]`, `null`, `[null]`, `{}`, `"0x"`, `[` + plainLog + `]`, `[` + plainLog + `,` + plainLog + `]`,
		`[` + strings.Replace(plainLog, `"0x64"`, `null`, 1) + `]`, `[` + strings.Replace(plainLog, `0x00ff`, ``, 1) + `]`,
		`[` + strings.Replace(plainLog, `0x00ff`, `0X00fF`, 1) + `]`, `[` + strings.Replace(plainLog, `0x7`, `0x07`, 1) + `]`,
		`[` + strings.Replace(plainLog, `false`, `null`, 1) + `]`, `[` + strings.Replace(plainLog, `"data"`, `"dat\u0061"`, 1) + `]`,
		`[` + strings.Replace(plainLog, `"data"`, `"data":"0x","data"`, 1) + `]`, `[` + strings.Replace(plainLog, `"0x00ff"`, `7`, 1) + `]`,
		`[` + strings.Replace(plainLog, `{`, `{"extra":[{"a":[1,2]}],`, 1) + `]`, `[` + plainLog[:100]} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ours, err := readLogs(raw)
		var theirs []types.Log
		err2 := json.Unmarshal(raw, &theirs)
		switch {
		case err == nil && err2 != nil:
			t.Fatalf("accepted %q, encoding/json: %v", raw, err2)
		case err == nil && !slices.EqualFunc(ours, theirs, SameLog):
			t.Fatalf("read %+v from %q, encoding/json %+v", ours, raw, theirs)
		case err != nil && err2 == nil && whole(raw, theirs):
			t.Fatalf("refused %q: %v", raw, err)
		}
	})
}

// whole tells logs that must be accepted: with what every log of a mined block
// has, under names written as nodes write them.
func whole(raw []byte, logs []types.Log) bool {
	var members []map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	for i, l := range logs {
		for _, name := range []string{"address", "topics", "data", "blockNumber", "transactionHash", "blockHash", "logIndex"} {
			if value, ok := members[i][name]; !ok || string(value) == "null" {
				return false
			}
		}
		if len(l.Topics) > maxTopics {
			return false
		}
	}
	// A repeated or differently written name is read by encoding/json as the same.
	return bytes.Count(raw, []byte(`\`)) == 0 && !repeats(raw)
}

// repeats tells objects that name a member twice, in any case of letters.
func repeats(raw []byte) bool {
	lower := jsontext.NewDecoder(bytes.NewReader(bytes.ToLower(raw)), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := lower.ReadToken(); err != nil {
			return !errors.Is(err, io.EOF)
		}
	}
}

func TestReadLogs(t *testing.T) {
	t.Parallel()
	refused := map[string]string{
		"null":           "[null]",
		"no address":     strings.Replace(plainLog, `"address"`, `"from"`, 1),
		"no block":       strings.Replace(plainLog, `"0x64"`, `null`, 1),
		"no index":       strings.Replace(plainLog, `"logIndex"`, `"index"`, 1),
		"short address":  strings.Replace(plainLog, `a432"`, `a4"`, 1),
		"odd data":       strings.Replace(plainLog, `0x00ff`, `0x0ff`, 1),
		"data no hex":    strings.Replace(plainLog, `0x00ff`, `0x00fg`, 1),
		"data no prefix": strings.Replace(plainLog, `0x00ff`, `00ff`, 1),
		"data number":    strings.Replace(plainLog, `"0x00ff"`, `255`, 1),
		"leading zero":   strings.Replace(plainLog, `"0x7"`, `"0x07"`, 1),
		"empty number":   strings.Replace(plainLog, `"0x7"`, `"0x"`, 1),
		"huge number":    strings.Replace(plainLog, `"0x7"`, `"0x10000000000000000"`, 1),
		"topic null":     strings.Replace(plainLog, `["0xc7`, `[null,"0xc7`, 1),
		"topics null":    strings.Replace(plainLog, `["0xc7f505b2f371ae2175ee4913f4499e1f2633a7b5936321eed1cdaeb6115181d2"]`, `null`, 1),
		"removed text":   strings.Replace(plainLog, `false`, `"no"`, 1),
	}
	for name, raw := range refused {
		if logs, err := readLogs([]byte("[" + raw + "]")); err == nil {
			t.Errorf("%s: accepted %+v", name, logs)
		}
	}
	logs, err := readLogs([]byte(`[` + plainLog + `]`))
	if err != nil || len(logs) != 1 || logs[0].Index != 7 || len(logs[0].Topics) != 1 || !bytes.Equal(logs[0].Data, []byte{0, 255}) {
		t.Errorf("read %+v, %v", logs, err)
	}
	if logs, err = readLogs([]byte("null")); err != nil || logs != nil {
		t.Errorf("null: %v, %v", logs, err)
	}
	if logs, err = readLogs([]byte("[]")); err != nil || logs == nil {
		t.Errorf("none: %v, %v", logs, err)
	}
}

// A log that is kept must not keep the others: pieces of slabs end where they
// end, and large ones stand alone.
func TestLogsDoNotShare(t *testing.T) {
	t.Parallel()
	large := strings.Replace(plainLog, `0x00ff`, `0x`+strings.Repeat("ab", slabBytes), 1)
	logs, err := readLogs([]byte(`[` + plainLog + `,` + large + `,` + plainLog + `]`))
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range logs {
		if cap(l.Data) != len(l.Data) || cap(l.Topics) != len(l.Topics) {
			t.Errorf("log %d: an append would write into the next one: %d of %d", i, len(l.Data), cap(l.Data))
		}
	}
	_ = append(logs[0].Data, 9)
	if !bytes.Equal(logs[2].Data, []byte{0, 255}) {
		t.Error("the logs share their data")
	}
}

// TestReadAnswers: every way an answer can be wrong is an error of the batch or
// of the call concerned, and the other calls are answered.
func TestReadAnswers(t *testing.T) {
	t.Parallel()
	const one, two, three = `{"jsonrpc":"2.0","id":1,"result":[` + plainLog + `]}`, `{"jsonrpc":"2.0","id":2,"result":"0x5"}`, `{"jsonrpc":"2.0","id":3,"result":null}`
	tests := []struct {
		name, body string
		whole      string // part of the batch's error
		calls      [3]string
	}{
		{name: "in order", body: "[" + one + "," + two + "," + three + "]\n"},
		{name: "shuffled", body: "[" + three + "," + one + "," + two + "]"},
		{name: "id last", body: `[{"result":[` + plainLog + `],"id":1},{"result":"0x5","id":2,"jsonrpc":"2.0"},{"result":null,"id":3}]`},
		{name: "id as text", body: strings.ReplaceAll("["+one+","+two+","+three+"]", `"id":2`, `"id":"2"`)},
		{name: "error null", body: "[" + strings.Replace(one, `"result"`, `"error":null,"result"`, 1) + "," + two + "," + three + "]"},
		{name: "missing", body: "[" + one + "," + three + "]", calls: [3]string{1: "no answer"}},
		{name: "empty", body: "[]", calls: [3]string{"no answer", "no answer", "no answer"}},
		{name: "refused", body: "[" + one + `,{"id":2,"error":{"code":-32005,"message":"slow down"}},` + three + "]", calls: [3]string{1: "slow down"}},
		{name: "refused as text", body: "[" + one + `,{"id":2,"error":"slow down"},` + three + "]", calls: [3]string{1: "slow down"}},
		{name: "code as text", body: "[" + one + `,{"id":2,"error":{"code":"-1","message":"slow down"}},` + three + "]", calls: [3]string{1: "slow down"}},
		{name: "neither", body: "[" + one + `,{"id":2},` + three + "]", calls: [3]string{1: "neither result nor error"}},
		{name: "bad log", body: "[" + strings.Replace(one, `"0x64"`, `[{"a":"b"}]`, 1) + "," + two + "," + three + "]", calls: [3]string{"string"}},
		{name: "bad log, id last", body: `[{"result":[{}],"id":1},` + two + "," + three + "]", calls: [3]string{"without address"}},
		{name: "logs are a text", body: `[{"id":1,"result":"0x"},` + two + "," + three + "]", calls: [3]string{"list of logs"}},
		{name: "logs are an object", body: `[{"id":1,"result":{"logs":[]}},` + two + "," + three + "]", calls: [3]string{"list of logs"}},
		{name: "twice", body: "[" + one + "," + two + "," + two + "]", whole: "twice"},
		{name: "two ids", body: `[{"id":1,"id":2,"result":[]}]`, whole: "two ids"},
		{name: "two results", body: `[{"id":1,"result":[],"result":[]}]`, whole: "two results"},
		{name: "other id", body: "[" + strings.Replace(one, `"id":1`, `"id":4`, 1) + "," + two + "," + three + "]", whole: "another call: id 4"},
		{name: "odd id", body: "[" + strings.Replace(one, `"id":1`, `"id":{}`, 1) + "," + two + "," + three + "]", whole: "another call"},
		{name: "null id", body: `[{"id":null,"error":{"code":-32600,"message":"batch too large"}}]`, whole: "batch too large"},
		{name: "single error", body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"rate limit"}}`, whole: "rate limit"},
		{name: "no JSON-RPC", body: `{"message":"Too many requests"}`, whole: "Too many requests"},
		{name: "no id", body: `[{"result":[]}]`, whole: "without id"},
		{name: "null", body: `null`, whole: "null instead of answers"},
		{name: "list of null", body: `[null]`, whole: "null instead of an answer"},
		{name: "text", body: `"busy"`, whole: "string instead of answers"},
		{name: "nothing", body: ``, whole: "ends too early"},
		{name: "HTML", body: `<html>`, whole: "not JSON"},
		{name: "truncated", body: "[" + one[:200], whole: "ends too early"},
		{name: "cut between", body: "[" + one + ",", whole: "ends too early"},
		{name: "broken inside", body: strings.Replace("["+one+"]", `"data":`, `"data";`, 1), whole: "not JSON"},
		{name: "two documents", body: "[" + one + "," + two + "," + three + "][]", whole: "more follows"},
	}
	for _, tt := range tests {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, "/", slow), func(t *testing.T) {
				t.Parallel()
				var logs []types.Log
				var number string
				var h *header
				batch := []rpc.BatchElem{{Result: &logs}, {Result: &number}, {Result: &h}}
				var body io.Reader = strings.NewReader(tt.body)
				if slow {
					body = iotest.OneByteReader(body)
				}
				err := readAnswers(body, batch)
				if tt.whole != "" {
					if err == nil || !strings.Contains(err.Error(), tt.whole) {
						t.Fatalf("batch: %v, want %q", err, tt.whole)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for i, want := range tt.calls {
					if got := fmt.Sprint(batch[i].Error); want == "" != (batch[i].Error == nil) || !strings.Contains(got, want) {
						t.Errorf("call %d: %s, want %q", i+1, got, want)
					}
				}
				if tt.calls[0] == "" && len(logs) != 1 || tt.calls[1] == "" && number != "0x5" || h != nil {
					t.Errorf("read %d logs, %q and %v", len(logs), number, h)
				}
			})
		}
	}
}

// FuzzAnswers: whatever arrives, reading ends without a panic, and a call is
// either answered or has an error.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`[{"id":1,"result":[` + plainLog + `]},{"id":2,"result":{"number":"0x1"}}]`))
	f.Add([]byte(`[{"result":{"hash":7},"id":2},{"id":1,"error":{"code":1,"data":{"range":"1 > 2"}}}]`))
	f.Add([]byte(`{"id":null,"error":"busy"}`))
	f.Add([]byte(`[{"id":1,"result":[{"a":[{"b":[]}],"topics":[{}]}]},{"id":2,"result":[[[`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var logs []types.Log
		var h *header
		batch := []rpc.BatchElem{{Result: &logs}, {Result: &h}}
		if readAnswers(bytes.NewReader(raw), batch) != nil {
			return
		}
		if batch[0].Error != nil || batch[1].Error != nil {
			return
		}
		if !json.Valid(bytes.ToValidUTF8(raw, nil)) {
			t.Fatalf("accepted %q", raw)
		}
	})
}

// TestStatusWithAnswer: a body that is JSON-RPC counts under any status, and
// what HTTP said is kept beside it.
func TestStatusWithAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		want   string
	}{
		{413, `[{"id":1,"error":{"code":-32614,"message":"eth_getLogs is limited to a 10,000 range"}}]`, "limited to a 10,000 range"},
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
		var said *rpcRefusal
		if errors.As(err, &said) && (said.status != tt.status || said.retry.Seconds() != 7) {
			t.Errorf("status %d: the refusal says %d and retry %s", tt.status, said.status, said.retry)
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
	q.Anywhere = q.Topics[:1]
	span, err := n.Span(t.Context(), q)
	if err != nil || len(span.Logs) == 0 || len(span.Headers) != hashedRange || len(span.Sealed) != hashedRange || span.Bytes == 0 || span.From != strings.TrimPrefix(c.URL(), "http://") {
		t.Fatalf("%d logs, %d headers, %d blooms, %d bytes from %s: %v", len(span.Logs), len(span.Headers), len(span.Sealed), span.Bytes, span.From, err)
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
	server, err := synth.NewServer(h, synth.Mode{})
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(server)
	b.Cleanup(s.Close)
	ask := func() ([]rpc.BatchElem, *[]types.Log) {
		var logs []types.Log
		var first, last *header
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
