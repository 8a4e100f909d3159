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

// piece is a fetched and decoded range whose logs and headers are consistent with each other. Whether it
// continues the stored chain is not known yet; see continues.
type piece struct {
	q       node.Query
	first   repute.Block // header of q.From
	to      repute.Block // header of q.To
	blocks  []repute.Block
	records []repute.Record
	asked   time.Time // when it was asked for
	held    load
	bytes   int
	passed  int  // logs of other contracts that are no events of a registry
	doubt   bool // a bloom admits logs that did not come
	listed  bool // the source refused a query without addresses

	prepared *eventdb.Prepared   // nil when preparing failed; storing then returns the error
	stored   *eventdb.Prefetched // nil when nothing of it was prefetched into the store
}

// refusal is a failed request that may succeed for a shorter range.
type refusal struct {
	asked uint64 // blocks
	err   error
}

// Error returns the text of the cause.
func (e *refusal) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *refusal) Unwrap() error { return e.err }

// errForked is returned when a range does not continue the stored chain.
var errForked = errors.New("the node's chain does not contain the indexed block")

// continues returns errForked unless the first block of the piece is the child of the cursor.
func (p *piece) continues(cursor repute.Block) error {
	if cursor.Hash != (common.Hash{}) && p.first.Parent != cursor.Hash {
		return fmt.Errorf("block %d has parent %s, indexed is %s: %w", p.first.Number, p.first.Parent, cursor.Hash,
			errForked)
	}
	return nil
}

// waitForRange waits until the range at block next is fetched, and starts the fetches of the ranges after
// it. A failed range is removed: the next call asks for its blocks again, in a shorter range if that may
// help. The ranges behind it stay.
func (f *Follower) waitForRange(ctx context.Context, next uint64) (*piece, error) {
	f.prefetch.dropBelow(next)
	f.startFetches(ctx, next)
	first := f.prefetch.ranges[0]
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-first.done:
	}
	f.prefetch.widen(time.Since(began), f.opts.Ahead)
	for _, pr := range f.prefetch.takeFailed() {
		f.noteRefusal(pr)
	}
	if first.err != nil {
		return nil, first.err
	}
	return first.piece, nil
}

// noteRefusal adjusts the range size or the number of fetches after a range failed.
func (f *Follower) noteRefusal(pr *pendingRange) {
	var r *refusal
	switch {
	case errors.Is(pr.err, context.Canceled):
	case errors.As(pr.err, &r):
		f.sizer.shrink(r.asked, jsonrpc.RangeHint(r.err))
	default:
		f.prefetch.narrow()
	}
}

// startFetches starts fetches of the blocks after the cursor that no range covers, as far as the number of
// fetches and the memory allow. The range at the cursor is always fetched. Blocks that are not final are
// fetched only after all final ones are stored, because they may change until then.
func (f *Follower) startFetches(ctx context.Context, next uint64) {
	end := f.lastWanted(f.heads.Latest.Number)
	if settled := f.finalBlock(); next <= settled {
		end = min(end, settled)
	}
	for {
		from, gapEnd := f.prefetch.firstGap(next)
		if from > end {
			return
		}
		q := f.chooseRange(from, min(end, gapEnd))
		flying, bytes := f.prefetch.held(&f.sizer)
		full := flying >= f.prefetch.width || len(f.prefetch.ranges) >= 2*f.opts.Ahead ||
			bytes+f.sizer.expectedBytes(q.To-q.From+1) > f.opts.MaxBytes
		if full && from != next {
			return
		}
		f.prefetch.start(ctx, q, f.fetch)
	}
}

// chooseRange returns the query for the range that begins at a block. A range holds either final blocks or
// others, so that the last final block is always stored. Above it every header is stored, so that a common
// ancestor can be found at any height that is not final.
func (f *Follower) chooseRange(from, end uint64) node.Query {
	q := node.Query{From: from, To: min(from+f.sizer.size-1, end), Addresses: f.decoder.With(f.unlisted.known),
		Topics: f.topics, AnyAddress: f.unlisted.topicsNow()}
	f.headerTrust.addTo(&q)
	if settled := f.finalBlock(); from <= settled {
		q.To = min(q.To, settled)
	} else {
		q.Linked = true
		q.To = min(q.To, from+linkedRange-1)
	}
	return q
}

