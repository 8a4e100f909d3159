package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// TestJudgeWordings: how endpoints refuse eth_getLogs, and what is understood of
// it. The wordings are facts, seen in the wild; the last ones are invented.
func TestJudgeWordings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code    int
		message string
		data    string // JSON
		want    Fault
		blocks  uint64
	}{
		// Caps of blocks.
		{-32000, "requested too many blocks from 50331648 to 51380224, maximum is set to 2048", "", FaultRange, 2048},
		{-32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", "",
			FaultRange, 800},
		{-32005, "Maximum allowed number of requested blocks is 1000", "", FaultRange, 1000},
		{-32602, "range 1000000 exceeds limit of 10000", "", FaultRange, 10000},
		{-32600,
			"You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x1a30dfd, 0x1a30ff0]", "", FaultRange, 500},
		{-32600,
			"Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Upgrade to PAYG for expanded block range.", "", FaultRange, 10},
		{-32614, "eth_getLogs is limited to a 10,000 range", "", FaultRange, 10000},
		{-32614, "eth_getLogs is limited to a 5 range, upgrade from discover plan", "", FaultRange, 5},
		{-32000, "eth_getLogs is limited to a 1000 blocks range", "", FaultRange, 1000},
		{-32602, "eth_getLogs is limited to 0 - 50 blocks range", "", FaultRange, 50},
		{-32602,
			"eth_getLogs is limited to 1024 block range. Please check the parameter requirements at https://docs.example/2/3", "", FaultRange, 1024},
		{-32602, "Invalid params",
			`{"range":"the range 55074203 - 55124202 exceeds the range allowed for your plan (49999 > 2000)."}`,
			FaultRange,
			2000},
		{-32602, "Block range limit exceeded.", "", FaultRange, 0},
		{-32005, "please limit the query to at most 1000 blocks", "", FaultRange, 1000},
		{-32701, "exceed maximum block range: 50000", "", FaultRange, 50000},
		{-32000, "exceeded maximum block range: 5000", "", FaultRange, 5000},
		{-32602, "exceed maximum block range 5000", "", FaultRange, 5000},
		{-32602, "query exceeds max block range 100000", "", FaultRange, 100000},
		{-32602, "block range greater than 10000 max", "", FaultRange, 10000},
		{0, "block range exceeds 1000", "", FaultRange, 1000},
		{-32603, "eth_getLogs range is too large, max is 1k blocks", "", FaultRange, 1000},
		{-32000, "GetLogs query must be smaller than size 1024", "", FaultRange, 0},
		{-32603, "block range is too wide (maximum 1024)", "", FaultRange, 1024},
		{-32600, "block range is too wide", "", FaultRange, 0},
		{-32005, "up to a 2000 block range", "", FaultRange, 2000},
		{-32000, "maximum [from, to] blocks distance: 2000", "", FaultRange, 2000},
		{-32602, "exceed max block range: 5000", "", FaultRange, 5000},
		{35, "ranges over 10000 blocks are not supported on freetier", "", FaultRange, 10000},
		{35, "ranges over 10000 blocks are not supported on free plan", "", FaultRange, 10000},
		{0, "allowed block range threshold exceeded for eth_getLogs", "", FaultRange, 0},
		{0, "exceeded max allowed range", "", FaultRange, 0},
		{0, "range threshold exceeded", "", FaultRange, 0},
		{-32011, "no backend is currently healthy to serve traffic", "", FaultRange, 0},
		{-32062, "Block range is too large", "", FaultRange, 0},
		{0, "block range too large", "", FaultRange, 0},
		{0, "block range too large (2000), maximum allowed is 1000 blocks", "", FaultRange, 1000},
		{-32000, "block range too large, max range: 10000", "", FaultRange, 10000},
		{0, "eth_getLogs block range too large, range: 99991, max: 3500", "", FaultRange, 3500},
		{-32602, "query block range exceeds server limit, narrow your filter: 1000", "", FaultRange, 1000},
		{-32005, "Requested range exceeds maximum RPC range limit", "", FaultRange, 0},
		{-32000, "block range is larger than max block range, block range = 5120, max block range = 5000", "",
			FaultRange,
			5000},
		{-32000, "block range is bigger than maxBlockRange", "", FaultRange, 0},
		{-32602, "query exceeds range, retry smaller (max block range 5000, got 16777216)", "", FaultRange, 5000},
		{-32000, "too wide blocks range, the limit is 100", "", FaultRange, 100},
		{-32602, "invalid params", `{"payload":"range 9009594 is bigger than range limit 2000"}`, FaultRange, 2000},
		{-32602, "Invalid params",
			`"requested block range 16777217 exceeds the limit of 200; narrow your fromBlock/toBlock"`,
			FaultRange, 200},
		{-32012, "", `{"details":{"maxAllowedRange":16384}}`, FaultRange, 16384},
		{-32600, "block range too high", "", FaultRange, 0},
		// Caps of results, bytes and time: numbers are no blocks.
		{-32005, "query returned more than 10000 results. Try with this block range [0xBDE5F8, 0x102DBCC].", "",
			FaultRange,
			0x102dbcc - 0xbde5f8 + 1},
		{-32005, "query returned more than 10000 results", `{"from":"0x10","to":"0x1f","limit":10000}`, FaultRange, 16},
		{-32005, "query returned more than 10000 results", "", FaultRange, 0},
		{-32602, "Query returned more than 10000 results. Try with this block range [0x118dc91, 0x1198cc3].", "",
			FaultRange, 0x1198cc3 - 0x118dc91 + 1},
		{-32602, "invalid params",
			`"Query returned more than 50000 results. Try with this block range [0x1000000, 0x1080000]."`, FaultRange,
			0x80001},
		{-32602, "query exceeds max results 20000, retry with the range 6000000-6000509", "", FaultRange, 510},
		{-32000, "logs matched by query exceeds limit of 10000", "", FaultRange, 0},
		{-32602, "query returns too many logs, narrow your filter: 20000", "", FaultRange, 0},
		{0, "More than 50000 logs returned", "", FaultRange, 0},
		{-32000, "query returned more than allowed number of logs, try with smaller block range", "", FaultRange, 0},
		{-32000, "response size should not greater than 2097152 bytes", "", FaultRange, 0},
		{-32602,
			"Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. " +
				"Based on your parameters and the response size limit, this block range should work: [0x148aa7a, 0x148aa86]", "",
			FaultRange, 13},
		{0, "backend response too large", "", FaultRange, 0},
		{-32003, "response too large", "", FaultRange, 0},
		{0, "response is too big", "", FaultRange, 0},
		{-32000, "Query timeout exceeded. Consider reducing your block range.", "", FaultRange, 0},
		{-32002, "request timed out", "", FaultRange, 0},
		// What a shorter range does not cure.
		{-32005, "limit exceeded", "", FaultNoMethod, 0},
		{-32601, "Method not found", "", FaultNoMethod, 0},
		{-32601, "no such thing here", "", FaultNoMethod, 0},
		{-32601, "the method eth_getBlockReceipts does not exist/is not available", "", FaultNoMethod, 0},
		{-32701,
			"Please specify an address in your request or, to remove restrictions, order a dedicated full node here: …",
			"", FaultNoMethod, 0},
		{-32602, "Archive requests require a personal token. Get one at: …", "", FaultPruned, 0},
		{4444, "pruned history unavailable", "", FaultPruned, 0},
		{4444, "block range 0 to 5", "", FaultPruned, 0},
		{-32000, "block 5 data before txNum=2662500000 is not available here", "", FaultPruned, 0},
		{0, "height is not available (requested height: 138913957, base height: 155251499)", "", FaultPruned, 0},
		{-32602, "block range extends beyond current head block", "", FaultBehind, 0},
		{-32000, "requested to block is after last accepted block", "", FaultBehind, 0},
		{-32001, "8633830 could not be found", "", FaultBehind, 0},
		{-32019, "block is out of range", "", FaultBehind, 0},
		{-32000, "exceed max addresses or topics per search position", "", FaultNoMethod, 0},
		{-32000, "exceed max topics", "", FaultNoMethod, 0},
		{0, "cannot query unfinalized data", "", FaultBehind, 0},
		{0, "hash 0x12 is not currently canonical", "", FaultBehind, 0},
		{-32000, "unknown block", "", FaultBehind, 0},
		{429,
			"Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.", "", FaultRate, 0},
		{-32012, "credits limited to 6000/sec", "", FaultRate, 0},
		{-32005, "project ID request rate exceeded", "", FaultRate, 0},
		{-32005, "daily request count exceeded, request rate limited", "", FaultRate, 0},
		{-32005, "rate limit exceeded", "", FaultRate, 0},
		{-32005, "too much", `{"see":"Too Many Requests"}`, FaultRate, 0},
		{-32000, "invalid project id", "", FaultAuth, 0},
		// Invented: they must halve, and numbers may only lower.
		{-32000, "das ist zu viel", "", FaultRange, 0},
		{-32005, "please ask for fewer", `{"ceiling":"span of 300 blocks"}`, FaultRange, 300},
		{-32012, "the window of 9,999 blocks is wider than 1,024", "", FaultRange, 1024},
		{-32600, "", "", FaultRange, 0},
		{-32000, "range [1, 2, 3] \u0000 of nothing", `[[[[["deep"]]]]]`, FaultRange, 1},
		{-32000, "block range 99999999999999999999999 too large", "", FaultRange, 0},
	} {
		r := &Refusal{Code: tt.code, Message: tt.message, Data: json.RawMessage(tt.data)}
		got := Diagnose(fmt.Errorf("blocks 1..9: %w", r))
		if got.Fault != tt.want || got.Blocks != tt.blocks {
			t.Errorf("%d %q %s: %s, %d blocks; want %s, %d", tt.code, tt.message, tt.data, got.Fault, got.Blocks,
				tt.want,
				tt.blocks)
		}
		if halves := tt.want == FaultRange || tt.want == FaultMalformed; IsTransient(r) == halves {
			t.Errorf("%q: transient %t", tt.message, !halves)
		}
	}
}

