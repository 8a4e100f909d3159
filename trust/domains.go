package trust

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// DomainProof is a domain whose file proves an agent.
type DomainProof struct {
	Domain string
	Named  []common.Address // by the file, as accounts of the agent's chain
	Owners []common.Address // of all agents that the domain proves
}

// OwnDomains returns the domains that belong to the agent's owner: their files name an address of the owner, and they
// prove agents of no other identity. A host of many customers' agents is none.
func (e *Evidence) OwnDomains(proofs []DomainProof) (out []string) {
	g := e.Weights.Graph()
	owner := g.Identity(e.Owner)
	isOther := func(a common.Address) bool { return g.Identity(a) != owner }
	for _, p := range proofs {
		isNamed := slices.ContainsFunc(p.Named, func(a common.Address) bool { return !isOther(a) })
		if isNamed && !slices.ContainsFunc(p.Owners, isOther) {
			out = append(out, p.Domain)
		}
	}
	return out
}
