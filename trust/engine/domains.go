package engine

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
)

// addDomains sets Evidence.Domains: the domains that prove the agent, whose files name an address of its owner, and
// that prove agents of no other owner. For final scores the agent's URI at the run's block counts, otherwise its
// present one.
func (s *scoreRun) addDomains(ctx context.Context, e *trust.Evidence, final bool) error {
	found, err := trustdb.ProvenDomains(ctx, s.db, s.basis.Run.ChainID, []repute.TokenID{e.Agent.TokenID},
		s.urisAt(final))
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

// affiliatedToPenalized returns the affiliations of agents in list to identities with penalties. It sets the domains of
// those with a penalty that applies only to agents of certain domains. Other agents do not need their domains.
func (s *scoreRun) affiliatedToPenalized(ctx context.Context, list []*subject, behind []scoredb.Affiliation,
	final bool) ([]scoredb.Affiliation, error) {
	identities := make([]common.Address, len(behind))
	for i, a := range behind {
		identities[i] = a.Identity
	}
	bounded, err := scoredb.PenalizedAmong(ctx, s.db, s.basis.Run.ChainID, identities, final)
	if err != nil {
		return nil, err
	}
	behind = slices.DeleteFunc(behind, func(a scoredb.Affiliation) bool { _, any := bounded[a.Identity]; return !any })
	concerned := map[repute.TokenID]bool{}
	for _, a := range behind {
		concerned[a.TokenID] = concerned[a.TokenID] || bounded[a.Identity]
	}
	domains := map[repute.TokenID][]string{}
	for _, e := range list {
		if concerned[e.Agent.TokenID] {
			if err := s.addDomains(ctx, &e.Evidence, final); err != nil {
				return nil, err
			}
			domains[e.Agent.TokenID] = e.Domains
		}
	}
	for i := range behind {
		behind[i].Domains = domains[behind[i].TokenID]
	}
	return behind, nil
}
