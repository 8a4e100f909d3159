package indexer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// errForked: the range asked for does not continue the indexed chain.
var errForked = errors.New("the node's chain does not contain the indexed block")

// continues proves that the piece's first block is the child of the cursor.
func (p *piece) continues(cursor repute.Block) error {
	if cursor.Hash != (common.Hash{}) && p.first.Parent != cursor.Hash {
		return fmt.Errorf("block %d has parent %s, indexed is %s: %w", p.first.Number, p.first.Parent, cursor.Hash, errForked)
	}
	return nil
}

// check proves that a span answers q, and brings its logs into order. Exact
// repetitions of a log are dropped; anything else that does not hold together
// refuses the whole span.
func (s *Span) check(q Query) error {
	byNumber, err := s.checkHeaders(q)
	if err != nil {
		return err
	}
	slices.SortStableFunc(s.Logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	s.Logs = slices.CompactFunc(s.Logs, sameLog)
	blockOf := make(map[common.Hash]uint64, len(byNumber))
	for number, hash := range byNumber {
		blockOf[hash] = number
	}
	for i := range s.Logs {
		l := &s.Logs[i]
		if err := checkLog(l, &q, byNumber); err != nil {
			return err
		}
		if other, known := blockOf[l.BlockHash]; known && other != l.BlockNumber {
			return badLog(l, fmt.Sprintf("of the hash of block %d", other))
		}
		blockOf[l.BlockHash] = l.BlockNumber
		if i > 0 && s.Logs[i-1].BlockNumber == s.Logs[i].BlockNumber && s.Logs[i-1].Index == s.Logs[i].Index {
			return badLog(&s.Logs[i], "two different logs at this position")
		}
	}
	return nil
}

// checkHeaders gives the hash of every block known by header.
func (s *Span) checkHeaders(q Query) (map[uint64]common.Hash, error) {
	if len(s.Headers) == 0 || s.Headers[0].Number != q.From || s.Headers[len(s.Headers)-1].Number != q.To {
		return nil, &answerError{"headers of the range's ends are missing"}
	}
	hashes := make(map[uint64]common.Hash, len(s.Headers))
	for i, h := range s.Headers {
		hashes[h.Number] = h.Hash
		if i > 0 && s.Headers[i-1].Number+1 == h.Number && s.Headers[i-1].Hash != h.Parent {
			return nil, &answerError{fmt.Sprintf("block %d is not the child of block %d", h.Number, h.Number-1)}
		}
	}
	if q.Linked && uint64(len(hashes)) != q.To-q.From+1 {
		return nil, &answerError{"headers are missing"}
	}
	return hashes, nil
}

// checkLog also records the hash of a block first seen in a log, so that all
// logs of a block must agree.
func checkLog(l *types.Log, q *Query, hashes map[uint64]common.Hash) error {
	known, ok := hashes[l.BlockNumber]
	switch {
	case l.Removed:
		return badLog(l, "marked removed")
	case !inBlock(l):
		return badLog(l, fmt.Sprintf("of an impossible place, transaction %d of the block", l.TxIndex))
	case l.BlockNumber < q.From || l.BlockNumber > q.To:
		return badLog(l, fmt.Sprintf("outside %d..%d", q.From, q.To))
	case !q.wants(l):
		return badLog(l, "of an address or topic not asked for: "+l.Address.Hex())
	case l.BlockHash == (common.Hash{}):
		return badLog(l, "without block hash")
	case ok && known != l.BlockHash:
		return badLog(l, fmt.Sprintf("of block hash %s, the block is %s", l.BlockHash, known))
	}
	hashes[l.BlockNumber] = l.BlockHash
	return nil
}

// inBlock tells whether a log's indexes are ones that a block can have and the store
// holds.
func inBlock(l *types.Log) bool { return l.Index <= math.MaxInt32 && l.TxIndex <= math.MaxInt32 }

// wants tells whether a log answers the query.
func (q *Query) wants(l *types.Log) bool {
	return len(l.Topics) > 0 && (slices.Contains(q.Anywhere, l.Topics[0]) ||
		slices.Contains(q.Topics, l.Topics[0]) && slices.Contains(q.Addresses, l.Address))
}

func badLog(l *types.Log, what string) error {
	return &answerError{fmt.Sprintf("log %d of block %d: %s", l.Index, l.BlockNumber, what)}
}

func sameLog(a, b types.Log) bool {
	return a.BlockNumber == b.BlockNumber && a.Index == b.Index && a.BlockHash == b.BlockHash &&
		a.TxHash == b.TxHash && a.TxIndex == b.TxIndex && a.Address == b.Address && a.Removed == b.Removed &&
		slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}
