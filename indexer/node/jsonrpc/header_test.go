package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// A header of any fork is the hash of its fields; one with a field that nobody knows is
// not, and says so, and one whose field was altered is not, and does not say so.
func TestHeadersOfEveryFork(t *testing.T) {
	t.Parallel()
	hash, number := common.Hash{7}, uint64(5)
	h := types.Header{Number: big.NewInt(9), Difficulty: big.NewInt(3), Time: 77, Extra: []byte("x"), GasLimit: 1,
		GasUsed: 1,
		Nonce:   types.BlockNonce{1}, MixDigest: hash, Coinbase: common.Address{2}}
	forks := []func(){
		func() {},
		func() { h.BaseFee = big.NewInt(7) },
		func() { h.WithdrawalsHash = &hash },
		func() { h.BlobGasUsed, h.ExcessBlobGas, h.ParentBeaconRoot = &number, new(uint64), &hash },
		func() { h.RequestsHash = &hash },
		func() { h.BlockAccessListHash, h.SlotNumber = &hash, &number },
	}
	for i, add := range forks {
		add()
		refusal := headerJSON(t, &h, map[string]any{"totalDifficulty": "0x1", "size": "0x200", "uncles": []string{},
			"withdrawals": []any{map[string]string{"index": "0x1"}}})
		if s := readHeader(t, refusal); !recomputed(s) || s.Unknown || *s.Timestamp != 77 || *s.Number != 9 {
			t.Errorf("fork %d: %+v", i, s)
		}
	}
	if s := readHeader(t, headerJSON(t, &h, map[string]any{"nextForkField": "0x1"})); !recomputed(s) || !s.Unknown {
		t.Errorf("with a field nobody knows that is no part of the hash: %+v", s)
	}
	if s := readHeader(t,
		headerJSON(t, &h, map[string]any{"hash": common.Hash{1}, "nextForkField": "0x1"})); recomputed(s) ||
		!s.Unknown {
		t.Errorf("with a field nobody knows: %+v", s)
	}
	for _, field := range []string{"timestamp", "gasLimit", "number", "excessBlobGas", "slotNumber"} {
		if s := readHeader(t, headerJSON(t, &h, map[string]any{field: "0x1234", "hash": h.Hash()})); recomputed(s) ||
			s.Unknown {
			t.Errorf("with another %s: %+v", field, s)
		}
	}
	if s := readHeader(t,
		headerJSON(t, &h, map[string]any{"logsBloom": types.Bloom{1}, "hash": h.Hash()})); recomputed(s) {
		t.Errorf("with another bloom: %+v", s)
	}
}

// headerJSON writes a header as a node does.
func headerJSON(t *testing.T, h *types.Header, more map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(h)
	refusal := map[string]any{}
	if err == nil {
		err = json.Unmarshal(raw, &refusal)
	}
	for k, v := range more {
		refusal[k] = v
	}
	if err == nil {
		raw, err = json.Marshal(map[string]any{"id": 1, "result": refusal})
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func readHeader(t *testing.T, answer []byte) *Header {
	t.Helper()
	var h *Header
	batch := []rpc.BatchElem{{Result: &h}}
	if err := readAnswers(bytes.NewReader(answer), batch); err != nil || batch[0].Error != nil {
		t.Fatal(err, batch[0].Error)
	}
	return h
}

// recomputed reports whether the hash of a header is that of its fields.
func recomputed(h *Header) bool { return h.Own == *h.Hash }
