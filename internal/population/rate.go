package population

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"repute/devnet"
	"repute/internal/attack"
)

// rateAll are the ratings of the world, a dozen in a block: its parties are the agents, and take turns
// as clients.
func (p *Population) rateAll(world *attack.World) (stages []stage) {
	const inBlock = 12
	list := world.Ratings
	for ; len(list) > 0; list = list[min(inBlock, len(list)):] {
		some := list[:min(inBlock, len(list))]
		stages = append(stages, func(b *devnet.Batch) {
			for _, r := range some {
				p.rateBy(b, r.From%len(p.cast.clients), &p.Agents[r.To])
			}
		})
	}
	return stages
}

// rate adds one rating of a random agent by a random client.
func (p *Population) rate(b *devnet.Batch) {
	f := p.rng.Float64() // early agents are rated more often
	p.rateBy(b, p.rng.IntN(len(p.cast.clients)), &p.Agents[int(f*f*float64(len(p.Agents)))])
}

// rateBy adds one rating by a client. An owner may not rate its own agent, so the next agent is rated
// then. Of six ratings one is by a client that paid, with the proof.
func (p *Population) rateBy(b *devnet.Batch, client int, a *Agent) {
	account, proof := p.cast.clients[client], (*payment)(nil)
	if len(p.payments) > 0 && p.rng.IntN(6) == 0 {
		proof = &p.payments[p.rng.IntN(len(p.payments))]
		account, a, client = proof.client, p.find(proof.agent), watchtowers
	} else {
		a = p.foreign(account, a)
	}
	r := p.opinion(a, client < watchtowers)
	if proof != nil || p.rng.IntN(5) == 0 {
		p.attach(&r, account, proof)
	}
	p.give(b, account, r)
}

// foreign returns the agent, or the next one that is neither the client's own nor the one that only the
// ring rates.
func (p *Population) foreign(client devnet.Account, a *Agent) *Agent {
	for i := int(a.ID - p.Agents[0].ID); a.Owner.Address == client.Address || a.Wallet == client.Address ||
		a.ID == p.Praised; i++ {
		a = &p.Agents[(i+1)%len(p.Agents)]
	}
	return a
}

// find returns an agent of the population by its id. The ids are not places of the list: others may register too.
func (p *Population) find(id uint64) *Agent {
	for i := range p.Agents {
		if p.Agents[i].ID == id {
			return &p.Agents[i]
		}
	}
	return &p.Agents[0] // the id came from the list: not reached
}

// give sends a rating and remembers it with its index, which the registry counts for each client and agent from 1 on.
// An index is wrong after a reorganization that undid a rating: what refers to it may then revert, which Tick allows.
func (p *Population) give(b *devnet.Batch, client devnet.Account, r devnet.Rating) {
	index := uint64(1)
	for _, g := range p.ratings {
		if g.client.Address == client.Address && g.Agent == r.Agent {
			index++
		}
	}
	p.ratings = append(p.ratings, rating{Rating: r, client: client, index: index})
	b.GiveFeedback(client, r)
}

// opinion turns the agent's quality into a value under one of eight tags. Watchtowers measure, others
// judge. The same tag comes in several decimals.
func (p *Population) opinion(a *Agent, watchtower bool) devnet.Rating {
	q := a.Quality + 0.1*p.rng.NormFloat64()
	percent := int64(100 * min(max(q, 0), 1))
	r := devnet.Rating{Agent: a.ID, Endpoint: fmt.Sprintf("https://agent-%d.example/mcp", a.ID)}
	kind := p.rng.IntN(4)
	if watchtower {
		kind += 4
	}
	switch kind {
	case 0, 1:
		r.Tag1, r.Tag2 = "starred", []string{"", "", "quality", "speed"}[p.rng.IntN(4)]
		r.Value, r.Decimals = p.scaled(percent)
	case 2:
		r.Tag1, r.Tag2 = "tradingYield", []string{"day", "week", "month", "year"}[p.rng.IntN(4)]
		r.Value, r.Decimals = big.NewInt(int64(1000*(q-0.6))), 1+uint8(p.rng.IntN(2))
	case 3:
		r.Tag1, r.Value, r.Decimals = "revenues", big.NewInt(int64(50_000*p.rng.Float64())), 2
	case 4:
		r.Tag1 = "successRate"
		r.Value, r.Decimals = p.scaled(percent)
	case 5:
		r.Tag1, r.Value, r.Decimals = "uptime", big.NewInt(9000+percent*10), 2
	case 6:
		r.Tag1, r.Value = "responseTime", big.NewInt(150+int64(2500*(1-min(q, 1))))
	default:
		r.Tag1, r.Value = []string{"reachable", "ownerVerified"}[p.rng.IntN(2)], big.NewInt(percent/50)
	}
	return r
}

