package synth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/contracts"
)

// served is a server with a go-ethereum client.
type served struct {
	*Server
	*ethclient.Client
	url string
}

func serve(t testing.TB, h *History, m Mode) served {
	t.Helper()
	s, err := NewServer(h, m)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	client, err := ethclient.Dial(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return served{s, client, srv.URL}
}

// query asks for everything the registries emit, as an indexer does.
func query(from, to uint64) ethereum.FilterQuery {
	return ethereum.FilterQuery{FromBlock: new(big.Int).SetUint64(from), ToBlock: new(big.Int).SetUint64(to),
		Addresses: []common.Address{identityAddress, reputationAddress, validationAddress},
		Topics:    [][]common.Hash{contracts.Topics()}}
}

func (s served) logs(t testing.TB, q ethereum.FilterQuery) []types.Log {
	t.Helper()
	logs, err := s.FilterLogs(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return logs
}

// stored reads what the history holds, with go-ethereum's own decoder.
func stored(t testing.TB, h *History, from, to uint64) []types.Log {
	t.Helper()
	start, end, err := h.lineSpan(from, to)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := h.read(start, end)
	if err != nil {
		t.Fatal(err)
	}
	var logs []types.Log
	if err := json.Unmarshal([]byte("["+strings.TrimSuffix(string(raw), lineEnd)+"]"), &logs); err != nil {
		t.Fatal(err)
	}
	return logs
}

func same(t *testing.T, what string, got, want []types.Log) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d logs, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: log %d is %+v, want %+v", what, i, got[i], want[i])
		}
	}
}

func TestRangeIsItsBlocks(t *testing.T) {
	h := get(t)
	s := serve(t, h, Mode{})
	for _, span := range [][2]uint64{{0, h.Head()}, {deployBlock, deployBlock}, {0, 99}, {200, 350},
		{h.LastEvent(), h.Head()}} {
		whole := s.logs(t, query(span[0], span[1]))
		same(t, fmt.Sprint(span), whole, stored(t, h, span[0], span[1]))
		var parts []types.Log
		for n := span[0]; n <= span[1] && n < span[0]+100; n++ {
			_, hash, err := h.Header(n)
			if err != nil {
				t.Fatal(err)
			}
			byHash := query(0, 0)
			byHash.FromBlock, byHash.ToBlock, byHash.BlockHash = nil, nil, &hash
			same(t, "by hash", s.logs(t, byHash), s.logs(t, query(n, n)))
			parts = append(parts, s.logs(t, query(n, n))...)
		}
		same(t, "block by block", parts, stored(t, h, span[0], min(span[1], span[0]+99)))
	}
	if logs := stored(t, h, 0, h.Head()); len(logs) != small.Events {
		t.Errorf("%d logs", len(logs))
	}
}

func TestParseLine(t *testing.T) {
	h := get(t)
	want := stored(t, h, 0, h.Head())
	i := 0
	for _, r := range records(t, h) {
		if !reflect.DeepEqual(r.Log, want[i]) {
			t.Fatalf("log %d is %+v, want %+v", i, r.Log, want[i])
		}
		i++
	}
	for _, bad := range []string{"", "{}", lineHead + "00"} {
		if _, err := parseLine([]byte(bad)); err == nil {
			t.Errorf("parsed %q", bad)
		}
	}
}

func TestFilters(t *testing.T) {
	h := get(t)
	s := serve(t, h, Mode{})
	all := stored(t, h, 0, h.Head())
	feedback, transfer := contracts.Topic(repute.KindNewFeedback), contracts.Topic(repute.KindTransfer)
	token := tokenTopic(3)
	for name, q := range map[string]ethereum.FilterQuery{
		"one address":     {Addresses: []common.Address{validationAddress}},
		"two topics":      {Topics: [][]common.Hash{{feedback, transfer}}},
		"an agent":        {Topics: [][]common.Hash{{feedback}, {token}}},
		"second position": {Topics: [][]common.Hash{{}, {token}}},
		"fourth position": {Topics: [][]common.Hash{{transfer}, nil, nil, {token}}},
		"nothing":         {Addresses: []common.Address{{1}}},
		"no filter":       {},
	} {
		q.FromBlock, q.ToBlock = new(big.Int), new(big.Int).SetUint64(h.Head())
		var want []types.Log
		for _, l := range all {
			if matches(&q, &l) {
				want = append(want, l)
			}
		}
		same(t, name, s.logs(t, q), want)
	}
}

func matches(q *ethereum.FilterQuery, l *types.Log) bool {
	in := func(list []common.Hash, h common.Hash) bool {
		for _, x := range list {
			if x == h {
				return true
			}
		}
		return len(list) == 0
	}
	if len(q.Addresses) > 0 && q.Addresses[0] != l.Address {
		return false
	}
	for i, wanted := range q.Topics {
		if i >= len(l.Topics) || !in(wanted, l.Topics[i]) {
			return false
		}
	}
	return true
}