// fetch asks for a range and checks that the answer is consistent. It is safe for concurrent use. An
// error that a shorter range may cure is a refusal.
func (f *Follower) fetch(ctx context.Context, q node.Query) (*piece, error) {
	p, err := f.tryFetch(ctx, q)
	if err == nil {
		return p, nil
	}
	if p, ok := f.retryListed(ctx, q, err); ok {
		return p, nil
	}
	err = fmt.Errorf("blocks %d..%d: %w", q.From, q.To, err)
	if ctx.Err() == nil && !jsonrpc.IsTransient(err) {
		err = &refusal{q.To - q.From + 1, err}
	}
	return nil, err
}

// tryFetch asks once for a range, checks the answer and decodes it.
func (f *Follower) tryFetch(ctx context.Context, q node.Query) (*piece, error) {
	asked := time.Now()
	span, held, err := f.fetchSpan(ctx, &q)
	if err != nil {
		return nil, err
	}
	doubt, err := f.recheck(ctx, q, &span)
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

// fetchSpan asks for a range and checks that the answer is consistent. A log that the bloom of its block
// excludes is refused, unless the receipts of the block show that the bloom is wrong.
func (f *Follower) fetchSpan(ctx context.Context, q *node.Query) (node.Span, load, error) {
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
			f.headerTrust.learn(span.Sealed)
			return span, held, err
		}
		if wrong := f.checkBloom(ctx, unnamed.Block); wrong != nil {
			return span, held, fmt.Errorf("%w: %w", err, wrong)
		}
		f.headerTrust.addWrongBloom(unnamed.Block.Hash)
		f.headerTrust.addTo(q)
	}
}

// withTimes returns every header of the span and one of every block with logs. The time is that of the
// log where the node returns one, or else that of the header.
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

// decoded returns the piece of a span that was checked.
func decoded(d *contracts.Decoder, q node.Query, s node.Span, blocks map[uint64]repute.Block) *piece {
	p := &piece{q: q, first: blocks[q.From], to: blocks[q.To], bytes: s.Bytes,
		records: make([]repute.Record, 0, len(s.Logs))}
	for _, l := range s.Logs {
		e, known := d.Decode(l)
		if !known {
			e, known = d.Foreign(l, q.AnyAddress, q.Addresses)
		}
		if known {
			p.records = append(p.records, repute.Record{Log: l, Time: blocks[l.BlockNumber].Time, Event: e})
		} else {
			p.passed++
		}
	}
	for _, block := range blocks {
		// The first header of a backfilled range only shows that the chain continues.
		if q.Linked || block.Number == q.To || holds(p.records, block.Number) {
			p.blocks = append(p.blocks, block)
		}
	}
	slices.SortFunc(p.blocks, func(x, y repute.Block) int { return cmp.Compare(x.Number, y.Number) })
	return p
}

// holds reports whether records, in block order, have one of the block.
func holds(records []repute.Record, number uint64) bool {
	_, found := slices.BinarySearchFunc(records, number, func(r repute.Record, n uint64) int {
		return cmp.Compare(r.Log.BlockNumber, n)
	})
	return found
}

// batch returns the batch that stores a piece after its parent.
func (f *Follower) batch(l store.Lease, parent repute.Block, p *piece) eventdb.Batch {
	return eventdb.Batch{ChainID: f.chain.ID, Lease: l, Parent: parent, To: p.to, Blocks: p.blocks, Records: p.records,
		Prepared: p.prepared, Prefetched: p.stored, Waiting: new(int),
		Backfill: f.heads.Latest.Number > p.q.To+nearHead}
}
