package indexer

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"repute"

	"repute/contracts"
	"repute/indexer/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A header's bloom says which addresses and topics may be in its block. It may
// name some that are not there; an honest one never omits any. Not every chain has
// honest ones: some are empty, full, or of another block. What a bloom omits is
// therefore refused only where the bloom is part of the block's hash (see seals), and
// what it names in vain is asked for again only after the endpoint's blooms named all
// logs of several blocks, and never after they missed one.

const (
	// bloomProof is in how many blocks with logs a bloom must name them all.
	bloomProof = 4
	// bloomBits is how full a bloom may be: one that names every other address by
	// chance is not worth a question.
	bloomBits = 2048 * 2 / 5
	// bloomAsks bounds the second questions about one range.
	bloomAsks = 8
	// maxFails bounds how many blocks without receipts are remembered.
	maxFails = 1_000
)

// Bloom is what the blooms of headers near the head are used for, where they can be
// believed. The zero value is BloomHint.
type Bloom string

// What blooms may be used for.
const (
	// BloomOff: nothing.
	BloomOff Bloom = "off"
	// BloomHint: a block whose bloom names a followed contract and one of its events
	// although no log of it came is asked for again, and the verifier is told.
	BloomHint Bloom = "hint"
	// BloomStrict: such a block is stored only once its receipts show what it holds.
	BloomStrict Bloom = "strict"
)

// Check refuses words that mean nothing; the empty one is the default.
func (b Bloom) Check() error {
	switch b {
	case "", BloomOff, BloomHint, BloomStrict:
		return nil
	}
	return repute.Invalid("bloom", fmt.Sprintf("%.40q is no use of blooms", string(b)), "off, hint or strict")
}

// bloomTrust is what is known of the blooms of each endpoint.
type bloomTrust struct {
	mu    sync.Mutex
	right map[string]int      // blocks that agreed, by endpoint; -1 once one did not
	fails map[common.Hash]int // how often a suspect block's receipts did not come
}

// failed counts one more failure of a block's receipts.
func (b *bloomTrust) failed(block common.Hash) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails == nil || len(b.fails) > maxFails {
		b.fails = map[common.Hash]int{}
	}
	b.fails[block]++
	return b.fails[block]
}

// settled forgets a block.
func (b *bloomTrust) settled(block common.Hash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.fails, block)
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
		if h, ok := s.Sealed[l.BlockNumber]; ok && !named(&h.Bloom, l.Address, l.Topics[:1]) {
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
		sealed, ok := s.Sealed[h.Number]
		if bloom := sealed.Bloom; ok && telling(&bloom) && slices.ContainsFunc(d.Addresses, func(a common.Address) bool {
			return !came[place{h.Number, a}] && named(&bloom, a, d.Emits[a])
		}) {
			blocks = append(blocks, h.Number)
		}
	}
	return blocks
}

// again asks a second time for blocks near the head that seem to lack logs, each
// by itself, and adds what comes. It tells whether a suspicion stays: a bloom may
// err, so the range is accepted, but the verifier should look. Where blooms are
// strict the blocks' receipts must end the suspicion before.
func (f *Follower) again(ctx context.Context, q node.Query, s *node.Span) (doubt bool, err error) {
	if f.opts.Bloom == BloomOff || !q.Linked || !f.blooms.probe(s) {
		return false, nil
	}
	suspects, most := suspects(&f.decoder, s), bloomAsks
	if f.opts.Bloom == BloomStrict {
		most = len(suspects)
	}
	doubt = len(suspects) > most
	var late []types.Log
	for _, n := range suspects[:min(len(suspects), most)] {
		logs, sure, err := f.second(ctx, q, s, n)
		if err != nil {
			return false, err
		}
		doubt = doubt || !sure
		late = append(late, logs...)
	}
	if len(late) == 0 {
		return doubt, nil
	}
	s.Logs = append(s.Logs, late...)
	return doubt, s.Check(q) // the blocks must still be the same ones
}

// second looks at one block again, and tells whether that ends the suspicion.
func (f *Follower) second(ctx context.Context, q node.Query, s *node.Span, number uint64) (logs []types.Log, sure bool, err error) {
	found := "logs"
	logs, err = f.lookAgain(ctx, q, number)
	if err != nil {
		f.log.Debug("second look failed", "block", number, "error", err)
	}
	switch {
	case len(logs) > 0:
		sure = true
	case f.opts.Bloom == BloomStrict:
		if logs, sure, err = f.settleBlock(ctx, blockIn(s, number)); err != nil {
			return nil, false, err
		}
	}
	switch {
	case len(logs) > 0:
		f.log.Warn("the endpoint left out logs at first", "block", number, "logs", len(logs))
	case sure:
		found = "nothing"
	default:
		found = "empty"
	}
	f.opts.Metrics.suspects.WithLabelValues(f.label, found).Inc()
	return logs, sure, nil
}

// proving is a Source that shows all that happened in a block. *node.Node and *node.Pool
// implement it.
type proving interface {
	Receipts(ctx context.Context, block repute.Block, spend node.Spend) (node.Evidence, error)
}

// strictTries is how often a block's receipts must fail to come before the range is
// stored without them, in doubt: a node that cannot give them must not hold up a chain.
const strictTries = 5

// settleBlock reads the receipts of a block whose bloom names what did not come. It is
// an error when they cannot be had now, and without one unsure when never.
func (f *Follower) settleBlock(ctx context.Context, block repute.Block) (logs []types.Log, sure bool, err error) {
	source, ok := f.source.(proving)
	if !ok {
		return nil, false, nil
	}
	e, err := source.Receipts(ctx, block, nil)
	switch {
	case err != nil && (node.Unsupported(err) || f.blooms.failed(block.Hash) >= strictTries):
		f.log.Warn("nothing proves what a suspect block holds: stored in doubt", "block", block.Number, "error", err)
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("receipts of block %d, whose bloom names a registry: %w", block.Number, err)
	}
	f.blooms.settled(block.Hash)
	for _, l := range e.Logs {
		if _, ours := f.decoder.Decode(l); ours {
			logs = append(logs, l)
		}
	}
	return logs, e.Proven, nil
}

func blockIn(s *node.Span, number uint64) repute.Block {
	for _, h := range s.Headers {
		if h.Number == number {
			return h
		}
	}
	return repute.Block{Number: number}
}

func (f *Follower) lookAgain(ctx context.Context, q node.Query, block uint64) ([]types.Log, error) {
	q.From, q.To = block, block
	s, err := f.source.Span(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.Logs, s.Check(q)
}
