package indexer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/store"
	"repute/store/eventdb"
)

// piece is a range as a source gave it, proven to hold together and decoded. Only
// its place is open: whether it continues the stored chain.
type piece struct {
	q       node.Query
	first   repute.Block // header of q.From
	to      repute.Block // header of q.To
	blocks  []repute.Block
	records []repute.Record
	asked   time.Time // before the question
	held    load
	bytes   int
	passed  int  // logs of unlisted contracts that say nothing
	doubt   bool // a bloom names logs that did not come
	listed  bool // the source refused to be asked for logs of any address

	prepared *eventdb.Prepared   // nil when that failed: storing will tell
	stored   *eventdb.Prefetched // nil when nothing of it was stored ahead of its turn
}

// refusal is a failure that a shorter range may cure.
type refusal struct {
	asked uint64 // blocks
	err   error
}

// Error is the cause's.
func (e *refusal) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *refusal) Unwrap() error { return e.err }

// errForked: the range asked for does not continue the indexed chain.
var errForked = errors.New("the node's chain does not contain the indexed block")

// continues proves that the piece's first block is the child of the cursor.
func (p *piece) continues(cursor repute.Block) error {
	if cursor.Hash != (common.Hash{}) && p.first.Parent != cursor.Hash {
		return fmt.Errorf("block %d has parent %s, indexed is %s: %w", p.first.Number, p.first.Parent, cursor.Hash, errForked)
	}
	return nil
}

// obtain waits for the range at next, and has the ones after it fetched meanwhile.
// A failed range leaves a gap, which the next call asks for again, in smaller
// portions where they may do better; the ranges behind it stay.
func (f *Follower) obtain(ctx context.Context, next uint64) (*piece, error) {
	f.ahead.trim(next)
	f.launch(ctx, next)
	first := f.ahead.flights[0]
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-first.done:
	}
	f.ahead.widen(time.Since(began), f.opts.Ahead)
	for _, fl := range f.ahead.failed() {
		f.refused(fl)
	}
	if first.err != nil {
		return nil, first.err
	}
	return first.piece, nil
}

// refused learns from a failed range.
func (f *Follower) refused(fl *flight) {
	var r *refusal
	switch {
	case errors.Is(fl.err, context.Canceled):
	case errors.As(fl.err, &r):
		f.pace.shrink(r.asked, jsonrpc.RangeHint(r.err))
	default:
		f.ahead.narrow()
	}
}

// launch fills the gaps after the cursor as far as width and memory go. The range
// at the cursor is always asked for. Open blocks are not fetched before all final
// ones are stored: they may change until then.
func (f *Follower) launch(ctx context.Context, next uint64) {
	end := f.goal(f.heads.Latest.Number)
	if settled := f.settled(); next <= settled {
		end = min(end, settled)
	}
	for {
		from, gapEnd := f.ahead.after(next)
		if from > end {
			return
		}
		q := f.choose(from, min(end, gapEnd))
		flying, bytes := f.ahead.weight(&f.pace)
		full := flying >= f.ahead.width || len(f.ahead.flights) >= 2*f.opts.Ahead ||
			bytes+f.pace.expect(q.To-q.From+1) > f.opts.MaxBytes
		if full && from != next {
			return
		}
		f.ahead.start(ctx, q, f.fetch)
	}
}

// choose picks the range from a block on. No range crosses from final to open
// blocks: the last final block is then always kept, and above it every block
// is, so that a common ancestor can be found at any open height.
func (f *Follower) choose(from, end uint64) node.Query {
	q := node.Query{From: from, To: min(from+f.pace.size-1, end), Addresses: f.decoder.With(f.anywhere.known),
		Topics: f.topics, Anywhere: f.anywhere.now()}
	f.seals.apply(&q)
	if settled := f.settled(); from <= settled {
		q.To = min(q.To, settled)
	} else {
		q.Linked = true
		q.To = min(q.To, from+linkedRange-1)
	}
	return q
}

// fetch asks for a range and proves that the answer holds together. It may run
// several times at once. Failures that a shorter range may cure are refusals.
func (f *Follower) fetch(ctx context.Context, q node.Query) (*piece, error) {
	p, err := f.tryFetch(ctx, q)
	if err == nil {
		return p, nil
	}
	if p, ok := f.listed(ctx, q, err); ok {
		return p, nil
	}
	err = fmt.Errorf("blocks %d..%d: %w", q.From, q.To, err)
	if ctx.Err() == nil && !jsonrpc.IsTransient(err) {
		err = &refusal{q.To - q.From + 1, err}
	}
	return nil, err
}