// scaled writes a percentage with 0 decimals mostly, else with 1 or 2.
func (p *Population) scaled(percent int64) (*big.Int, uint8) {
	switch p.rng.IntN(8) {
	case 0:
		return big.NewInt(percent*10 + p.rng.Int64N(10)), 1
	case 1:
		return big.NewInt(percent*100 + p.rng.Int64N(100)), 2
	}
	return big.NewInt(percent), 0
}

// attach writes a feedback file for the rating, with the proof of payment if there is one. Some hashes
// are wrong and some missing.
func (p *Population) attach(r *devnet.Rating, client devnet.Account, proof *payment) {
	file := map[string]any{
		"agentRegistry": p.registry(), "agentId": r.Agent,
		"clientAddress": fmt.Sprintf("eip155:%d:%s", p.chain.ID, client.Address),
		"createdAt":     p.dn.Head().Time.Format(time.RFC3339),
		"value":         r.Value, "valueDecimals": r.Decimals, "tag1": r.Tag1, "tag2": r.Tag2,
		"mcp": map[string]any{"tool": "run"},
	}
	if proof != nil {
		file["proofOfPayment"] = map[string]any{"fromAddress": client.Address, "toAddress": proof.to,
			"chainId": fmt.Sprint(p.chain.ID), "txHash": proof.tx}
	}
	body := p.encode(file)
	forms := []Form{FormBase64, FormWeb, FormIPFS, FormWeb, FormBase64, FormMissing}
	r.URI = p.publish(forms[p.rng.IntN(len(forms))], "feedback", body)
	switch p.rng.IntN(10) {
	case 0: // no hash
	case 1:
		r.Hash = crypto.Keccak256Hash(body, []byte("changed"))
	default:
		r.Hash = crypto.Keccak256Hash(body)
	}
}

// pay lets clients pay agents that they may rate, in the chain's own currency.
func (p *Population) pay(b *devnet.Batch) {
	for i := range 40 {
		client := p.cast.clients[(watchtowers+i)%len(p.cast.clients)]
		a := p.foreign(client, &p.Agents[p.rng.IntN(len(p.Agents))])
		if a.Wallet != (common.Address{}) {
			b.Pay(client, a.Wallet, big.NewInt((1+p.rng.Int64N(100))*params.GWei*1000))
			p.payments = append(p.payments, payment{client: client, agent: a.ID, to: a.Wallet})
		}
	}
}

// praiseBy lets wallets of the ring praise: they never did anything else.
func (p *Population) praiseBy(wallets []devnet.Account) stage {
	return func(b *devnet.Batch) {
		for _, w := range wallets {
			p.give(b, w, devnet.Rating{Agent: p.Praised, Value: big.NewInt(100), Tag1: "starred"})
		}
	}
}

