package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/indexer/node/jsonrpc"
	"repute/internal/livedin"
	"repute/internal/rpctest"
)

// Every block of a real chain is proven by its receipts, in one call or, where the
// node has no method for it, transaction by transaction.
func TestReceiptsProveBlocks(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	d := rpctest.NewProxy(t, dn.RPCURL())
	n := nodeOn(t, d.URL)
	for _, refused := range []string{"", "eth_getBlockReceipts"} {
		d.Refuse(refused)
		for number := uint64(1); number < dn.Head().Number; number += 3 {
			headers, err := n.SealedBlocks(t.Context(), []uint64{number})
			if err != nil {
				t.Fatal(err)
			}
			e, err := n.Receipts(t.Context(), headers[0].Block, nil)
			if err != nil || !e.Proven {
				t.Fatalf("block %d, without %q: proven %t, %v", number, refused, e.Proven, err)
			}
			logs, err := n.LogsOf(t.Context(), []common.Hash{headers[0].Hash}, nil)
			if err != nil || len(logs[0]) != len(e.Logs) {
				t.Fatalf("block %d has %d logs by hash and %d in its receipts, %v", number, len(logs[0]),
					len(e.Logs), err)
			}
			for i := range e.Logs {
				if !SameLog(e.Logs[i], logs[0][i]) {
					t.Errorf("block %d, log %d: %+v, by hash %+v", number, i, e.Logs[i], logs[0][i])
				}
			}
		}
	}
	if d.Count("eth_getTransactionReceipt") == 0 {
		t.Error("no receipt was asked for by its transaction")
	}
}

