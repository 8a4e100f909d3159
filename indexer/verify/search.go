package verify

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/indexer/verify/missing"
	"repute/store/verifydb"
)

// Bounds of one search for one gap.
const (
	searchCalls   = 64     // targeted log queries per witness and filter
	bisectAbove   = 64     // blocks: longer ranges are narrowed by state first
	scannedBlocks = 10_000 // headers looked through
	judgedBlocks  = 100    // receipts read
	leastScanned  = 200    // headers, however many searches found nothing
	leastJudged   = 4      // receipts then
	leastQueries  = 8      // log queries then
)

// effort returns the budget of a search: half as much after every search that found nothing, but
// never zero. A lost event must not cause cost forever, and one that exists is likely found at the
// first tries.
func effort[T int | uint64](first, least T, tries int) T { return max(first>>min(tries, 30), least) }

// locate searches the logs that a gap lacks, the cheapest way first: log queries
// for the very agent, over the whole range and then over shorter ones; the block
// where the state changed; the blooms of the headers. What is found are the blocks
// that lack logs by their receipts, which judge.
func (v *Verifier) locate(ctx context.Context, at verifydb.Standing, h gap) ([]judgment, error) {
	r := h.Blocks
	r.From, r.To = max(r.From, v.chain.StartBlock), min(max(r.To, r.From), at.Cursor)
	if r.To < r.From {
		return nil, nil
	}
	found, err := v.query(ctx, h, r)
	if err != nil || len(found) > 0 {
		return found, err
	}
	if r.To-r.From >= bisectAbove && missing.OfState(h) {
		if narrow, ok := v.bisect(ctx, h, r); ok {
			if found, err := v.scan(ctx, h, narrow); err != nil || len(found) > 0 {
				return found, err
			}
		}
	}
	return v.scan(ctx, h, r)
}

// query asks every witness for the agent's logs, over the whole range and over a
// sixteenth of it at a time, and judges the blocks of those that are not stored.
func (v *Verifier) query(ctx context.Context, h gap, r repute.BlockRange) ([]judgment, error) {
	var last error
	looked := map[uint64]bool{}
	for _, n := range v.witnesses.Nodes() {
		for _, s := range missing.Searches(v.chain, h) {
			for _, most := range []uint64{r.To - r.From + 1, (r.To-r.From)/16 + 1} {
				found, err := v.match(ctx, n, s, r, most, effort(searchCalls, leastQueries, h.Tries))
				if err != nil {
					last = err
					continue
				}
				judged, err := v.judgePlaces(ctx, found, effort(judgedBlocks, leastJudged, h.Tries), looked)
				if judged = lacking(judged); len(judged) > 0 {
					return judged, nil
				}
				if err != nil {
					last = err
				}
			}
		}
	}
	if ctx.Err() != nil {
		return nil, last
	}
	return nil, nil
}

// match asks for the logs of a range in pieces of at most that many blocks, halved
// when the node refuses, with so many calls. What it found before it gave up counts.
func (v *Verifier) match(ctx context.Context, n *node.Node, s missing.Search, r repute.BlockRange, most uint64,
	calls int) ([]types.Log, error) {
	var found []types.Log
	from := r.From
	for range calls {
		if err := v.witnesses.Spend(ctx, 1); err != nil {
			return found, err
		}
		part := repute.BlockRange{From: from, To: min(r.To, from+most-1)}
		logs, err := n.Matching(ctx, part, s.Addresses, s.Topics)
		switch {
		case err == nil:
			for i := range logs {
				if s.Matches(&logs[i]) {
					found = append(found, logs[i])
				}
			}
			if part.To == r.To {
				return found, nil
			}
			from = part.To + 1
		case ctx.Err() != nil:
			return found, ctx.Err()
		case part.From == part.To || jsonrpc.IsTransient(err):
			return found, err
		default:
			most = (part.To - part.From + 1) / 2
		}
	}
	return found, nil
}

// bisect finds the block at which the state of the chain and the stored state began to differ: it
// lacks a log if the states are equal below it and differ from it on. It returns false if no
// witness has such old states.
func (v *Verifier) bisect(ctx context.Context, h gap, r repute.BlockRange) (repute.BlockRange, bool) {
	for _, n := range v.witnesses.Nodes() {
		low, high := r.From, r.To // equal below low, different at high
		ok := true
		for low < high && ok {
			mid := low + (high-low)/2
			differs, err := v.states.Shows(ctx, n, repute.Block{Number: mid}, h)
			switch {
			case err != nil:
				v.log.Debug("no bisection", "block", mid, "error", err)
				ok = false
			case differs:
				high = mid
			default:
				low = mid + 1
			}
		}
		if ok {
			return repute.BlockRange{From: high, To: high}, true
		}
	}
	return r, false
}

// scanned returns the part of a range that the next scan examines: its end, where the newest state
// was created, and the part before it after every search that found nothing.
func scanned(r repute.BlockRange, tries int) repute.BlockRange {
	size := effort[uint64](scannedBlocks, leastScanned, tries)
	all := r.To - r.From + 1
	if all <= size {
		return r
	}
	to := r.To - uint64(tries)*size%all
	return repute.BlockRange{From: max(r.From, to-min(to, size-1)), To: to}
}

// scan examines the headers of a range from its end, within the effort that the gap is worth, and
// judges the blocks whose bloom admits one of its logs.
func (v *Verifier) scan(ctx context.Context, h gap, r repute.BlockRange) ([]judgment, error) {
	filters := missing.Searches(v.chain, h)
	judged, most := 0, effort(judgedBlocks, leastJudged, h.Tries)
	r = scanned(r, h.Tries)
	low := r.From
	for to := r.To; ; to -= v.opts.Window {
		from := max(low, to-min(to, v.opts.Window-1))
		headers, _, err := v.witnesses.Headers(ctx, upTo(from, to))
		if err != nil {
			return nil, err
		}
		for i := len(headers) - 1; i >= 0 && judged < most; i-- {
			if from != to && !admits(filters, headers[i].Bloom) {
				continue
			}
			judged++
			j, err := v.judge(ctx, headers[i].Number)
			if err != nil {
				return nil, err
			}
			if len(j.absent) > 0 {
				return []judgment{j}, nil
			}
		}
		if from == low || judged >= most {
			return nil, nil
		}
	}
}

// admits reports whether a bloom admits a log that one of the filters matches.
func admits(filters []missing.Search, b types.Bloom) bool {
	return b == types.Bloom{} || // a chain without blooms admits anything
		slices.ContainsFunc(filters, func(s missing.Search) bool { return s.May(b) })
}

// upTo lists the numbers of a range, both ends included.
func upTo(from, to uint64) []uint64 {
	numbers := make([]uint64, 0, to-from+1)
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}
