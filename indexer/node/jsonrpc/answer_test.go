package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/go-json-experiment/json/jsontext"
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
	for _, seed := range []string{`[]`, `null`, `[null]`, `{}`, `"0x"`, `[` + plainLog + `]`,
		`[` + plainLog + `,` + plainLog + `]`,
		`[` + strings.Replace(plainLog, `"0x64"`, `null`, 1) + `]`,
		`[` + strings.Replace(plainLog, `0x00ff`, ``, 1) + `]`,
		`[` + strings.Replace(plainLog, `0x00ff`, `0X00fF`, 1) + `]`,
		`[` + strings.Replace(plainLog, `0x7`, `0x07`, 1) + `]`,
		`[` + strings.Replace(plainLog, `false`, `null`, 1) + `]`,
		`[` + strings.Replace(plainLog, `"data"`, `"dat\u0061"`,
			1) + `]`,
		`[` + strings.Replace(plainLog, `"data"`, `"data":"0x","data"`, 1) + `]`,
		`[` + strings.Replace(plainLog, `"0x00ff"`, `7`, 1) + `]`,
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
		case err == nil && !slices.EqualFunc(ours, theirs,
			func(a, b types.Log) bool { return fmt.Sprint(a) == fmt.Sprint(b) }):
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
		for _, name := range []string{"address", "topics", "data", "blockNumber", "transactionHash", "blockHash",
			"logIndex"} {
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
		"topics null": strings.Replace(plainLog,
			`["0xc7f505b2f371ae2175ee4913f4499e1f2633a7b5936321eed1cdaeb6115181d2"]`, `null`, 1),
		"removed text": strings.Replace(plainLog, `false`, `"no"`, 1),
	}
	for name, raw := range refused {
		if logs, err := readLogs([]byte("[" + raw + "]")); err == nil {
			t.Errorf("%s: accepted %+v", name, logs)
		}
	}
	logs, err := readLogs([]byte(`[` + plainLog + `]`))
	if err != nil || len(logs) != 1 || logs[0].Index != 7 || len(logs[0].Topics) != 1 ||
		!bytes.Equal(logs[0].Data, []byte{0, 255}) {
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
	const one, two, three = `{"jsonrpc":"2.0","id":1,"result":[` + plainLog + `]}`,
		`{"jsonrpc":"2.0","id":2,"result":"0x5"}`, `{"jsonrpc":"2.0","id":3,"result":null}`
	tests := []struct {
		name, body string
		whole      string // part of the batch's error
		calls      [3]string
	}{
		{name: "in order", body: "[" + one + "," + two + "," + three + "]\n"},
		{name: "shuffled", body: "[" + three + "," + one + "," + two + "]"},
		{name: "id last", body: `[{"result":[` + plainLog +
			`],"id":1},{"result":"0x5","id":2,"jsonrpc":"2.0"},{"result":null,"id":3}]`},
		{name: "id as text", body: strings.ReplaceAll("["+one+","+two+","+three+"]", `"id":2`, `"id":"2"`)},
		{name: "error null", body: "[" + strings.Replace(one, `"result"`, `"error":null,"result"`,
			1) + "," + two + "," + three + "]"},
		{name: "missing", body: "[" + one + "," + three + "]", calls: [3]string{1: "no answer"}},
		{name: "empty", body: "[]", calls: [3]string{"no answer", "no answer", "no answer"}},
		{name: "refused", body: "[" + one + `,{"id":2,"error":{"code":-32005,"message":"slow down"}},` + three + "]",
			calls: [3]string{1: "slow down"}},
		{name: "refused as text", body: "[" + one + `,{"id":2,"error":"slow down"},` + three + "]",
			calls: [3]string{1: "slow down"}},
		{name: "code as text", body: "[" + one + `,{"id":2,"error":{"code":"-1","message":"slow down"}},` + three + "]",
			calls: [3]string{1: "slow down"}},
		{name: "neither", body: "[" + one + `,{"id":2},` + three + "]",
			calls: [3]string{1: "neither result nor error"}},
		{name: "bad log", body: "[" + strings.Replace(one, `"0x64"`, `[{"a":"b"}]`, 1) + "," + two + "," + three + "]",
			calls: [3]string{"string"}},
		{name: "bad log, id last", body: `[{"result":[{}],"id":1},` + two + "," + three + "]",
			calls: [3]string{"without address"}},
		{name: "logs are a text", body: `[{"id":1,"result":"0x"},` + two + "," + three + "]",
			calls: [3]string{"list of logs"}},
		{name: "logs are an object", body: `[{"id":1,"result":{"logs":[]}},` + two + "," + three + "]",
			calls: [3]string{"list of logs"}},
		{name: "twice", body: "[" + one + "," + two + "," + two + "]", whole: "twice"},
		{name: "two ids", body: `[{"id":1,"id":2,"result":[]}]`, whole: "two ids"},
		{name: "two results", body: `[{"id":1,"result":[],"result":[]}]`, whole: "two results"},
		{name: "other id", body: "[" + strings.Replace(one, `"id":1`, `"id":4`, 1) + "," + two + "," + three + "]",
			whole: "another call: id 4"},
		{name: "odd id", body: "[" + strings.Replace(one, `"id":1`, `"id":{}`, 1) + "," + two + "," + three + "]",
			whole: "another call"},
		{name: "null id", body: `[{"id":null,"error":{"code":-32600,"message":"batch too large"}}]`,
			whole: "batch too large"},
		{name: "single error", body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"rate limit"}}`,
			whole: "rate limit"},
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
				var h *Header
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
					if got := fmt.Sprint(batch[i].Error); want == "" != (batch[i].Error == nil) ||
						!strings.Contains(got, want) {
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
		var h *Header
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

// A receipt without what every receipt has is refused before a million more of them
// are in memory.
func TestEmptyReceiptsTakeNoMemory(t *testing.T) {
	body := `{"jsonrpc":"2.0","id":1,"result":[` + strings.Repeat(`{},`, 1<<20) + `{}]}`
	var receipts []*ReceiptJSON
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	batch := []rpc.BatchElem{{Result: &receipts}}
	if err := readAnswers(strings.NewReader(body), batch); err != nil || batch[0].Error == nil {
		t.Fatalf("%v, of the call %v", err, batch[0].Error)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 10*uint64(len(body)) {
		t.Errorf("%d bytes of JSON took %d", len(body), took)
	}
}
