package indexer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/store"
)

// fetch asks for a range and makes a batch of it. Failures that a shorter range
// may cure shrink the next one. errForked: the range does not continue parent.
func (f *Follower) fetch(ctx context.Context, parent repute.Block, q Query) (store.Batch, error) {
	b, err := f.tryFetch(ctx, parent, q)
	switch {
	case err == nil:
		f.pace.grow()
	case ctx.Err() == nil && !errors.Is(err, errForked) && !IsTransient(err):
		f.pace.shrink(q.To - q.From + 1)
	}
	return b, err
}

func (f *Follower) tryFetch(ctx context.Context, parent repute.Block, q Query) (store.Batch, error) {
	span, err := f.source.Span(ctx, q)
	if err != nil {
		return store.Batch{}, fmt.Errorf("blocks %d..%d: %w", q.From, q.To, err)
	}
	if len(span.Logs) > f.opts.MaxLogs && q.To > q.From {
		return store.Batch{}, fmt.Errorf("blocks %d..%d: %d logs are too many at once", q.From, q.To, len(span.Logs))
	}
	if err := span.check(parent, q); err != nil {
		return store.Batch{}, fmt.Errorf("blocks %d..%d: %w", q.From, q.To, err)
	}
	blocks, err := f.withTimes(ctx, span)
	if err != nil {
		return store.Batch{}, fmt.Errorf("blocks %d..%d: %w", q.From, q.To, err)
	}
	return f.batch(parent, q, span, blocks), nil
}

// withTimes gives every header of the span and one of every block with logs. The
// time comes with the log where the node gives it, else from the block.
func (f *Follower) withTimes(ctx context.Context, s Span) (map[uint64]repute.Block, error) {
	blocks := make(map[uint64]repute.Block, len(s.Headers))
	for _, h := range s.Headers {
		blocks[h.Number] = h
	}
	var unknown []uint64
	for i := range s.Logs {
		l := &s.Logs[i]
		if l.BlockTimestamp >= timesEnd {
			return nil, badLog(l, fmt.Sprintf("of time %d", l.BlockTimestamp))
		}
		if _, ok := blocks[l.BlockNumber]; ok {
			continue
		}
		blocks[l.BlockNumber] = blockOf(l)
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
			return nil, &answerError{fmt.Sprintf("block %d has two hashes", h.Number)}
		}
		blocks[h.Number] = h
	}
	for _, b := range blocks {
		if t := b.Time.Unix(); !b.Time.IsZero() && (t < 0 || t >= timesEnd) {
			return nil, &answerError{fmt.Sprintf("block %d is of time %d", b.Number, t)}
		}
	}
	return blocks, nil
}

// blockOf is what a log tells of its block.
func blockOf(l *types.Log) repute.Block {
	b := repute.Block{Number: l.BlockNumber, Hash: l.BlockHash}
	if l.BlockTimestamp > 0 {
		b.Time = time.Unix(int64(l.BlockTimestamp), 0).UTC()
	}
	return b
}

func (f *Follower) batch(parent repute.Block, q Query, s Span, blocks map[uint64]repute.Block) store.Batch {
	b := store.Batch{ChainID: f.chain.ID, Parent: parent, To: blocks[q.To],
		Backfill: f.heads.Latest.Number-q.To > nearHead}
	for _, l := range s.Logs {
		if e, ours := f.decoder.decode(l); ours {
			b.Records = append(b.Records, repute.Record{Log: l, Time: blocks[l.BlockNumber].Time, Event: e})
		}
	}
	for _, block := range blocks {
		// The first header of a backfilled range only proves that the chain goes on.
		if q.Linked || block.Number == q.To || holds(b.Records, block.Number) {
			b.Blocks = append(b.Blocks, block)
		}
	}
	slices.SortFunc(b.Blocks, func(x, y repute.Block) int { return cmp.Compare(x.Number, y.Number) })
	return b
}

// holds tells whether records, in block order, have one of that block.
func holds(records []repute.Record, number uint64) bool {
	_, found := slices.BinarySearchFunc(records, number, func(r repute.Record, n uint64) int {
		return cmp.Compare(r.Log.BlockNumber, n)
	})
	return found
}

// unread makes stored logs that nobody can read as loud as possible without
// stopping the chain: their events are a gap from now on.
func (f *Follower) unread(records []repute.Record) {
	for i := range records {
		e, ok := records[i].Event.(repute.Undecoded)
		if !ok {
			continue
		}
		l := &records[i].Log
		f.opts.Metrics.undecoded.WithLabelValues(f.label, string(e.Reason)).Inc()
		f.log.Error("registry log cannot be read", "reason", e.Reason, "block", l.BlockNumber, "logIndex", l.Index,
			"tx", l.TxHash, "address", l.Address, "topic", l.Topics[0])
	}
}