func TestJudgeFailures(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, tt := range []struct {
		name string
		err  error
		want Diagnosis
	}{
		{"timeout", context.DeadlineExceeded, Diagnosis{Fault: FaultRange}},
		{"no answer in time", &ConnError{context.DeadlineExceeded, true}, Diagnosis{Fault: FaultRange}},
		{"no connection in time", &ConnError{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, true},
			Diagnosis{Fault: FaultTransient}},
		{"refused", &ConnError{dial, false}, Diagnosis{Fault: FaultTransient}},
		{"canceled", context.Canceled, Diagnosis{Fault: FaultTransient}},
		{"no block", ErrNoBlock, Diagnosis{Fault: FaultBehind}},
		{"megabytes", &Refusal{Message: strings.Repeat("no ", 1<<20) + "too many requests"}, Diagnosis{Fault: FaultRange}},
		{"megabytes of data", &Refusal{Message: "too many requests", Data: []byte(`{"a":"` + strings.Repeat("no ", 1<<20) +
			`pruned"}`)}, Diagnosis{Fault: FaultRate}},
		{"too large", tooLarge(5), Diagnosis{Fault: FaultRange}},
		{"odd answer", &AnswerError{"null"}, Diagnosis{Fault: FaultMalformed}},
		{"page about a rate", &AnswerError{"not JSON, in: <h1>Too many requests</h1>"}, Diagnosis{Fault: FaultRate}},
		{"429", &StatusError{429, 3 * time.Second, "no"}, Diagnosis{Fault: FaultRate, RetryAfter: 3 * time.Second}},
		{"429 with JSON-RPC", &Refusal{Code: -32000, Message: "no", Status: 429, Retry: time.Second},
			Diagnosis{Fault: FaultRate, RetryAfter: time.Second}},
		{"backoff in data", &Refusal{Message: "project ID request rate exceeded",
			Data: []byte(`{"rate":{"allowed_rps":1,"backoff_seconds":30}}`)},
			Diagnosis{Fault: FaultRate, RetryAfter: 30 * time.Second}},
		{"413", &StatusError{413, 0, "too large"}, Diagnosis{Fault: FaultRange}},
		{"500", &StatusError{500, 0, ""}, Diagnosis{Fault: FaultRange}},
		{"503", &StatusError{503, 0, "<html>"}, Diagnosis{Fault: FaultTransient}},
		{"401", &StatusError{401, 0, ""}, Diagnosis{Fault: FaultAuth}},
		{"301", &StatusError{301, 0, ""}, Diagnosis{Fault: FaultAuth}},
		{"of no kind", errors.New("what?"), Diagnosis{Fault: FaultRange}},
	} {
		if got := Diagnose(fmt.Errorf("span: %w", tt.err)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
