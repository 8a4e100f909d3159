package population

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/devnet"
	"repute/internal/attack"
)

// settle decides who the first agents are. Their ids follow on those that exist, and a bad party of the
// world works badly.
func (p *Population) settle(first uint64, forms []Form, world *attack.World) {
	// The order of forms is shuffled, so that ids do not give them away.
	p.rng.Shuffle(len(forms), func(i, j int) { forms[i], forms[j] = forms[j], forms[i] })
	for i, form := range forms {
		a := p.newAgent(first+uint64(i), form)
		if a.Quality = 0.5 + 0.45*p.rng.Float64(); world.Bad[i] {
			a.Quality /= 2
		}
		if form == FormClone {
			a.Name, a.Owner, a.Quality = "AxiAgent", p.cast.owners[0], 0.2
			a.Wallet, p.Praised = a.Owner.Address, a.ID
		}
		p.Agents = append(p.Agents, a)
	}
}

// newAgent returns an agent of a random owner. Its wallet is the owner, as the registry sets it, and its URI is not
// published yet.
func (p *Population) newAgent(id uint64, form Form) Agent {
	owner := p.cast.owners[p.rng.IntN(len(p.cast.owners))]
	return Agent{ID: id, Name: fmt.Sprintf("%s %d", tradeOf(id).name, id), Owner: owner, Wallet: owner.Address,
		Form:    form,
		Quality: 0.35 + 0.6*p.rng.Float64()}
}

// registrations mint the agents, ten in a block.
func (p *Population) registrations() (stages []stage) {
	for agents := range slices.Chunk(p.Agents, 10) {
		stages = append(stages, func(b *devnet.Batch) {
			for i := range agents {
				p.register(b, &agents[i])
			}
		})
	}
	return stages
}

// register publishes the agent's document and registers it, in each of the three ways that the registry has.
func (p *Population) register(b *devnet.Batch, a *Agent) {
	p.publishAgent(a)
	switch {
	case a.Form == FormEmpty && a.ID%2 == 0:
		b.RegisterBare(a.Owner)
	case a.ID%5 == 0:
		b.Register(a.Owner, a.URI, devnet.Metadata{Key: "category", Value: []byte(tradeOf(a.ID).domain)},
			devnet.Metadata{Key: "version", Value: []byte("1.0.0")})
	default:
		b.Register(a.Owner, a.URI)
	}
}

// setWallets gives the first agents that are no clones a wallet of their own; the first of these
// wallets rate others.
func (p *Population) setWallets(b *devnet.Batch) {
	next := 0
	for i := range p.Agents {
		a := &p.Agents[i]
		if a.Form == FormClone || next == len(p.cast.wallets)/2 {
			continue
		}
		b.SetAgentWallet(a.Owner, a.ID, p.cast.wallets[next])
		a.Wallet = p.cast.wallets[next].Address
		next++
	}
	last := &p.Agents[len(p.Agents)-1]
	b.UnsetAgentWallet(last.Owner, last.ID)
	last.Wallet = common.Address{}
}

// setMetadata gives every third agent a category and a price.
func (p *Population) setMetadata(b *devnet.Batch) {
	for i := 0; i < len(p.Agents); i += 3 {
		a := &p.Agents[i]
		b.SetMetadata(a.Owner, a.ID, "category", []byte(tradeOf(a.ID).domain))
		b.SetMetadata(a.Owner, a.ID, "price", fmt.Appendf(nil, `{"amount":"%d","currency":"USDC"}`, 1+p.rng.IntN(50)))
	}
	// What a public chain has too: bytes that are no text, an empty key, an empty value, and a key that is
	// nearly the reserved one.
	a := &p.Agents[1]
	b.SetMetadata(a.Owner, a.ID, "binary", []byte{0, 0xff, 'x', 0})
	b.SetMetadata(a.Owner, a.ID, "nul\x00key", []byte("kept"))
	b.SetMetadata(a.Owner, a.ID, "", []byte("empty key"))
	b.SetMetadata(a.Owner, a.ID, "AgentWallet", nil)
}

// setApprovals lets operators act for agents, and one of them does.
func (p *Population) setApprovals(b *devnet.Batch) {
	for i := 2; i < len(p.Agents); i += 11 {
		b.Approve(p.Agents[i].Owner, p.Agents[i].ID, p.cast.operators[0].Address)
	}
	b.SetMetadata(p.cast.operators[0], p.Agents[2].ID, "operator", []byte("was here"))
	b.ApproveAll(p.cast.owners[0], p.cast.operators[1].Address, true)
	b.ApproveAll(p.cast.owners[1], p.cast.operators[2].Address, true)
	b.ApproveAll(p.cast.owners[1], p.cast.operators[2].Address, false)
}

// transferSome gives every ninth agent away, which clears its wallet.
func (p *Population) transferSome(b *devnet.Batch) {
	for i := 4; i < len(p.Agents); i += 9 {
		p.transfer(b, &p.Agents[i], p.cast.heirs[i%len(p.cast.heirs)])
	}
	p.transfer(b, &p.Agents[3], p.Agents[3].Owner) // to itself, which clears the wallet too
}

// setLateWallet gives an agent that was transferred a wallet again.
func (p *Population) setLateWallet(b *devnet.Batch) {
	a, wallet := &p.Agents[4], p.cast.wallets[len(p.cast.wallets)-1]
	b.SetAgentWallet(a.Owner, a.ID, wallet)
	a.Wallet = wallet.Address
}

// transfer gives an agent away. The registry clears its wallet, and so does what is known of it here.
func (p *Population) transfer(b *devnet.Batch, a *Agent, to devnet.Account) {
	b.Transfer(a.Owner, a.ID, to.Address)
	a.Owner, a.Wallet = to, common.Address{}
}

// replaceURIs repairs some broken documents, breaks a good one and moves others from one form to
// another: the first agent of each form.
func (p *Population) replaceURIs(b *devnet.Batch) {
	for _, c := range []struct{ from, to Form }{
		{FormMissing, FormWeb}, {FormJunk, FormBase64}, {FormUTF8, FormHTML}, {FormInline, FormIPFS},
		{FormWeb, FormGzip},
	} {
		i := slices.IndexFunc(p.Agents, func(a Agent) bool { return a.Form == c.from })
		a := &p.Agents[i]
		b.SetAgentURI(a.Owner, a.ID, "https://ag0.example") // of two updates in one block the second counts
		a.Form = c.to
		p.publishAgent(a)
		b.SetAgentURI(a.Owner, a.ID, a.URI)
	}
}
