package synth

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/contracts"
	"repute/internal/chainserver"
)

// served is a server with a go-ethereum client.
type served struct {
	*chainserver.Server
	*ethclient.Client
	url string
}

func serve(t testing.TB, h *History) served {
	t.Helper()
	s, err := NewServer(h)
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
	s := serve(t, h)
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

// Lines hold what go-ethereum's own encoder writes of a log.
func TestLines(t *testing.T) {
	h := get(t)
	for _, l := range stored(t, h, 0, h.Head())[:200] {
		var ours, theirs map[string]any
		raw, err := json.Marshal(l)
		if err != nil || json.Unmarshal(raw, &theirs) != nil {
			t.Fatal(err)
		}
		line := strings.TrimSuffix(string(appendLine(nil, &l)), lineEnd)
		if err := json.Unmarshal([]byte(line), &ours); err != nil || !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("%v, want %v: %v", ours, theirs, err)
		}
	}
	if _, err := parseLines([]byte("{")); err == nil {
		t.Error("parsed half a line")
	}
}

func TestFilters(t *testing.T) {
	h := get(t)
	s := serve(t, h)
	all := stored(t, h, 0, h.Head())
	feedback, transfer := contracts.Topic(repute.KindNewFeedback), contracts.Topic(repute.KindTransfer)
	token := common.BigToHash(big.NewInt(3))
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
	s := serve(t, h)
	if id, err := s.ChainID(t.Context()); err != nil || id.Uint64() != Chain().ID {
		t.Errorf("chain %v, %v", id, err)
	}
	for tag, want := range map[rpc.BlockNumber]uint64{rpc.LatestBlockNumber: h.Head(), rpc.SafeBlockNumber: h.safe(),
		rpc.FinalizedBlockNumber: h.finalized(), 0: 0, deployBlock: deployBlock} {
		header, err := s.HeaderByNumber(t.Context(), big.NewInt(int64(tag)))
		if err != nil || header.Number.Uint64() != want {
			t.Fatalf("%s: %v, %v", tag, header, err)
		}
		if _, hash, err := h.Header(want); err != nil || header.Hash() != hash {
			t.Errorf("%s: hash %s, want %s, %v", tag, header.Hash(), hash, err)
		}
	}
	last := new(big.Int).SetUint64(h.LastEvent())
	header, err := s.HeaderByNumber(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.TransactionCount(t.Context(), header.Hash()) // a method that no node of ours has
	if err == nil {
		t.Errorf("an unknown method counted %d", n)
	}
	receipts, err := s.BlockReceipts(t.Context(), rpc.BlockNumberOrHashWithHash(header.Hash(), true))
	if err != nil || len(receipts) == 0 {
		t.Fatalf("%d receipts, %v", len(receipts), err)
	}
	checkReceipts(t, h, header, receipts)
	var block struct{ Transactions []common.Hash }
	err = s.Client.Client().CallContext(t.Context(), &block, "eth_getBlockByHash", header.Hash(), false)
	if err != nil || len(block.Transactions) != len(receipts) || block.Transactions[0] != receipts[0].TxHash {
		t.Errorf("by hash: %+v, %v", block, err)
	}
	if _, err := s.HeaderByNumber(t.Context(), new(big.Int).SetUint64(h.Head()+1)); err != ethereum.NotFound {
		t.Errorf("block above the head: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	h := get(t)
	s := serve(t, h)
	for what, q := range map[string]ethereum.FilterQuery{
		"block range extends beyond current head": query(h.Head(), h.Head()+1),
		"invalid block range params":              query(5, 4),
		"unknown block":                           {BlockHash: &common.Hash{1}},
	} {
		if _, err := s.FilterLogs(t.Context(), q); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// One batch may hold a header, a range answered from the file, a filtered range
// and a failure.
func TestBatch(t *testing.T) {
	h := get(t)
	s := serve(t, h)
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

// A lossy server leaves out what Lost names, and only where more than one block is asked for.
func TestLossy(t *testing.T) {
	h := get(t)
	s := serve(t, h)
	if err := h.LoseLogs(s.Server); err != nil {
		t.Fatal(err)
	}
	lost, err := h.lost()
	if err != nil {
		t.Fatal(err)
	}
	kinds, perBlock, all := map[repute.EventKind]bool{}, map[uint64]int{}, stored(t, h, 0, h.Head())
	for _, l := range all {
		if lost[Position{l.BlockNumber, uint64(l.Index)}] {
			kinds[h.enc.kindOf(l.Topics[0])] = true
			perBlock[l.BlockNumber]++
		}
	}
	if len(kinds) < 12 || len(lost) > 100 {
		t.Errorf("%d logs of %d kinds", len(lost), len(kinds))
	}
	for _, span := range [][2]uint64{{0, h.Head()}, {200, 500}} {
		var want []types.Log
		for _, l := range all {
			if l.BlockNumber >= span[0] && l.BlockNumber <= span[1] && !lost[Position{l.BlockNumber, uint64(l.Index)}] {
				want = append(want, l)
			}
		}
		same(t, fmt.Sprint(span), s.logs(t, query(span[0], span[1])), want)
	}
	whole := 0
	for number, n := range perBlock {
		honest := stored(t, h, number, number)
		same(t, "single block", s.logs(t, query(number, number)), honest)
		if len(honest) == n {
			whole++
		}
	}
	if whole == 0 || whole == len(perBlock) {
		t.Errorf("%d of %d blocks are lost entirely", whole, len(perBlock))
	}
}
