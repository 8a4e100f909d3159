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
	"repute/store"
)

const (
	// muteHits is how many of the blocks without logs of ours may look as if they had
	// some, in percent, before blooms count as telling nothing to a search.
	muteHits = 25
	// muteSample is how many blocks it takes to say so.
	muteSample = 40
	// rereadLogs bounds how many stored logs are asked for again at once.
	rereadLogs = 1_000
)

// allKinds are the events of the registries.
func allKinds() []repute.EventKind {
	var kinds []repute.EventKind
	for k := repute.KindTransfer; k <= repute.KindEIP712DomainChanged; k++ {
		kinds = append(kinds, k)
	}
	return kinds
}

// window is what the headers of some blocks say beside the stored logs.
type window struct {
	suspects []uint64
	stored   int      // blocks with stored logs
	empty    int      // blocks without
	hits     int      // of these, whose bloom admits events
	lying    []uint64 // blocks whose bloom denies the stored logs
}

func (w *window) mute() bool {
	return w.empty >= muteSample && w.hits*100 > w.empty*muteHits
}

// toJudge are the blocks whose receipts must be read: where one bloom is wrong, the
// others exclude nothing.
func (w *window) toJudge(r repute.BlockRange) []uint64 {
	if len(w.lying) > 0 {
		return upTo(r.From, r.To)
	}
	return w.suspects
}

// look reads the headers of a range and finds the blocks that may hold more than
// is stored.
func (v *Verifier) look(ctx context.Context, r repute.BlockRange) (window, error) {
	var w window
	numbers := upTo(r.From, r.To)
	headers, by, err := v.sealed(ctx, numbers)
	if err != nil {
		return w, err
	}
	if w.suspects, err = v.vouch(ctx, headers, by); err != nil {
		return w, err
	}
	known, err := v.db.Headers(ctx, v.chain.ID, numbers)
	if err != nil {
		return w, err
	}
	logs, to, err := v.db.Logs(ctx, v.chain.ID, r, 1<<30)
	if err != nil || to != r.To {
		return w, err
	}
	stored := byBlock(logs)
	if err := v.lookTwice(ctx, headers, stored); err != nil {
		return w, err
	}
	for i := range headers {
		h := &headers[i]
		w.add(h, stored[h.Number], v.admits(h.Bloom))
		if k, ok := known[h.Number]; ok && k.Hash != h.Hash { // stored under a hash that nobody has
			w.suspects = append(w.suspects, h.Number)
		}
	}
	w.suspects = slices.Compact(slices.Sorted(slices.Values(w.suspects)))
	return w, nil
}

