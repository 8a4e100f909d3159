package source

import (
	"maps"
	"slices"

	"repute/trust/fixed"
	"repute/trust/flow"
)

// Rules returns the policy's bounds in the types of package flow, which limits evidence by them. Sources are in the
// order of the policy, classes in the order of their ids. A class without InAll bounds one rater by 1, which is the
// bound of every rater. The order makes the result equal on every machine.
func (p *Policy) Rules() (rules flow.SourceRules) {
	rules.All = flow.SourceBounds(p.All)
	classes := slices.Sorted(maps.Keys(p.Classes))
	for _, id := range classes {
		c := p.Classes[id]
		class := flow.SourceClass{ID: string(id), Rater: fixed.One, SourceBounds: flow.SourceBounds(c.Bounds)}
		if c.InAll {
			class.Rater = c.Weight
		}
		rules.Classes = append(rules.Classes, class)
	}
	for i := range p.Sources {
		s := &p.Sources[i]
		rules.Sources = append(rules.Sources, flow.Source{ID: s.ID, Class: slices.Index(classes, s.Class),
			SourceBounds: flow.SourceBounds(s.Bounds)})
	}
	return rules
}
