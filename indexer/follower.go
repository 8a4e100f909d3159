package indexer

import (
	"cmp"
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
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/scoredb"
)

// Source is a node as the Follower needs it. *node.Node and *node.Pool implement it. After an error
// that satisfies jsonrpc.IsTransient the same range is asked for again, after others a shorter one.
type Source interface {
	// Heads returns the id of the chain and its newest, safe and finalized blocks.
	Heads(ctx context.Context) (node.Heads, error)
	// Span returns the logs and headers that a query asks for, from one consistent view as far as
	// the node can give one.
	Span(ctx context.Context, q node.Query) (node.Span, error)
	// Blocks returns the headers of canonical blocks, in the order of the numbers. It is an error
	// when the node does not have one of them.
	Blocks(ctx context.Context, numbers []uint64) ([]repute.Block, error)
	// Header returns a canonical header. Where the hashes of the chain's headers can be recomputed,
	// the header has the hash that follows from its fields.
	Header(ctx context.Context, number uint64) (node.Sealed, error)
	// Receipts returns all logs of a block, and whether its receipts prove them.
	Receipts(ctx context.Context, block repute.Block, spend node.Spend) (node.Evidence, error)
}

// Errors that Step returns besides repute.ErrReorged when there is nothing to store. They are not failures.
var (
	// ErrNothingNew is returned when everything that the node has is stored.
	ErrNothingNew = errors.New("nothing new")
	// ErrBehind is returned when the head of the node is below the newest stored block and does
	// not contradict it. A lower head is not a reorganization.
	ErrBehind = errors.New("the node is behind the index")
	// ErrDone is returned when the last wanted block is stored.
	ErrDone = errors.New("the last block wanted is stored")
)

// Options of a Follower. Zero values are replaced by the defaults named.
type Options struct {
	Owner      string        // of the lease, unique per process; host, pid and a random part
	Poll       time.Duration // between looks at the head; 0: as the blocks come, see poller
	TTL        time.Duration // of the lease, 10 s
	StartRange uint64        // blocks asked for at first, 400
	MaxRange   uint64        // and at most, 20,000
	RangeLogs  int           // logs aimed at in one range, 24,000
	MaxLogs    int           // of one range, 50,000: more shrink it
	MaxBytes   int           // of answers held at once, fetched or expected, 80 MiB
	Ahead      int           // ranges fetched at once, 4
	RetryMin   time.Duration // first pause after a failure, 500 ms
	RetryMax   time.Duration // longest pause, 15 s
	// Wake, when not nil, receives a signal when the head may have moved. Polling continues.
	Wake <-chan struct{}
	// Until is the block after which Run ends; 0: Run does not end.
	Until uint64
	// Once ends Run after the block that is the head when Run begins.
	Once bool
	// Depth is how many blocks below the head count as final where the node names
	// no finalized block, or its head as one. 0: none does, or 256 blocks below a head
	// that is named.
	Depth uint64
	// AnyValidation stores validations of contracts that are not on the allow-list
	// too; they do not count.
	AnyValidation bool
	Bloom         Bloom // what headers' blooms are used for, BloomHint
	// Verifier, when not nil, runs concurrently while this process holds the lease.
	Verifier Verifying
	Stall    time.Duration // without progress below the head until the alarm, 2 min
	Metrics  *Metrics      // nil: not exposed
	Log      *slog.Logger  // nil: discarded
}

// Verifying compares what is stored with the chain, under the lease of the chain, until ctx ends.
// It receives a signal on nudge when events were stored that wait for missing ones.
type Verifying interface {
	Run(ctx context.Context, l store.Lease, nudge <-chan struct{}) error
}

func (o Options) withDefaults() Options {
	setDefault(&o.TTL, 10*time.Second)
	setDefault(&o.StartRange, 400)
	setDefault(&o.MaxRange, 20_000)
	setDefault(&o.RangeLogs, 24_000)
	setDefault(&o.MaxLogs, 50_000)
	setDefault(&o.MaxBytes, 80<<20)
	setDefault(&o.Ahead, 4)
	setDefault(&o.Stall, 2*time.Minute)
	setDefault(&o.RetryMin, 500*time.Millisecond)
	setDefault(&o.RetryMax, 15*time.Second)
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:8])
	}
	o.Bloom = cmp.Or(o.Bloom, BloomHint)
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
	linkedRange = 45
	// headsAge is how old an answer about the head may be during a backfill.
	headsAge = 5 * time.Second
)

