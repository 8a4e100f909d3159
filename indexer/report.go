package indexer

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/store/chaindb"
)

// report tells operators of stored events that are theirs to look at.
func (f *Follower) report(ctx context.Context, p *piece) {
	f.opts.Metrics.passed.WithLabelValues(f.label).Add(float64(p.passed))
	for i := range p.records {
		r := &p.records[i]
		switch e := r.Event.(type) {
		case repute.Undecoded:
			f.unread(&r.Log, e)
		case repute.Upgraded:
			f.upgraded(ctx, &r.Log, e)
		}
	}
}

// unread makes a stored log that nobody can read as loud as possible without
// stopping the chain: its event is a gap from now on.
func (f *Follower) unread(l *types.Log, e repute.Undecoded) {
	f.opts.Metrics.undecoded.WithLabelValues(f.label, string(e.Reason)).Inc()
	f.log.Error("registry log cannot be read", "reason", e.Reason, "block", l.BlockNumber, "logIndex", l.Index,
		"tx", l.TxHash, "address", l.Address, "topic", l.Topics[0])
}

// upgraded warns that a followed contract has other code from now on. Of the past
// it is no news, nor is a proxy's first implementation.
func (f *Follower) upgraded(ctx context.Context, l *types.Log, e repute.Upgraded) {
	f.opts.Metrics.upgrades.WithLabelValues(f.label).Inc()
	say := f.log.Info
	if l.BlockNumber+nearHead > f.heads.Latest.Number {
		// When the store does not answer the warning is the better mistake.
		if before, err := chaindb.UpgradedBefore(ctx, f.db, f.chain.ID, l); before || err != nil {
			say = f.log.Warn
		}
	}
	say("registry was upgraded", "address", l.Address, "implementation", e.Implementation,
		"block", l.BlockNumber, "tx", l.TxHash)
}
