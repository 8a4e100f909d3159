package synth

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/internal/chainserver"
)

// NewServer returns a server that answers as a node of the history's chain. The history must stay open.
func NewServer(h *History) (*chainserver.Server, error) {
	abis, err := newABIs()
	return chainserver.Serve(&node{h, abis}, chainserver.Options{}), err
}

// node is the history as its server sees it.
type node struct {
	h    *History
	abis registryABIs
}

// find returns the number of a block. It reports false where the chain has no such block.
func (h *History) find(r chainserver.Ref) (uint64, bool) {
	if hash, ok := r.Hash(); ok {
		return h.numberOf(hash)
	}
	return chainserver.Tags{Head: h.Head(), Safe: h.safe(), Finalized: h.finalized()}.Number(r.BlockNumber)
}

// Block implements chainserver.Chain.
func (n *node) Block(r chainserver.Ref) (*chainserver.Block, *chainserver.Error) {
	number, ok := n.h.find(r)
	if !ok {
		return nil, nil
	}
	header, _, err := n.h.Header(number)
	if err != nil {
		return nil, chainserver.Internal(err)
	}
	return &chainserver.Block{Header: header,
		Transactions: func() ([]common.Hash, error) { return n.h.transactionHashes(number) },
		Receipts:     func() (types.Receipts, error) { return n.h.Receipts(number) }}, nil
}

// Logs implements chainserver.Chain. Questions for everything are answered from the file of logs.
func (n *node) Logs(q *chainserver.Query, decoded bool) (any, *chainserver.Error) {
	from, to, fail := n.blockRange(q)
	if fail != nil {
		return nil, fail
	}
	start, end, err := n.h.lineSpan(from, to)
	if err != nil {
		return nil, chainserver.Internal(err)
	}
	registries := []common.Address{identityAddress, reputationAddress, validationAddress}
	if !decoded && q.MatchesAll(registries, n.h.enc.topics[1:]) {
		return n.h.stream(start, end), nil
	}
	logs, err := n.h.logsBetween(start, end)
	if err != nil {
		return nil, chainserver.Internal(err)
	}
	found := []types.Log{}
	for _, l := range logs {
		if q.Matches(l) {
			found = append(found, *l)
		}
	}
	return found, nil
}

// stream is an array of the lines between two places in the file.
func (h *History) stream(start, end uint64) *chainserver.Stream {
	length := max(0, int64(end-start)-int64(len(lineEnd)))
	return &chainserver.Stream{Size: length + 2, Write: func(w io.Writer) (int64, error) {
		if _, err := io.WriteString(w, "["); err != nil {
			return 0, err
		}
		f, err := os.Open(filepath.Join(h.dir, logsFile))
		if err != nil {
			return 1, err
		}
		defer f.Close()
		if _, err := f.Seek(int64(start), io.SeekStart); err != nil {
			return 1, err
		}
		n, err := io.CopyN(w, f, length)
		if err != nil {
			return 1 + n, err
		}
		_, err = io.WriteString(w, "]")
		return n + 2, err
	}}
}

// blockRange applies the rules and refusals of nodes to the blocks that are asked for.
func (n *node) blockRange(q *chainserver.Query) (from, to uint64, fail *chainserver.Error) {
	if q.BlockHash != nil {
		number, ok := n.h.numberOf(*q.BlockHash)
		if !ok {
			return 0, 0, chainserver.Errorf(-32000, "unknown block")
		}
		return number, number, nil
	}
	from, ok := n.h.find(q.FromBlock)
	to, ok2 := n.h.find(q.ToBlock)
	switch {
	case !ok || !ok2:
		return 0, 0, chainserver.Errorf(-32602, "block range extends beyond current head block")
	case from > to:
		return 0, 0, chainserver.Errorf(-32602, "invalid block range params")
	}
	return from, to, nil
}

// Other implements chainserver.Chain.
func (n *node) Other(c *chainserver.Call) (any, *chainserver.Error) {
	switch c.Method {
	case "eth_chainId":
		return hexutil.Uint64(chainID), nil
	case "eth_call":
		return n.call(c)
	case "eth_getStorageAt":
		return n.storage(c)
	}
	return nil, chainserver.NotFound(c.Method)
}

// LoseLogs makes a server of the history leave the logs of lost out of answers about more than one
// block. Questions about single blocks and receipts are answered honestly.
func (h *History) LoseLogs(s *chainserver.Server) error {
	lost, err := h.lost()
	s.MapRanges(func(logs []types.Log) []types.Log {
		return slices.DeleteFunc(logs, func(l types.Log) bool { return lost[Position{l.BlockNumber, uint64(l.Index)}] })
	})
	return err
}

// lost returns the logs that LoseLogs leaves out: one of every kind of event, the newest feedback,
// and of four blocks all logs, the first, the middle one and the last.
func (h *History) lost() (map[Position]bool, error) {
	lost := map[Position]bool{h.meta.Tail: true}
	for kind, at := range h.meta.Marks {
		if kind < repute.KindUpgraded {
			lost[at] = true
		}
	}
	for i := range uint64(4) {
		number, n, err := h.someBlock(h.meta.LastEvent * (i + 1) / 5)
		if err != nil {
			return nil, fmt.Errorf("choose logs to lose: %w", err)
		}
		first, last := uint64(0), n-1
		if i > 0 {
			first = (n - 1) * (i - 1) / 2
			last = first
		}
		for log := first; log <= last; log++ {
			lost[Position{number, log}] = true
		}
	}
	return lost, nil
}

// someBlock returns the next block with three to ten logs, or the last one with any, and how many it has.
func (h *History) someBlock(from uint64) (number, logs uint64, err error) {
	for number = from; ; number++ {
		b, _, _, err := h.neighbors(number)
		if err != nil || b.logs >= 3 && b.logs <= 10 || number == h.meta.LastEvent {
			return number, uint64(b.logs), err
		}
	}
}
