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

// seals is what is known of the chain's headers. Where one of them is the hash of all
// its fields, all are, so that an endpoint can alter none of them unnoticed: neither
// a block's time nor its bloom.
type seals struct {
	off    bool        // blooms are used for nothing
	proven atomic.Bool // a header of this chain is the hash of its fields

	mu     sync.Mutex
	lacks  map[common.Hash]bool // blocks whose bloom lacks logs that their receipts prove
	untold bool                 // there are so many of them that blooms tell nothing
}

// mostUnnamed is how many blocks may be seen whose bloom lacks logs of theirs before
// blooms of this chain are taken to be of other blocks.
const mostUnnamed = 3

// apply tells a query what is known.
func (s *seals) apply(q *node.Query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.Sealed, q.Blooms, q.Unnamed = s.proven.Load(), !s.off && !s.untold, maps.Clone(s.lacks)
}

// learn looks for a header that is the hash of its fields.
func (s *seals) learn(headers map[uint64]node.Sealed) {
	for _, h := range headers {
		if h.Recomputed {
			s.proven.Store(true)
			return
		}
	}
}

// unnamed notes a block whose bloom is wrong.
func (s *seals) unnamed(block common.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lacks == nil {
		s.lacks = map[common.Hash]bool{}
	}
	s.lacks[block] = true
	s.untold = len(s.lacks) > mostUnnamed
}

// errUnnamed: no evidence speaks for logs that the bloom of their block excludes.
var errUnnamed = errors.New("refused, since no receipts show the log; where headers have the blooms of other blocks, set bloom to off")

// bloomLacks is nil where the receipts of a block show, with their root or by two
// endpoints, that the block's bloom lacks logs of the block.
func (f *Follower) bloomLacks(ctx context.Context, block repute.Block) error {
	source, ok := f.source.(proving)
	if !ok {
		return errUnnamed
	}
	e, err := source.Receipts(ctx, block, nil)
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
