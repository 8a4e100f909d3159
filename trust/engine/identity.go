package engine

import (
	"context"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/identity"
)

// identities are what the checks found of agents that have scores: of final ones by the URIs
// of the run's block. None where no gate asks.
func (s *scoreRun) identities(ctx context.Context, subjects []*subject,
	final bool) (map[repute.TokenID]*trust.Identity, error) {
	if !s.basis.Params.ChecksIdentity() {
		return nil, nil
	}
	of := map[repute.TokenID]*subject{}
	var tokens []repute.TokenID
	out := make(map[repute.TokenID]*trust.Identity, len(subjects))
	for _, one := range subjects {
		if id := one.Agent.TokenID; one.remembered && s.documented != nil && !s.documented[id] {
			out[id] = identity.Of(one.Agent, one.Wallet, trustdb.Identity{}) // what no document says
			continue
		}
		of[one.Agent.TokenID] = one
		tokens = append(tokens, one.Agent.TokenID)
	}
	if len(tokens) == 0 {
		return out, nil
	}
	err := trustdb.ReadIdentities(ctx, s.db, s.basis.Run.ChainID, tokens, s.urisAt(final),
		func(token repute.TokenID, t trustdb.Identity) {
			out[token] = identity.Of(of[token].Agent, of[token].Wallet, t)
		})
	return out, err
}

// urisAt returns the block whose URIs of agents count: that of the run for final scores, nil for the newest.
func (s *scoreRun) urisAt(final bool) *uint64 {
	if final {
		return &s.basis.Run.Block.Number
	}
	return nil
}