// lookTwice asks another witness, where there is one, for the headers whose blooms
// deny what is stored.
func (v *Verifier) lookTwice(ctx context.Context, headers []node.Sealed, stored map[uint64][]types.Log) error {
	var places []int
	var numbers []uint64
	for i := range headers {
		if n := headers[i].Number; !within(bloomOf(stored[n]), headers[i].Bloom) {
			places, numbers = append(places, i), append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	var again []node.Sealed
	err := v.withOther(func(n *node.Node) (err error) {
		again, err = v.sealedOf(ctx, n, numbers)
		return err
	})
	for i := range again {
		headers[places[i]] = again[i]
	}
	return err
}

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
	if !within(bloomOf(stored), h.Bloom) {
		w.lying = append(w.lying, h.Number)
	}
}

// admits tells whether a bloom allows for any event of ours.
func (v *Verifier) admits(b types.Bloom) bool {
	s := search{v.decoder.Addresses, [][]common.Hash{append(contracts.Topics(), contracts.LegacyTopics()...)}}
	return s.may(b)
}

// judgedAtOnce is how many blocks' receipts are asked for at the same time.
const judgedAtOnce = 4

// ruling is a judgement of one of several blocks, or why there is none.
type ruling struct {
	judgement
	number uint64
	err    error
	why    error // for which its receipts prove nothing, where that is known
}

// judgeSome judges blocks side by side.
func (v *Verifier) judgeSome(ctx context.Context, numbers []uint64) []ruling {
	out := make([]ruling, len(numbers))
	var work errgroup.Group
	work.SetLimit(judgedAtOnce)
	for i, number := range numbers {
		work.Go(func() error {
			j, err := v.judge(ctx, number)
			out[i] = ruling{judgement: j, number: number, err: err}
			return nil
		})
	}
	_ = work.Wait() // every error is beside its block
	return out
}

// act repairs what a judgement shows to be missing, and in a final block whose
// receipts are proven also what is stored and not on the chain. Whatever stays wrong
// is published. False when something stays wrong that
// no gap tells of.
func (v *Verifier) act(ctx context.Context, l store.Lease, at store.Standing, j judgement) (listed bool, err error) {
	if j.settled() {
		return true, nil
	}
	full := v.open(ctx, l, v.blockHoles(j))
	if full != nil && !errors.Is(full, store.ErrGapsFull) {
		return false, full
	}
	if j.proven && len(j.extra) > 0 && j.block.Number <= at.Pin.Number {
		if err := v.amend(ctx, l, j); err != nil {
			return false, err
		}
	} else if len(j.absent) > 0 && j.block.Number <= at.Cursor {
		if err := v.repair(ctx, l, at, []judgement{j}); err != nil {
			return false, err
		}
	}
	again, err := v.judge(ctx, j.block.Number)
	if err != nil || !again.settled() {
		return full == nil, err
	}
	for _, h := range v.blockHoles(j) {
		if err := v.db.CloseGap(ctx, v.chain.ID, l, h); err != nil {
			return false, err
		}
	}
	return true, nil
}

// blockHoles names what is wrong with a block, by kind.
func (v *Verifier) blockHoles(j judgement) []hole {
	var holes []hole
	add := func(l types.Log, what string) {
		event, ours := v.decoder.Decode(l)
		if !ours {
			return
		}
		h := newHole(event.Kind(), blockSubject+strconv.FormatUint(j.block.Number, 10),
			repute.BlockRange{From: j.block.Number, To: j.block.Number}, fmt.Sprintf("log %d %s", l.Index, what))
		if id, ok := repute.AgentOf(event); ok {
			h.Agent = &id
		}
		if !slices.ContainsFunc(holes, func(x hole) bool { return sameHole(x, h) }) {
			holes = append(holes, h)
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
	return holes
}

// askAgain asks for the logs of the blocks of stored ones by hash and names the
// blocks that answer otherwise, and those whose stored logs do not fit together.
func (v *Verifier) askAgain(ctx context.Context, logs []types.Log) ([]uint64, error) {
	stored := byBlock(logs)
	numbers := slices.Sorted(maps.Keys(stored))
	headers, err := v.db.Headers(ctx, v.chain.ID, numbers)
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
	if err := v.spend(ctx, len(hashes)); err != nil {
		return nil, err
	}
	var answers [][]types.Log
	err = v.withWitness(func(n *node.Node) (err error) {
		answers, err = n.LogsOf(ctx, hashes, v.decoder.Addresses)
		return err
	})
	if err != nil {
		return nil, err
	}
	var suspects []uint64
	for i, n := range asked {
		j := v.weigh(node.Evidence{Logs: answers[i]}, stored[n])
		if answers[i] == nil || !j.settled() || !fits(v.chain, stored[n]) {
			suspects = append(suspects, n)
		}
	}
	return suspects, nil
}

// reread looks for more of what a node lost in a range: it asks for all logs in
// short pieces, looks at the headers where they tell something, and asks again for
// the blocks that are known to hold logs. It gives the blocks that lack some.
func (v *Verifier) reread(ctx context.Context, r repute.BlockRange) ([]judgement, error) {
	var suspects []uint64
	if !v.mute {
		for from := r.From; from <= r.To; from += v.opts.Window {
			part := repute.BlockRange{From: from, To: min(r.To, from+v.opts.Window-1)}
			w, err := v.look(ctx, part)
			if err != nil {
				return nil, err
			}
			suspects = append(suspects, w.toJudge(part)...)
		}
	} else {
		logs, _, err := v.db.Logs(ctx, v.chain.ID, r, rereadLogs)
		if err != nil {
			return nil, err
		}
		if suspects, err = v.askAgain(ctx, logs); err != nil {
			return nil, err
		}
	}
	found, err := v.again(ctx, r)
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

// again asks for all logs of a range, in pieces of other lengths than the indexer's.
func (v *Verifier) again(ctx context.Context, r repute.BlockRange) ([]types.Log, error) {
	const piece = 97
	s := search{addresses: v.decoder.Addresses}
	var found []types.Log
	err := v.withWitness(func(n *node.Node) (err error) {
		found, err = v.match(ctx, n, s, r, piece, searchCalls)
		return err
	})
	return slices.DeleteFunc(found, func(l types.Log) bool {
		_, ours := v.decoder.Decode(l)
		return !ours
	}), err
}
