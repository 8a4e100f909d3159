package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/indexer/verify/missing"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
	"repute/store/verifydb"
)

const (
	// waitingAtOnce bounds how many waiting events are looked at for what they miss.
	waitingAtOnce = 500
	// settleRounds bounds how often one gap is searched in one try: every round that
	// repairs something may leave another event missing.
	settleRounds = 16
)

// settleNext looks for what one gap lacks. Events that wait are gaps as well.
// ErrNothingNew when none is due.
func (v *Verifier) settleNext(ctx context.Context, l store.Lease, at verifydb.Standing) error {
	if v.opts.HistoryOnly {
		return v.settleHistory(ctx, l, at)
	}
	waiting, err := v.waiting(ctx)
	if err != nil {
		return err
	}
	if len(waiting) > 0 {
		if err := chaindb.OpenGaps(ctx, v.db, v.chain.ID, l, waiting); err != nil && !errors.Is(err, chaindb.ErrGapsFull) {
			return err
		}
	}
	due, err := chaindb.DueGaps(ctx, v.db, v.chain.ID, 1)
	if err != nil {
		return err
	}
	if len(due) == 0 {
		return ErrNothingNew
	}
	return v.settle(ctx, l, at, due[0])
}

// waiting are the gaps that stored events wait for, each once.
func (v *Verifier) waiting(ctx context.Context) ([]gap, error) {
	events, err := verifydb.WaitingEvents(ctx, v.db, v.chain.ID, waitingAtOnce)
	if err != nil {
		return nil, err
	}
	var gaps []gap
	for _, w := range events {
		event, err := contracts.Decode(w.Log)
		if err != nil {
			continue // stored by a version that could read it
		}
		h, ok := missing.Waiting(w, event, v.chain.StartBlock)
		if ok && !missing.Contains(gaps, h) {
			gaps = append(gaps, h)
		}
	}
	return gaps, nil
}

// settle searches a gap until it is closed or a search finds nothing more.
func (v *Verifier) settle(ctx context.Context, l store.Lease, at verifydb.Standing, h gap) error {
	if strings.HasPrefix(h.Subject, chaindb.HistorySubject) {
		return v.readHistory(ctx, l, at, h)
	}
	if h.Subject == startSubject {
		return v.settleStart(ctx, l, h)
	}
	for range settleRounds {
		still, err := v.stillMissing(ctx, at, h)
		if err == nil && !still {
			v.log.Info("gap closed", "kind", h.Kind, "subject", h.Subject)
			return chaindb.CloseGap(ctx, v.db, v.chain.ID, l, h)
		}
		if err != nil && !errors.Is(err, node.ErrNoState) {
			return v.postpone(ctx, l, h, err)
		}
		found, err := v.locate(ctx, at, h)
		if err == nil && len(found) > 0 {
			err = v.repair(ctx, l, at, found)
		}
		if errors.Is(err, repute.ErrFenced) {
			return err
		}
		if err != nil || len(found) == 0 {
			return v.postpone(ctx, l, h, err)
		}
	}
	return v.postpone(ctx, l, h, nil)
}

// postpone leaves a gap open until its next try.
func (v *Verifier) postpone(ctx context.Context, l store.Lease, h gap, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	pause := node.Doubled(v.opts.RetryMin, v.opts.RetryMax, h.Tries)
	v.log.Warn("event not found", "kind", h.Kind, "subject", h.Subject, "from", h.Blocks.From, "to", h.Blocks.To,
		"again", pause, "error", cause)
	return chaindb.PostponeGap(ctx, v.db, v.chain.ID, l, h, pause)
}

// stillMissing compares a stored gap with the chain again and reports whether it is still there.
func (v *Verifier) stillMissing(ctx context.Context, at verifydb.Standing, h gap) (still bool, err error) {
	switch {
	case strings.HasPrefix(h.Subject, missing.WaitSubject):
		waiting, err := v.waiting(ctx)
		return missing.Contains(waiting, h), err
	case strings.HasPrefix(h.Subject, missing.BlockSubject):
		number, err := strconv.ParseUint(strings.TrimPrefix(h.Subject, missing.BlockSubject), 10, 64)
		if err != nil {
			return false, nil
		}
		judged, err := v.judge(ctx, number)
		return !judged.settled(), err
	}
	votes, err := v.vote(ctx, at, h, nil)
	return votes.confirmed(), err
}

// repair puts logs in their place and looks for more where they were lost: a node
// that dropped one of a range has likely dropped others.
func (v *Verifier) repair(ctx context.Context, l store.Lease, at verifydb.Standing, lacking []judgment) error {
	if _, err := v.storeMissing(ctx, l, at, lacking); err != nil {
		return err
	}
	for _, j := range lacking {
		window := j.block.Number / widenBlocks
		if v.widened[window] {
			continue
		}
		v.widened[window] = true
		if err := v.widen(ctx, l, at, window*widenBlocks); err != nil {
			v.log.Warn("neighbors of a missing event not looked at", "block", j.block.Number, "error", err)
		}
	}
	return nil
}

// widenBlocks is how many blocks around a missing event are looked at.
const widenBlocks = 2_000

// widen looks through the blocks around a missing event, once for each window while the process runs.
func (v *Verifier) widen(ctx context.Context, l store.Lease, at verifydb.Standing, from uint64) error {
	r := repute.BlockRange{From: max(from, v.chain.StartBlock), To: min(from+widenBlocks-1, at.Cursor)}
	more, err := v.reread(ctx, r)
	if err != nil {
		return err
	}
	_, err = v.storeMissing(ctx, l, at, more)
	return err
}

// storeMissing stores the missing events of judged blocks, and returns how many there were.
func (v *Verifier) storeMissing(ctx context.Context, l store.Lease, at verifydb.Standing, lacking []judgment) (int,
	error) {
	records, blocks, err := v.records(at, lacking)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	result, err := importdb.Repair(ctx, v.db, v.chain.ID, l, records, blocks)
	if err != nil {
		return 0, fmt.Errorf("repair %d events from block %d on: %w", len(records), records[0].Log.BlockNumber, err)
	}
	for i := range records {
		v.opts.Metrics.repaired.WithLabelValues(v.label, records[i].Event.Kind().String()).Inc()
	}
	v.log.Info("repaired", "events", result.Events, "first", records[0].Log.BlockNumber,
		"last", records[len(records)-1].Log.BlockNumber, "pending", result.Pending)
	return len(records), nil
}

// records decodes the missing logs of judged blocks.
func (v *Verifier) records(at verifydb.Standing, lacking []judgment) (records []repute.Record, blocks []repute.Block,
	err error) {
	for _, j := range lacking {
		if j.block.Number > at.Cursor ||
			slices.ContainsFunc(blocks, func(b repute.Block) bool { return b.Number == j.block.Number }) {
			continue
		}
		if err := node.CheckTime(j.block.Block); err != nil {
			return nil, nil, err
		}
		blocks = append(blocks, j.block.Block)
		for _, l := range j.absent {
			if event, ours := v.decoder.Decode(l); ours {
				records = append(records, repute.Record{Log: l, Time: j.block.Time, Event: event})
			}
		}
	}
	return records, blocks, nil
}
