package devnet

import (
	"fmt"

	"github.com/ethereum/go-ethereum/crypto"
)

// validations are requests, answers to most of them, and second thoughts.
func (p *Population) validations() []stage {
	return []stage{
		{fill: func(b *Batch) error {
			for range 25 {
				if err := p.ask(b); err != nil {
					return err
				}
			}
			return nil
		}},
		{fill: func(b *Batch) error { return p.verdicts(b, 0, 17) }},
		// Some are answered again, one after the other: the latest counts.
		{fill: func(b *Batch) error { return p.verdicts(b, 0, 5) }},
		{fill: func(b *Batch) error { return p.verdicts(b, 0, 2) }},
	}
}

// ask requests a validation of a random agent from a random validator.
func (p *Population) ask(b *Batch) error {
	a := &p.Agents[p.rng.IntN(len(p.Agents))]
	validator := p.Validators[p.rng.IntN(len(p.Validators))]
	p.matters++
	body := fmt.Appendf(nil, `{"agentId":%d,"task":"matter %d","input":"0x%x"}`, a.ID, p.matters, p.rng.Uint64())
	uri, err := p.publish([]Form{FormWeb, FormIPFS, FormBase64}[p.rng.IntN(3)], "request", body)
	if err != nil {
		return err
	}
	q := asked{agent: a.ID, validator: validator, hash: crypto.Keccak256Hash(body)}
	b.ValidationRequest(a.Owner, validator.Address, a.ID, uri, q.hash)
	p.asked = append(p.asked, q)
	return nil
}

// verdicts answer the requests from..to-1.
func (p *Population) verdicts(b *Batch, from, to int) error {
	for i := from; i < to; i++ {
		if err := p.verdict(b, &p.asked[i]); err != nil {
			return err
		}
	}
	return nil
}

// verdict answers a request: every sixth with 0, which the chain's own view
// cannot tell from no answer.
func (p *Population) verdict(b *Batch, q *asked) error {
	body := fmt.Appendf(nil, `{"request":"%s","report":"run %d"}`, q.hash, p.rng.IntN(1000))
	uri, err := p.publish(FormWeb, "report", body)
	if err != nil {
		return err
	}
	v := ValidationAnswer{Request: q.hash, URI: uri, Hash: crypto.Keccak256Hash(body),
		Tag: []string{"soft", "hard_finality", "tee", ""}[p.rng.IntN(4)]}
	if p.rng.IntN(6) > 0 {
		v.Response = uint8(60 + p.rng.IntN(41))
	}
	b.ValidationResponse(q.validator, v)
	q.answered = true
	return nil
}