// Follower keeps one chain in the store up to date. What it holds in memory only makes it faster:
// the store has all that it needs to continue. Run and Step MUST be called by one goroutine.
type Follower struct {
	db      *store.DB
	chain   repute.Chain
	source  Source
	opts    Options
	label   string
	log     *slog.Logger
	decoder contracts.Decoder
	topics  []common.Hash

	until    uint64 // the last block to be stored, 0 when Run does not end
	unlisted unlisted
	sizer    rangeSizer
	prefetch prefetcher
	blooms   bloomTrust
	// headerTrust is what is known of the headers of the chain.
	headerTrust headerTrust
	heads       node.Heads
	// proven is 1 above the newest stored block that was seen on the node's
	// chain after heads was answered; finality is claimed only below it.
	proven     uint64
	claimed    chaindb.Head // what was published last
	finality   finality
	poll       poller
	progress   progress
	nudge      chan struct{} // for the verifier
	earlyLooks int           // early looks at the head that are left; see waitForHead
	atHead     bool          // the last step stored the head that it saw
	status     statusText
}

// NewFollower returns a Follower of chain c that reads from source.
func NewFollower(db *store.DB, c repute.Chain, source Source, o Options) *Follower {
	o = o.withDefaults()
	c.StartBlock = max(c.StartBlock, 1) // as the store has it: a genesis block has no logs
	f := &Follower{db: db, chain: c, source: source, opts: o, label: chainLabel(c.ID),
		log: o.Log.With("chain", c.ID), decoder: contracts.NewDecoder(c),
		topics:   contracts.FollowedTopics(c),
		unlisted: newUnlisted(o.AnyValidation), prefetch: prefetcher{width: min(2, o.Ahead)}, until: o.Until,
		nudge: make(chan struct{}, 1)}
	f.headerTrust.off = o.Bloom == BloomOff
	f.sizer, f.finality, f.poll = f.newSizer(), finality{configured: o.Depth}, poller{fixed: o.Poll}
	f.status.setError(errors.New("not started"))
	return f
}

// newSizer returns the sizes of ranges for a backfill. A range aims at a third of MaxBytes,
// because several are fetched at once.
func (f *Follower) newSizer() rangeSizer {
	return newRangeSizer(f.opts.StartRange, f.opts.MaxRange,
		load{float64(f.opts.RangeLogs), float64(f.opts.MaxBytes) / 3})
}

// Step does one unit of work under a lease (the zero Lease is not fenced): it
// stores the next range and returns nil, or replaces blocks that left the chain
// and returns repute.ErrReorged, or says why there was nothing to do
// (ErrNothingNew, ErrBehind, ErrDone). repute.ErrFinalized, repute.ErrConflict (another
// chain behind the endpoint) and repute.ErrFenced must end the loop; after any
// other error Step may be called again. Whatever happens, nothing is half done.
func (f *Follower) Step(ctx context.Context, l store.Lease) error {
	started := time.Now()
	cursor, err := chaindb.Cursor(ctx, f.db, f.chain.ID)
	if err != nil {
		return err
	}
	if f.until > 0 && cursor.Number >= f.until {
		return ErrDone
	}
	f.progress.setCursor(cursor.Number)
	f.atHead = false
	if err := f.readHead(ctx, l, cursor); err != nil {
		return err
	}
	next := cursor.Number + 1
	switch head := f.heads.Latest; {
	case head.Number+1 == next && head.Hash == cursor.Hash:
		return ErrNothingNew
	case head.Number < next:
		return f.headBelow(ctx, l, cursor)
	}
	p, err := f.nextRange(ctx, cursor)
	if errors.Is(err, errForked) {
		return f.reorg(ctx, l, cursor)
	}
	if err != nil {
		if jsonrpc.Diagnose(err).Fault == jsonrpc.FaultBehind {
			f.heads, f.proven = node.Heads{}, 0 // the head that was told is not there
		}
		return err
	}
	b := f.batch(l, cursor, p)
	if err := f.storeRange(ctx, b, p); err != nil {
		return err
	}
	f.atHead = b.To.Hash == f.heads.Latest.Hash
	return f.committed(ctx, b, p, started)
}

// nextRange returns the range that continues the chain at the cursor. A prefetched range may be of a
// fork that the node has left, or of the chain that replaced the stored one, so that a range which does
// not continue the stored chain is fetched again before it counts as a reorganization.
func (f *Follower) nextRange(ctx context.Context, cursor repute.Block) (*piece, error) {
	p, err := f.waitForRange(ctx, cursor.Number+1)
	if err != nil {
		return nil, err
	}
	if p.continues(cursor) == nil {
		return p, nil
	}
	f.prefetch.dropAll()
	if p, err = f.waitForRange(ctx, cursor.Number+1); err != nil {
		return nil, err
	}
	return p, p.continues(cursor)
}

