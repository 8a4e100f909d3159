package indexer

import (
	"context"
	"math/bits"
	"slices"
	"sync"

	"repute/contracts"
	"repute/indexer/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A header's bloom says which addresses and topics may be in its block. It may
// name some that are not there; an honest one never omits any. Not every chain has
// honest ones: some are empty, full, or of another block. So an endpoint's blooms
// are believed only after they named all logs of several blocks, and never again
// after they missed one.

const (
	// bloomProof is in how many blocks with logs a bloom must name them all.
	bloomProof = 4
	// bloomBits is how full a bloom may be: one that names every other address by
	// chance is not worth a question.
	bloomBits = 2048 * 2 / 5
	// bloomAsks bounds the second questions about one range.
	bloomAsks = 8
)

// bloomTrust is what is known of the blooms of each endpoint.
type bloomTrust struct {
	mu    sync.Mutex
	right map[string]int // blocks that agreed, by endpoint; -1 once one did not
}

// probe compares the blooms of a span with its logs and tells whether this
// endpoint's blooms may be believed.
func (b *bloomTrust) probe(s *node.Span) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.right == nil {
		b.right = map[string]int{}
	}
	n := b.right[s.From]
	for i := 0; i < len(s.Logs) && n >= 0; i++ {
		l := &s.Logs[i]
		if bloom, ok := s.Blooms[l.BlockNumber]; ok && !named(&bloom, l.Address, l.Topics[:1]) {
			n = -1
		} else if ok && (i == 0 || s.Logs[i-1].BlockNumber != l.BlockNumber) {
			n++
		}
	}
	b.right[s.From] = n
	return n >= bloomProof
}

// named tells whether a bloom has the address and one of the topics.
func named(bloom *types.Bloom, a common.Address, topics []common.Hash) bool {
	return bloom.Test(a[:]) && slices.ContainsFunc(topics, func(t common.Hash) bool { return bloom.Test(t[:]) })
}

func telling(bloom *types.Bloom) bool {
	set := 0
	for _, b := range bloom {
		set += bits.OnesCount8(b)
	}
	return set <= bloomBits
}

// suspects are the blocks whose bloom names a followed contract and one of its
// events although no log of that contract came.
func suspects(d *contracts.Decoder, s *node.Span) (blocks []uint64) {
	type place struct {
		block   uint64
		address common.Address
	}
	came := map[place]bool{}
	for i := range s.Logs {
		came[place{s.Logs[i].BlockNumber, s.Logs[i].Address}] = true
	}
	for _, h := range s.Headers {
		bloom, ok := s.Blooms[h.Number]
		if ok && telling(&bloom) && slices.ContainsFunc(d.Addresses, func(a common.Address) bool {
			return !came[place{h.Number, a}] && named(&bloom, a, d.Emits[a])
		}) {
			blocks = append(blocks, h.Number)
		}
	}
	return blocks
}

// again asks a second time for blocks near the head that seem to lack logs, each
// by itself, and adds what comes. It tells whether a suspicion stays: a bloom may
// err, so the range is accepted, but the verifier should look.
func (f *Follower) again(ctx context.Context, q node.Query, s *node.Span) (doubt bool, err error) {
	if !q.Linked || !f.blooms.probe(s) {
		return false, nil
	}
	suspects := suspects(&f.decoder, s)
	doubt = len(suspects) > bloomAsks
	var late []types.Log
	for _, n := range suspects[:min(len(suspects), bloomAsks)] {
		logs, err := f.lookAgain(ctx, q, n)
		switch {
		case err != nil:
			f.log.Debug("second look failed", "block", n, "error", err)
			doubt = true
		case len(logs) == 0:
			f.opts.Metrics.suspects.WithLabelValues(f.label, "empty").Inc()
			doubt = true
		default:
			f.log.Warn("the endpoint left out logs at first", "block", n, "logs", len(logs))
			f.opts.Metrics.suspects.WithLabelValues(f.label, "logs").Inc()
			late = append(late, logs...)
		}
	}
	if len(late) == 0 {
		return doubt, nil
	}
	s.Logs = append(s.Logs, late...)
	return doubt, s.Check(q) // the blocks must still be the same ones
}

func (f *Follower) lookAgain(ctx context.Context, q node.Query, block uint64) ([]types.Log, error) {
	q.From, q.To = block, block
	s, err := f.source.Span(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.Logs, s.Check(q)
}
