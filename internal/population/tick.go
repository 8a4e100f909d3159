package population

import (
	"context"
	"errors"

	"repute/devnet"
)

// Tick makes one block of a little random activity: one to three of a rating, a response, a
// revocation, a validation request or answer, a URI update, a transfer, a registration. A
// reorganization may have undone what an action builds on; such an action reverts and has no effect,
// as on a public chain.
func (p *Population) Tick(ctx context.Context) error {
	b := p.dn.Batch()
	known := len(p.Agents)
	for range 1 + p.rng.IntN(3) {
		if p.act(ctx, b); p.failed != nil {
			return p.failed
		}
	}
	m, err := b.Mine(ctx)
	if err != nil && !errors.Is(err, devnet.ErrReverted) {
		return err
	}
	// Ids are known only now: others may register too.
	ids := m.Registered()
	p.Agents = p.Agents[:min(len(p.Agents), known+len(ids))]
	for i := range p.Agents[known:] {
		p.Agents[known+i].ID = ids[i]
	}
	return nil
}

// act adds one action, ratings being the most frequent. An action that is not possible, such as revoking what is
// revoked, adds nothing: the block may then be empty.
func (p *Population) act(ctx context.Context, b *devnet.Batch) {
	r := &p.ratings[p.rng.IntN(len(p.ratings))]
	switch n := p.rng.IntN(20); {
	case n < 11:
		p.rate(b)
	case n < 14:
		p.respond(b, r, p.cast.clients[p.rng.IntN(len(p.cast.clients))])
	case n == 14:
		if !r.revoked {
			p.revoke(b, r)
		}
	case n == 15:
		p.validate(b, &p.requests[p.rng.IntN(len(p.requests))])
	case n == 16:
		p.join(b)
	case n == 17:
		p.request(b)
	default:
		p.actAsOwner(ctx, b, n == 18)
	}
}

// join registers a new agent. Tick corrects the id.
func (p *Population) join(b *devnet.Batch) {
	forms := firstForms()
	a := p.newAgent(p.Agents[0].ID+uint64(len(p.Agents)), forms[p.rng.IntN(len(forms))])
	p.register(b, &a)
	p.Agents = append(p.Agents, a)
}

// actAsOwner transfers an agent or replaces its URI, which only the present owner may.
func (p *Population) actAsOwner(ctx context.Context, b *devnet.Batch, transfer bool) {
	a := &p.Agents[p.rng.IntN(len(p.Agents))]
	owner, err := p.dn.View().OwnerOf(ctx, a.ID)
	if err != nil {
		return // registered in this very block, or undone by a reorganization
	}
	for i := range castAccounts {
		account := p.dn.Account(i)
		if account.Address != owner {
			continue
		}
		if a.Owner = account; transfer {
			p.transfer(b, a, p.cast.heirs[p.rng.IntN(len(p.cast.heirs))])
			return
		}
		a.Form = FormWeb
		p.publishAgent(a)
		b.SetAgentURI(a.Owner, a.ID, a.URI)
		return
	}
}