// readHead asks for the head, unless the next block is known to be final, and publishes it.
func (f *Follower) readHead(ctx context.Context, l store.Lease, cursor repute.Block) error {
	if time.Since(f.heads.SeenAt) < headsAge && cursor.Number < f.finalBlock() {
		return nil
	}
	heads, err := f.source.Heads(ctx)
	if err != nil {
		return err
	}
	if err := f.sameChain(heads); err != nil {
		return err
	}
	if heads.Sealed {
		f.headerTrust.proven.Store(true)
	}
	f.poll.observe(heads.Latest.Number, heads.Latest.Time, time.Now())
	heads.Finalized = f.finality.update(heads, f.heads.Finalized)
	if f.finality.refuted() {
		f.log.Warn("the endpoint calls its newest block final, which is not finality", "finality_depth",
			f.finality.depth)
		f.status.set(&f.status.finality, fmt.Sprintf("%sfinality: the endpoint calls its newest block final, which is not finality: %d blocks below it count as final",
			repute.Warning, f.finality.depth))
	}
	f.heads, f.proven = heads, 0
	f.progress.setHead(f.lastWanted(heads.Latest.Number))
	if head := heads.Latest; head.Hash == cursor.Hash || head.Parent == cursor.Hash {
		f.proven = cursor.Number + 1
	}
	return f.publish(ctx, l)
}

// publish stores the head that the node named. Safe and finalized are claimed only for
// blocks that are stored and known to be on its chain: a stored block that left
// the chain while nobody looked must stay replaceable.
func (f *Follower) publish(ctx context.Context, l store.Lease) error {
	h := f.claimed
	h.Head, h.SeenAt = f.heads.Latest.Number, f.heads.SeenAt
	if f.proven > 0 {
		h.Safe, h.Finalized = min(f.heads.Safe, f.proven-1), min(f.heads.Finalized, f.proven-1)
	}
	f.keepEpochHeader(ctx, l, h.Finalized)
	if err := chaindb.SetHead(ctx, f.db, f.chain.ID, l, h); err != nil {
		return err
	}
	f.claimed = h
	f.opts.Metrics.head.WithLabelValues(f.label).Set(float64(h.Head))
	f.opts.Metrics.finalized.WithLabelValues(f.label).Set(float64(h.Finalized))
	return nil
}

// keepEpochHeader stores the header of the block that ends the last epoch of scores, where it
// was indexed in a range, before scores can be made of it. Without it they are aged to an
// earlier block: indexing goes on, and the next look at the head tries again.
func (f *Follower) keepEpochHeader(ctx context.Context, l store.Lease, finalized uint64) {
	number, err := scoredb.WantedHeader(ctx, f.db, f.chain.ID, finalized)
	if number == 0 && err == nil {
		return
	}
	var header node.Sealed
	if err == nil {
		header, err = f.source.Header(ctx, number)
	}
	if err == nil {
		err = scoredb.KeepHeader(ctx, f.db, f.chain.ID, l, header.Block)
	}
	if err != nil && ctx.Err() == nil {
		f.log.Debug("the header that ends an epoch is still missing", "block", number, "error", err)
	}
}

// finalBlock returns the newest block that counts as final.
func (f *Follower) finalBlock() uint64 {
	if f.heads.Finalized > 0 || f.heads.Latest.Number < nearHead {
		return f.heads.Finalized
	}
	return f.heads.Latest.Number - nearHead
}

// headBelow handles a head that is below the cursor, or another block at the height of the cursor.
// It is a reorganization only if the node names another block than is stored at that height.
func (f *Follower) headBelow(ctx context.Context, l store.Lease, cursor repute.Block) error {
	if cursor.Hash == (common.Hash{}) {
		return ErrNothingNew // nothing is stored yet and the chain starts later
	}
	head := f.heads.Latest
	ours, err := chaindb.StoredBlock(ctx, f.db, f.chain.ID, head.Number)
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

// lastWanted returns the last block to be stored, given the head.
func (f *Follower) lastWanted(head uint64) uint64 {
	if f.until > 0 {
		return min(head, f.until)
	}
	return head
}

// committed updates metrics, the range size and the head after a piece was stored. The first piece that
// was asked for after readHead proves that the blocks below it are on the chain of the node.
func (f *Follower) committed(ctx context.Context, b eventdb.Batch, p *piece, started time.Time) error {
	f.prefetch.dropBelow(p.q.To + 1)
	f.progress.setCursor(p.q.To)
	f.sizer.grow(p.q.To-p.q.From+1, p.held)
	f.opts.Metrics.stored(f.label, p.to, p.records)
	f.reportEvents(ctx, p)
	f.noteListed(p)
	if *b.Waiting > 0 || p.doubt {
		f.opts.Metrics.waiting.WithLabelValues(f.label).Add(float64(*b.Waiting))
		signal(f.nudge)
	}
	f.opts.Metrics.steps.WithLabelValues(f.label).Observe(time.Since(started).Seconds())
	f.log.Debug("stored", "from", p.q.From, "to", p.q.To, "events", len(p.records))
	if !p.asked.After(f.heads.SeenAt) {
		return nil
	}
	known := f.proven > 0
	f.proven = p.q.To + 1
	if known {
		return nil
	}
	return f.publish(ctx, b.Lease)
}

// signal sends without blocking: a channel that already holds a signal needs no second one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
