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

// The bloom of a header admits the addresses and topics that may be in its block. It may admit some
// that are not there, and a correct one admits all that are. Some chains have blooms that are empty,
// full, or of another block. A log that the bloom excludes is therefore refused only where the bloom is
// part of the hash of the block (see headerTrust). Logs that the bloom admits and that did not come are
// asked for again only after the blooms of the endpoint admitted all logs of several blocks, and
// never after one of them excluded a log.

const (
	// bloomProof is the number of blocks whose blooms must admit all logs before the blooms of an endpoint
	// are believed.
	bloomProof = 4
	// bloomBits is how many bits of a bloom may be set: a fuller one admits so many addresses by
	// chance that another request is not worth it.
	bloomBits = 2048 * 2 / 5
	// bloomAsks is how many blocks of one range are asked for again at most.
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
	// BloomHint: a block whose bloom admits a followed contract and one of its events, although no
	// such log came, is asked for again, and the verifier compares it.
	BloomHint Bloom = "hint"
	// BloomStrict: such a block is stored only once its receipts show what it holds.
	BloomStrict Bloom = "strict"
)

// Check returns repute.ErrInvalid unless b is a known value or empty, which is the default.
func (b Bloom) Check() error {
	switch b {
	case "", BloomOff, BloomHint, BloomStrict:
		return nil
	}
	return repute.Invalid("bloom", fmt.Sprintf("%.40q is no use of blooms", string(b)), "off, hint or strict")
}

// bloomTrust records how far the blooms of each endpoint were right.
type bloomTrust struct {
	mu    sync.Mutex
	right map[string]int      // blocks whose bloom admitted all logs, by endpoint; -1 after one did not
	fails map[common.Hash]int // failed requests for the receipts of a block
}

// countFailure counts one more failure of a block's receipts.
func (b *bloomTrust) countFailure(block common.Hash) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails == nil || len(b.fails) > maxFails {
		b.fails = map[common.Hash]int{}
	}
	b.fails[block]++
	return b.fails[block]
}

// forget forgets a block.
func (b *bloomTrust) forget(block common.Hash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.fails, block)
}

// believed compares the blooms of a span with its logs, and reports whether the blooms of this endpoint
// can be believed.
func (b *bloomTrust) believed(s *node.Span) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.right == nil {
		b.right = map[string]int{}
	}
	n := b.right[s.From]
	for i := 0; i < len(s.Logs) && n >= 0; i++ {
		l := &s.Logs[i]
		if h, ok := s.Sealed[l.BlockNumber]; ok && !admits(&h.Bloom, l.Address, l.Topics[:1]) {
			n = -1
		} else if ok && (i == 0 || s.Logs[i-1].BlockNumber != l.BlockNumber) {
			n++
		}
	}
	b.right[s.From] = n
	return n >= bloomProof
}

// admits reports whether a bloom admits the address and one of the topics.
func admits(bloom *types.Bloom, a common.Address, topics []common.Hash) bool {
	return bloom.Test(a[:]) && slices.ContainsFunc(topics, func(t common.Hash) bool { return bloom.Test(t[:]) })
}

// selective reports whether a bloom excludes enough to be worth another request.
func selective(bloom *types.Bloom) bool {
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
		if bloom := sealed.Bloom; ok && selective(&bloom) &&
			slices.ContainsFunc(d.Addresses, func(a common.Address) bool {
				return !came[place{h.Number, a}] && admits(&bloom, a, d.Emits[a])
			}) {
			blocks = append(blocks, h.Number)
		}
	}
	return blocks
}

// recheck asks again for the blocks near the head that seem to lack logs, one by one, and adds the logs
// that come. doubt reports whether a block still seems to lack logs: the range is accepted, because a
// bloom may admit what is not there, but the verifier should compare it. With BloomStrict the receipts of
// such a block must be read first.
func (f *Follower) recheck(ctx context.Context, q node.Query, s *node.Span) (doubt bool, err error) {
	if f.opts.Bloom == BloomOff || !q.Linked || !f.blooms.believed(s) {
		return false, nil
	}
	suspects, most := suspects(&f.decoder, s), bloomAsks
	if f.opts.Bloom == BloomStrict {
		most = len(suspects)
	}
	doubt = len(suspects) > most
	var late []types.Log
	for _, n := range suspects[:min(len(suspects), most)] {
		logs, sure, err := f.recheckBlock(ctx, q, s, n)
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

// recheckBlock asks for one block again, and reports whether the answer proves what the block holds.
func (f *Follower) recheckBlock(ctx context.Context, q node.Query, s *node.Span, number uint64) (logs []types.Log,
	sure bool, err error) {
	found := "logs"
	logs, err = f.askAgain(ctx, q, number)
	if err != nil {
		f.log.Debug("second look failed", "block", number, "error", err)
	}
	switch {
	case len(logs) > 0:
		sure = true
	case f.opts.Bloom == BloomStrict:
		if logs, sure, err = f.readReceipts(ctx, blockIn(s, number)); err != nil {
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

// strictTries is how often the request for the receipts of a block must fail before the range is stored
// without them: a node that cannot return them MUST NOT stop the chain. The verifier compares it later.
const strictTries = 5

// readReceipts reads the receipts of a block whose bloom admits logs that did not come. sure reports
// whether they prove what the block holds. It is an error when the receipts may come later.
func (f *Follower) readReceipts(ctx context.Context, block repute.Block) (logs []types.Log, sure bool, err error) {
	e, err := f.source.Receipts(ctx, block, nil)
	switch {
	case err != nil && (node.Unsupported(err) || f.blooms.countFailure(block.Hash) >= strictTries):
		f.log.Warn("nothing proves what a suspect block holds: stored in doubt", "block", block.Number, "error", err)
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("receipts of block %d, whose bloom names a registry: %w", block.Number, err)
	}
	f.blooms.forget(block.Hash)
	for _, l := range e.Logs {
		if _, ours := f.decoder.Decode(l); ours {
			logs = append(logs, l)
		}
	}
	return logs, e.Proven, nil
}

// blockIn returns the header of a block, which the span MUST have.
func blockIn(s *node.Span, number uint64) repute.Block {
	return s.Headers[slices.IndexFunc(s.Headers, func(h repute.Block) bool { return h.Number == number })]
}

// askAgain asks for the logs of one block.
func (f *Follower) askAgain(ctx context.Context, q node.Query, block uint64) ([]types.Log, error) {
	q.From, q.To = block, block
	s, err := f.source.Span(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.Logs, s.Check(q)
}
