package trust

import (
	"slices"

	"repute/trust/fixed"
)

// severalRaters reports whether enough independent raters of weight speak of the agent, on whichever side: whether a
// flow that passes RatedParams.Each by every identity reaches RatedParams.Raters times that. So one party is one
// rater, however many wallets it vouches for, and raters of little weight or of long ago count in part.
func (s *scoring) severalRaters() bool {
	each := s.p.Rated.Each &^ 1 // as flows can tell
	need, have := each*fixed.Fixed(s.p.Rated.Raters), s.sourcedRaters(each)
	if have >= need || s.w.Rootless() {
		return have >= need
	}
	s.f.BeginLimited(s.a.owner, each)
	s.flat = slices.Grow(s.flat[:0], len(s.members)) // it does not move below
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

// persons joins bursts whose raters sources know as one person.
type persons struct {
	parent []int // of each burst; the last of a person is its own
	of     map[uint32]int
	sum    []fixed.Fixed // evidence by sources, of the last burst for all of the person
	weight []fixed.Fixed // vouched weight, the same
}

// sourcedRaters is how much the raters have by sources, none more than each with its vouched weight.
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

// last is the burst that stands for all of a person.
func (p *persons) last(burst int) int {
	for p.parent[burst] != burst {
		burst = p.parent[burst]
	}
	return burst
}

// join makes a burst one of a person, 0 for none.
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
