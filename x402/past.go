package x402

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
)

// Window is the time in which an authorization can be used, in seconds since 1970. Nothing that it moved is
// outside. A zero bound is none.
type Window struct{ Since, Until uint64 }

// window is that of the transfer's authorization.
func (t *Transfer) window() Window {
	seconds := func(a Amount) uint64 {
		if !a.n.IsUint64() {
			return 0
		}
		return a.n.Uint64()
	}
	return Window{seconds(t.Since), seconds(t.Until)}
}

// Blocks reads a chain for PastLogs.
type Blocks interface {
	// Newest is the newest block that Time and Between know.
	Newest(ctx context.Context) (number uint64, err error)
	// Time is that of a block, in seconds since 1970.
	Time(ctx context.Context, number uint64) (uint64, error)
	// Between are the logs of the query's blocks, FromBlock to ToBlock, the oldest first.
	Between(ctx context.Context, q ethereum.FilterQuery) ([]types.Log, error)
}

const (
	// logBlocks bounds one question for logs, in blocks, because nodes refuse ranges that are larger than they like.
	logBlocks = 1000
	// maxPast bounds how many blocks of a window are looked at: payers choose when it begins.
	maxPast = 20 * logBlocks
)

// PastLogs implements Logs of History for a query without BlockHash.
func PastLogs(ctx context.Context, b Blocks, q ethereum.FilterQuery,
	w Window) (out []types.Log, whole bool, err error) {
	newest, err := b.Newest(ctx)
	if err != nil {
		return nil, false, err
	}
	if q.ToBlock != nil && q.ToBlock.IsUint64() {
		newest = min(newest, q.ToBlock.Uint64())
	}
	if newest, err = lastOf(ctx, b, newest, w.Until); err != nil {
		return nil, false, err
	}
	for back := uint64(0); back < maxPast; back += logBlocks {
		oldest := newest - min(newest, back+logBlocks-1)
		q.FromBlock, q.ToBlock = new(big.Int).SetUint64(oldest), new(big.Int).SetUint64(newest-back)
		if out, err = b.Between(ctx, q); err != nil || len(out) > 0 {
			return out, false, err
		}
		if oldest == 0 {
			return nil, true, nil
		}
		if w.Since == 0 {
			continue
		}
		if at, err := b.Time(ctx, oldest); err != nil || at < w.Since {
			return nil, err == nil, err
		}
	}
	return nil, false, nil
}

// lastOf returns the first block up to newest that is not before a time, which is the last one that an
// authorization until then can be used in; newest where there is none.
func lastOf(ctx context.Context, b Blocks, newest, until uint64) (uint64, error) {
	if until == 0 {
		return newest, nil
	}
	high, low := newest, newest // the block is in (low, high] after the loop
	for step := uint64(logBlocks); ; step *= 2 {
		at, err := b.Time(ctx, low)
		if err != nil {
			return 0, err
		}
		if at < until {
			break
		}
		if low == 0 {
			return 0, nil
		}
		high, low = low, low-min(low, step)
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		at, err := b.Time(ctx, middle)
		if err != nil {
			return 0, err
		}
		if at < until {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}