func TestBlocksOverRPC(t *testing.T) {
	h := get(t)
	s := serve(t, h, Mode{})
	if id, err := s.ChainID(t.Context()); err != nil || id.Uint64() != Chain().ID {
		t.Errorf("chain %v, %v", id, err)
	}
	for tag, want := range map[rpc.BlockNumber]uint64{rpc.LatestBlockNumber: h.Head(), rpc.SafeBlockNumber: h.Safe(),
		rpc.FinalizedBlockNumber: h.Finalized(), 0: 0, deployBlock: deployBlock} {
		header, err := s.HeaderByNumber(t.Context(), big.NewInt(int64(tag)))
		if err != nil || header.Number.Uint64() != want {
			t.Fatalf("%s: %v, %v", tag, header, err)
		}
		if _, hash, err := h.Header(want); err != nil || header.Hash() != hash {
			t.Errorf("%s: hash %s, want %s, %v", tag, header.Hash(), hash, err)
		}
	}
	last := new(big.Int).SetUint64(h.LastEvent())
	block, err := s.BlockByNumber(t.Context(), last) // full transactions
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := s.BlockReceipts(t.Context(), rpc.BlockNumberOrHashWithHash(block.Hash(), true))
	if err != nil || len(receipts) != len(block.Transactions()) || len(receipts) == 0 {
		t.Fatalf("%d receipts for %d transactions, %v", len(receipts), len(block.Transactions()), err)
	}
	checkReceipts(t, h, block.Header(), receipts)
	if byHash, err := s.BlockByHash(t.Context(), block.Hash()); err != nil || byHash.Hash() != block.Hash() {
		t.Errorf("by hash: %v", err)
	}
	if _, err := s.HeaderByNumber(t.Context(), new(big.Int).SetUint64(h.Head()+1)); err != ethereum.NotFound {
		t.Errorf("block above the head: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	h := get(t)
	s := serve(t, h, Mode{RangeLimit: 500})
	for what, q := range map[string]ethereum.FilterQuery{
		"limited to a 500 range":                  query(0, 500),
		"block range extends beyond current head": query(h.Head(), h.Head()+1),
		"invalid block range params":              query(5, 4),
		"unknown block":                           {BlockHash: &common.Hash{1}},
	} {
		if _, err := s.FilterLogs(t.Context(), q); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.logs(t, query(0, 499))
	for n, want := range map[uint64]string{7: "7", 10_000: "10,000", 1_000_050: "1,000,050"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %s", n, got)
		}
	}
	for body, code := range map[string]string{"{": "-32700", "[]": "-32600", `{"id":1,"method":"eth_odd"}`: "-32601",
		`{"id":1,"method":"eth_getLogs","params":[7]}`: "-32602"} {
		resp, err := http.Post(s.url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(raw), code) || !json.Valid(raw) {
			t.Errorf("%s answered %s, %v", body, raw, err)
		}
	}
}

// One batch may hold a header, a range answered from the file, a filtered range
// and a failure.
func TestBatch(t *testing.T) {
	h := get(t)
	s := serve(t, h, Mode{RangeLimit: 5_000})
	var head *types.Header
	var everything, some []types.Log
	filter := func(from, to uint64, topics ...common.Hash) map[string]any {
		return map[string]any{"fromBlock": fmt.Sprintf("%#x", from), "toBlock": fmt.Sprintf("%#x", to),
			"topics": [][]common.Hash{topics}}
	}
	batch := []rpc.BatchElem{
		{Method: "eth_getBlockByNumber", Args: []any{"latest", false}, Result: &head},
		{Method: "eth_getLogs", Args: []any{filter(0, 400, contracts.Topics()...)}, Result: &everything},
		{Method: "eth_getLogs", Args: []any{filter(0, 400, contracts.Topic(repute.KindTransfer))}, Result: &some},
		{Method: "eth_getLogs", Args: []any{filter(3, 2)}, Result: &some},
	}
	if err := s.Client.Client().BatchCallContext(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if batch[0].Error != nil || batch[1].Error != nil || batch[2].Error != nil || batch[3].Error == nil {
		t.Fatalf("%+v", batch)
	}
	same(t, "range", everything, stored(t, h, 0, 400))
	if head.Number.Uint64() != h.Head() || len(some) == 0 || len(some) >= len(everything) {
		t.Errorf("head %v, %d of %d logs", head.Number, len(some), len(everything))
	}
	stats := s.Stats()
	if stats.Calls["eth_getLogs"] != 3 || stats.Calls["eth_getBlockByNumber"] != 1 || stats.Requests != 1 ||
		stats.Bytes == 0 {
		t.Errorf("%+v", stats)
	}
}

func TestLossy(t *testing.T) {
	h := get(t)
	s := serve(t, h, Mode{Lossy: true})
	lost, err := h.Lost()
	if err != nil {
		t.Fatal(err)
	}
	gone, kinds := map[Position]bool{}, map[repute.EventKind]bool{}
	for _, at := range lost {
		gone[at], kinds[at.Kind] = true, true
	}
	if len(lost) != len(gone) || len(kinds) < 12 || len(lost) > 100 {
		t.Errorf("%d logs of %d kinds", len(lost), len(kinds))
	}
	all := stored(t, h, 0, h.Head())
	for _, span := range [][2]uint64{{0, h.Head()}, {200, 500}, {lost[0].Block, lost[0].Block + 1}} {
		var want []types.Log
		for _, l := range all {
			at := Position{l.BlockNumber, uint64(l.Index), h.enc.kindOf(l.Topics[0])}
			if l.BlockNumber >= span[0] && l.BlockNumber <= span[1] && !gone[at] {
				want = append(want, l)
			}
		}
		same(t, fmt.Sprint(span), s.logs(t, query(span[0], span[1])), want)
	}
	filtered := query(0, h.Head())
	filtered.Topics = [][]common.Hash{{contracts.Topic(repute.KindNewFeedback)}}
	if got := len(s.logs(t, filtered)); got >= h.Counts()["NewFeedback"] {
		t.Errorf("a filtered range has all %d ratings", got)
	}
	for _, at := range lost {
		same(t, "single block", s.logs(t, query(at.Block, at.Block)), stored(t, h, at.Block, at.Block))
	}
}

func TestLossyWholeBlock(t *testing.T) {
	h := get(t)
	lost, err := h.Lost()
	if err != nil {
		t.Fatal(err)
	}
	perBlock := map[uint64]int{}
	for _, at := range lost {
		perBlock[at.Block]++
	}
	whole := 0
	for number, n := range perBlock {
		if b, _, _, err := h.neighbors(number); err != nil || int(b.logs) == n {
			whole++
		}
	}
	if whole == 0 || whole == len(perBlock) {
		t.Errorf("%d of %d blocks are lost entirely", whole, len(perBlock))
	}
}

func TestRateLimit(t *testing.T) {
	s := serve(t, get(t), Mode{PerSecond: 5})
	limited := 0
	for range 50 {
		resp, err := http.Post(s.url, "application/json", strings.NewReader(`{"id":1,"method":"eth_chainId"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			limited++
			if resp.Header.Get("Retry-After") == "" {
				t.Fatal("no Retry-After")
			}
		}
	}
	if stats := s.Stats(); limited == 0 || int64(limited) != stats.Limited || stats.Requests != int64(50-limited) {
		t.Errorf("%d limited, %+v", limited, stats)
	}
}

func TestLatency(t *testing.T) {
	const latency = 30 * time.Millisecond
	s := serve(t, get(t), Mode{Latency: latency})
	start := time.Now()
	if _, err := s.ChainID(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < latency {
		t.Errorf("answered after %s", took)
	}
}

// A run that the file does not hold breaks the connection off.
func TestBrokenAnswer(t *testing.T) {
	for name, p := range map[string]part{
		"known length":   {start: 1 << 50, end: 1<<50 + 10},
		"unknown length": {raw: []byte("[1")},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b := body{parts: []part{p}}
			if p.raw != nil {
				b.parts = append(b.parts, part{end: 10, filter: &filter{}})
			}
			if _, err := b.send(w, t.TempDir()); err != nil {
				abort(w)
			}
		}))
		resp, err := http.Get(srv.URL)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		srv.Close()
		if err == nil {
			t.Errorf("%s: taken for whole", name)
		}
	}
}

func TestModeText(t *testing.T) {
	for _, text := range []string{"clean", "lossy", "range=10000", "range=10,rate=50,latency=20ms,lossy"} {
		m, err := ParseMode(text)
		if err != nil || m.String() != text {
			t.Errorf("%s became %s, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "fast", "range=x", "rate=-1", "latency=3"} {
		if _, err := ParseMode(text); err == nil {
			t.Errorf("%q is a mode", text)
		}
	}
}

func TestServeEnds(t *testing.T) {
	h := get(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h, Mode{}) }()
	url := "http://" + l.Addr().String()
	resp, err := http.Post(url, "application/json", bytes.NewReader([]byte(`{"id":7,"method":"eth_blockNumber"}`)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp, err = http.Get(url + "/stats"); err != nil {
		t.Fatal(err)
	}
	var stats Stats
	err = json.NewDecoder(resp.Body).Decode(&stats)
	resp.Body.Close()
	if err != nil || stats.Calls["eth_blockNumber"] != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("served until the end: %v", err)
	}
}
