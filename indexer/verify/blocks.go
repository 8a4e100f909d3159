package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

const (
	// denseHits is the percentage of blocks without our logs whose bloom may admit some,
	// before blooms count as too dense to search by.
	denseHits = 25
	// denseSample is the number of blocks that this takes.
	denseSample = 40
	// rereadLogs bounds how many stored logs are asked for again at once.
	rereadLogs = 1_000
)

// allKinds returns the events of the registries.
func allKinds() []repute.EventKind {
	var kinds []repute.EventKind
	for k := repute.KindTransfer; k <= repute.KindEIP712DomainChanged; k++ {
		kinds = append(kinds, k)
	}
	return kinds
}

// window compares the headers of some blocks with the stored logs.
type window struct {
	suspects []uint64
	stored   int      // blocks with stored logs
	empty    int      // blocks without
	hits     int      // of these, whose bloom admits events
	denying  []uint64 // blocks whose bloom denies the stored logs
}

// dense reports whether so many blocks without our events have blooms that admit some that blooms
// save no requests.
func (w *window) dense() bool {
	return w.empty >= denseSample && w.hits*100 > w.empty*denseHits
}

// toJudge returns the blocks whose receipts must be read: all of them once one bloom is wrong.
func (w *window) toJudge(r repute.BlockRange) []uint64 {
	if len(w.denying) > 0 {
		return upTo(r.From, r.To)
	}
	return w.suspects
}

// readWindow reads the headers of a range and finds the blocks that may hold more than is stored.
func (v *Verifier) readWindow(ctx context.Context, r repute.BlockRange) (window, error) {
	var w window
	numbers := upTo(r.From, r.To)
	headers, by, err := v.witnesses.Headers(ctx, numbers)
	if err != nil {
		return w, err
	}
	if w.suspects, err = v.witnesses.ConfirmHeaders(ctx, headers, by); err != nil {
		return w, err
	}
	known, err := verifydb.Headers(ctx, v.db, v.chain.ID, numbers)
	if err != nil {
		return w, err
	}
	logs, to, err := verifydb.Logs(ctx, v.db, v.chain.ID, r, 1<<30)
	if err != nil || to != r.To {
		return w, err
	}
	stored := byBlock(logs)
	if err := v.rereadDenied(ctx, headers, stored); err != nil {
		return w, err
	}
	for i := range headers {
		h := &headers[i]
		w.add(h, stored[h.Number], v.admits(h.Bloom))
		if k, ok := known[h.Number]; ok && k.Hash != h.Hash { // stored with a hash that no endpoint has
			w.suspects = append(w.suspects, h.Number)
		}
	}
	w.suspects = slices.Compact(slices.Sorted(slices.Values(w.suspects)))
	return w, nil
}

