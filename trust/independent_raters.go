package trust

import (
	"slices"

	"repute/trust/fixed"
)

// severalRaters reports whether enough independent raters with weight rated the agent, for it or against it: whether a
// maximum flow of at most RatedParams.Each through each identity reaches RatedParams.Raters times Each. So an identity
// counts as one rater however many wallets it vouches for, and raters with little weight or with old ratings count in
// part. status calls it for each evaluation.
func (s *scoring) severalRaters() bool {
	each := s.p.Rated.Each &^ 1 // flows have one binary digit less than Fixed
	need, have := each*fixed.Fixed(s.p.Rated.Raters), s.sourcedRaters(each)
	if have >= need || s.w.Rootless() {
		return have >= need
	}
	s.f.BeginLimited(s.a.owner, each)
	s.flat = slices.Grow(s.flat[:0], len(s.members)) // raters returns parts of flat, which MUST NOT be moved
	for at := 0; at < len(s.opinions) && have+s.f.Value() < need; {
		first := at
		members, next := s.raters(first, func(fixed.Fixed) bool { return true })
		var evidence fixed.Fixed
		for at = first; at < next; at++ {
			evidence += s.opinions[at].vouched
		}
		if len(members) > 0 && evidence > 0 {
			s.f.AddLimited(members, evidence)
		}
	}
	return have+s.f.Flow(need-have) >= need
}

// persons is a union-find structure that joins the bursts of one person. A burst is a group of opinions that count as
// one rater (opinion.opensBurst); it is named by its index.
type persons struct {
	parent []int          // of each burst; the representative of a person is its own parent
	of     map[uint32]int // first burst of each person
	sum    []fixed.Fixed  // evidence by sources; that of a representative is the sum over the person
	weight []fixed.Fixed  // vouched weight; that of a representative is the largest of the person
}

// sourcedRaters returns how much flow sources add to severalRaters: for each person its evidence by sources, at most
// what its vouched weight lacks of each.
func (s *scoring) sourcedRaters(each fixed.Fixed) (have fixed.Fixed) {
	if len(s.grants) == 0 {
		return 0
	}
	p, next := persons{of: map[uint32]int{}}, 0
	for i := range s.opinions {
		v := &s.opinions[i]
		if v.opensBurst {
			p.parent, p.sum, p.weight = append(p.parent, len(p.parent)), append(p.sum, 0), append(p.weight, 0)
		}
		burst := len(p.parent) - 1
		for ; next < len(s.grants) && s.grants[next].opinion == i; next++ {
			p.join(burst, s.grants[next].person)
		}
		last := p.last(burst)
		p.sum[last], p.weight[last] = p.sum[last]+v.sourced, max(p.weight[last], v.weight)
	}
	for burst, parent := range p.parent {
		if parent == burst {
			have += min(p.sum[burst], max(0, each-p.weight[burst]))
		}
	}
	return have
}

// last returns the representative of the person that a burst belongs to.
func (p *persons) last(burst int) int {
	for p.parent[burst] != burst {
		burst = p.parent[burst]
	}
	return burst
}

// join adds a burst to a person. It does nothing for person 0, which stands for no person.
func (p *persons) join(burst int, person uint32) {
	if person == 0 {
		return
	}
	first, known := p.of[person]
	if !known {
		p.of[person] = burst
		return
	}
	a, b := p.last(first), p.last(burst)
	if a != b {
		p.parent[a] = b
		p.sum[b], p.weight[b] = p.sum[a]+p.sum[b], max(p.weight[a], p.weight[b])
	}
}
