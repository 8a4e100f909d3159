package node

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// Check verifies that a span is a consistent answer to q, and sorts its logs. Exact repetitions of
// a log are dropped; any other inconsistency refuses the whole span.
func (s *Span) Check(q Query) error {
	byNumber, err := s.checkHeaders(q)
	if err == nil {
		err = s.checkSeals(q)
	}
	if err != nil {
		return err
	}
	slices.SortStableFunc(s.Logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	s.Logs = slices.CompactFunc(s.Logs, SameLog)
	blockOf := make(map[common.Hash]uint64, len(byNumber))
	for number, hash := range byNumber {
		blockOf[hash] = number
	}
	bits := bloomBits{}
	for i := range s.Logs {
		l := &s.Logs[i]
		if err := cmp.Or(checkLog(l, &q, byNumber), s.checkBloom(&q, l, bits)); err != nil {
			return err
		}
		if other, known := blockOf[l.BlockHash]; known && other != l.BlockNumber {
			return BadLog(l, fmt.Sprintf("of the hash of block %d", other))
		}
		blockOf[l.BlockHash] = l.BlockNumber
		if i > 0 && s.Logs[i-1].BlockNumber == s.Logs[i].BlockNumber && s.Logs[i-1].Index == s.Logs[i].Index {
			return BadLog(&s.Logs[i], "two different logs at this position")
		}
	}
	return nil
}

// maxFutureTime is how far in the future of this machine's clock the unproven time of a block may be.
const maxFutureTime = 15 * time.Minute

// checkSeals refuses headers that do not have their own hash, on chains whose headers are known to
// be hashes of their fields, and times that only a wrong header can have.
func (s *Span) checkSeals(q Query) error {
	for number, h := range s.Sealed {
		switch {
		case h.Recomputed:
		case q.Sealed && !h.Unknown:
			return &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is not what its hash says", number)}
		default:
			if err := CheckUnproven(h.Block); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckUnproven is CheckTime for a block whose time is not part of a proof: the time must not be in
// the future.
func CheckUnproven(b repute.Block) error {
	if time.Until(b.Time) > maxFutureTime {
		return &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is of the future: time %d", b.Number, b.Time.Unix())}
	}
	return CheckTime(b)
}

// BloomError is returned for a log that the bloom of its block excludes.
type BloomError struct {
	Block repute.Block
	Index uint
}

// Error names the block, the log and the bloom that excludes it.
func (e *BloomError) Error() string {
	return fmt.Sprintf("answer does not hold together: log %d of block %d is not in the bloom of the block's header",
		e.Index, e.Block.Number)
}

// Diagnosis implements jsonrpc.Diagnosed.
func (e *BloomError) Diagnosis() jsonrpc.Diagnosis {
	return jsonrpc.Diagnosis{Fault: jsonrpc.FaultMalformed}
}

// checkBloom refuses a log that its block's proven bloom excludes.
func (s *Span) checkBloom(q *Query, l *types.Log, bits bloomBits) error {
	h, ok := s.Sealed[l.BlockNumber]
	if !q.Blooms || !ok || !h.Recomputed || q.Unnamed[h.Hash] || bits.name(&h.Bloom, l) {
		return nil
	}
	return &BloomError{h.Block, l.Index}
}

// checkHeaders returns the hash of every block whose header is known.
func (s *Span) checkHeaders(q Query) (map[uint64]common.Hash, error) {
	if len(s.Headers) == 0 || s.Headers[0].Number != q.From || s.Headers[len(s.Headers)-1].Number != q.To {
		return nil, &jsonrpc.AnswerError{What: "headers of the range's ends are missing"}
	}
	hashes := make(map[uint64]common.Hash, len(s.Headers))
	for i, h := range s.Headers {
		hashes[h.Number] = h.Hash
		if i > 0 && s.Headers[i-1].Number+1 == h.Number && s.Headers[i-1].Hash != h.Parent {
			return nil, &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is not the child of block %d", h.Number,
				h.Number-1)}
		}
	}
	if q.Linked && uint64(len(hashes)) != q.To-q.From+1 {
		return nil, &jsonrpc.AnswerError{What: "headers are missing"}
	}
	return hashes, nil
}

// checkLog verifies a log of an answer to q. It also records the hash of a block that is first seen in
// a log, so that all logs of a block must have the same hash.
func checkLog(l *types.Log, q *Query, hashes map[uint64]common.Hash) error {
	known, ok := hashes[l.BlockNumber]
	switch {
	case l.Removed:
		return BadLog(l, "marked removed")
	case !inBlock(l):
		return BadLog(l, fmt.Sprintf("of an impossible place, transaction %d of the block", l.TxIndex))
	case l.BlockNumber < q.From || l.BlockNumber > q.To:
		return BadLog(l, fmt.Sprintf("outside %d..%d", q.From, q.To))
	case !q.matches(l):
		return BadLog(l, "of an address or topic that was not requested: "+l.Address.Hex())
	case l.BlockHash == (common.Hash{}):
		return BadLog(l, "without block hash")
	case ok && known != l.BlockHash:
		return BadLog(l, fmt.Sprintf("of block hash %s, the block is %s", l.BlockHash, known))
	}
	hashes[l.BlockNumber] = l.BlockHash
	return nil
}

// inBlock reports whether the indexes of a log are possible in a block and fit the columns of the
// store.
func inBlock(l *types.Log) bool { return l.Index <= math.MaxInt32 && l.TxIndex <= math.MaxInt32 }

// matches reports whether a log answers the query.
func (q *Query) matches(l *types.Log) bool {
	return len(l.Topics) > 0 && (slices.Contains(q.AnyAddress, l.Topics[0]) ||
		slices.Contains(q.Topics, l.Topics[0]) && slices.Contains(q.Addresses, l.Address))
}

// BadLog returns an AnswerError about one log.
func BadLog(l *types.Log, what string) error {
	return &jsonrpc.AnswerError{What: fmt.Sprintf("log %d of block %d: %s", l.Index, l.BlockNumber, what)}
}

// SameLog reports whether two logs are equal in everything but the time.
func SameLog(a, b types.Log) bool {
	return a.BlockNumber == b.BlockNumber && a.Index == b.Index && a.BlockHash == b.BlockHash &&
		a.TxHash == b.TxHash && a.TxIndex == b.TxIndex && a.Address == b.Address && a.Removed == b.Removed &&
		slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}

// TimesEnd is the first Unix second that the time of a block must not have: the year 10000 has no
// RFC 3339 text.
const TimesEnd = 253402300800

// CheckTime refuses a block whose time cannot be stored or written as RFC 3339 text.
func CheckTime(b repute.Block) error {
	if t := b.Time.Unix(); t < 0 || t >= TimesEnd {
		return &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is of time %d", b.Number, t)}
	}
	return nil
}

// BlockOf returns the number and hash of a log's block and, where the endpoint includes it, the
// time.
func BlockOf(l *types.Log) repute.Block {
	b := repute.Block{Number: l.BlockNumber, Hash: l.BlockHash}
	if l.BlockTimestamp > 0 {
		b.Time = time.Unix(int64(l.BlockTimestamp), 0).UTC()
	}
	return b
}
