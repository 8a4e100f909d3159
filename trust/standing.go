package trust

import "repute/trust/fixed"

// standing is what gates and tiers ask of an evaluation.
type standing struct {
	status                 Status
	own                    Points // upper bound by the agent's own evidence
	low, high              Points // limited by the guard
	confidence             fixed.Fixed
	pathsFor, pathsAgainst int
	channels               []fixed.Fixed // evidence by channel of the tag table
	recent                 []fixed.Fixed // by gate: units of raters who spoke against the agent lately
	total                  moments
}

// low is the lower bound of the evaluation.
func (s *scoring) low() Points { return points(fixed.Clamp(s.mean-s.deviation, -fixed.One)) }

// high is the upper bound of the evaluation. Sources do not make an agent surely bad: below that line only vouched
// evidence leads.
func (s *scoring) high() Points {
	high := points(fixed.Clamp(s.mean+s.deviation, -fixed.One))
	if s.heard && !s.leaveOut {
		return max(high, min(s.vouched.own, s.p.guardBelow()))
	}
	return high
}

// isCondemned reports whether an agent is surely bad by vouched evidence. Sources say nothing for such a one: who buys
// them MUST NOT lift the penalty from his other agents.
func (s *scoring) isCondemned() bool { return s.heard && s.vouched.own < s.p.guardBelow() }

// standing returns what the last evaluation found, in the memory of old.
func (s *scoring) standing(old standing) standing {
	out := standing{status: s.status(), own: s.high(), confidence: s.confidence(), total: s.total,
		pathsFor: whole(s.flowFor), pathsAgainst: whole(s.flowAgainst),
		channels: append(old.channels[:0], make([]fixed.Fixed, len(s.p.Tags.Channels))...),
		recent:   old.recent[:0]}
	guard := s.guard(out.own)
	out.low, out.high = guard.limit(s.low()), guard.limit(out.own)
	for i := range s.opinions {
		v := &s.opinions[i]
		out.channels[v.channel] += v.vouched + v.sourced + v.pooled
	}
	for i := range s.p.Gates {
		out.recent = append(out.recent, s.recentAgainst(s.p.Gates[i].RecentDays))
	}
	return out
}

// recentAgainst is the vouched weight of the raters who spoke against the agent within so many days.
func (s *scoring) recentAgainst(days int) (sum fixed.Fixed) {
	if days == 0 {
		return 0
	}
	const day = 24 * 60 * 60
	since := s.block.Time.Unix() - int64(days)*day
	for at := 0; at < len(s.opinions); {
		var weight fixed.Fixed
		for again := true; again; again = at < len(s.opinions) && !s.opinions[at].opensBurst {
			if v := &s.opinions[at]; isAgainst(v.value) && v.newest >= since {
				weight = max(weight, v.weight)
			}
			at++
		}
		if weight > s.p.Paths.MinWeight {
			sum += weight
		}
	}
	return sum
}

// vouchedOnly is the standing without sources.
func (s *scoring) vouchedOnly() *standing {
	if s.heard {
		return &s.vouched
	}
	return &s.now
}

// admits is what the gates that admit read: of each number the worse one without and with sources, so that sources may
// close a gate of value and never open it.
func (s *scoring) admits() standing {
	out := s.now
	if !s.heard {
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
