package answers

import (
	"context"
	"slices"

	"repute"
	"repute/api/wire"
	"repute/manifest"
	"repute/store/docdb"
	"repute/store/query"
)

// Beside returns the domain proofs of an agent, and the agents that its document and theirs name mutually. They are
// read for the latest view only, and only when the document has services or names other agents. Proofs and links have
// no history, so that an answer about an older view has empty lists and not the present ones. The lists are never nil,
// because JSON shows nil as null.
func (x *Index) Beside(ctx context.Context, agent repute.Agent, at repute.At) (wire.Beside, error) {
	w := wire.Beside{DomainProofs: []wire.DomainProof{}, LinkedAgents: []wire.LinkedAgent{}}
	if at != Latest() {
		return w, nil
	}
	r := agent.Document.Registration
	if r == nil {
		return w, nil
	}
	if len(r.Services) > 0 {
		proofs, err := query.DomainProofs(ctx, x.DB, agent.ID)
		if err != nil {
			return w, err
		}
		w.DomainProofs = wire.Each(proofs[agent.ID], wire.EncodeDomainProof)
	}
	if !namesOthers(*r, agent.ID) {
		return w, nil
	}
	linked, err := docdb.LinkedAgents(ctx, x.DB, agent.ID)
	w.LinkedAgents = wire.Each(linked, wire.EncodeLinked)
	return w, err
}

// namesOthers reports whether a registration file names agents other than id.
func namesOthers(r repute.Registration, id repute.AgentID) bool {
	return slices.ContainsFunc(r.Registrations, func(l repute.RegistrationLink) bool {
		other, ok := manifest.LinkedAgent(l)
		return ok && other != id
	})
}