// rateOddly gives values that distort a careless mean, and tags that break a careless index.
func (p *Population) rateOddly(b *devnet.Batch) {
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
	for _, r := range []devnet.Rating{
		{Value: huge, Tag1: "starred"},
		{Value: new(big.Int).Neg(huge), Decimals: 18, Tag1: "starred"},
		{Value: big.NewInt(5), Tag1: "starred"}, // of five stars, not of a hundred
		{Value: big.NewInt(1), Decimals: 18, Tag1: "successRate"},
		{Value: big.NewInt(-32), Decimals: 1, Tag1: "tradingYield", Tag2: "month"},
		{Value: big.NewInt(1)},
		{Value: big.NewInt(80), Tag1: "starred\x00", Tag2: "\xff\xfe"},
		{Value: big.NewInt(80), Tag1: strings.Repeat("long ", 600)},
	} {
		r.Agent = p.Agents[5].ID
		p.give(b, p.cast.operators[3], r)
	}
}

// revokeSome revokes every fifteenth rating.
func (p *Population) revokeSome(b *devnet.Batch) {
	for i := 0; i < len(p.ratings); i += 15 {
		p.revoke(b, &p.ratings[i])
	}
}

// revoke revokes a rating as its client.
func (p *Population) revoke(b *devnet.Batch, r *rating) {
	b.RevokeFeedback(r.client, r.Agent, r.index)
	r.revoked = true
}

// respondToSome responds to every eighth rating, once or twice: the owner, or any client.
func (p *Population) respondToSome(b *devnet.Batch) {
	for i := 0; i < len(p.ratings); i += 8 {
		responder := p.find(p.ratings[i].Agent).Owner
		if i%3 == 0 {
			responder = p.cast.clients[p.rng.IntN(len(p.cast.clients))]
		}
		for range 1 + i/8%2 {
			p.respond(b, &p.ratings[i], responder)
		}
	}
}

// respondLate responds to ratings that are revoked, which the registry allows.
func (p *Population) respondLate(b *devnet.Batch) {
	p.respond(b, &p.ratings[0], p.cast.heirs[0])
	p.respond(b, &p.ratings[15], p.cast.heirs[1])
}

// respond appends a response to a rating, also to a revoked one. Anybody may respond.
func (p *Population) respond(b *devnet.Batch, r *rating, responder devnet.Account) {
	body := fmt.Appendf(nil, `{"text":"Thank you for rating agent %d."}`, r.Agent)
	uri := p.publish([]Form{FormBase64, FormWeb}[p.rng.IntN(2)], "response", body)
	b.AppendResponse(responder, r.Agent, r.client.Address, r.index, uri, crypto.Keccak256Hash(body))
}

// requestSome requests 25 validations, of which the stages after it answer some.
func (p *Population) requestSome(b *devnet.Batch) {
	for range 25 {
		p.request(b)
	}
}

// request requests a validation of a random agent from a random validator.
func (p *Population) request(b *devnet.Batch) {
	a := &p.Agents[p.rng.IntN(len(p.Agents))]
	validator := p.cast.validators[p.rng.IntN(len(p.cast.validators))]
	p.tasks++
	body := fmt.Appendf(nil, `{"agentId":%d,"task":"task %d","input":"0x%x"}`, a.ID, p.tasks, p.rng.Uint64())
	uri := p.publish([]Form{FormWeb, FormIPFS, FormBase64}[p.rng.IntN(3)], "request", body)
	hash := crypto.Keccak256Hash(body)
	b.ValidationRequest(a.Owner, validator.Address, a.ID, uri, hash)
	p.requests = append(p.requests, request{validator: validator, hash: hash})
}

// validate answers a request: every sixth with 0, which the chain's own view cannot distinguish from no answer.
func (p *Population) validate(b *devnet.Batch, q *request) {
	body := fmt.Appendf(nil, `{"request":"%s","report":"run %d"}`, q.hash, p.rng.IntN(1000))
	v := devnet.ValidationAnswer{Request: q.hash, URI: p.publish(FormWeb, "report", body),
		Hash: crypto.Keccak256Hash(body),
		Tag:  []string{"soft", "hard_finality", "tee", ""}[p.rng.IntN(4)]}
	if p.rng.IntN(6) > 0 {
		v.Response = uint8(60 + p.rng.IntN(41))
	}
	b.ValidationResponse(q.validator, v)
}
