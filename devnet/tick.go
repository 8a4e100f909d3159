package devnet

import (
	"context"
	"errors"
	"fmt"
)

// Tick makes one block of a little random activity: one to three of a rating, a
// response, a revocation, a validation request or answer, a URI update, a
// transfer, a registration. A reorganization may have undone what an action
// builds on; such an action reverts and stays without effect, as on a public
// chain.
func (p *Population) Tick(ctx context.Context) error {
	b := p.dn.Batch()
	known := len(p.Agents)
	for range 1 + p.rng.IntN(3) {
		if err := p.act(ctx, b); err != nil {
			return err
		}
	}
	m, err := b.Mine(ctx)
	if err != nil && !errors.Is(err, ErrReverted) {
		return err
	}
	// Ids are known only now: others may register too.
	p.Agents = append(p.Agents[:known], withIDs(p.Agents[known:], m.Registered())...)
	return nil
}

func withIDs(agents []PopulatedAgent, ids []uint64) []PopulatedAgent {
	agents = agents[:min(len(agents), len(ids))]
	for i := range agents {
		agents[i].ID = ids[i]
	}
	return agents
}

// act adds one action, ratings being the most frequent.
func (p *Population) act(ctx context.Context, b *Batch) error {
	switch n := p.rng.IntN(20); {
	case n < 11:
		return p.rate(b)
	case n < 14:
		g := &p.given[p.rng.IntN(len(p.given))]
		return p.answer(b, g, p.Clients[p.rng.IntN(len(p.Clients))])
	case n == 14:
		if g := &p.given[p.rng.IntN(len(p.given))]; !g.revoked {
			p.revoke(b, g)
		}
	case n == 15:
		return p.verdict(b, &p.asked[p.rng.IntN(len(p.asked))])
	case n == 16:
		return p.join(b)
	case n == 17:
		return p.ask(b)
	default:
		return p.actAsOwner(ctx, b, n)
	}
	return nil
}

// join registers a new agent. Tick corrects the id.
func (p *Population) join(b *Batch) error {
	i := uint64(len(p.Agents))
	forms := settlers()
	a := PopulatedAgent{
		ID:      p.Agents[0].ID + i,
		Owner:   p.cast.owners[p.rng.IntN(len(p.cast.owners))],
		Form:    forms[p.rng.IntN(len(forms))],
		Quality: 0.35 + 0.6*p.rng.Float64(),
	}
	a.Name, a.Wallet = fmt.Sprintf("%s %d", p.trade(&a).name, a.ID), a.Owner.Address
	err := p.register(b, &a)
	p.Agents = append(p.Agents, a)
	return err
}

// actAsOwner does what only the present owner may, so it asks who that is.
func (p *Population) actAsOwner(ctx context.Context, b *Batch, n int) error {
	a := &p.Agents[p.rng.IntN(len(p.Agents))]
	owner, err := p.dn.View().OwnerOf(ctx, a.ID)
	if err != nil {
		return nil // registered in this very block, or undone by a reorganization
	}
	if a.Owner, err = p.dn.account(owner); err != nil {
		return nil // somebody else's by now
	}
	if n == 18 {
		p.transfer(b, a, p.cast.heirs[p.rng.IntN(len(p.cast.heirs))])
		return nil
	}
	a.Form = FormWeb
	if a.URI, err = p.document(a); err != nil {
		return err
	}
	b.SetAgentURI(a.Owner, a.ID, a.URI)
	return nil
}
