package trust

import (
	"repute/trust/fixed"
)

// standing has the results of an evaluation that gates and tiers read.
type standing struct {
	status                 Status
	own                    Points // upper bound of the score by the agent's own evidence, before the guard
	low, high              Points // bounds of the score, limited by the guard
	confidence             fixed.Fixed
	pathsFor, pathsAgainst int
	channels               []fixed.Fixed // units of evidence by channel of the tag table
	recent                 []fixed.Fixed // by gate: see recentAgainst
	total                  moments
}

// low returns the lower bound of the last evaluation.
func (s *scoring) low() Points { return points(fixed.Clamp(s.mean-s.deviation, -fixed.One)) }

// high returns the upper bound of the last evaluation. Evidence by sources MUST NOT make an agent surely bad: it lowers
// the bound to guardBelow at most, unless the bound without sources is lower.
func (s *scoring) high() Points {
	high := points(fixed.Clamp(s.mean+s.deviation, -fixed.One))
	if s.hasSourced && !s.withoutSources {
		return max(high, min(s.vouched.own, guardBelow(s.p)))
	}
	return high
}

// isCondemned reports whether the agent is surely bad without sources. Praise by sources does not count for such an
// agent: an owner MUST NOT be able to buy credentials that lift the penalty from its other agents.
func (s *scoring) isCondemned() bool { return s.hasSourced && s.vouched.own < guardBelow(s.p) }

// standing returns the results of the last evaluation. It reuses the slices of old.
func (s *scoring) standing(old standing) standing {
	out := standing{status: s.status(), own: s.high(), confidence: s.confidence(), total: s.total,
		pathsFor: whole(s.flowFor), pathsAgainst: whole(s.flowAgainst),
		channels: old.channels[:0], recent: old.recent[:0]}
	guard := s.guard(out.own)
	out.low, out.high = guard.limit(s.low()), guard.limit(out.own)
	for i := range s.sums {
		out.channels = append(out.channels, s.sums[i].weight)
	}
	for i := range s.p.Gates {
		out.recent = append(out.recent, s.recentAgainst(s.p.Gates[i].RecentDays))
	}
	return out
}

// recentAgainst returns the sum of the vouched weights of raters with an opinion against the agent from the last days;
// 0 for a gate with no such condition.
func (s *scoring) recentAgainst(days int) (sum fixed.Fixed) {
	if days == 0 {
		return 0
	}
	const day = 24 * 60 * 60
	since := s.block.Time.Unix() - int64(days)*day
	for i := 0; i < len(s.against); {
		var weight fixed.Fixed
		for burst := s.against[i].burst; i < len(s.against) && s.against[i].burst == burst; i++ {
			if v := &s.opinions[s.against[i].at]; int64(v.newest) >= since {
				weight = max(weight, v.weight)
			}
		}
		if weight > s.p.Paths.MinWeight {
			sum += weight
		}
	}
	return sum
}

// vouchedOnly returns the standing without sources, which gates that keep agents out read.
func (s *scoring) vouchedOnly() *standing {
	if s.hasSourced {
		return &s.vouched
	}
	return &s.now
}

// admits returns the standing that gates that admit agents read. Each number is the worse one of those with and without
// sources: sources may close such a gate and MUST NOT open it.
func (s *scoring) admits() standing {
	out := s.now
	if !s.hasSourced {
		return out
	}
	v := &s.vouched
	out.low, out.pathsFor = min(out.low, v.low), min(out.pathsFor, v.pathsFor)
	out.confidence = min(out.confidence, v.confidence)
	if v.status != Rated {
		out.status = v.status
	}
	out.channels = append([]fixed.Fixed{}, out.channels...)
	for i := range out.channels {
		out.channels[i] = min(out.channels[i], v.channels[i])
	}
	return out
}
