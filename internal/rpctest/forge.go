package rpctest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// changeLogs changes the logs in an answer that is a list of receipts.
func changeLogs(raw json.RawMessage, change func(tx int, logs []json.RawMessage) []json.RawMessage) json.RawMessage {
	var receipts []map[string]json.RawMessage
	if json.Unmarshal(raw, &receipts) != nil {
		return raw
	}
	for i, r := range receipts {
		var logs []json.RawMessage
		_ = json.Unmarshal(r["logs"], &logs)
		r["logs"], _ = json.Marshal(change(i, logs))
	}
	out, _ := json.Marshal(receipts)
	return out
}

// InReceipts is a lie about the logs of all blocks' receipts.
func InReceipts(change func(tx int, logs []json.RawMessage) []json.RawMessage) func(ProxyCall,
	map[string]json.RawMessage) {
	return func(c ProxyCall, a map[string]json.RawMessage) {
		if c.Method == "eth_getBlockReceipts" {
			a["result"] = changeLogs(a["result"], change)
		}
	}
}

// Edited sets fields of an object.
func Edited(raw json.RawMessage, set map[string]string) json.RawMessage {
	var l map[string]json.RawMessage
	_ = json.Unmarshal(raw, &l)
	for k, v := range set {
		l[k], _ = json.Marshal(v)
	}
	out, _ := json.Marshal(l)
	return out
}

// IndexesPlus is a lie about where logs stand: each so many places further on.
func IndexesPlus(n uint64) func(ProxyCall, map[string]json.RawMessage) {
	return InReceipts(func(_ int, logs []json.RawMessage) []json.RawMessage {
		for i := range logs {
			var l types.Log
			_ = json.Unmarshal(logs[i], &l)
			logs[i] = Edited(logs[i], map[string]string{"logIndex": hexutil.EncodeUint64(uint64(l.Index) + n)})
		}
		return logs
	})
}

// Inventing is a lie about one block: a log more in its last receipt, and the
// receipts root that goes with it, under the block's true hash.
func Inventing(t *testing.T, b *Block, invented types.Log) func(ProxyCall, map[string]json.RawMessage) {
	t.Helper()
	last := len(b.Receipts) - 1
	invented.BlockNumber, invented.BlockHash, invented.TxHash = b.Number(), b.Hash(), b.Receipts[last].TxHash
	invented.TxIndex, invented.Index = uint(last), uint(len(b.Logs()))
	one, err := json.Marshal(invented)
	if err != nil {
		t.Fatal(err)
	}
	add := func(tx int, logs []json.RawMessage) []json.RawMessage {
		if tx == last {
			return append(logs, one)
		}
		return logs
	}
	receipts := slices.Clone(b.Receipts)
	forged := *receipts[last]
	forged.Logs = append(slices.Clone(forged.Logs), &invented)
	forged.Bloom = types.CreateBloom(&forged)
	receipts[last] = &forged
	root := types.DeriveSha(receipts, trie.NewStackTrie(nil))
	return func(call ProxyCall, a map[string]json.RawMessage) {
		switch call.Method {
		case "eth_getBlockReceipts":
			if strings.Contains(string(call.Params[0]), b.Hash().Hex()) {
				a["result"] = changeLogs(a["result"], add)
			}
		case "eth_getBlockByNumber", "eth_getBlockByHash":
			if strings.Contains(string(a["result"]), `"hash":"`+b.Hash().Hex()) {
				a["result"] = Edited(a["result"], map[string]string{"receiptsRoot": root.Hex()})
			}
		}
	}
}