// rereadDenied asks another witness, where there is one, for the headers whose blooms
// deny what is stored.
func (v *Verifier) rereadDenied(ctx context.Context, headers []node.Sealed, stored map[uint64][]types.Log) error {
	var places []int
	var numbers []uint64
	for i := range headers {
		if n := headers[i].Number; !missing.Within(missing.Bloom(stored[n]), headers[i].Bloom) {
			places, numbers = append(places, i), append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	var again []node.Sealed
	err := v.witnesses.Last(func(n *node.Node) (err error) {
		again, err = v.witnesses.HeadersOf(ctx, n, numbers)
		return err
	})
	for i := range again {
		headers[places[i]] = again[i]
	}
	return err
}

// byBlock groups logs by the number of their block.
func byBlock(logs []types.Log) map[uint64][]types.Log {
	out := map[uint64][]types.Log{}
	for _, l := range logs {
		out[l.BlockNumber] = append(out[l.BlockNumber], l)
	}
	return out
}

// add judges one header. A block that holds events is always suspect: another one
// of the same agents sets no bit that is not set already.
func (w *window) add(h *node.Sealed, stored []types.Log, admits bool) {
	if len(stored) == 0 {
		if w.empty++; admits {
			w.hits++
			w.suspects = append(w.suspects, h.Number)
		}
		return
	}
	w.stored++
	w.suspects = append(w.suspects, h.Number)
	if !missing.Within(missing.Bloom(stored), h.Bloom) {
		w.denying = append(w.denying, h.Number)
	}
}

// admits reports whether a bloom admits any event of the registries.
func (v *Verifier) admits(b types.Bloom) bool {
	s := missing.Search{Addresses: v.decoder.Addresses,
		Topics: [][]common.Hash{contracts.FollowedTopics(v.chain)}}
	return s.May(b)
}

// judgedAtOnce is how many blocks' receipts are asked for at the same time.
const judgedAtOnce = 4

// blockResult is the judgment of one of several blocks, or why there is none.
type blockResult struct {
	judgment
	number uint64
	err    error
	why    error // why its receipts prove nothing, nil when that is not known
}

// judgeSome judges several blocks at the same time.
func (v *Verifier) judgeSome(ctx context.Context, numbers []uint64) []blockResult {
	out := make([]blockResult, len(numbers))
	var work errgroup.Group
	work.SetLimit(judgedAtOnce)
	for i, number := range numbers {
		work.Go(func() error {
			j, err := v.judge(ctx, number)
			out[i] = blockResult{judgment: j, number: number, err: err}
			return nil
		})
	}
	_ = work.Wait() // errors are in the results
	return out
}

// act stores what a judgment shows to be missing, and deletes from a final block whose receipts
// are proven what is not on the chain. The gap is stored before the repair and closed after it: a
// crash between leaves it published. listed is false when something stays wrong and there is no
// room for its gap.
func (v *Verifier) act(ctx context.Context, l store.Lease, at verifydb.Standing, j judgment) (listed bool, err error) {
	if j.settled() {
		return true, nil
	}
	full := v.open(ctx, l, v.blockGaps(j))
	if full != nil && !errors.Is(full, chaindb.ErrGapsFull) {
		return false, full
	}
	if j.proven && len(j.extra) > 0 && j.block.Number <= at.Pin.Number {
		if err := v.amend(ctx, l, j); err != nil {
			return false, err
		}
	} else if len(j.absent) > 0 && j.block.Number <= at.Cursor {
		if err := v.repair(ctx, l, at, []judgment{j}); err != nil {
			return false, err
		}
	}
	again, err := v.judge(ctx, j.block.Number)
	if err != nil || !again.settled() {
		return full == nil, err
	}
	for _, h := range v.blockGaps(j) {
		if err := chaindb.CloseGap(ctx, v.db, v.chain.ID, l, h); err != nil {
			return false, err
		}
	}
	return true, nil
}

// blockGaps returns the gaps that a judgment shows, by kind.
func (v *Verifier) blockGaps(j judgment) []gap {
	var gaps []gap
	add := func(l types.Log, what string) {
		event, ours := v.decoder.Decode(l)
		if !ours {
			return
		}
		h := missing.New(event.Kind(), missing.BlockSubject+strconv.FormatUint(j.block.Number, 10),
			repute.BlockRange{From: j.block.Number, To: j.block.Number}, fmt.Sprintf("log %d %s", l.Index, what))
		if id, ok := repute.AgentOf(event); ok {
			h.Agent = &id
		}
		if !missing.Contains(gaps, h) {
			gaps = append(gaps, h)
		}
	}
	for _, l := range j.absent {
		add(l, "is in the block's receipts and not stored")
	}
	for _, l := range j.claimed {
		add(l, "is shown by one endpoint, which cannot prove it, and by no other")
	}
	for _, l := range j.extra {
		add(l, "is stored and not in the block's receipts")
	}
	return gaps
}

// askAgain asks for the logs of the blocks that hold stored ones, by hash. It returns the blocks
// of which other logs are shown, and those whose stored logs do not fit together.
func (v *Verifier) askAgain(ctx context.Context, logs []types.Log) ([]uint64, error) {
	stored := byBlock(logs)
	numbers := slices.Sorted(maps.Keys(stored))
	headers, err := verifydb.Headers(ctx, v.db, v.chain.ID, numbers)
	if err != nil {
		return nil, err
	}
	var asked []uint64
	var hashes []common.Hash
	for _, n := range numbers {
		if h, ok := headers[n]; ok {
			asked, hashes = append(asked, n), append(hashes, h.Hash)
		}
	}
	if err := v.witnesses.Spend(ctx, len(hashes)); err != nil {
		return nil, err
	}
	var answers [][]types.Log
	err = v.witnesses.First(func(n *node.Node) (err error) {
		answers, err = n.LogsOf(ctx, hashes, v.decoder.Addresses)
		return err
	})
	if err != nil {
		return nil, err
	}
	var suspects []uint64
	for i, n := range asked {
		j := v.weigh(node.Evidence{Logs: answers[i]}, stored[n])
		if answers[i] == nil || !j.settled() || !missing.Fits(v.chain, stored[n]) {
			suspects = append(suspects, n)
		}
	}
	return suspects, nil
}

// reread looks for more of what a node left out of a range: it asks for all logs in short pieces,
// reads the headers unless their blooms are dense, and asks again for the blocks that hold stored
// logs. It returns the blocks in which logs are missing.
func (v *Verifier) reread(ctx context.Context, r repute.BlockRange) ([]judgment, error) {
	var suspects []uint64
	if !v.dense {
		for from := r.From; from <= r.To; from += v.opts.Window {
			part := repute.BlockRange{From: from, To: min(r.To, from+v.opts.Window-1)}
			w, err := v.readWindow(ctx, part)
			if err != nil {
				return nil, err
			}
			suspects = append(suspects, w.toJudge(part)...)
		}
	} else {
		logs, _, err := verifydb.Logs(ctx, v.db, v.chain.ID, r, rereadLogs)
		if err != nil {
			return nil, err
		}
		if suspects, err = v.askAgain(ctx, logs); err != nil {
			return nil, err
		}
	}
	found, err := v.allLogs(ctx, r)
	if err != nil {
		return nil, err
	}
	looked := map[uint64]bool{}
	judged, err := v.judgePlaces(ctx, found, judgedBlocks, looked)
	if err != nil {
		return nil, err
	}
	for _, number := range suspects[:min(len(suspects), judgedBlocks)] {
		if looked[number] {
			continue
		}
		j, err := v.judge(ctx, number)
		if err != nil {
			return nil, err
		}
		judged = append(judged, j)
	}
	return lacking(judged), nil
}

// allLogs asks for all logs of a range, in pieces of other lengths than the indexer's.
func (v *Verifier) allLogs(ctx context.Context, r repute.BlockRange) ([]types.Log, error) {
	const piece = 97
	s := missing.Search{Addresses: v.decoder.Addresses}
	var found []types.Log
	err := v.witnesses.First(func(n *node.Node) (err error) {
		found, err = v.match(ctx, n, s, r, piece, searchCalls)
		return err
	})
	return slices.DeleteFunc(found, func(l types.Log) bool {
		_, ours := v.decoder.Decode(l)
		return !ours
	}), err
}
