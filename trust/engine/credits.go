package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
	"repute/trust/graph"
	"repute/trust/source"
)

// SourceReader reads sources of trust. Package trust/source/read implements it.
type SourceReader interface {
	// Reaches reports whether an endpoint of the chain is configured.
	Reaches(chain uint64) bool
	// Read reads sources about raters as of a block of a chain. past is the result of the last run's readings. A source
	// that cannot be read has a reading with that status; an error means that no source was read.
	Read(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source, raters []common.Address,
		past source.Past) ([]source.Reading, error)
}

// creditsOf converts the credentials that count at a time into credits, by the rules of a policy.
func creditsOf(p *source.Policy, held []source.Credential, at time.Time) *graph.Credits {
	out := &graph.Credits{Rules: p.Rules(), Agents: p.Budget.Agents, Days: p.Budget.Days}
	numbers := map[string]int{}
	for i, s := range p.Sources {
		numbers[s.ID] = i
	}
	for _, r := range p.Raters(held, uint64(max(0, at.Unix()))) {
		for _, part := range r.Parts {
			out.Raters = append(out.Raters, graph.RaterCredit{Rater: r.Address, Source: numbers[part.Source],
				Subject: part.Subject, Weight: part.Weight})
		}
	}
	return out
}

// sourcesOn returns the sources of a policy that count on the chain: those that this process can ask, and those that
// the last run read, which another process may have asked. A source of the last run stays although this process cannot
// read it: otherwise raters would lose its weight when another process takes over.
func (k *keeper) sourcesOn(p *source.Policy, last []source.State) []*source.Source {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(p.On(k.chain),
		func(s *source.Source) bool { return !k.asks(s) && source.StateOf(last, s.ID) == nil })
}

// asks reports whether a source is read on the chain, or on a home that this process can ask.
func (k *keeper) asks(s *source.Source) bool {
	home := s.ReadOn(k.chain)
	return home == k.chain || k.ask != nil && k.ask.Reaches(home) && k.ask.Reaches(k.chain)
}

// statesOf returns how the readings of a run's sources went, none where the run asked no source.
func statesOf(run *scoredb.Run) (states []source.State, err error) {
	if run.Readings == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(run.Readings), &states); err != nil {
		return nil, fmt.Errorf("readings of sources of run %d: %w", run.Run, err)
	}
	return states, nil
}
