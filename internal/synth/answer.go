package synth

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// dispatch answers one call with a value to marshal or a *body.
func (s *Server) dispatch(c call) (any, error) {
	switch c.Method {
	case "eth_chainId":
		return hexutil.Uint64(chainID), nil
	case "net_version":
		return fmt.Sprint(chainID), nil
	case "eth_blockNumber":
		return hexutil.Uint64(s.h.Head()), nil
	case "eth_syncing":
		return false, nil
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		return s.block(c)
	case "eth_getBlockReceipts":
		return s.receipts(c)
	case "eth_getLogs":
		return s.logs(c)
	case "eth_call":
		return s.call(c)
	case "eth_getStorageAt":
		return s.storage(c)
	}
	return nil, &rpcError{Code: -32601, Message: fmt.Sprintf("the method %s does not exist/is not available", c.Method)}
}

// param reads the i-th parameter; a missing one leaves the value alone.
func (c call) param(i int, into any) error {
	if i >= len(c.Params) {
		return nil
	}
	if err := json.Unmarshal(c.Params[i], into); err != nil {
		return &rpcError{Code: -32602, Message: fmt.Sprintf("invalid argument %d: %v", i, err)}
	}
	return nil
}

// blockRef is a block by tag, number or hash, in any of the forms of EIP-1898.
type blockRef struct {
	tag  string
	hash *common.Hash
}

