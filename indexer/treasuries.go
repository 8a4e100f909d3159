package indexer

import (
	"context"

	"repute"
	"repute/contracts"
	"repute/store/chaindb"
)

// readTreasuries reads the treasuries whose events are indexed with those of the registries. A process that sends
// transactions may add one at any time, which ends the lease, so that they are read whenever the lease is acquired.
// repute.ErrHeld for a chain without registries once a process has given it registries: that process indexes the
// treasuries too.
func (f *Follower) readTreasuries(ctx context.Context) error {
	treasuries, start, registries, err := chaindb.Contracts(ctx, f.db, f.chain.ID)
	if err != nil {
		return err
	}
	if f.chain.WithoutRegistries() {
		if registries {
			return repute.ErrHeld
		}
		f.chain.StartBlock = start
	}
	f.chain.Treasuries = treasuries
	f.decoder, f.topics = contracts.NewDecoder(f.chain), contracts.FollowedTopics(f.chain)
	return nil
}

// takeOver adds the chain while another process indexes it for its treasuries alone, which ends the lease of that
// process. Otherwise it reports whether the chain is stored with other registries, which is repute.ErrConflict.
func (f *Follower) takeOver(ctx context.Context) error {
	_, _, registries, err := chaindb.Contracts(ctx, f.db, f.chain.ID)
	if err == nil && !registries && !f.chain.WithoutRegistries() {
		return chaindb.AddChain(ctx, f.db, f.chain)
	}
	return chaindb.CheckChain(ctx, f.db, f.chain)
}
