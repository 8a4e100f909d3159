package indexer

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/store/chaindb"
)

// reportEvents logs and counts stored events that operators should know of.
func (f *Follower) reportEvents(ctx context.Context, p *piece) {
	f.opts.Metrics.passed.WithLabelValues(f.label).Add(float64(p.passed))
	for i := range p.records {
		r := &p.records[i]
		switch e := r.Event.(type) {
		case repute.Undecoded:
			f.reportUndecoded(&r.Log, e)
		case repute.Upgraded:
			f.reportUpgrade(ctx, &r.Log, e)
		}
	}
}

// reportUndecoded logs an error for a stored log that cannot be decoded. The chain goes on, and the event
// is a gap from now on.
func (f *Follower) reportUndecoded(l *types.Log, e repute.Undecoded) {
	f.opts.Metrics.undecoded.WithLabelValues(f.label, string(e.Reason)).Inc()
	f.log.Error("registry log cannot be read", "reason", e.Reason, "block", l.BlockNumber, "logIndex", l.Index,
		"tx", l.TxHash, "address", l.Address, "topic", l.Topics[0])
}

// reportUpgrade warns that a followed contract has new code. It only informs of upgrades that are old, and
// of the first implementation of a proxy.
func (f *Follower) reportUpgrade(ctx context.Context, l *types.Log, e repute.Upgraded) {
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
