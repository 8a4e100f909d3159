package indexer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"

	"repute/indexer/node"
)

// headerTrust is what is known of the headers of a chain. Where the hash of one header can be
// recomputed from its fields, the hashes of all can, so that an endpoint cannot alter the time or the
// bloom of a block unnoticed.
type headerTrust struct {
	off    bool        // blooms are used for nothing
	proven atomic.Bool // a header of this chain is the hash of its fields

	mu      sync.Mutex
	lacks   map[common.Hash]bool // blocks whose bloom lacks logs that their receipts prove
	useless bool                 // there are so many of them that blooms prove nothing
}

// mostUnnamed is how many blocks may have a bloom that lacks some of their logs before the blooms of the
// chain count for nothing.
const mostUnnamed = 3

// addTo adds what is known to a query.
func (s *headerTrust) addTo(q *node.Query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.Sealed, q.Blooms, q.Unnamed = s.proven.Load(), !s.off && !s.useless, maps.Clone(s.lacks)
}

// learn looks for a header whose hash was recomputed from its fields.
func (s *headerTrust) learn(headers map[uint64]node.Sealed) {
	for _, h := range headers {
		if h.Recomputed {
			s.proven.Store(true)
			return
		}
	}
}

// addWrongBloom records a block whose bloom lacks logs of the block.
func (s *headerTrust) addWrongBloom(block common.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lacks == nil {
		s.lacks = map[common.Hash]bool{}
	}
	s.lacks[block] = true
	s.useless = len(s.lacks) > mostUnnamed
}

// errUnnamed is returned when nothing proves logs that the bloom of their block excludes.
var errUnnamed = errors.New("refused, since no receipts show the log; where headers have the blooms of other blocks, set bloom to off")

// checkBloom returns nil when the receipts of a block show, by their root or by two endpoints, that the
// bloom of the block lacks logs of the block.
func (f *Follower) checkBloom(ctx context.Context, block repute.Block) error {
	e, err := f.source.Receipts(ctx, block, nil)
	if err != nil {
		return fmt.Errorf("%w (%w)", errUnnamed, err)
	}
	lacks := slices.ContainsFunc(e.Logs, func(l types.Log) bool { return !node.Named(&e.Bloom, &l) })
	if !lacks || !e.Proven && e.Shown < 2 {
		return errUnnamed
	}
	f.log.Warn("a block's bloom lacks logs of the block", "block", block.Number)
	return nil
}