func (f *Follower) tryFetch(ctx context.Context, q node.Query) (*piece, error) {
	asked := time.Now()
	span, held, err := f.span(ctx, &q)
	if err != nil {
		return nil, err
	}
	doubt, err := f.again(ctx, q, &span)
	if err != nil {
		return nil, err
	}
	blocks, err := f.withTimes(ctx, span)
	if err != nil {
		return nil, err
	}
	p := decoded(&f.decoder, q, span, blocks)
	p.asked, p.held, p.doubt = asked, held, doubt
	p.prepared, _ = eventdb.Prepare(ctx, f.db, p.records)
	return p, nil
}

// span asks for a range and proves that the answer holds together. A log that the bloom
// of its block does not name is refused, unless the block's receipts show that it is the
// bloom that is wrong.
func (f *Follower) span(ctx context.Context, q *node.Query) (node.Span, load, error) {
	for {
		span, err := f.source.Span(ctx, *q)
		if err == nil && q.To > q.From && (len(span.Logs) > f.opts.MaxLogs || span.Bytes > f.opts.MaxBytes) {
			err = fmt.Errorf("%d logs in %d bytes are too many at once", len(span.Logs), span.Bytes)
		}
		held := load{float64(len(span.Logs)), float64(span.Bytes)}
		if err == nil {
			err = span.Check(*q)
		}
		var unnamed *node.BloomError
		if !errors.As(err, &unnamed) {
			f.seals.learn(span.Sealed)
			return span, held, err
		}
		if wrong := f.bloomLacks(ctx, unnamed.Block); wrong != nil {
			return span, held, fmt.Errorf("%w: %w", err, wrong)
		}
		f.seals.unnamed(unnamed.Block.Hash)
		f.seals.apply(q)
	}
}

// withTimes gives every header of the span and one of every block with logs. The
// time comes with the log where the node gives it, else from the block.
func (f *Follower) withTimes(ctx context.Context, s node.Span) (map[uint64]repute.Block, error) {
	blocks := make(map[uint64]repute.Block, len(s.Headers))
	for _, h := range s.Headers {
		blocks[h.Number] = h
	}
	var unknown []uint64
	for i := range s.Logs {
		l := &s.Logs[i]
		if l.BlockTimestamp >= node.TimesEnd {
			return nil, node.BadLog(l, fmt.Sprintf("of time %d", l.BlockTimestamp))
		}
		if _, ok := blocks[l.BlockNumber]; ok {
			continue
		}
		blocks[l.BlockNumber] = node.BlockOf(l)
		if l.BlockTimestamp == 0 {
			unknown = append(unknown, l.BlockNumber)
		}
	}
	headers, err := f.source.Blocks(ctx, unknown)
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		if blocks[h.Number].Hash != h.Hash {
			return nil, &jsonrpc.AnswerError{What: fmt.Sprintf("block %d has two hashes", h.Number)}
		}
		blocks[h.Number] = h
	}
	for _, b := range blocks {
		if b.Time.IsZero() {
			continue
		}
		check := node.CheckUnproven
		if s.Sealed[b.Number].Recomputed {
			check = node.CheckTime
		}
		if err := check(b); err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// decoded is the piece of a span that was checked.
func decoded(d *contracts.Decoder, q node.Query, s node.Span, blocks map[uint64]repute.Block) *piece {
	p := &piece{q: q, first: blocks[q.From], to: blocks[q.To], bytes: s.Bytes,
		records: make([]repute.Record, 0, len(s.Logs))}
	for _, l := range s.Logs {
		e, known := d.Decode(l)
		if !known {
			e, known = d.Foreign(l, q.Anywhere, q.Addresses)
		}
		if known {
			p.records = append(p.records, repute.Record{Log: l, Time: blocks[l.BlockNumber].Time, Event: e})
		} else {
			p.passed++
		}
	}
	for _, block := range blocks {
		// The first header of a backfilled range only proves that the chain goes on.
		if q.Linked || block.Number == q.To || holds(p.records, block.Number) {
			p.blocks = append(p.blocks, block)
		}
	}
	slices.SortFunc(p.blocks, func(x, y repute.Block) int { return cmp.Compare(x.Number, y.Number) })
	return p
}

// holds tells whether records, in block order, have one of that block.
func holds(records []repute.Record, number uint64) bool {
	_, found := slices.BinarySearchFunc(records, number, func(r repute.Record, n uint64) int {
		return cmp.Compare(r.Log.BlockNumber, n)
	})
	return found
}

// batch puts a piece behind its parent.
func (f *Follower) batch(l store.Lease, parent repute.Block, p *piece) eventdb.Batch {
	return eventdb.Batch{ChainID: f.chain.ID, Lease: l, Parent: parent, To: p.to, Blocks: p.blocks, Records: p.records,
		Prepared: p.prepared, Prefetched: p.stored, Waiting: new(int), Backfill: f.heads.Latest.Number > p.q.To+nearHead}
}
