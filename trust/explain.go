package trust

import (
	"cmp"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Explanation has the parts of a score. The points of Contributions add up to the score exactly.
type Explanation struct {
	Result        Result         `json:"result"`
	Contributions []Contribution `json:"contributions"` // the largest first, the prior and adjustments at the end
	Excluded      []Ignored      `json:"excluded"`      // in the order of the chain
	// ByReason counts all excluded rows; Excluded may hold fewer.
	ByReason map[rating.Reason]int `json:"excludedByReason"`
}

// Kinds of contributions.
const (
	KindOpinion = "opinion" // of one rater, or of several that count as one
	KindRest    = "rest"    // of all raters that are not listed
	KindPrior   = "prior"   // of the agent's own vouching
	KindUnrated = "unrated" // sets the score to 0, because the agent is unrated
	KindGuard   = "guard"   // a related agent limits this one
	KindAge     = "age"     // change by the age of ratings since the earlier epoch whose stored score is in effect
)

// Contribution is one part of a score.
type Contribution struct {
	Kind    string `json:"kind"`
	Points  Points `json:"points"`
	Channel string `json:"channel,omitempty"`
	// Raters count as one rater; at most ten are listed. Weight is that of the strongest, 0 to 1.
	Raters []common.Address `json:"raters,omitempty"`
	all    []common.Address // not only those that are listed
	Weight fixed.Fixed      `json:"weight"`
	// Opinion is -1 to 1. Evidence is in units, after all bounds. Unvouched is the part of it that comes from the pool,
	// and Sourced the part that comes from Sources.
	Opinion   fixed.Fixed `json:"opinion"`
	Evidence  fixed.Fixed `json:"evidence"`
	Unvouched fixed.Fixed `json:"unvouched"`
	Sourced   fixed.Fixed `json:"sourced"`
	// Sources are the ids of the sources that give the strongest rater weight.
	Sources []string `json:"sources,omitempty"`
	// Path leads from a root to the strongest rater, nil when there is none.
	Path []common.Address `json:"path,omitempty"`
	Rows []RowRef         `json:"rows,omitempty"` // newest first, at most ten
	// Count is the number of rows, or of opinions in a rest.
	Count int `json:"count"`
}

// RowRef says where a row is on the chain.
type RowRef struct {
	Tx       common.Hash    `json:"tx"`
	Block    uint64         `json:"block"`
	Time     int64          `json:"time"` // of the block, Unix seconds, 0 when unknown
	LogIndex uint32         `json:"logIndex"`
	Rater    common.Address `json:"rater"`
	// Via is the feedback gateway that wrote the rating for Rater, nil for none.
	Via   *common.Address `json:"via,omitempty"`
	Index uint64          `json:"index,omitempty"`
	Tag1  string          `json:"tag1"`
	Value string          `json:"value"` // exact decimal
}

// Ignored is a row that does not count, and why.
type Ignored struct {
	RowRef
	Reason rating.Reason `json:"reason"`
	// Readings, of ReasonScale, are what the value may mean, such as "5 of 5" and "5 of 100".
	Readings []string `json:"readings,omitempty"`
}

// maxListed bounds what an explanation lists of each kind.
const maxListed = 100

// Explain evaluates an agent and returns the parts of its score. It lists the hundred contributions with most points,
// and adds up the others as KindRest.
func (s *Scorer) Explain(e Evidence) Explanation {
	s.load(&e)
	out := Explanation{ByReason: map[rating.Reason]int{}}
	s.lacking = nil // the result keeps it
	s.result(&out.Result)
	out.Result.Agent = e.Agent
	out.Contributions = s.contributions(&out.Result)
	s.measureGates(out.Result.Gates)
	for i, ex := range s.l.excluded {
		out.ByReason[ex.Reason]++
		if i < maxListed {
			one := Ignored{RowRef: s.l.ref(ex.Row), Reason: ex.Reason}
			if ex.Reason == rating.ReasonScale {
				one.Readings = s.p.Tags.Readings(s.l.rows[ex.Row].Client(), one.Tag1, s.l.rows[ex.Row].Amount)
			}
			out.Excluded = append(out.Excluded, one)
		}
	}
	return out
}

// measureGates says how much is missing for the gates that read the lower bound.
func (s *scoring) measureGates(gates []GateView) {
	for i := range gates {
		for j := range gates[i].Lacks {
			if l := &gates[i].Lacks[j]; l.What == "low" {
				units := s.missing(l.Need)
				l.Units = &units
			}
		}
	}
}

// ref names a rating by its transaction and place.
func (l *accountBuilder) ref(i int) RowRef {
	r := &l.rows[i]
	ref := RowRef{r.Tx, r.Block, r.Time, r.LogIndex, r.Rater, nil, r.Index, r.Tag1, r.Amount.Decimal()}
	if r.Via != (common.Address{}) {
		via := r.Via
		ref.Via = &via
	}
	return ref
}

// contributions divides the mean among prior and opinions and appends what rules then
// changed.
func (s *Scorer) contributions(r *Result) []Contribution {
	total := s.p.Evidence.Base + s.evidence()
	parts := make([]fixed.Fixed, len(s.opinions)+1)
	for i, v := range s.opinions {
		parts[i] = ((v.vouched + v.sourced).Mul(v.value) + v.pooled.Mul(v.poolValue)).Div(total)
	}
	parts[len(s.opinions)] = s.p.Evidence.Base.Mul(s.prior).Div(total)
	shares := divide(parts, r.Mean)

	order := make([]int, len(s.opinions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(shares[b]), size(shares[a])) })
	var out []Contribution
	rest := Contribution{Kind: KindRest}
	for n, i := range order {
		if n < maxListed {
			out = append(out, s.contribution(&s.opinions[i], shares[i]))
			continue
		}
		v := s.opinions[i]
		rest.Points += shares[i]
		rest.Evidence += v.vouched + v.sourced + v.pooled
		rest.Sourced += v.sourced
		rest.Unvouched += v.pooled
		rest.Count++
	}
	if rest.Count > 0 {
		out = append(out, rest)
	}
	out = append(out, Contribution{Kind: KindPrior, Points: shares[len(s.opinions)], Weight: s.vouching})
	return append(out, adjustments(r)...)
}

