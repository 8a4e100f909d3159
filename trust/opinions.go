package trust

import (
	"slices"

	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// opinion is an identity's opinion about one agent in one channel, or the common opinion of
// the identities of a burst.
type opinion struct {
	channel     uint8
	opensBurst  bool        // the first opinion of its burst
	newest      uint32      // Unix seconds
	first, last uint32      // records of the account: from first to below last
	from, to    uint32      // members: scoring.members from from to below to
	credited    flow.Node   // the member to which sources give granted; NoNode where there is none
	weight      fixed.Fixed // R of its strongest member, 0 to 1
	granted     fixed.Fixed // what sources give the member credited beyond its weight
	strength    fixed.Fixed // evidence of its strongest member, had it full weight
	// Values, -1 to 1, and their evidence: value with vouched by the members' weight and sourced by what sources
	// grant, poolValue and pooled by what they lack of full weight.
	value, vouched, sourced fixed.Fixed
	poolValue, pooled       fixed.Fixed
}

// readAccount turns the records of an account into opinions, bounded by rater.
func (s *scoring) readAccount() {
	s.praise, s.blame, s.unvouched = 0, 0, 0
	s.opinions, s.members, s.shares = s.opinions[:0], s.members[:0], s.shares[:0]
	for i := range s.a.records { // a loop of its own lets the processor overlap these scattered reads
		s.shares = append(s.shares, s.w.Weight(s.a.records[i].Node))
	}
	for at := 0; at < len(s.a.records); {
		first := len(s.opinions)
		for again := true; again; again = !s.opens(at, opensBurst) {
			at = s.readOpinion(at)
		}
		s.boundRater(s.opinions[first:])
	}
	s.readCrowd()
}

// readOpinion reads one opinion from the records at and after at, and returns the next
// index. Its weight is that of the strongest member, its value the mean by weight. Vouched
// and unvouched evidence are kept apart, so that a member without weight cannot change what
// the others say.
func (s *scoring) readOpinion(at int) int {
	e := &s.a.records[at]
	s.opinions = append(s.opinions, opinion{first: uint32(at), from: uint32(len(s.members)), channel: s.p.ChannelOf(e),
		opensBurst: e.Opens&opensBurst != 0, credited: flow.NoNode})
	v := &s.opinions[len(s.opinions)-1]
	if s.opens(at+1, opensOpinion) {
		s.single(v, at)
		at++
	} else {
		at = s.merged(v, at)
	}
	v.last, v.to = uint32(at), uint32(len(s.members))
	return at
}

// opens reports whether a record begins a new member, opinion or burst. The end of the list
// begins all of them.
func (s *scoring) opens(at int, what opens) bool {
	return at == len(s.a.records) || s.a.records[at].Opens&what != 0
}

// single is merged for an opinion of one record, as most are.
func (s *scoring) single(v *opinion, at int) {
	e := &s.a.records[at]
	value, strength := rating.Single(s.p, e, s.block.Time.Unix())
	weight, node := s.shares[at], e.Node
	v.weight, v.strength, v.newest, v.vouched = weight, strength, e.Time, weight.Mul(strength)
	rest := fixed.One - weight - s.grant(v, node, strength)
	if v.vouched+v.sourced > 0 {
		v.value = value
	}
	if v.pooled = rest.Mul(strength); v.pooled > 0 {
		v.poolValue = value
	}
	if node != flow.NoNode {
		s.members = append(s.members, node)
	}
}

// merged combines the members of one opinion.
func (s *scoring) merged(v *opinion, at int) int {
	var weighted, unvouched blend
	for again := true; again; again = !s.opens(at, opensOpinion) {
		node, weight := s.a.records[at].Node, s.shares[at]
		var mean rating.Mean
		mean, at = s.member(at)
		value, strength := mean.Value()
		granted := s.grant(v, node, strength)
		v.vouched = max(v.vouched, weight.Mul(strength))
		weighted.add(value, (weight + granted).Mul(strength))
		v.pooled = max(v.pooled, unvouched.add(value, (fixed.One-weight-granted).Mul(strength)))
		v.weight, v.strength, v.newest = max(v.weight, weight), max(v.strength, strength), max(v.newest,
			uint32(mean.Last))
		if node != flow.NoNode {
			s.members = append(s.members, node)
		}
	}
	v.value, v.poolValue = weighted.mean(), unvouched.mean()
	return at
}

// grant returns the weight that sources grant a member of an opinion, and sets the opinion's evidence by sources to
// that of the member with most. In the evaluation without sources it returns 0 and sets hasSourced.
func (s *scoring) grant(v *opinion, node flow.Node, strength fixed.Fixed) fixed.Fixed {
	granted := s.w.Granted(node)
	if s.withoutSources {
		s.hasSourced = s.hasSourced || granted > 0
		return 0
	}
	if evidence := granted.Mul(strength); evidence > v.sourced {
		v.sourced, v.granted, v.credited = evidence, granted, node
	}
	return granted
}

// blend is a mean of opinions by weight.
type blend struct {
	value, weight fixed.Fixed
	only          fixed.Fixed // the opinion, as long as there is one
	count         int
}

// add takes in a value with its weight.
func (b *blend) add(value, weight fixed.Fixed) fixed.Fixed {
	b.value, b.weight = b.value+weight.Mul(value), b.weight+weight
	b.only = value
	b.count++
	return weight
}

// mean is the weighted mean, exactly the value when there was one.
func (b *blend) mean() fixed.Fixed {
	if b.count == 1 && b.weight > 0 {
		return b.only // exactly
	}
	return meanOf(b.value, b.weight)
}

// meanOf divides a weighted sum by the weights, within -1 to 1.
func meanOf(sum, weight fixed.Fixed) fixed.Fixed {
	if weight == 0 {
		return 0
	}
	return fixed.Clamp(sum.Div(weight), -fixed.One)
}

// member combines the records of one identity, from index at on.
func (s *scoring) member(at int) (out rating.Mean, next int) {
	for again := true; again; again = !s.opens(at, opensMember) {
		out.Add(s.p, &s.a.records[at], s.block.Time.Unix())
		at++
	}
	return out, at
}

// flow returns the maximum flow of weight from the roots to the raters with an opinion on one side, up to limit. A
// burst counts as one rater in all its channels.
func (s *scoring) flow(side func(fixed.Fixed) bool, subject flow.Node, limit fixed.Fixed) fixed.Fixed {
	if s.w.Rootless() {
		return 0
	}
	s.f.Begin(subject)
	s.flat = slices.Grow(s.flat[:0], len(s.members)) // it does not move below
	for at := 0; at < len(s.opinions) && s.f.Value() < limit; {
		var raters []flow.Node
		if raters, at = s.raters(at, side); len(raters) > 0 {
			s.f.Add(raters)
		}
	}
	return s.f.Flow(limit)
}

// raters returns the members of the burst that begins at opinion at, each once, as far as
// they have weight and an opinion on that side, and the index of the next burst.
func (s *scoring) raters(at int, side func(fixed.Fixed) bool) (members []flow.Node, next int) {
	first := len(s.flat)
	for again := true; again; again = at < len(s.opinions) && !s.opinions[at].opensBurst {
		v := &s.opinions[at]
		at++
		if v.weight <= s.p.Paths.MinWeight || !side(v.value) {
			continue
		}
		for _, n := range s.members[v.from:v.to] {
			if s.w.Weight(n) > s.p.Paths.MinWeight {
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
