package trust

import (
	"cmp"
	"slices"

	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// crowd holds the raters of an account who have no weight, are in a burst of their own and gave one rating: nearly all
// raters of an agent with very many ratings. Only unvouched evidence follows from such a rating, and those that say the
// same at the same time give the same amount of it. So a score needs each group of equal ratings once, however many
// raters are in it. The zero value is empty.
type crowd struct {
	groups []crowdGroup
	index  map[rating.Record]int // of groups
	// lone are the ratings in order of their bursts, so that one is found when its rater rates again.
	lone []loneRating
	size int // ratings in groups
}

// crowdGroup is n ratings with equal records. Node and Opens of the record are 0.
type crowdGroup struct {
	rating.Record
	n int
}

// loneRating is the only rating of a rater. It is no part of the crowd any more when its Time is 0, which no record
// that counts has.
type loneRating struct {
	rating.Record
	raterBurst
}

// isWeightless reports whether an identity has no weight, neither by trust flow nor by sources.
func isWeightless(w *flow.Weights, n flow.Node) bool { return w.Weight(n) == 0 && w.Granted(n) == 0 }

// add adds a rating. Its burst MUST be later than those of the ratings before.
func (c *crowd) add(s *statement) {
	c.lone = append(c.lone, loneRating{s.Record, s.raterBurst})
	c.count(s.Record, 1)
}

// count adds n to the size of the group of a record.
func (c *crowd) count(r rating.Record, n int) {
	r.Node, r.Opens = 0, 0
	if c.index == nil {
		c.index = map[rating.Record]int{}
	}
	at, known := c.index[r]
	if !known {
		at = len(c.groups)
		c.index[r], c.groups = at, append(c.groups, crowdGroup{Record: r})
	}
	c.groups[at].n += n
	c.size += n
}

// take removes the rating of a burst and returns it. found is false when none is in the crowd.
func (c *crowd) take(burst uint32) (r loneRating, found bool) {
	at, found := slices.BinarySearchFunc(c.lone, burst,
		func(l loneRating, b uint32) int { return cmp.Compare(l.burst, b) })
	if !found || c.lone[at].Time == 0 {
		return r, false
	}
	r = c.lone[at]
	c.lone[at].Time = 0
	c.count(r.Record, -1)
	return r, true
}

// gather moves the statements that belong to the crowd from a sorted list to c and returns the others, in the memory of
// the list. Bursts up to last are older than the list: a crowd's rating in one of them is moved to the list, because
// its rater rated again.
func (l *accountBuilder) gather(c *crowd, list []statement, last uint32) (others []statement) {
	var again []statement
	others = list[:0]
	for first := 0; first < len(list); {
		next := first + 1
		for next < len(list) && list[next].burst == list[first].burst {
			next++
		}
		s := &list[first]
		if s.burst > last && next == first+1 && isWeightless(l.w, s.Node) {
			c.add(s)
			first = next
			continue
		}
		if s.burst <= last {
			if was, found := c.take(s.burst); found {
				again = append(again, statement{Record: was.Record, channel: l.p.ChannelOf(&was.Record),
					raterBurst: was.raterBurst})
			}
		}
		others = append(others, list[first:next]...)
		first = next
	}
	if len(again) == 0 {
		return others
	}
	out := append(again, others...) // ratings of the crowd are the first ones of their raters
	slices.SortStableFunc(out, (statement).compare)
	return out
}

// crowdOpinion is the opinion that each of n raters of the crowd has.
type crowdOpinion struct {
	channel       uint8
	n             fixed.Fixed // a count, not in units of 2^-32
	value, pooled fixed.Fixed // as poolValue and pooled of an opinion
}

// readCrowd turns the groups of an account's crowd into opinions, and adds them to unvouched.
func (s *scoring) readCrowd() {
	s.crowd = s.crowd[:0]
	for i := range s.a.crowd {
		g := &s.a.crowd[i]
		if g.n == 0 {
			continue
		}
		v := crowdOpinion{channel: s.p.ChannelOf(&g.Record), n: fixed.Fixed(g.n)}
		value, strength := rating.Single(s.p, &g.Record, s.block.Time.Unix())
		if v.pooled = fixed.One.Mul(strength); v.pooled > 0 {
			v.value = value
		}
		s.unvouched += v.n * v.pooled
		s.crowd = append(s.crowd, v)
	}
}
