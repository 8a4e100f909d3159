package engine

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/source"
)

// SourceReader asks the sources of a chain, at a block, about raters. past is what the readings had found that the last
// epoch used. A source that cannot be read has a reading that says so; an error means that none could.
type SourceReader interface {
	// Reaches reports whether a chain can be asked.
	Reaches(chain uint64) bool
	Read(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source, raters []common.Address,
		past source.Past) ([]source.Reading, error)
}

// creditsOf puts credentials into the terms of scores as of a time.
func creditsOf(p *source.Policy, held []source.Credential, at time.Time) *trust.Credits {
	out := &trust.Credits{Rules: p.Rules(), Agents: p.Budget.Agents, Days: p.Budget.Days}
	numbers := map[string]int{}
	for i, s := range p.Sources {
		numbers[s.ID] = i
	}
	for _, r := range p.Raters(held, uint64(max(0, at.Unix()))) {
		for _, part := range r.Parts {
			out.Raters = append(out.Raters, trust.RaterCredit{Rater: r.Address, Source: numbers[part.Source],
				Subject: part.Subject, Weight: part.Weight})
		}
	}
	return out
}

// sourcesOn are the sources of a policy that count on the chain and are read there, or on a home that can be asked.
func (k *keeper) sourcesOn(p *source.Policy) []*source.Source {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(p.On(k.chain), func(s *source.Source) bool {
		home := s.ReadOn(k.chain)
		return home != k.chain && (k.ask == nil || !k.ask.Reaches(home) || !k.ask.Reaches(k.chain))
	})
}
