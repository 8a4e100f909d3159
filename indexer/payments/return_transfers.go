package payments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// around returns what the side of the agent sent to the side of the rater within the window, and the time
// until the window ends, 0 when it has ended.
func (l *Loop) around(ctx context.Context, k repute.PaymentCase, paid repute.Block,
	final uint64) ([]repute.TokenTransfer, time.Duration, error) {
	before := paid.Number - min(paid.Number, blocksToMeasure)
	seen, err := l.pool.Blocks(ctx, []uint64{before, final})
	if err != nil {
		return nil, 0, noAnswer(err)
	}
	width := blocksIn(l.opts.Window, seen[0], seen[1])
	r := repute.BlockRange{From: paid.Number - min(paid.Number, width), To: min(final, paid.Number+width)}
	rest := paid.Time.Add(l.opts.Window).Sub(seen[1].Time)
	if rest > 0 {
		rest = max(rest, retryMin)
	}
	logs, err := l.moved(ctx, r, append(slices.Clone(k.Operators), k.To), k.Client)
	if err != nil {
		return nil, 0, noAnswer(err)
	}
	var out []repute.TokenTransfer
	for i := range logs {
		if t, ok := transferOf(&logs[i]); ok {
			out = append(out, t)
		}
	}
	return out, max(0, rest), nil
}

// blocksToMeasure is the least number of blocks over which the mean block time is measured.
const blocksToMeasure = 1000

// blocksIn estimates how many blocks a chain has in a duration.
func blocksIn(d time.Duration, from, to repute.Block) uint64 {
	took := to.Time.Sub(from.Time)
	if took <= 0 || to.Number <= from.Number {
		return uint64(d / time.Second)
	}
	return uint64(float64(d)/float64(took)*float64(to.Number-from.Number)) + 1
}

// moved returns the transfers of listed coins from some addresses to others, asking for one range of
// blocks after the other.
func (l *Loop) moved(ctx context.Context, r repute.BlockRange, from, to []common.Address) (out []types.Log, err error) {
	var coins []common.Address
	for _, s := range l.opts.Coins {
		coins = append(coins, s.Address)
	}
	topics := [][]common.Hash{{transferTopic}, hashesOf(from), hashesOf(to)}
	size := l.opts.Range
	for at := r.From; at <= r.To; {
		part := repute.BlockRange{From: at, To: min(r.To, at+size-1)}
		logs, err := l.pool.Matching(ctx, part, coins, topics)
		if err != nil {
			smaller := (part.To - part.From + 1) / 2
			if hint := jsonrpc.RangeHint(err); hint > 0 && hint < size {
				smaller = min(size/2, hint)
			}
			if ctx.Err() != nil || jsonrpc.IsTransient(err) {
				return nil, err
			}
			if smaller < l.opts.MinRange {
				return nil, fmt.Errorf("logs of %d blocks: %w", part.To-part.From+1, err)
			}
			size = smaller
			continue
		}
		out, at = append(out, logs...), part.To+1
	}
	return out, nil
}

// hashesOf returns addresses in the form of indexed topics, left-padded to 32 bytes.
func hashesOf(addresses []common.Address) []common.Hash {
	out := make([]common.Hash, len(addresses))
	for i, a := range addresses {
		out[i] = common.BytesToHash(a.Bytes())
	}
	return out
}