// Receipts that lack a log, or have one too many, prove nothing.
func TestReceiptsThatLieAreUnproven(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	b := c.Mine(c.Register(0, rpctest.Account(1), "https://a"), c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
	d := rpctest.NewProxy(t, c.URL())
	n := nodeOn(t, d.URL)
	block := repute.Block{Number: b.Number(), Hash: b.Hash()}
	for lost := range uint(5) {
		d.Lose(func(l types.Log) bool { return l.Index == lost }, true, true)
		if e, err := n.Receipts(t.Context(), block, nil); e.Proven || (err == nil) != (lost == 4) {
			t.Errorf("without log %d: proven %t, %v; only the last one is not missed by counting", lost, e.Proven, err)
		}
	}
	d.Lose(nil, false, false)
	if e, err := n.Receipts(t.Context(), block, nil); err != nil || !e.Proven {
		t.Errorf("all of it: proven %t, %v", e.Proven, err)
	}
	if _, err := n.Receipts(t.Context(), repute.Block{Number: 7, Hash: b.Hash()}, nil); err == nil {
		t.Error("the receipts of a block of another number were taken")
	}
}

// Every call for receipts is accounted for before it is made.
func TestReceiptsAreCharged(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	b := c.Mine(c.Register(0, rpctest.Account(1), "https://a"), c.Feedback(0, rpctest.Account(2), 1, 5, "x"),
		c.Feedback(0, rpctest.Account(3), 1, 5, "x"))
	for _, refused := range []string{"", "eth_getBlockReceipts"} {
		d := rpctest.NewProxy(t, c.URL())
		d.Refuse(refused)
		spent := 0
		_, err := nodeOn(t, d.URL).Receipts(t.Context(), repute.Block{Number: b.Number(), Hash: b.Hash()},
			func(_ context.Context, calls int) error {
				spent += calls
				return nil
			})
		made := d.Count("eth_getBlockByNumber") + d.Count("eth_getBlockReceipts") + d.Count("eth_getTransactionReceipt")
		if err != nil || spent != made || made < 2 {
			t.Errorf("without %q: %d calls made, %d accounted for, %v", refused, made, spent, err)
		}
	}
}

// The root commits neither to the block it came with nor to where a log stands.
func TestReceiptsThatForgeAreUnproven(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	b := c.Mine(c.Register(0, rpctest.Account(1), "https://a"), c.Feedback(0, rpctest.Account(2), 1, 5, "x"))
	d := rpctest.NewProxy(t, c.URL())
	n := nodeOn(t, d.URL)
	block := repute.Block{Number: b.Number(), Hash: b.Hash()}
	root := func(_ rpctest.ProxyCall, a map[string]json.RawMessage) {
		if bytes.Contains(a["result"], []byte("receiptsRoot")) {
			a["result"] = rpctest.Edited(a["result"], map[string]string{"receiptsRoot": common.Hash{7}.Hex()})
		}
	}
	for name, lie := range map[string]func(rpctest.ProxyCall, map[string]json.RawMessage){"another root": root,
		"a log more and its root": rpctest.Inventing(t, b, c.Feedback(0, rpctest.Account(66), 1, 100, "invented")[0])} {
		d.Lie = lie
		if e, err := n.Receipts(t.Context(), block, nil); err != nil || e.Proven {
			t.Errorf("%s: proven %t, %v", name, e.Proven, err)
		}
	}
	for _, field := range []string{"logIndex", "transactionIndex"} {
		d.Lie = rpctest.InReceipts(func(_ int, logs []json.RawMessage) []json.RawMessage {
			for i := range logs {
				logs[i] = rpctest.Edited(logs[i], map[string]string{field: "0x64"})
			}
			return logs
		})
		if e, err := n.Receipts(t.Context(), block, nil); err == nil {
			t.Errorf("another %s: taken, proven %t", field, e.Proven)
		}
	}
}

// readReceipts reads receipts as an endpoint's answer is read.
func readReceipts(t *testing.T, text string) []*jsonrpc.ReceiptJSON {
	t.Helper()
	var list []*jsonrpc.ReceiptJSON
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`+text+`}`)
	}))
	defer s.Close()
	n, err := New(s.URL, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.CallContext(t.Context(), &list, "eth_getBlockReceipts"); err != nil {
		t.Fatal(err)
	}
	return list
}

// The first transactions of a public block of an OP Stack chain (Unichain Sepolia,
// 35,535,698) with the root its sequencer published for them: a deposit's nonce and
// version are part of its receipt. Before that upgrade they were not.
func TestDepositReceipts(t *testing.T) {
	t.Parallel()
	block := common.Hash{7}
	receipts := func(deposit string) []*jsonrpc.ReceiptJSON {
		return readReceipts(t,
			fmt.Sprintf(`[{"type":"0x7e","status":"0x1","cumulativeGasUsed":"0xb41c","logs":[],"blockHash":"%[1]s","transactionHash":"%[2]s"%[3]s},
			{"type":"0x2","status":"0x1","cumulativeGasUsed":"0x10994","logs":[],"blockHash":"%[1]s","transactionHash":"%[2]s"}]`, block, common.Hash{}, deposit))
	}
	published := common.HexToHash("0x91d8ad10740ccfc1bd848fba0e02668d95769c08eeea30f10698692ba86c6159")
	proven := func(list []*jsonrpc.ReceiptJSON, root common.Hash) bool {
		s := Sealed{Block: repute.Block{Hash: block}, Root: root, Txs: make([]common.Hash, len(list)), Recomputed: true}
		e, err := newEvidence(s, list)
		if err != nil {
			t.Fatal(err)
		}
		return e.Proven
	}
	if !proven(receipts(`,"depositNonce":"0x21e3b52","depositReceiptVersion":"0x1"`), published) {
		t.Error("a published root is not that of its receipts")
	}
	if proven(receipts(`,"depositNonce":"0x21e3b53","depositReceiptVersion":"0x1"`), published) {
		t.Error("another nonce gives the same root")
	}
	if jsonrpc.ReceiptsRoot(receipts(`,"depositNonce":"0x21e3b52"`)) != jsonrpc.ReceiptsRoot(receipts("")) {
		t.Error("a deposit without version has its nonce in the root")
	}
}

// What a node lacks is told from what a contract refuses.
func TestCallsTellWhatIsMissing(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	n := nodeOn(t, dn.RPCURL())
	head := dn.Head()
	views := contracts.NewViews()
	good, bad := views.OwnerOf(rpctest.Token(0)), views.OwnerOf(rpctest.Token(99))
	calls := []Call{{dn.Chain().Identity, good.Data}, {dn.Chain().Identity, bad.Data}, {common.Address{1}, good.Data}}
	results, err := n.Calls(t.Context(), head, calls)
	if err != nil {
		t.Fatal(err)
	}
	if owner, err := good.Read(results[0].Data); err != nil || owner != dn.Account(0).Address {
		t.Errorf("owner %s, %v", owner, err)
	}
	if !errors.Is(results[1].Err, ErrReverted) || results[2].Err != nil || len(results[2].Data) != 0 {
		t.Errorf("an unknown agent: %v; no contract: %+v", results[1].Err, results[2])
	}
	for name, c := range map[string]struct {
		at   repute.Block
		want error
	}{
		"a block to come": {repute.Block{Number: head.Number + 10}, ErrNoState},
		"another block":   {repute.Block{Number: head.Number, Hash: common.Hash{1}}, ErrMoved},
	} {
		if _, err := n.Calls(t.Context(), c.at, calls); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for _, words := range []string{"missing trie node 0x12 (path ) state 0x34 is not available", "header not found",
		"historical state 0xab is not available", "required historical state unavailable (reexec=128)",
		"state is pruned",
		"distance to target block exceeds maximum proof window", "Archive node required"} {
		if !jsonrpc.LacksState(errors.New(words)) {
			t.Errorf("%q is not taken for missing state", words)
		}
	}
	if jsonrpc.LacksState(errors.New("execution reverted: Not authorized")) ||
		!strings.Contains(ErrNoState.Error(), "state") {
		t.Error("a revert is taken for missing state")
	}
}
