package agent

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/agentdb"
)

// Bounds of following the chain, in blocks.
const (
	// EventBlocks bounds one question for events.
	EventBlocks = 1000
	// overlap is read again at each step: a reorganization of the chain, or a node whose logs lag, shows
	// other events there. Events that are in the log have no effect again.
	overlap = 64
	// maxReplay bounds what is replayed after a time in which no process ran: a week of blocks of two
	// seconds.
	maxReplay = 302_400
)

// scoreReads is how often the own score is read after a rating or its revocation, once at each step: the index shows
// the event when it has indexed the block and scored the agent, which takes it some seconds.
const scoreReads = 8

// keepTime is how often the progress is stored without events.
const keepTime = 10 * time.Minute

// following is how far the agent's events are known. Only Upkeep.watch uses it.
type following struct {
	next uint64              // block to go on with; 0: not known
	kept time.Time           // when next was stored
	seen map[eventKey]uint64 // events of the overlap with their blocks
	// moved is work that events asked for and that is not done, because the chain did not answer. rated is how often
	// the own score is still to be read because of ratings. A process that ends before does both at its next start.
	moved bool
	rated int
}

// eventKey names an event.
type eventKey struct {
	block common.Hash
	index uint
}

// watch follows the agent's events to the newest block.
func (u *Upkeep) watch(ctx context.Context) error {
	u.Router.SetScore(ctx, nil) // windows of the policy open and close by the clock
	f := &u.watching
	if f.next == 0 && !u.recall(ctx) {
		return nil
	}
	for {
		from := f.next - min(f.next-1, overlap)
		events, next, err := u.Registry.Events(ctx, from)
		if err == nil {
			err = u.take(ctx, events)
		}
		if refuted(err) {
			return err
		}
		if err != nil {
			u.failed(ctx, "watch events", err)
			return nil
		}
		f.next = max(f.next, next)
		f.forget()
		if next < from+EventBlocks {
			return nil
		}
	}
}

// recall finds the block that an earlier process stopped at, or the newest one. It reports whether one
// is known.
func (u *Upkeep) recall(ctx context.Context) bool {
	_, head, err := u.Registry.Events(ctx, 0)
	if err != nil {
		u.failed(ctx, "watch events", err)
		return false
	}
	last, err := agentdb.Watched(ctx, u.Router.db, u.Router.o.ID.String())
	if err != nil {
		u.failed(ctx, "recall watched events", err)
		return false
	}
	f := &u.watching
	f.seen, f.next = map[eventKey]uint64{}, max(head, 1)
	if last == 0 {
		u.keep(ctx) // a process that ends now leaves where the next one begins
		return true
	}
	if f.next = min(max(last, 1), f.next); head-f.next > maxReplay {
		f.next = head - maxReplay
		u.Router.o.Log.WarnContext(ctx, "events are left out: no process ran for too long", "from", last, "to", f.next)
	}
	return true
}

// take stores events that are new and acts on them.
func (u *Upkeep) take(ctx context.Context, events []repute.Record) error {
	f, news := &u.watching, false
	for _, e := range events {
		key := eventKey{e.Log.BlockHash, e.Log.Index}
		if _, known := f.seen[key]; known {
			continue
		}
		name := e.Event.Kind().String()
		added, err := agentdb.AddChainEvent(ctx, u.Router.db,
			agentdb.ChainEvent{Agent: u.Router.o.ID.String(), Name: name,
				Block: e.Log.BlockNumber, BlockHash: e.Log.BlockHash, Index: e.Log.Index, Transaction: e.Log.TxHash})
		if err != nil {
			return err
		}
		for _, v := range u.Validations {
			if err := v.Take(ctx, e); err != nil {
				return err
			}
		}
		f.seen[key] = e.Log.BlockNumber
		news = news || added
		// Every process acts on an event, also on one that another process stored.
		if kind := e.Event.Kind(); kind == repute.KindNewFeedback || kind == repute.KindFeedbackRevoked {
			f.rated = scoreReads
		}
		f.moved = f.moved || e.Event.Kind() == repute.KindURIUpdated
		u.Router.o.Log.InfoContext(ctx, "event of the agent", "event", name, "block", e.Log.BlockNumber,
			"transaction", e.Log.TxHash)
	}
	if f.moved { // once for all events: strangers can rate often
		done, err := u.synced(ctx)
		if err != nil {
			return err
		}
		f.moved = !done
	}
	if f.rated > 0 && u.readScore(ctx) {
		f.rated--
	}
	if news || time.Since(f.kept) > keepTime {
		u.keep(ctx)
	}
	return nil
}

// keep stores how far events are known. What is read again after a crash has no effect.
func (u *Upkeep) keep(ctx context.Context) {
	err := agentdb.SaveFollowedTo(ctx, u.Router.db, u.Router.o.ID.String(), u.watching.next)
	u.failed(ctx, "store watched events", err)
	if err == nil {
		u.watching.kept = time.Now()
	}
}

// forget drops events that are not read again.
func (f *following) forget() {
	for key, block := range f.seen {
		if block+2*overlap < f.next {
			delete(f.seen, key)
		}
	}
}
