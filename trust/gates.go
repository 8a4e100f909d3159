package trust

import (
	"slices"
	"sort"

	"repute/trust/fixed"
	"repute/trust/rating"
)

// GateView is a gate and what an agent lacks to pass it.
type GateView struct {
	ID        string           `json:"id"`
	Direction rating.Direction `json:"direction"`
	Passed    bool             `json:"passed"`
	Lacks     []Lacking        `json:"lacks,omitempty"` // empty when passed
}

// Lacking is one thing missing for a gate.
type Lacking struct {
	// What is rated, low, high, paths, evidence, recentRaters, a check of Gate.Checks, or
	// checked where nobody looked.
	What string      `json:"what"`
	Have fixed.Fixed `json:"have"`
	Need fixed.Fixed `json:"need"`
	// Units, of low in an explanation, is how many full-weight opinions of +1 would do.
	Units *fixed.Fixed `json:"units,omitempty"`
}

// mostBySources is the highest tier to which sources may lift an agent. Those above read what gates that admit read.
const mostBySources = 2

// judge fills gates and tier.
func (s *scoring) judge(r *Result) {
	admits := s.admits()
	for i := range s.p.Gates {
		g := &s.p.Gates[i]
		lacks := s.lacks(i, &admits)
		r.Gates = append(r.Gates, GateView{g.ID, g.Direction(), len(lacks) == 0, lacks})
	}
	switch r.Status {
	case Unrated:
		return
	case Thin:
		r.setTier(s.p.ThinTier())
		return
	}
	for _, t := range s.p.Tiers {
		by := &s.now
		if t.Tier > mostBySources {
			by = &admits
		}
		if (t.Gate == "" || r.passes(t.Gate)) && (t.Low == nil || by.low >= whole3(*t.Low)) && by.pathsFor >= t.Paths {
			r.setTier(t.Tier)
			return
		}
	}
}

// setTier sets the tier, which is no better than that of an agent that limits this one entirely.
func (r *Result) setTier(tier int) {
	if r.Tier = tier; r.Guard != nil && r.Guard.Share == fixed.One {
		r.Tier = min(tier, r.Guard.Tier)
	}
}

// passes reports whether a gate was passed.
func (r *Result) passes(gate string) bool {
	return slices.ContainsFunc(r.Gates, func(g GateView) bool { return g.ID == gate && g.Passed })
}

// whole3 turns points into thousandths.
func whole3(f fixed.Fixed) Points { return Points(f.Round(1000)) }

// lacks lists what an agent lacks to pass a gate; none when it passes. Gates that admit read admits, and those that
// keep out what holds without sources: these MUST NOT help an agent out of there, nor into it.
func (s *scoring) lacks(gate int, admits *standing) []Lacking {
	first, g := len(s.lacking), &s.p.Gates[gate]
	lack := func(what string, have, need fixed.Fixed) {
		s.lacking = append(s.lacking, Lacking{What: what, Have: have, Need: need})
	}
	by, paths := admits, admits.pathsFor
	if g.High != nil {
		by = s.vouchedOnly()
		paths = by.pathsAgainst
	}
	if by.status != Rated && (g.Low != nil || g.High != nil) {
		lack("rated", by.confidence, s.p.Rated.Confidence)
	}
	if g.Low != nil && by.low < whole3(*g.Low) {
		lack("low", fromPoints(by.low), *g.Low)
	}
	if g.High != nil && by.high >= whole3(*g.High) {
		lack("high", fromPoints(by.high), *g.High)
	}
	if paths < g.Paths {
		lack("paths", fixed.Int(paths), fixed.Int(g.Paths))
	}
	if g.Evidence > 0 {
		if have := s.evidenceIn(by, g.Channels); have < g.Evidence {
			lack("evidence", have, g.Evidence)
		}
	}
	if have := by.recent[gate]; whole(have) < g.RecentRaters {
		lack("recentRaters", have, fixed.Int(g.RecentRaters))
	}
	lacksIdentity(g.Checks, s.identity, lack)
	if first == len(s.lacking) {
		return nil
	}
	return s.lacking[first:len(s.lacking):len(s.lacking)]
}

// fromPoints converts thousandths of a point.
func fromPoints(p Points) fixed.Fixed { return fixed.Ratio(int64(p), 1000) }

// evidenceIn is the evidence of a standing in some channels.
func (s *scoring) evidenceIn(by *standing, channels []string) (sum fixed.Fixed) {
	for i, c := range s.p.Tags.Channels {
		if slices.Contains(channels, c.Name) {
			sum += by.channels[i]
		}
	}
	return sum
}

// missing is how many more full-weight opinions of +1 lift the lower bound to so many
// points, to a hundredth and at most 1000; what they do for the prior is not counted.
func (s *scoring) missing(low fixed.Fixed) fixed.Fixed {
	target := low / 100
	n := sort.Search(100_000, func(hundredths int) bool {
		units := fixed.Ratio(int64(hundredths), 100)
		return s.lowWith(&s.now, units) >= target && s.lowWith(s.vouchedOnly(), units) >= target
	})
	return fixed.Ratio(int64(n), 100)
}

// lowWith is the lower bound after so many more opinions of +1.
func (s *scoring) lowWith(by *standing, units fixed.Fixed) fixed.Fixed {
	more := by.total
	more.weight, more.value, more.square = more.weight+units, more.value+units, more.square+units
	mean, deviation := more.average(s.p.Evidence, s.prior)
	return mean - deviation
}