// size is the absolute value.
func size(p Points) Points { return max(p, -p) }

// adjustments lead from the mean to the score.
func adjustments(r *Result) (out []Contribution) {
	held := r.Held()
	if r.Guard != nil {
		out = append(out, Contribution{Kind: KindGuard, Points: held - r.Mean})
	}
	if r.Status == Unrated {
		out = append(out, Contribution{Kind: KindUnrated, Points: -held})
	}
	return out
}

// divide turns parts into points that add up to sum exactly: each is rounded down, and
// those with the largest remainders get what is left.
func divide(parts []fixed.Fixed, sum Points) []Points {
	out := make([]Points, len(parts))
	order := make([]int, len(parts))
	left := sum
	for i, p := range parts {
		out[i] = floorPoints(p)
		left -= out[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(remainder(parts[b], out[b]), remainder(parts[a], out[a]))
	})
	for i := 0; left != 0; i = (i + 1) % len(order) {
		step := Points(1)
		if left < 0 {
			step = -1
		}
		out[order[i]] += step
		left -= step
	}
	return out
}

// floorPoints rounds toward minus infinity. The 17 bits that 100000 needs fit, as a part
// is no larger than one.
func floorPoints(f fixed.Fixed) Points { return Points(int64(f) * (100_000 >> 5) >> 27) }

// remainder is what rounding to points leaves, so that the points of all contributions add up to
// the score.
func remainder(f fixed.Fixed, p Points) int64 { return int64(f)*(100_000>>5) - int64(p)<<27 }

// contribution is what one opinion adds to the score, with at most ten of its ratings.
func (s *Scorer) contribution(v *opinion, points Points) Contribution {
	c := Contribution{Kind: KindOpinion, Points: points, Channel: s.p.Tags.Channels[v.channel].Name,
		Weight:   min(fixed.One, v.weight+v.granted),
		Opinion:  v.value,
		Evidence: v.vouched + v.sourced + v.pooled, Sourced: v.sourced, Sources: s.sourceNames(v.credited),
		Unvouched: v.pooled, Count: int(v.last - v.first)}
	if v.vouched+v.sourced == 0 {
		c.Opinion = v.poolValue
	}
	seen := map[common.Address]bool{}
	for _, row := range s.l.newest(v) {
		ref := s.l.ref(row)
		if len(c.Rows) < 10 {
			c.Rows = append(c.Rows, ref)
		}
		if !seen[ref.Rater] {
			seen[ref.Rater] = true
			c.all = append(c.all, ref.Rater)
		}
	}
	c.Raters = ListedRaters(c.all)
	if n := s.strongest(v); n != flow.NoNode {
		c.Path = s.w.Path(n)
	}
	return c
}

// AllRaters are the addresses behind a contribution, also those that Raters leaves out.
func (c *Contribution) AllRaters() []common.Address { return c.all }

// ListedRaters returns the raters of one identity that an explanation lists, ten at most.
func ListedRaters(raters []common.Address) []common.Address {
	return slices.Clip(raters[:min(len(raters), 10)])
}

// newest lists a opinion's rows, the newest first.
func (l *accountBuilder) newest(v *opinion) []int {
	rows := make([]int, 0, v.last-v.first)
	for i := v.first; i < v.last; i++ {
		rows = append(rows, l.statements[i].row)
	}
	slices.SortFunc(rows, func(a, b int) int { return b - a })
	return rows
}

// strongest is the rater of greatest weight among those of one identity.
func (s *scoring) strongest(v *opinion) flow.Node {
	best := flow.NoNode
	for _, n := range s.members[v.from:v.to] {
		if w := s.w.Weight(n); w > 0 && (best == flow.NoNode || w > s.w.Weight(best)) {
			best = n
		}
	}
	return best
}
