package source

import (
	"cmp"
	"slices"

	"repute/trust/fixed"
)

// Lift is an estimate of the lowest price of a score: LiftPrice computes the cost of the credentials whose holders
// together give a new agent a number of units of praise. It uses published prices only. Renting a holder for one rating
// costs less than buying a credential, and nobody publishes that price.
type Lift struct {
	Dollars fixed.Fixed // US dollars; 0 when OutOfReach
	// Units is the praise that was asked for, or when OutOfReach the most that sources with a price can give.
	Units fixed.Fixed
	// OutOfReach says that sources with a price cannot give so many units within the bounds of the policy.
	OutOfReach bool
	// Priced are the ids of the sources that were counted, in ascending order of the price of one unit. Unpriced are
	// the ids of sources that count in scores and have no published price; they are not part of Dollars.
	Priced, Unpriced []string
}

// offer is a source with a price. unit is the price divided by the weight.
type offer struct {
	*Source
	weight fixed.Fixed // of one credential
	unit   fixed.Fixed // price of one unit of weight, US dollars
}

// LiftPrice returns the cost of units of praise for one new agent by these sources of the policy. It buys whole
// credentials in ascending order of the price of one unit, within the bounds of each source, each class and all
// sources. The bounds are nested, so no other order costs less, except for the unused part of the last credential. The
// trust engine calls it once per run, and stores the result in the run's coverage. The sum of a class is counted over
// all of its sources; a source that finds its class full is listed in Priced and buys nothing.
func (p *Policy) LiftPrice(sources []*Source, units fixed.Fixed) Lift {
	out := Lift{Priced: []string{}, Unpriced: []string{}}
	var offers []offer
	for _, s := range sources {
		if s.Price == nil {
			out.Unpriced = append(out.Unpriced, s.ID)
			continue
		}
		weight := min(s.Weight, p.Classes[s.Class].Weight)
		offers = append(offers, offer{s, weight, s.Price.USD.Div(weight)})
	}
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.ID, b.ID))
	})
	left, classes := min(units, p.All.Praise), map[Class]fixed.Fixed{}
	for i := range offers {
		o := &offers[i]
		out.Priced = append(out.Priced, o.ID)
		bought := min(left, o.Bounds.Praise, p.Classes[o.Class].Praise-classes[o.Class])
		if bought <= 0 {
			continue
		}
		left, classes[o.Class], out.Units = left-bought, classes[o.Class]+bought, out.Units+bought
		count := bought / o.weight
		if bought-count*o.weight > o.weight/1000 { // a smaller rest is a rounding error
			count++
		}
		out.Dollars += o.Price.USD * count
	}
	if out.Units < units {
		out.OutOfReach, out.Dollars = true, 0
	}
	return out
}
