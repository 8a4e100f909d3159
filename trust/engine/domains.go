package engine

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
)

// addDomains sets the domains that prove an agent and no agent of another owner, as far as their files name the owner or
// the wallet: for final scores by the URIs of the run's block.
func (s *scoreRun) addDomains(ctx context.Context, e *trust.Evidence, final bool) error {
	var at *uint64
	if final {
		at = &s.basis.run.Block.Number
	}
	found, err := trustdb.ProvenDomains(ctx, s.db, s.basis.run.ChainID, []repute.TokenID{e.Agent.TokenID}, at)
	if err != nil {
		return err
	}
	proofs := make([]trust.DomainProof, 0, len(found))
	for _, d := range found {
		proofs = append(proofs, trust.DomainProof{Domain: d.Domain, Named: d.Named, Owners: d.Owners})
	}
	e.Domains = e.OwnDomains(proofs)
	return nil
}

// addAffiliatedDomains sets the domains of those agents that an identity with penalties bounded to domains is behind.
func (s *scoreRun) addAffiliatedDomains(ctx context.Context, list []*subject, behind []trustdb.Affiliation,
	final bool) error {
	identities := make([]common.Address, len(behind))
	for i, a := range behind {
		identities[i] = a.Identity
	}
	bounded, err := trustdb.BoundedIdentities(ctx, s.db, s.basis.run.ChainID, identities, final)
	if err != nil || len(bounded) == 0 {
		return err
	}
	concerned := map[repute.TokenID]bool{}
	for _, a := range behind {
		concerned[a.TokenID] = concerned[a.TokenID] || slices.Contains(bounded, a.Identity)
	}
	domains := map[repute.TokenID][]string{}
	for _, e := range list {
		if concerned[e.Agent.TokenID] {
			if err := s.addDomains(ctx, &e.Evidence, final); err != nil {
				return err
			}
			domains[e.Agent.TokenID] = e.Domains
		}
	}
	for i := range behind {
		behind[i].Domains = domains[behind[i].TokenID]
	}
	return nil
}