// UnmarshalJSON reads a string or an object.
func (r *blockRef) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &r.tag); err == nil {
		if len(r.tag) == 2+2*common.HashLength {
			hash := common.HexToHash(r.tag)
			r.hash = &hash
		}
		return nil
	}
	var object struct {
		BlockHash   *common.Hash `json:"blockHash"`
		BlockNumber string       `json:"blockNumber"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return fmt.Errorf("block reference: %w", err)
	}
	r.tag, r.hash = object.BlockNumber, object.BlockHash
	return nil
}

// resolve finds the block's number; false when the chain has no such block.
func (h *History) resolve(r blockRef) (uint64, bool) {
	if r.hash != nil {
		return h.numberOf(*r.hash)
	}
	switch r.tag {
	case "", "latest", "pending":
		return h.Head(), true
	case "safe":
		return h.Safe(), true
	case "finalized":
		return h.Finalized(), true
	case "earliest":
		return 0, true
	}
	n, err := hexutil.DecodeUint64(r.tag)
	return n, err == nil && n <= h.Head()
}

func (s *Server) block(c call) (any, error) {
	var ref blockRef
	var full bool
	if err := c.param(0, &ref); err != nil {
		return nil, err
	}
	if err := c.param(1, &full); err != nil {
		return nil, err
	}
	number, ok := s.h.resolve(ref)
	if !ok {
		return nil, nil
	}
	return s.blockJSON(number, full)
}

func (s *Server) blockJSON(number uint64, full bool) (any, error) {
	b, parent, _, err := s.h.neighbors(number)
	if err != nil {
		return nil, err
	}
	header, err := json.Marshal(b.header(number, parent, s.h.meta.Spec.Seed))
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", number, err)
	}
	rest := blockMembers{Uncles: []common.Hash{}, Size: hexutil.Uint64(1_000 + 200*uint64(b.txs))}
	if rest.Transactions, err = s.transactions(number, b, full); err != nil {
		return nil, err
	}
	beside, err := json.Marshal(rest)
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", number, err)
	}
	return json.RawMessage(slices.Concat(header[:len(header)-1], []byte(","), beside[1:])), nil
}

// blockMembers are the members of a block that are not part of its header.
type blockMembers struct {
	Uncles          []common.Hash  `json:"uncles"`
	Size            hexutil.Uint64 `json:"size"`
	TotalDifficulty hexutil.Uint64 `json:"totalDifficulty"`
	Transactions    any            `json:"transactions"`
}

// transactions lists hashes, or whole transactions.
func (s *Server) transactions(number uint64, b block, full bool) (any, error) {
	if b.txs == 0 {
		return []common.Hash{}, nil
	}
	if !full {
		return s.h.transactionHashes(number)
	}
	receipts, err := s.h.Receipts(number)
	if err != nil {
		return nil, err
	}
	list := make([]any, len(receipts))
	for i, r := range receipts {
		if list[i], err = txJSON(chainTx(b.firstTx+uint64(i), r.Logs[0].Address), r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// sender is who sent a transaction; nobody signed it.
func sender(tx common.Hash) common.Address { return common.BytesToAddress(tx[:]) }

func txJSON(tx *types.Transaction, r *types.Receipt) (any, error) {
	raw, err := tx.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("transaction: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("transaction: %w", err)
	}
	fields["from"], fields["blockHash"] = sender(r.TxHash), r.BlockHash
	fields["blockNumber"], fields["transactionIndex"] = (*hexutil.Big)(r.BlockNumber), hexutil.Uint(r.TransactionIndex)
	return fields, nil
}

func (s *Server) receipts(c call) (any, error) {
	var ref blockRef
	if err := c.param(0, &ref); err != nil {
		return nil, err
	}
	number, ok := s.h.resolve(ref)
	if !ok {
		return nil, nil
	}
	receipts, err := s.h.Receipts(number)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(receipts))
	for i, r := range receipts {
		raw, err := json.Marshal(r)
		if err != nil {
			return nil, fmt.Errorf("receipt: %w", err)
		}
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("receipt: %w", err)
		}
		out[i]["from"], out[i]["to"], out[i]["contractAddress"] = sender(r.TxHash), r.Logs[0].Address, nil
		out[i]["effectiveGasPrice"] = hexutil.Uint64(7)
	}
	return out, nil
}

// logs answers eth_getLogs.
func (s *Server) logs(c call) (any, error) {
	var q filter
	if err := c.param(0, &q); err != nil {
		return nil, err
	}
	from, to, err := s.blockRange(&q)
	if err != nil {
		return nil, err
	}
	start, end, err := s.h.lineSpan(from, to)
	if err != nil {
		return nil, err
	}
	runs := []part{{start: start, end: end}}
	if from < to {
		runs = without(start, end, s.cuts)
	}
	if q.everything(s.h.enc) {
		return whole(runs), nil
	}
	q.prepare()
	return picked(runs, &q), nil
}

// blockRange applies the rules and refusals of nodes to the blocks asked for.
func (s *Server) blockRange(q *filter) (from, to uint64, err error) {
	if q.BlockHash != nil {
		n, ok := s.h.numberOf(*q.BlockHash)
		if !ok {
			return 0, 0, &rpcError{Code: -32000, Message: "unknown block"}
		}
		return n, n, nil
	}
	from, ok := s.h.resolve(q.FromBlock)
	to, ok2 := s.h.resolve(q.ToBlock)
	switch {
	case !ok || !ok2:
		return 0, 0, &rpcError{Code: -32602, Message: "block range extends beyond current head block"}
	case from > to:
		return 0, 0, &rpcError{Code: -32602, Message: "invalid block range params"}
	case s.mode.RangeLimit > 0 && to-from+1 > s.mode.RangeLimit:
		return 0, 0, &rpcError{Code: -32614,
			Message: "eth_getLogs is limited to a " + thousands(s.mode.RangeLimit) + " range"}
	}
	return from, to, nil
}

// thousands writes 10000 as 10,000.
func thousands(n uint64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

// without cuts the lost lines out of a run.
func without(start, end uint64, cuts []cut) []part {
	var runs []part
	for _, c := range cuts {
		if c.end <= start || c.start >= end {
			continue
		}
		if c.start > start {
			runs = append(runs, part{start: start, end: c.start})
		}
		start = c.end
	}
	if start < end {
		runs = append(runs, part{start: start, end: end})
	}
	return runs
}

// whole makes an array of all lines of the runs.
func whole(runs []part) *body {
	runs = slices.DeleteFunc(runs, func(p part) bool { return p.start == p.end })
	if len(runs) == 0 {
		return &body{parts: []part{{raw: []byte("[]")}}}
	}
	runs[len(runs)-1].end -= uint64(len(lineEnd))
	return &body{parts: slices.Concat([]part{{raw: []byte("[")}}, runs, []part{{raw: []byte("]")}})}
}

// picked makes an array of the lines that match.
func picked(runs []part, q *filter) *body {
	for i := range runs {
		runs[i].filter = q
	}
	return &body{parts: slices.Concat([]part{{raw: []byte("[")}}, runs, []part{{raw: []byte("]")}})}
}
