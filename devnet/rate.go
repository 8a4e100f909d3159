package devnet

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

const (
	historyRatings = 300
	ratingsInBlock = 12
)

// ratings are what clients honestly say, except that tastes differ.
func (p *Population) ratings() (stages []stage) {
	for n := 0; n < historyRatings; n += ratingsInBlock {
		count := min(ratingsInBlock, historyRatings-n)
		stages = append(stages, stage{fill: func(b *Batch) error {
			for range count {
				if err := p.rate(b); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return stages
}

// rate adds one rating: of a random agent by a random client, or by a client
// that paid, with the proof.
func (p *Population) rate(b *Batch) error {
	if len(p.paid) > 0 && p.rng.IntN(6) == 0 {
		proof := &p.paid[p.rng.IntN(len(p.paid))]
		return p.rateBy(b, proof.client, proof.agent, false, proof)
	}
	i := p.rng.IntN(len(p.Clients))
	client := p.Clients[i]
	return p.rateBy(b, client, p.pick(client).ID, i < watchtowers, nil)
}

func (p *Population) rateBy(b *Batch, client Account, agent uint64, watchtower bool, proof *payment) error {
	r := p.opinion(p.find(agent), watchtower)
	if proof != nil || p.rng.IntN(5) == 0 {
		if err := p.attach(&r, client, proof); err != nil {
			return err
		}
	}
	p.give(b, client, r)
	return nil
}

// find gives an agent of the population by its id.
func (p *Population) find(id uint64) *PopulatedAgent {
	for i := range p.Agents {
		if p.Agents[i].ID == id {
			return &p.Agents[i]
		}
	}
	return &p.Agents[0] // the id came from the list: not reached
}

// give sends a rating and remembers it with its index.
func (p *Population) give(b *Batch, client Account, r Rating) {
	index := uint64(1)
	for _, g := range p.given {
		if g.client.Address == client.Address && g.Agent == r.Agent {
			index++
		}
	}
	p.given = append(p.given, given{Rating: r, client: client, index: index})
	b.GiveFeedback(client, r)
}

// pick prefers early agents, as fame does, and never the client's own: that
// reverts for an owner, and is at least immodest for a wallet.
func (p *Population) pick(client Account) *PopulatedAgent {
	for {
		f := p.rng.Float64()
		a := &p.Agents[int(f*f*float64(len(p.Agents)))]
		if a.Owner.Address != client.Address && a.Wallet != client.Address {
			return a
		}
	}
}

// opinion turns the agent's quality into a value under one of eight tags.
// Watchtowers measure, others judge. The same tag comes in several decimals.
func (p *Population) opinion(a *PopulatedAgent, watchtower bool) Rating {
	q := a.Quality + 0.1*p.rng.NormFloat64()
	percent := int64(100 * min(max(q, 0), 1))
	r := Rating{Agent: a.ID, Endpoint: fmt.Sprintf("https://agent-%d.example/mcp", a.ID)}
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

// attach writes a feedback file for the rating, with the proof of payment if
// there is one. Some hashes are wrong and some missing.
func (p *Population) attach(r *Rating, client Account, proof *payment) error {
	file := map[string]any{
		"agentRegistry": fmt.Sprintf("eip155:%d:%s", p.dn.chain.ID, p.dn.chain.Identity),
		"agentId":       r.Agent,
		"clientAddress": fmt.Sprintf("eip155:%d:%s", p.dn.chain.ID, client.Address),
		"createdAt":     p.dn.Head().Time.Format(time.RFC3339),
		"value":         r.Value, "valueDecimals": r.Decimals, "tag1": r.Tag1, "tag2": r.Tag2,
		"mcp": map[string]any{"tool": "run"},
	}
	if proof != nil {
		file["proofOfPayment"] = map[string]any{"fromAddress": client.Address, "toAddress": proof.to,
			"chainId": fmt.Sprint(p.dn.chain.ID), "txHash": proof.tx}
	}
	body, err := json.Marshal(file)
	if err != nil {
		return fmt.Errorf("feedback file: %w", err)
	}
	forms := []Form{FormBase64, FormWeb, FormIPFS, FormWeb, FormBase64, FormMissing}
	if r.URI, err = p.publish(forms[p.rng.IntN(len(forms))], "feedback", body); err != nil {
		return err
	}
	switch p.rng.IntN(10) {
	case 0: // no hash
	case 1:
		r.Hash = crypto.Keccak256Hash(body, []byte("changed"))
	default:
		r.Hash = crypto.Keccak256Hash(body)
	}
	return nil
}

// payment is what a client paid to an agent's wallet.
type payment struct {
	client Account
	agent  uint64
	to     common.Address
	tx     common.Hash // zero until mined
}

// payments let clients pay agents they may rate, in the chain's own currency.
func (p *Population) payments() stage {
	return stage{
		fill: func(b *Batch) error {
			for i := range 40 {
				client := p.Clients[(watchtowers+i)%len(p.Clients)]
				if a := p.pick(client); a.Wallet != (common.Address{}) {
					b.Pay(client, a.Wallet, big.NewInt((1+p.rng.Int64N(100))*params.GWei*1000))
					p.paid = append(p.paid, payment{client: client, agent: a.ID, to: a.Wallet})
				}
			}
			return nil
		},
		done: func(m Mined) {
			for i, r := range m.Receipts {
				p.paid[i].tx = r.TxHash
			}
		},
	}
}

// praise is the ring at work: fifty wallets that never did anything else.
func (p *Population) praise() (stages []stage) {
	half := len(p.Ring) / 2
	for _, wallets := range [][]Account{p.Ring[:half], p.Ring[half:]} {
		stages = append(stages, each(func(b *Batch) {
			for _, w := range wallets {
				p.give(b, w, Rating{Agent: p.Praised, Value: big.NewInt(100), Tag1: "starred"})
			}
		}))
	}
	return stages
}

// oddities are values that a careless mean would drown in, and tags that a
// careless index would choke on.
func (p *Population) oddities() stage {
	return each(func(b *Batch) {
		vandal := p.cast.operators[3]
		huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)
		target := p.Agents[5].ID
		for _, r := range []Rating{
			{Value: huge, Tag1: "starred"},
			{Value: new(big.Int).Neg(huge), Decimals: 18, Tag1: "starred"},
			{Value: big.NewInt(5), Tag1: "starred"}, // of five stars, not of a hundred
			{Value: big.NewInt(1), Decimals: 18, Tag1: "successRate"},
			{Value: big.NewInt(-32), Decimals: 1, Tag1: "tradingYield", Tag2: "month"},
			{Value: big.NewInt(1)},
			{Value: big.NewInt(80), Tag1: "starred\x00", Tag2: "\xff\xfe"},
			{Value: big.NewInt(80), Tag1: strings.Repeat("long ", 600)},
		} {
			r.Agent = target
			p.give(b, vandal, r)
		}
	})
}

// revocations withdraw every fifteenth rating of the history.
func (p *Population) revocations() stage {
	return each(func(b *Batch) {
		for i := 0; i < len(p.given); i += 15 {
			p.revoke(b, &p.given[i])
		}
	})
}

func (p *Population) revoke(b *Batch, g *given) {
	b.RevokeFeedback(g.client, g.Agent, g.index)
	g.revoked = true
}

// answers respond to every eighth rating: the owner, sometimes a stranger too.
func (p *Population) answers() stage {
	return stage{fill: func(b *Batch) error {
		for i := 0; i < len(p.given); i += 8 {
			responder := p.Clients[p.rng.IntN(len(p.Clients))]
			if i%3 > 0 {
				responder = p.Agents[p.given[i].Agent-p.Agents[0].ID].Owner
			}
			for range 1 + i/8%2 {
				if err := p.answer(b, &p.given[i], responder); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// lateAnswers respond to what is already revoked, which the registry allows.
func (p *Population) lateAnswers() stage {
	return stage{fill: func(b *Batch) error {
		return errors.Join(
			p.answer(b, &p.given[0], p.cast.heirs[0]),
			p.answer(b, &p.given[15], p.cast.heirs[1]),
		)
	}}
}

func (p *Population) answer(b *Batch, g *given, responder Account) error {
	body := fmt.Appendf(nil, `{"text":"Thank you for rating agent %d."}`, g.Agent)
	uri, err := p.publish([]Form{FormBase64, FormWeb}[p.rng.IntN(2)], "response", body)
	if err != nil {
		return err
	}
	b.AppendResponse(responder, g.Agent, g.client.Address, g.index, uri, crypto.Keccak256Hash(body))
	return nil
}
