package source

import (
	"cmp"
	"slices"

	"repute/trust/fixed"
)

// Lift is the least that credentials cost which together give one new agent so much evidence, by published prices
// alone. To rent a holder for one rating costs less than to buy a credential.
type Lift struct {
	Dollars fixed.Fixed // 0 where OutOfReach
	// Units is the evidence that was asked for, or where OutOfReach the most that priced sources give.
	Units fixed.Fixed
	// OutOfReach says that the bounds of sources, classes and all sources admit no such evidence at published prices.
	OutOfReach bool
	// Priced are the ids of the sources that were counted, the cheapest by unit first; Unpriced are those that count
	// in scores and have no published price.
	Priced, Unpriced []string
}

// offer is a source with a price.
type offer struct {
	*Source
	weight fixed.Fixed // of one credential
	unit   fixed.Fixed // price of one unit
}

// LiftPrice returns what it costs to give a new agent so many units of praise by some sources of the policy: it buys
// whole credentials, those with the lowest price by unit first, within the bounds of each source, each class and all
// sources. The bounds contain one another, so that no other order costs less, but for the rest of one credential.
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
	slices.SortFunc(offers, func(a, b offer) int { return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.ID, b.ID)) })
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
		if bought-count*o.weight > o.weight/1000 { // less is what rounding leaves
			count++
		}
		out.Dollars += o.Price.USD * count
	}
	if out.Units < units {
		out.OutOfReach, out.Dollars = true, 0
	}
	return out
}
