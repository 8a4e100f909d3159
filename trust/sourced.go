package trust

import (
	"repute/trust/fixed"
	"repute/trust/flow"
)

// SourcedView is the part of a score that comes from sources.
type SourcedView struct {
	Raters  int         `json:"raters"`  // with weight by a source
	Alone   int         `json:"alone"`   // of Result.TrustedFor and TrustedAgainst, those without vouched weight
	Classes []string    `json:"classes"` // ids of the classes of these sources
	Praise  fixed.Fixed `json:"praise"`  // units of evidence by sources, part of Result.Positive
	Blame   fixed.Fixed `json:"blame"`   // units of evidence by sources, part of Result.Negative
	// The other fields are those of the score without sources. Gates that admit read the worse of both, gates that keep
	// out read only these.
	Low          Points `json:"low"`
	High         Points `json:"high"`
	PathsFor     int    `json:"pathsFor"`
	PathsAgainst int    `json:"pathsAgainst"`
}

// grant is the evidence that one source gives one opinion.
type grant struct {
	opinion, source int         // indices in scoring.opinions and SourceRules.Sources
	person          uint32      // 0 for a person with a single identity
	amount          fixed.Fixed // units of evidence
}

// sourcedSide is the evidence by sources for or against an agent, and the independent trust behind it, both in units.
type sourcedSide struct{ evidence, flow fixed.Fixed }

// boundSources limits the evidence by sources on each side: by person, by source, by class, and in total.
func (s *scoring) boundSources() {
	s.sourcedFor, s.sourcedAgainst = sourcedSide{}, sourcedSide{}
	if s.w.Credited() == 0 {
		return
	}
	s.readGrants()
	if len(s.grants) == 0 {
		return
	}
	s.sharePersons()
	praise := func(b *flow.SourceBounds) fixed.Fixed { return b.Praise }
	if s.isCondemned() {
		praise = func(*flow.SourceBounds) fixed.Fixed { return 0 }
	}
	s.sourcedFor = s.boundGrants(isFor, praise)
	s.sourcedAgainst = s.boundGrants(isAgainst, func(b *flow.SourceBounds) fixed.Fixed { return b.Blame })
}

// readGrants divides the evidence by sources of each opinion among the sources that give it.
func (s *scoring) readGrants() {
	s.grants = s.grants[:0]
	for i := range s.opinions {
		v := &s.opinions[i]
		if v.sourced == 0 {
			continue
		}
		for _, c := range s.w.Credits(v.credited) {
			amount := v.sourced.Scaled(int64(c.Weight), int64(v.granted))
			s.grants = append(s.grants, grant{i, c.Source, c.Person, amount})
		}
	}
}

// sharePersons scales the grants of each person with several identities down to the largest one, so that they give no
// more together than one identity.
func (s *scoring) sharePersons() {
	clear(s.persons)
	for i := range s.grants {
		if g := &s.grants[i]; g.person > 0 {
			if s.persons == nil {
				s.persons = map[uint32]fixed.Limit{}
			}
			sum := s.persons[g.person]
			sum.Add(g.amount)
			s.persons[g.person] = sum
		}
	}
	for i := range s.grants {
		if g := &s.grants[i]; g.person > 0 {
			sum := s.persons[g.person]
			g.amount = sum.Of(g.amount)
		}
	}
}

// boundGrants limits the grants of one side and sets the evidence by sources of its opinions to their sums. of returns
// the bound that applies to this side.
func (s *scoring) boundGrants(side func(fixed.Fixed) bool, of func(*flow.SourceBounds) fixed.Fixed) sourcedSide {
	rules := s.w.SourceRules()
	s.limit(side, len(rules.Sources), func(g *grant) int { return g.source },
		func(i int) fixed.Fixed { return of(&rules.Sources[i].SourceBounds) })
	s.limit(side, len(rules.Classes), func(g *grant) int { return rules.Sources[g.source].Class },
		func(i int) fixed.Fixed { return of(&rules.Classes[i].SourceBounds) })
	s.limit(side, 1, func(*grant) int { return 0 }, func(int) fixed.Fixed { return of(&rules.All) })
	for i := range s.opinions {
		if v := &s.opinions[i]; side(v.value) {
			v.sourced = 0
		}
	}
	for i := range s.grants {
		if v := &s.opinions[s.grants[i].opinion]; side(v.value) {
			v.sourced += s.grants[i].amount
		}
	}
	return s.sumSourced(side)
}

// limit scales the grants of one side with the same key down, so that their sum is at most most(key).
func (s *scoring) limit(side func(fixed.Fixed) bool, keys int, key func(*grant) int, most func(key int) fixed.Fixed) {
	sums := make([]fixed.Limit, keys)
	for i := range s.grants {
		if g := &s.grants[i]; side(s.opinions[g.opinion].value) {
			sums[key(g)].Sum += g.amount
		}
	}
	for k := range sums {
		sums[k].Most = most(k)
	}
	for i := range s.grants {
		if g := &s.grants[i]; side(s.opinions[g.opinion].value) {
			g.amount = sums[key(g)].Of(g.amount)
		}
	}
}

// sumSourced adds up the evidence by sources of one side, and its flow: that of a burst is at most the weight that
// sources grant it.
func (s *scoring) sumSourced(side func(fixed.Fixed) bool) (out sourcedSide) {
	for at := 0; at < len(s.opinions); {
		var evidence, capacity fixed.Fixed
		for again := true; again; again = at < len(s.opinions) && !s.opinions[at].opensBurst {
			if v := &s.opinions[at]; side(v.value) && v.sourced > 0 {
				evidence, capacity = evidence+v.sourced, max(capacity, v.granted)
			}
			at++
		}
		out.evidence, out.flow = out.evidence+evidence, out.flow+min(evidence, capacity)
	}
	return out
}

// sourcedView returns the part of the score that comes from sources, nil where that is nothing.
func (s *scoring) sourcedView() *SourcedView {
	if s.sourcedFor.evidence+s.sourcedAgainst.evidence == 0 {
		return nil
	}
	v := &s.vouched
	view := &SourcedView{Praise: s.sourcedFor.evidence, Blame: s.sourcedAgainst.evidence, Low: v.low, High: v.high,
		PathsFor: v.pathsFor, PathsAgainst: v.pathsAgainst}
	view.Alone = s.trusted.sourced
	rules := s.w.SourceRules()
	classes := make([]bool, len(rules.Classes))
	last := flow.NoNode
	for i := range s.grants {
		if v := &s.opinions[s.grants[i].opinion]; v.credited != last { // a rater's opinions follow each other
			last = v.credited
			view.Raters++
		}
		classes[rules.Sources[s.grants[i].source].Class] = true
	}
	for i, used := range classes {
		if used {
			view.Classes = append(view.Classes, rules.Classes[i].ID)
		}
	}
	return view
}

// sourceNames returns the ids of the sources that give a node weight.
func (s *scoring) sourceNames(n flow.Node) (names []string) {
	for _, c := range s.w.Credits(n) {
		names = append(names, s.w.SourceRules().Sources[c.Source].ID)
	}
	return names
}
