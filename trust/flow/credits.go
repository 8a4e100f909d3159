package flow

import (
	"cmp"
	"slices"

	"repute/trust/fixed"
)

// SourceRules bound what facts about raters give, which sources tell: no one source, no class of them and not all
// together give a side of an agent's evidence more.
type SourceRules struct {
	Sources []Source
	Classes []SourceClass
	All     SourceBounds
}

// Source is one whose facts give identities weight.
type Source struct {
	ID    string
	Class int // of SourceRules.Classes
	SourceBounds
}

// SourceClass is a class of sources, by what a credential of them costs.
type SourceClass struct {
	ID    string
	Rater fixed.Fixed // most that credits of the class give one identity, 0 to 1
	SourceBounds
}

// SourceBounds are the most that counts for an agent and against it, in units of evidence.
type SourceBounds struct{ Praise, Blame fixed.Fixed }

// Credit is weight that a source gives an identity because of a fact about it, without anybody's word.
type Credit struct {
	Source int         // of SourceRules.Sources
	Weight fixed.Fixed // 0 to 1
	// Person is the same for all credits of one person, and 0 where no other identity has a credit of that person.
	Person uint32
}

// credited is an identity with credits.
type credited struct {
	granted fixed.Fixed
	credits []Credit
}

// WithCredits returns the weights with what sources give beside them. An identity has the larger of both: what is
// granted is what the sum of its credits, at most 1, has beyond its weight. Credits vouch for nobody, and neither Weight,
// Vouching nor Sum knows of them.
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

// CreditedLike returns the weights with what sources give by other weights of the same graph beside them.
func (w *Weights) CreditedLike(other *Weights) *Weights {
	return w.WithCredits(other.rules, other.given)
}

// Granted returns what sources give a node beyond its weight, 0 to 1; 0 for NoNode.
func (w *Weights) Granted(n Node) fixed.Fixed {
	if int(n/64) >= len(w.isCredited) || w.isCredited[n/64]&(1<<(n%64)) == 0 {
		return 0
	}
	return w.credits[n].granted
}

// Credits returns what Granted consists of, by source, but for rounding.
func (w *Weights) Credits(n Node) []Credit { return w.credits[n].credits }

// SourceRules returns the bounds of all that is granted.
func (w *Weights) SourceRules() *SourceRules { return &w.rules }

// Counts reports whether the word of a node has a weight above least, vouched for or granted.
func (w *Weights) Counts(n Node, least fixed.Fixed) bool {
	return w.Weight(n) > least || w.Granted(n) > least
}

// Credited is how many identities have weight that sources grant.
func (w *Weights) Credited() int { return len(w.credits) }
