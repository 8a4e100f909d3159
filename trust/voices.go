package trust

import "slices"

// voice is a party's opinion of one agent in one channel, or that of several parties
// that count as one.
type voice struct {
	channel     uint8
	opensBurst  bool  // it is the first of its burst
	first, last int   // records of the account: from first to below last
	from, to    int   // members: scoring.members from from to below to
	newest      int64 // Unix seconds
	weight      Fixed // R of its strongest member, 0 to 1
	strength    Fixed // most that a member would weigh with full weight
	// Opinions, -1 to 1, and what they weigh: of the members as far as they are
	// vouched for, and as far as they are not.
	value, vouched    Fixed
	poolValue, pooled Fixed
}

// hear makes voices of an account.
func (s *scoring) hear() {
	s.voices, s.members, s.shares = s.voices[:0], s.members[:0], s.shares[:0]
	for i := range s.a.records { // apart, so that these accesses, far apart in memory, are made at once
		s.shares = append(s.shares, s.w.weight(s.a.records[i].node))
	}
	for at := 0; at < len(s.a.records); {
		at = s.voice(at)
	}
}

// voice makes one voice of the records from at: its weight is that of its strongest member,
// its opinion the mean by weight. What is vouched for and what is not are kept apart, so
// that a member without weight cannot change what the others say.
func (s *scoring) voice(at int) int {
	e := &s.a.records[at]
	s.voices = append(s.voices, voice{first: at, from: len(s.members), channel: s.p.rules[e.rule].channel, opensBurst: e.opens&opensBurst != 0})
	v := &s.voices[len(s.voices)-1]
	if s.opens(at+1, opensVoice) {
		s.alone(v, at)
		at++
	} else {
		at = s.together(v, at)
	}
	v.last, v.to = at, len(s.members)
	return at
}

// opens tells whether something begins with a record; after the last, everything does.
func (s *scoring) opens(at int, what opens) bool {
	return at == len(s.a.records) || s.a.records[at].opens&what != 0
}

// alone is together for one record, as most voices are.
func (s *scoring) alone(v *voice, at int) {
	said, _ := s.member(at)
	value, strength := said.mean()
	weight := s.shares[at]
	v.weight, v.strength, v.newest = weight, strength, said.last
	if v.vouched = weight.mul(strength); v.vouched > 0 {
		v.value = value
	}
	if v.pooled = (One - weight).mul(strength); v.pooled > 0 {
		v.poolValue = value
	}
	if node := s.a.records[at].node; node != NoNode {
		s.members = append(s.members, node)
	}
}

// together hears all that is said with one voice.
func (s *scoring) together(v *voice, at int) int {
	var heard, unheard blend
	for again := true; again; again = !s.opens(at, opensVoice) {
		node, weight := s.a.records[at].node, s.shares[at]
		var said saying
		said, at = s.member(at)
		value, strength := said.mean()
		v.vouched = max(v.vouched, heard.add(value, weight.mul(strength)))
		v.pooled = max(v.pooled, unheard.add(value, (One-weight).mul(strength)))
		v.weight, v.strength, v.newest = max(v.weight, weight), max(v.strength, strength), max(v.newest, said.last)
		if node != NoNode {
			s.members = append(s.members, node)
		}
	}
	v.value, v.poolValue = heard.mean(), unheard.mean()
	return at
}

// blend is a mean of opinions by weight.
type blend struct {
	value, weight Fixed
	only          Fixed // the opinion, as long as there is one
	count         int
}

func (b *blend) add(value, weight Fixed) Fixed {
	b.value, b.weight = b.value+weight.mul(value), b.weight+weight
	b.only = value
	b.count++
	return weight
}

func (b *blend) mean() Fixed {
	if b.count == 1 && b.weight > 0 {
		return b.only // exactly
	}
	return meanOf(b.value, b.weight)
}

func meanOf(sum, weight Fixed) Fixed {
	if weight == 0 {
		return 0
	}
	return bounded(sum.div(weight), -One)
}

// member adds up what one party says, from a record on.
func (s *scoring) member(at int) (out saying, next int) {
	for again := true; again; again = !s.opens(at, opensMember) {
		out.add(s.p, &s.a.records[at], s.block.Time.Unix())
		at++
	}
	return out, at
}

// saying is what one party says: the mean, the older the less, as fresh as the newest.
type saying struct {
	value, weight, decay, payment, newest Fixed
	last                                  int64 // Unix seconds
	count                                 int
	opinion, rule                         Fixed // of the first
}

func (m *saying) add(p *Params, e *record, at int64) {
	decay, opinion, rule := p.decay(at-int64(e.time)), e.opinion(), p.rules[e.rule].weight
	switch m.count++; m.count {
	case 1: // sums are only needed once there are others
		m.opinion, m.rule = opinion, rule
	case 2:
		m.value, m.weight = m.opinion.mul(m.decay), m.rule.mul(m.decay)
		fallthrough
	default:
		m.value += opinion.mul(decay)
		m.weight += rule.mul(decay)
	}
	m.decay += decay
	m.payment = max(m.payment, e.paid())
	m.newest = max(m.newest, decay)
	m.last = max(m.last, int64(e.time))
}

// mean is the opinion and what it weighs when the party has full weight.
func (m *saying) mean() (value, strength Fixed) {
	if m.decay == 0 {
		return 0, 0 // too old to weigh anything
	}
	if m.count == 1 {
		return m.opinion, m.rule.mul(m.payment).mul(m.newest) // exactly
	}
	return bounded(m.value.div(m.decay), -One), m.weight.div(m.decay).mul(m.payment).mul(m.newest)
}

// paths counts the ways by which the raters are reached who speak with weight on one
// side, up to a number. A burst is one rater, in however many channels it speaks.
func (s *scoring) paths(side func(Fixed) bool, subject Node, most int) int {
	if len(s.w.roots) == 0 {
		return 0
	}
	s.f.begin(subject)
	s.flat = slices.Grow(s.flat[:0], len(s.members)) // it does not move below
	s.groups = s.groups[:0]
	paths := 0
	for at := 0; at < len(s.voices) && paths < most; {
		var raters []Node
		if raters, at = s.raters(at, side); len(raters) > 0 {
			if s.f.direct(raters, len(s.groups)) {
				paths++
			}
			s.groups = append(s.groups, raters)
		}
	}
	return s.f.most(s.groups, subject, most)
}

// raters lists the members, each once, of the burst whose first voice is at, as far as they
// speak with weight on one side, and gives the next burst's first voice.
func (s *scoring) raters(at int, side func(Fixed) bool) (members []Node, next int) {
	first := len(s.flat)
	for again := true; again; again = at < len(s.voices) && !s.voices[at].opensBurst {
		v := &s.voices[at]
		at++
		if v.weight <= s.p.Paths.MinWeight || !side(v.value) {
			continue
		}
		for _, n := range s.members[v.from:v.to] {
			if s.w.weight(n) > s.p.Paths.MinWeight {
				s.flat = append(s.flat, n)
			}
		}
	}
	if members = s.flat[first:]; len(members) > 1 {
		slices.Sort(members)
		members = slices.Compact(members)
		s.flat = s.flat[:first+len(members)]
	}
	return members, at
}
