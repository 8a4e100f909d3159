package flow

import (
	"cmp"
	"slices"

	"repute/trust/fixed"
)

// SourceRules limit the evidence about an agent that comes from sources: that of each source, of each class and of all
// sources together, for the agent and against it.
type SourceRules struct {
	Sources []Source
	Classes []SourceClass
	All     SourceBounds
}

// Source gives identities weight because of facts about them: see package trust/source.
type Source struct {
	ID    string
	Class int // index in SourceRules.Classes
	SourceBounds
}

// SourceClass is a class of sources whose credentials are about equally hard to get.
type SourceClass struct {
	ID    string
	Rater fixed.Fixed // highest sum of an identity's credits of the class, 0 to 1
	SourceBounds
}

// SourceBounds are the most units of evidence that count for an agent (Praise) and against it (Blame).
type SourceBounds struct{ Praise, Blame fixed.Fixed }

// Credit is the weight that a source gives an identity because of a fact about it.
type Credit struct {
	Source int         // index in SourceRules.Sources
	Weight fixed.Fixed // 0 to 1
	// Person is equal for all credits of one person, and 0 when the person has only one identity.
	Person uint32
}

// credited has the credits of an identity, scaled so that their sum is granted.
type credited struct {
	granted fixed.Fixed
	credits []Credit
}

// WithCredits returns the weights with credits of identities. An identity is granted the difference between the sum of
// its credits, at most 1, and its weight, so that it counts with the larger of the two. Granted weight is not passed on
// to others, and Weight, Vouching and Sum do not include it.
func (w *Weights) WithCredits(rules SourceRules, of map[Node][]Credit) *Weights {
	out := *w
	out.rules, out.given = rules, of
	out.credits, out.isCredited = map[Node]credited{}, make([]uint64, w.graph.Len()/64+1)
	for n, credits := range of {
		var sum fixed.Fixed
		for _, c := range credits {
			sum += c.Weight
		}
		granted := min(fixed.One, sum) - w.Weight(n)
		if granted <= 0 {
			continue
		}
		list := slices.Clone(credits)
		slices.SortFunc(list, func(a, b Credit) int { return cmp.Compare(a.Source, b.Source) })
		for i := range list {
			list[i].Weight = list[i].Weight.Scaled(int64(granted), int64(sum))
		}
		out.credits[n] = credited{granted, list}
		out.isCredited[n/64] |= 1 << (n % 64)
	}
	return &out
}

// CreditedLike returns the weights with the credits of other weights of the same graph. It is used for the weights by a
// caller's own roots.
func (w *Weights) CreditedLike(other *Weights) *Weights {
	return w.WithCredits(other.rules, other.given)
}

// Granted returns the weight that sources grant a node in addition to Weight, 0 to 1; 0 for NoNode.
func (w *Weights) Granted(n Node) fixed.Fixed {
	if int(n/64) >= len(w.isCredited) || w.isCredited[n/64]&(1<<(n%64)) == 0 {
		return 0
	}
	return w.credits[n].granted
}

// Credits returns the parts of Granted by source. Their sum may differ from Granted by rounding.
func (w *Weights) Credits(n Node) []Credit { return w.credits[n].credits }

// SourceRules returns the limits of evidence by sources.
func (w *Weights) SourceRules() *SourceRules { return &w.rules }

// Counts reports whether a node has a weight above least, by trust flow or by sources.
func (w *Weights) Counts(n Node, least fixed.Fixed) bool {
	return w.Weight(n) > least || w.Granted(n) > least
}

// Credited returns how many identities sources grant weight to.
func (w *Weights) Credited() int { return len(w.credits) }
