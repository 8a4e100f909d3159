package indexer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/contracts"
	"repute/store"
)

// Outcomes of Step besides repute.ErrReorged. They are not failures.
var (
	// ErrNothingNew: everything the node has is stored.
	ErrNothingNew = errors.New("nothing new")
	// ErrBehind: the node's head is below what is stored and does not
	// contradict it. A lower head is not a reorganisation.
	ErrBehind = errors.New("the node is behind the index")
)

// Options of a Follower. Zero values are replaced by the defaults named.
type Options struct {
	Owner      string        // of the lease, unique per process; host, pid and a random part
	Poll       time.Duration // between looks at the head, 1 s
	TTL        time.Duration // of the lease, 10 s
	StartRange uint64        // blocks asked for at first, 2,000
	MaxRange   uint64        // and at most, 20,000
	MaxLogs    int           // of one range, 50,000: more shrink it
	RetryMin   time.Duration // first pause after a failure, 500 ms
	RetryMax   time.Duration // longest pause, 15 s
	Metrics    *Metrics      // nil: not exposed
	Log        *slog.Logger  // nil: discarded
}

func (o Options) withDefaults() Options {
	setDefault(&o.Poll, time.Second)
	setDefault(&o.TTL, 10*time.Second)
	setDefault(&o.StartRange, 2_000)
	setDefault(&o.MaxRange, 20_000)
	setDefault(&o.MaxLogs, 50_000)
	setDefault(&o.RetryMin, 500*time.Millisecond)
	setDefault(&o.RetryMax, 15*time.Second)
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:8])
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T ~int | ~int64 | ~uint64](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

const (
	// nearHead is how many blocks count as not final where the node does not
	// tell, and how far from the head single changes stop being announced.
	nearHead = 256
	// linkedRange is the largest range asked for with the header of every block.
	linkedRange = 48
	// headsAge is how old an answer about the head may be during a backfill.
	headsAge = 5 * time.Second
)

// Follower keeps one chain in the store up to date. What it holds in memory are
// only guesses that make it faster. Run and Step are for one goroutine.
type Follower struct {
	db      *store.DB
	chain   repute.Chain
	source  Source
	opts    Options
	label   string
	log     *slog.Logger
	decoder decoder
	topics  []common.Hash

	pace  pace
	heads Heads
	// proven is one above the newest stored block that was seen on the node's
	// chain after heads was answered; finality is claimed only below it.
	proven  uint64
	claimed store.Head // what was published last
	notes   notes
}

// NewFollower makes a Follower of chain c over source.
func NewFollower(db *store.DB, c repute.Chain, source Source, o Options) *Follower {
	o = o.withDefaults()
	c.StartBlock = max(c.StartBlock, 1) // as the store has it: a genesis block has no logs
	f := &Follower{db: db, chain: c, source: source, opts: o, label: chainLabel(c.ID),
		log: o.Log.With("chain", c.ID), decoder: newDecoder(c), topics: append(contracts.Topics(), contracts.LegacyTopics()...),
		pace: newPace(o.StartRange, o.MaxRange)}
	f.notes.feel(errors.New("not started"))
	return f
}

// Step does one unit of work under a lease (the zero Lease is not fenced): it
// stores the next range and returns nil, or replaces blocks that left the chain
// and returns repute.ErrReorged, or says why there was nothing to do
// (ErrNothingNew, ErrBehind). repute.ErrFinalized, repute.ErrConflict (another
// chain behind the endpoint) and repute.ErrFenced must end the loop; after any
// other error Step may be called again. Whatever happens, nothing is half done.
func (f *Follower) Step(ctx context.Context, l store.Lease) error {
	started := time.Now()
	cursor, err := f.db.Cursor(ctx, f.chain.ID)
	if err != nil {
		return err
	}
	if err := f.look(ctx, l, cursor); err != nil {
		return err
	}
	next := cursor.Number + 1
	switch head := f.heads.Latest; {
	case head.Number+1 == next && head.Hash == cursor.Hash:
		return ErrNothingNew
	case head.Number < next:
		return f.below(ctx, l, cursor)
	}
	batch, err := f.fetch(ctx, cursor, f.choose(next))
	if errors.Is(err, errForked) {
		return f.reorg(ctx, l, cursor)
	}
	if err != nil {
		return err
	}
	batch.Lease = l
	if err := f.db.Apply(ctx, batch); err != nil {
		return err
	}
	return f.stored(ctx, batch, started)
}

// look refreshes the head unless the range ahead is known to be far below it,
// and publishes it.
func (f *Follower) look(ctx context.Context, l store.Lease, cursor repute.Block) error {
	ahead := cursor.Number + 1 + f.pace.size + nearHead
	if time.Since(f.heads.SeenAt) < headsAge && ahead < min(f.heads.Latest.Number, f.settled()) {
		return nil
	}
	heads, err := f.source.Heads(ctx)
	if err != nil {
		return err
	}
	if heads.ChainID != f.chain.ID {
		return fmt.Errorf("the endpoint serves chain %d, configured is %d: %w", heads.ChainID, f.chain.ID, repute.ErrConflict)
	}
	// A node that once told finality and now fails to has not lost it.
	heads.Finalized = max(heads.Finalized, min(f.heads.Finalized, heads.Latest.Number))
	f.heads, f.proven = heads, 0
	if head := heads.Latest; head.Hash == cursor.Hash || head.Parent == cursor.Hash {
		f.proven = cursor.Number + 1
	}
	return f.publish(ctx, l)
}

// publish stores what the node said. Safe and finalized are claimed only for
// blocks that are stored and known to be on its chain: a stored block that left
// the chain while nobody looked must stay replaceable.
func (f *Follower) publish(ctx context.Context, l store.Lease) error {
	h := f.claimed
	h.Head, h.SeenAt = f.heads.Latest.Number, f.heads.SeenAt
	if f.proven > 0 {
		h.Safe, h.Finalized = min(f.heads.Safe, f.proven-1), min(f.heads.Finalized, f.proven-1)
	}
	if err := f.db.SetHead(ctx, f.chain.ID, l, h); err != nil {
		return err
	}
	f.claimed = h
	f.opts.Metrics.head.WithLabelValues(f.label).Set(float64(h.Head))
	f.opts.Metrics.finalized.WithLabelValues(f.label).Set(float64(h.Finalized))
	return nil
}

// settled is the newest block taken for final.
func (f *Follower) settled() uint64 {
	if f.heads.Finalized > 0 || f.heads.Latest.Number < nearHead {
		return f.heads.Finalized
	}
	return f.heads.Latest.Number - nearHead
}

// choose picks the range from next on. No range crosses from final to open
// blocks: the last final block is then always kept, and above it every block
// is, so that a common ancestor can be found at any open height.
func (f *Follower) choose(next uint64) Query {
	q := Query{From: next, To: min(next+f.pace.size-1, f.heads.Latest.Number),
		Addresses: f.decoder.addresses, Topics: f.topics}
	if settled := f.settled(); next <= settled {
		q.To = min(q.To, settled)
	} else {
		q.Linked = true
		q.To = min(q.To, next+linkedRange-1)
	}
	return q
}

// below handles a head under the cursor, or another block at the cursor's height:
// a reorganisation only where the node names another block at a height we hold.
func (f *Follower) below(ctx context.Context, l store.Lease, cursor repute.Block) error {
	if cursor.Hash == (common.Hash{}) {
		return ErrNothingNew // nothing is stored yet and the chain starts later
	}
	head := f.heads.Latest
	ours, err := f.db.StoredBlock(ctx, f.chain.ID, head.Number)
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return ErrBehind
	case err != nil:
		return err
	case ours.Hash == head.Hash:
		return ErrBehind
	}
	return f.reorg(ctx, l, cursor)
}

// stored counts a committed batch. The first one after a look at the head proves
// that the blocks below it are on the node's chain, which look could not know.
func (f *Follower) stored(ctx context.Context, b store.Batch, started time.Time) error {
	f.opts.Metrics.stored(f.label, b.To, b.Records)
	f.unread(b.Records)
	f.opts.Metrics.steps.WithLabelValues(f.label).Observe(time.Since(started).Seconds())
	f.log.Debug("stored", "from", b.Parent.Number+1, "to", b.To.Number, "events", len(b.Records))
	known := f.proven > 0
	f.proven = b.To.Number + 1
	if known {
		return nil
	}
	return f.publish(ctx, b.Lease)
}
