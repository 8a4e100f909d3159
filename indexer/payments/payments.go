// Package payments verifies the payments that feedback files claim.
//
// A Loop works on the claims of one chain. For each due claim it asks a node for the transaction, proves
// by the receipts of its block which tokens moved, and has repute.PaymentCase decide whether the rater
// paid the agent and whether the money came back within a window of time. Only final blocks count. A claim
// that no endpoint can answer for stays open and is retried with growing pauses.
//
// What a file claims is of no weight by itself: payer and payee are compared with the rater and with the payees of the
// agent, only listed stablecoins count, and one transfer pays for one rating. A verified payment is looked at again
// until its window has ended, because money may be sent back, and whenever a block is given another time. Package paydb
// orders the claims, round-robin by client, and stores the outcome in the transaction that checks that no other rating
// has taken the transfer.
//
// Several processes may run a Loop for one chain: a lease lets one of them work. All progress is in the store.
package payments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/store"
	"repute/store/paydb"
)

// Options tune a Loop. Zero values are replaced by the defaults named.
type Options struct {
	Coins []repute.Stablecoin // that count, of this chain
	Poll  time.Duration       // between looks for claims, 5 s
	// Window is the time before and after a payment in which transfers from the agent's side to the
	// rater are searched, 24 h.
	Window time.Duration
	// Range is how many blocks one query covers, 10000. It shrinks for endpoints that refuse it,
	// down to MinRange, 200; if that is refused too, payments stay unavailable.
	Range, MinRange uint64
	Owner           string       // of the lease, unique per process; host and pid
	Log             *slog.Logger // nil: discarded
}

// withDefaults replaces zero values by the named defaults.
func (o Options) withDefaults() Options {
	o.Poll, o.Window = cmp.Or(o.Poll, 5*time.Second), cmp.Or(o.Window, 24*time.Hour)
	o.Range, o.MinRange = cmp.Or(o.Range, 10_000), cmp.Or(o.MinRange, 200)
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Loop verifies the claimed payments of one chain. One of several processes works at a time, under
// a lease.
type Loop struct {
	db    *store.DB
	pool  *node.Pool
	chain uint64
	opts  Options
	log   *slog.Logger
	found map[question]landed // cache of final transactions, which do not change
	turn  common.Address      // the client of the last claim: claims are taken round-robin by client
}

// New returns a Loop that asks the endpoints of a pool.
func New(db *store.DB, pool *node.Pool, chainID uint64, o Options) *Loop {
	o = o.withDefaults()
	return &Loop{db: db, pool: pool, chain: chainID, opts: o, log: o.Log.With("chain", chainID),
		found: map[question]landed{}}
}

// ErrNothingNew is returned when no claim is due.
var ErrNothingNew = errors.New("no payment to look up")

const (
	leaseTTL  = time.Minute
	matchMost = 500  // files in one step
	scanMost  = 5000 // ratings in one step
	dueMost   = 20   // claims in one step
	// lookUpTime bounds the work on one claim. It MUST be less than the lease.
	lookUpTime = 40 * time.Second
	foundMost  = 512
)

// Run settles claims until ctx ends, which is no error.
func (l *Loop) Run(ctx context.Context) error {
	retry := node.Backoff{Min: time.Second, Max: time.Minute}
	for ctx.Err() == nil {
		err := l.Step(ctx)
		switch {
		case err == nil:
			retry.Reset()
		case errors.Is(err, ErrNothingNew), errors.Is(err, repute.ErrHeld):
			retry.Reset()
			repute.Pause(ctx, l.opts.Poll)
		case ctx.Err() == nil:
			l.log.Warn("payments not looked up", "error", err)
			repute.Pause(ctx, retry.Next())
		}
	}
	return nil
}

// Step joins new claims with their ratings and settles some due claims. It returns ErrNothingNew
// when there was nothing to do, and repute.ErrHeld while another process holds the lease.
func (l *Loop) Step(ctx context.Context) error {
	lease, err := l.db.Acquire(ctx, fmt.Sprintf("payments:%d", l.chain), l.opts.Owner, leaseTTL)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = l.db.Release(ctx, lease) // it ends by itself
	}()
	files, err := paydb.MatchPayments(ctx, l.db, matchMost)
	if err != nil {
		return err
	}
	ratings, err := paydb.ScanPayments(ctx, l.db, l.chain, scanMost)
	if err != nil {
		return err
	}
	due, turn, err := paydb.DuePayments(ctx, l.db, l.chain, l.turn, dueMost)
	if err != nil {
		return err
	}
	l.turn = turn
	for _, c := range due {
		if err := l.db.Renew(ctx, lease, leaseTTL); err != nil {
			return err
		}
		if err := l.settle(ctx, c); err != nil {
			return err
		}
	}
	if files == 0 && ratings < scanMost && len(due) == 0 {
		return ErrNothingNew
	}
	return nil
}
