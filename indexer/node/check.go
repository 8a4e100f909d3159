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

// Check proves that a span answers q, and brings its logs into order. Exact
// repetitions of a log are dropped; anything else that does not hold together
// refuses the whole span.
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

// maxAhead is how far ahead of this machine's clock the time of a block may be that
// nothing proves.
const maxAhead = 15 * time.Minute

// checkSeals refuses headers that are not what their hashes say, where the chain's are
// known to be, and times that only a wrong header can have.
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

// CheckUnproven is CheckTime for a block whose time nothing proves: it must not be of
// the future.
func CheckUnproven(b repute.Block) error {
	if time.Until(b.Time) > maxAhead {
		return &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is of the future: time %d", b.Number, b.Time.Unix())}
	}
	return CheckTime(b)
}

// BloomError is about a log that the bloom of its block does not name.
type BloomError struct {
	Block repute.Block
	Index uint
}

// Error says what contradicts what.
func (e *BloomError) Error() string {
	return fmt.Sprintf("answer does not hold together: log %d of block %d is not in the bloom of the block's header",
		e.Index, e.Block.Number)
}

// Verdict implements jsonrpc.Judged.
func (e *BloomError) Verdict() jsonrpc.Verdict { return jsonrpc.Verdict{Fault: jsonrpc.FaultMalformed} }

// checkBloom refuses a log that its block's proven bloom excludes.
func (s *Span) checkBloom(q *Query, l *types.Log, bits bloomBits) error {
	h, ok := s.Sealed[l.BlockNumber]
	if !q.Blooms || !ok || !h.Recomputed || q.Unnamed[h.Hash] || bits.name(&h.Bloom, l) {
		return nil
	}
	return &BloomError{h.Block, l.Index}
}

// checkHeaders gives the hash of every block known by header.
func (s *Span) checkHeaders(q Query) (map[uint64]common.Hash, error) {
	if len(s.Headers) == 0 || s.Headers[0].Number != q.From || s.Headers[len(s.Headers)-1].Number != q.To {
		return nil, &jsonrpc.AnswerError{What: "headers of the range's ends are missing"}
	}
	hashes := make(map[uint64]common.Hash, len(s.Headers))
	for i, h := range s.Headers {
		hashes[h.Number] = h.Hash
		if i > 0 && s.Headers[i-1].Number+1 == h.Number && s.Headers[i-1].Hash != h.Parent {
			return nil, &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is not the child of block %d", h.Number, h.Number-1)}
		}
	}
	if q.Linked && uint64(len(hashes)) != q.To-q.From+1 {
		return nil, &jsonrpc.AnswerError{What: "headers are missing"}
	}
	return hashes, nil
}

// checkLog also records the hash of a block first seen in a log, so that all
// logs of a block must agree.
func checkLog(l *types.Log, q *Query, hashes map[uint64]common.Hash) error {
	known, ok := hashes[l.BlockNumber]
	switch {
	case l.Removed:
		return BadLog(l, "marked removed")
	case !inBlock(l):
		return BadLog(l, fmt.Sprintf("of an impossible place, transaction %d of the block", l.TxIndex))
	case l.BlockNumber < q.From || l.BlockNumber > q.To:
		return BadLog(l, fmt.Sprintf("outside %d..%d", q.From, q.To))
	case !q.wants(l):
		return BadLog(l, "of an address or topic not asked for: "+l.Address.Hex())
	case l.BlockHash == (common.Hash{}):
		return BadLog(l, "without block hash")
	case ok && known != l.BlockHash:
		return BadLog(l, fmt.Sprintf("of block hash %s, the block is %s", l.BlockHash, known))
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

// BadLog is an AnswerError about one log.
func BadLog(l *types.Log, what string) error {
	return &jsonrpc.AnswerError{What: fmt.Sprintf("log %d of block %d: %s", l.Index, l.BlockNumber, what)}
}

// SameLog compares all that a node says of a log, its time aside.
func SameLog(a, b types.Log) bool {
	return a.BlockNumber == b.BlockNumber && a.Index == b.Index && a.BlockHash == b.BlockHash &&
		a.TxHash == b.TxHash && a.TxIndex == b.TxIndex && a.Address == b.Address && a.Removed == b.Removed &&
		slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}

// TimesEnd is the first second, of the Unix era, that no block's time may have: the
// year 10000 has no text form.
const TimesEnd = 253402300800

// CheckTime refuses a block of a time that cannot be stored or told.
func CheckTime(b repute.Block) error {
	if t := b.Time.Unix(); t < 0 || t >= TimesEnd {
		return &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is of time %d", b.Number, t)}
	}
	return nil
}

// BlockOf returns what a log says of its block: number, hash and, where the endpoint gives
// it, time.
func BlockOf(l *types.Log) repute.Block {
	b := repute.Block{Number: l.BlockNumber, Hash: l.BlockHash}
	if l.BlockTimestamp > 0 {
		b.Time = time.Unix(int64(l.BlockTimestamp), 0).UTC()
	}
	return b
}
