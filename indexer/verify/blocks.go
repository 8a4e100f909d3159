package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/store"
)

// The look through the blocks. Where blooms tell something, which is on chains
// whose blocks are not full, every final block is proven once: its bloom excludes
// our events, or its receipts are read. Where every bloom admits everything, only the blocks that hold logs are
// asked for once more, by their hashes.
const (
	blocksPass = "blocks" // every block
	knownPass  = "known"  // blocks with logs
	// muteHits is how many of the blocks without logs of ours may look as if they had
	// some, in percent, before blooms count as telling nothing.
	muteHits = 25
	// muteSample is how many blocks it takes to say so.
	muteSample = 40
	// muteLies is how many looks in a row must find a bloom that denies stored events,
	// of all witnesses, before blooms count as telling nothing: one wrong bloom is no
	// chain without blooms.
	muteLies = 3
	// muteFor is how long they then do.
	muteFor = time.Hour
	// rereadLogs bounds how many stored logs are asked for again at once.
	rereadLogs = 1_000
)

// sweepBlocks looks through the next blocks.
func (v *Verifier) sweepBlocks(ctx context.Context, l store.Lease, at store.Standing) error {
	if at.Pin.Hash == (common.Hash{}) {
		return ErrNothingNew
	}
	v.listen()
	pass := blocksPass
	if v.mute {
		pass = knownPass
	}
	sweep, err := v.db.Sweep(ctx, v.chain.ID, pass)
	if err != nil {
		return err
	}
	if err := v.goBack(ctx, l, &sweep); err != nil {
		return err
	}
	r := repute.BlockRange{From: max(sweep.Position, v.chain.StartBlock), To: at.Pin.Number}
	if r.From > r.To {
		return ErrNothingNew
	}
	if v.mute {
		return v.sweepKnown(ctx, l, at, sweep, r)
	}
	r.To = min(r.To, r.From+v.opts.Window-1)
	w, err := v.look(ctx, r)
	if err != nil {
		return fmt.Errorf("look through blocks %d to %d: %w", r.From, r.To, err)
	}
	if v.distrust(w); v.mute {
		return nil
	}
	doubt, err := v.judgeAll(ctx, l, at, w.toJudge(r))
	if err != nil {
		return err
	}
	if err := v.note(ctx, l, &sweep, r, doubt); err != nil {
		return err
	}
	return v.db.SaveSweep(ctx, v.chain.ID, l, blocksPass, sweep)
}

// note publishes how far the blocks are proven without a gap, and keeps which is the
// first that is not.
func (v *Verifier) note(ctx context.Context, l store.Lease, sweep *store.Sweep, r repute.BlockRange, doubt uint64) error {
	sweep.Position = r.To + 1
	if len(sweep.Skipped) > 0 {
		return nil
	}
	proven := r.To
	if doubt > 0 {
		sweep.Skipped, sweep.Pinned = allKinds(), doubt
		proven = doubt - 1
	} else {
		v.doubt.retry.Reset()
	}
	if proven < r.From {
		return nil
	}
	return v.db.SetVerified(ctx, v.chain.ID, l, store.Verified{Kinds: allKinds(), LogsTo: proven})
}

// goBack asks again for the first block that could not be proven, from time to time
// and with more and more time between: a request that failed must not end the proof
// of a chain. Once the block is proven the look goes on from there.
func (v *Verifier) goBack(ctx context.Context, l store.Lease, sweep *store.Sweep) error {
	if v.mute || len(sweep.Skipped) == 0 || time.Now().Before(v.doubt.next) {
		return nil
	}
	v.doubt.next = time.Now().Add(v.doubt.retry.Next())
	first := max(sweep.Pinned, v.chain.StartBlock)
	j, err := v.judge(ctx, first)
	if !j.proven && !errors.Is(err, node.ErrMoved) {
		v.log.Debug("block still not proven", "block", first, "error", err)
		return ctx.Err()
	}
	*sweep = store.Sweep{Position: first}
	return v.db.SaveSweep(ctx, v.chain.ID, l, blocksPass, *sweep)
}

// distrust counts the looks in which blooms denied events that are there, and gives
// blooms up for a while when they tell nothing.
func (v *Verifier) distrust(w window) {
	switch {
	case len(w.lying) > 0:
		v.lies++
	case w.stored > 0:
		v.lies = 0
	}
	if v.lies >= muteLies || w.mute() {
		v.log.Info("the headers' blooms tell nothing: only blocks with events are looked at", "again", muteFor)
		v.mute, v.lies, v.unmute = true, 0, time.Now().Add(muteFor)
	}
}

// listen gives blooms another chance.
func (v *Verifier) listen() {
	if v.mute && !v.unmute.IsZero() && time.Now().After(v.unmute) {
		v.mute = false
	}
}

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
}

// judgeSome judges blocks side by side.
func (v *Verifier) judgeSome(ctx context.Context, numbers []uint64) []ruling {
	out := make([]ruling, len(numbers))
	var work errgroup.Group
	work.SetLimit(judgedAtOnce)
	for i, number := range numbers {
		work.Go(func() error {
			j, err := v.judge(ctx, number)
			out[i] = ruling{j, number, err}
			return nil
		})
	}
	_ = work.Wait() // every error is beside its block
	return out
}

// judgeAll settles suspect blocks by their receipts. It names the first that could
// not be proven, 0 when all were.
func (v *Verifier) judgeAll(ctx context.Context, l store.Lease, at store.Standing, suspects []uint64) (doubt uint64, err error) {
	for len(suspects) > 0 {
		n := min(len(suspects), 4*judgedAtOnce)
		for _, j := range v.judgeSome(ctx, suspects[:n]) {
			if errors.Is(j.err, node.ErrMoved) && j.number <= at.Pin.Number {
				j.judgement, j.err = v.rename(ctx, l, j.number)
			}
			if j.err != nil && (ctx.Err() != nil || node.WaitingHelps(j.err)) {
				return doubt, j.err
			}
			if j.err != nil {
				v.log.Warn("block not proven", "block", j.number, "error", j.err)
			}
			listed, err := v.act(ctx, l, at, j.judgement)
			if err != nil {
				return doubt, err
			}
			if doubt == 0 && !(j.proven && listed) {
				doubt = j.number
			}
		}
		suspects = suspects[n:]
	}
	return doubt, nil
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

// sweepKnown asks for the next blocks that hold logs once more.
func (v *Verifier) sweepKnown(ctx context.Context, l store.Lease, at store.Standing, sweep store.Sweep, r repute.BlockRange) error {
	logs, to, err := v.db.Logs(ctx, v.chain.ID, r, rereadLogs)
	if err != nil {
		return err
	}
	suspects, err := v.askAgain(ctx, logs)
	if err != nil {
		return fmt.Errorf("ask again for blocks %d to %d: %w", r.From, to, err)
	}
	if _, err := v.judgeAll(ctx, l, at, suspects); err != nil {
		return err
	}
	sweep.Position = to + 1
	return v.db.SaveSweep(ctx, v.chain.ID, l, knownPass, sweep)
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
