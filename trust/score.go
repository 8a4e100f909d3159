package trust

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Status says how much a score rests on.
type Status = repute.Status

// Statuses: see repute.Status.
const (
	Rated   = repute.Rated
	Thin    = repute.Thin
	Unrated = repute.Unrated
)

// Result is an agent's score. It holds no floats and no clock: equal evidence and
// parameters give equal results.
type Result struct {
	Agent      repute.AgentID `json:"-"`
	Block      uint64         `json:"block"`
	BlockHash  common.Hash    `json:"blockHash"`
	Params     common.Hash    `json:"params"`
	TagTable   common.Hash    `json:"tagTable"`
	Status     Status         `json:"status"`
	Score      Points         `json:"score"` // 0 when unrated
	Low        Points         `json:"low"`   // one standard deviation below and above the mean, limited by the guard
	High       Points         `json:"high"`
	Mean       Points         `json:"mean"`       // before the rule for unrated agents and the guard
	Confidence fixed.Fixed    `json:"confidence"` // 0 to 1
	Evidence   fixed.Fixed    `json:"evidence"`   // units: one full-weight opinion is one
	Positive   fixed.Fixed    `json:"positive"`   // vouched evidence for and against
	Negative   fixed.Fixed    `json:"negative"`
	Pool       fixed.Fixed    `json:"pool"`     // unvouched evidence
	Vouching   fixed.Fixed    `json:"vouching"` // of the agent's own identity, 0 to 1
	Prior      Points         `json:"prior"`    // where the agent starts
	// PathsFor and PathsAgainst are the independent trust behind the evidence of each side, in whole units: one for
	// a rater of full weight that a root reaches by identities that serve no other rater. TrustedFor and TrustedAgainst
	// count raters with weight by what they say most of all of the agent.
	TrustedFor     int           `json:"trustedFor"`
	TrustedAgainst int           `json:"trustedAgainst"`
	PathsFor       int           `json:"pathsFor"`
	PathsAgainst   int           `json:"pathsAgainst"`
	Channels       []ChannelView `json:"channels"`
	Gates          []GateView    `json:"gates"`
	Tier           int           `json:"tier"`
	// Sourced is what sources gave, part of what is above; nil where they gave nothing.
	Sourced  *SourcedView `json:"sourced,omitempty"`
	Guard    *GuardView   `json:"guard,omitempty"` // nil unless a related agent limits this one
	Rows     int          `json:"rows"`            // that count
	Excluded int          `json:"excluded"`        // that do not
}

// ChannelView is the evidence of one channel.
type ChannelView struct {
	Channel  string      `json:"channel"`
	Evidence fixed.Fixed `json:"evidence"`
	Mean     Points      `json:"mean"`
}

// GuardView names the agent that limits this one, and why.
type GuardView struct {
	Agent  string         `json:"agent"`
	Score  Points         `json:"score"`
	Tier   int            `json:"tier"`   // this agent's is no better where Share is 1
	Holder common.Address `json:"holder"` // address that had the other agent when it was rated
	Role   Role           `json:"role"`   // of the holder's identity with regard to this agent
	Share  fixed.Fixed    `json:"share"`  // how far it limits, 0 to 1: see RelatedAgent
}

// scoring is one agent's evaluation.
type scoring struct {
	p        *rating.Params
	w        *flow.Weights
	f        *flow.PathFinder
	a        account
	block    repute.Block
	related  []RelatedAgent
	identity *Identity

	opinions []opinion
	crowd    []crowdOpinion
	members  []flow.Node   // of opinions, as far as the graph knows them
	shares   []fixed.Fixed // weight of the rater by record
	flat     []flow.Node   // memory of raters
	lacking  []Lacking

	// An agent is evaluated without sources first (withoutSources), which sets hasSourced when a source gives weight to
	// any of its raters. If so, vouched is the standing of this first evaluation, and the agent is evaluated again with
	// sources.
	withoutSources, hasSourced bool
	vouched, now               standing

	grants                     []grant                // evidence by sources, in the order of opinions
	persons                    map[uint32]fixed.Limit // evidence by sources of each person: see sharePersons
	sourcedFor, sourcedAgainst sourcedSide

	praise, blame, unvouched fixed.Fixed // evidence for and against the agent, and of all else, before its bounds

	sums    []channelSum // by channel
	square  fixed.Fixed  // sum of all evidence times the square of the opinion
	trusted trustedRaters
	against []opinionAgainst // in order

	positive, negative, pool fixed.Fixed // evidence of each kind
	flowFor, flowAgainst     fixed.Fixed // independent trust behind each side
	vouching, prior          fixed.Fixed
	mean, deviation          fixed.Fixed
	total                    moments
}

// Score evaluates an agent. It does not change the evidence and may run many times at once.
func Score(e Evidence, p *rating.Params) Result { return NewScorer(e.Weights, p).Score(e) }

// Scorer evaluates many agents against the same weights, reusing memory. It is for one
// goroutine at a time.
type Scorer struct {
	scoring
	l *accountBuilder
	// isSpare says that no result but the one to be overwritten has what the lists of scoring.lacking consist of.
	isSpare bool
}

// NewScorer makes a scorer for evidence with these weights.
func NewScorer(w *flow.Weights, p *rating.Params) *Scorer {
	return &Scorer{scoring: scoring{p: p, w: w, f: flow.NewPathFinder(w)}, l: newAccountBuilder(w, p)}
}

// Score is the package's function of this name; e.Weights must be the scorer's.
func (s *Scorer) Score(e Evidence) (r Result) {
	s.load(&e)
	s.lacking, s.isSpare = nil, false // the result keeps it
	s.result(&r)
	r.Agent = e.Agent
	return r
}

// ScoreInto is Score in the memory of r, whose earlier content nobody MUST use any more. When the new one is kept, Keep
// MUST be called before the next ScoreInto, which needs another r.
func (s *Scorer) ScoreInto(r *Result, e Evidence) {
	s.load(&e)
	if !s.isSpare {
		s.lacking, s.isSpare = nil, true
	}
	s.lacking = s.lacking[:0]
	s.result(r)
	r.Agent = e.Agent
}

// Keep says that the last result of ScoreInto is kept.
func (s *Scorer) Keep() { s.isSpare = false }

// load evaluates the evidence about an agent.
func (s *Scorer) load(e *Evidence) {
	s.evaluate(s.l.build(e), e.Block, e.Related)
	s.identity = e.Identity
}

// evaluate computes the mean, deviation and evidence of an account, without sources and, when sources give weight to
// any of the raters, with them.
func (s *scoring) evaluate(a account, at repute.Block, related []RelatedAgent) {
	s.a, s.block, s.related, s.identity = a, at, related, nil
	s.withoutSources, s.hasSourced = true, false
	s.weighOpinions()
	if !s.hasSourced {
		return
	}
	s.vouched = s.standing(s.vouched)
	s.withoutSources = false
	s.weighOpinions()
}

// weighOpinions reads the opinions of an account, bounds their evidence and averages them. An agent may have hundreds
// of thousands of opinions, which take longer to be read from memory than to be computed with: each step is one loop.
func (s *scoring) weighOpinions() {
	s.readAccount()
	s.boundSources()
	s.boundPaths()
	s.average()
}

// boundRater limits the evidence of a burst over all channels to that of its strongest opinion, so that saying the same
// in three channels counts once. Vouched and unvouched evidence together are limited to the strongest opinion's at full
// weight, so that a stranger who copies a trusted rater adds nothing. It adds what remains to praise, blame and
// unvouched.
func (s *scoring) boundRater(opinions []opinion) {
	if len(opinions) > 1 || opinions[0].last > opinions[0].first+1 { // a single rating has no more than that
		boundRater(opinions)
	}
	for i := range opinions {
		v := &opinions[i]
		if isFor(v.value) {
			s.praise += v.vouched
		} else {
			s.blame += v.vouched
		}
		s.unvouched += v.pooled
	}
}

// boundRater scales the opinions of one rater in several channels, so that they count for no more
// than its weight in one.
func boundRater(opinions []opinion) {
	var vouched, sourced, pooled, strength fixed.Limit
	for i := range opinions {
		v := &opinions[i]
		vouched.Add(v.vouched)
		sourced.Add(v.sourced)
		pooled.Add(v.pooled)
		strength.Add(v.strength)
	}
	pooled.Most = max(0, strength.Most-vouched.Most-sourced.Most) // members with much of each may have more together
	for i := range opinions {
		v := &opinions[i]
		v.vouched, v.sourced, v.pooled = vouched.Of(v.vouched), sourced.Of(v.sourced), pooled.Of(v.pooled)
	}
}

// isFor reports whether an opinion speaks for the agent.
func isFor(v fixed.Fixed) bool { return v >= 0 }

// isAgainst reports whether an opinion speaks against the agent.
func isAgainst(v fixed.Fixed) bool { return v < 0 }

// boundPaths limits the vouched evidence of each side to the independent trust by which its raters
// are reached, and then multiplies the negative side once there is enough of it. What goes beyond a
// side's evidence matters only to rules that ask for a number, so it is not measured further.
func (s *scoring) boundPaths() {
	subject, most := s.a.owner, fixed.Int(s.p.Paths.Most)
	praised, blamed := s.p.CountedPaths()
	s.flowFor = s.flow(isFor, subject, min(max(fixed.Int(praised), s.praise), most))
	s.flowAgainst = s.flow(isAgainst, subject, min(max(fixed.Int(blamed), s.blame), most))
	blame := s.boundOpinions()
	s.sumUp(s.p.Evidence.Base + s.positive + blame)
	s.positive += s.sourcedFor.evidence
	s.flowFor, s.flowAgainst = s.flowFor+s.sourcedFor.flow, s.flowAgainst+s.sourcedAgainst.flow
	s.vouching = s.w.Vouching(subject, s.p.Prior.Decades)
	s.prior = s.p.Prior.Most.Mul(s.vouching)
}

// boundOpinions scales the vouched evidence of each side down to its flow, and all unvouched evidence to the pool's
// size. It sets positive and pool to the sums, and returns that of the vouched evidence against the agent.
func (s *scoring) boundOpinions() (blame fixed.Fixed) {
	praised, blamed := fixed.Limit{Sum: s.praise, Most: s.flowFor}, fixed.Limit{Sum: s.blame, Most: s.flowAgainst}
	unvouched := fixed.Limit{Sum: s.unvouched, Most: s.p.Evidence.Pool}
	s.positive, s.pool = 0, 0
	for i := range s.opinions {
		v := &s.opinions[i]
		v.pooled = unvouched.Of(v.pooled)
		s.pool += v.pooled
		if isFor(v.value) {
			v.vouched = praised.Of(v.vouched)
			s.positive += v.vouched
		} else {
			v.vouched = blamed.Of(v.vouched)
			blame += v.vouched
		}
	}
	for i := range s.crowd {
		v := &s.crowd[i]
		v.pooled = unvouched.Of(v.pooled)
		s.pool += v.n * v.pooled
	}
	return blame
}

// sumUp multiplies the evidence against an agent with so much base and vouched evidence, and adds up all opinions. What
// sources give has a factor of its own, by its own paths: it MUST NOT make the blame of others weigh more.
func (s *scoring) sumUp(known fixed.Fixed) {
	vouched := s.p.Negative.Factor(whole(s.flowAgainst), known)
	sourced := s.p.Negative.Factor(whole(s.sourcedAgainst.flow), known+s.sourcedFor.evidence+s.sourcedAgainst.evidence)
	s.negative, s.sourcedAgainst.evidence = 0, 0
	s.sums, s.square = append(s.sums[:0], make([]channelSum, len(s.p.Tags.Channels))...), 0
	s.trusted, s.against = trustedRaters{}, s.against[:0]
	for at := 0; at < len(s.opinions); {
		first, strongest := at, &s.opinions[at]
		for again := true; again; again = at < len(s.opinions) && !s.opinions[at].opensBurst {
			v := &s.opinions[at]
			if isAgainst(v.value) {
				v.vouched, v.sourced = v.vouched.Mul(vouched), v.sourced.Mul(sourced)
				s.negative += v.vouched + v.sourced
				s.sourcedAgainst.evidence += v.sourced
				s.against = append(s.against, opinionAgainst{first, at})
			}
			s.square += s.sums[v.channel].add(v.value, v.vouched+v.sourced, 1)
			s.square += s.sums[v.channel].add(v.poolValue, v.pooled, 1)
			if v.vouched+v.sourced > strongest.vouched+strongest.sourced {
				strongest = v
			}
			at++
		}
		s.trusted.add(strongest, s.p.Paths.MinWeight)
	}
	for i := range s.crowd {
		v := &s.crowd[i]
		s.square += v.n * s.sums[v.channel].add(v.value, v.pooled, v.n)
	}
}

// channelSum is the evidence of a channel, and the sum of its products with the opinions.
type channelSum struct {
	value, weight fixed.Fixed
	isUsed        bool // there is an opinion, perhaps without evidence
}

// add takes in n equal opinions with the weight of each, and returns the product of this weight and the square of the
// opinion. n is a count.
func (c *channelSum) add(value, weight, n fixed.Fixed) (square fixed.Fixed) {
	part := weight.Mul(value)
	c.value, c.weight, c.isUsed = c.value+n*part, c.weight+n*weight, true
	return part.Mul(value)
}

// opinionAgainst is the index of an opinion against the agent, and that of the first opinion of its burst.
type opinionAgainst struct{ burst, at int }

// trustedRaters counts the raters with weight for the agent and against it, each by its opinion in the channel in which
// it has most evidence; and of both, those who have weight by sources alone.
type trustedRaters struct{ praise, blame, sourced int }

// add counts a rater by this opinion. Raters with a weight of at most least do not count.
func (t *trustedRaters) add(v *opinion, least fixed.Fixed) {
	switch {
	case max(v.weight, v.granted) <= least:
		return
	case isAgainst(v.value):
		t.blame++
	default:
		t.praise++
	}
	if v.weight <= least {
		t.sourced++
	}
}

// whole is how many whole units there are. What is missing for one by rounding does not matter.
func whole(units fixed.Fixed) int {
	const rounding = fixed.One >> 16
	return int((units + rounding) >> 32)
}

// moments are sums over all opinions: of weights, and of weights times opinions and
// their squares.
type moments struct{ weight, value, square fixed.Fixed }

// average returns the weighted mean of prior and opinions, and its standard deviation.
func (m *moments) average(p rating.EvidenceParams, prior fixed.Fixed) (mean, deviation fixed.Fixed) {
	total := p.Base + m.weight
	mean = fixed.Clamp((p.Base.Mul(prior) + m.value).Div(total), -fixed.One)
	spread := m.square - 2*m.value.Mul(mean) + m.weight.Mul(mean).Mul(mean) + p.Base.Mul(p.BaseVariance)
	return mean, max(0, spread).Div(total).Div(total).Sqrt()
}

// average computes mean and deviation of all opinions.
func (s *scoring) average() {
	s.total = moments{square: s.square}
	for i := range s.sums {
		s.total.weight, s.total.value = s.total.weight+s.sums[i].weight, s.total.value+s.sums[i].value
	}
	s.mean, s.deviation = s.total.average(s.p.Evidence, s.prior)
}

// evidence is the sum of all evidence after its bounds.
func (s *scoring) evidence() fixed.Fixed { return s.positive + s.negative + s.pool }

// confidence grows from 0 to 1 with the evidence.
func (s *scoring) confidence() fixed.Fixed { return s.evidence().Div(s.p.Evidence.Base + s.evidence()) }

// points turns -1..1 into points.
func points(v fixed.Fixed) Points { return Points(v.Round(100_000)) }

// result fills r, in the memory that r has, but for the agent's name.
func (s *scoring) result(r *Result) {
	*r = Result{
		Block: s.block.Number, BlockHash: s.block.Hash, Params: s.p.Hash, TagTable: s.p.TagsHash,
		Mean: points(s.mean), Confidence: s.confidence(), Evidence: s.evidence(), Low: s.low(), High: s.high(),
		Positive: s.positive, Negative: s.negative, Pool: s.pool, Vouching: s.vouching, Prior: points(s.prior),
		PathsFor: whole(s.flowFor), PathsAgainst: whole(s.flowAgainst),
		Channels: s.channels(r.Channels[:0]), Gates: r.Gates[:0],
		Rows: s.a.rows(), Excluded: s.a.excluded,
	}
	r.TrustedFor, r.TrustedAgainst = s.trusted.praise, s.trusted.blame
	r.Sourced = s.sourcedView()
	r.Guard = s.guard(r.High)
	r.Low, r.High = r.Guard.limit(r.Low), r.Guard.limit(r.High)
	s.now = s.standing(s.now)
	if r.Score, r.Status = r.Held(), s.now.status; r.Status == Unrated {
		r.Score = 0
	}
	s.judge(r)
}

// status returns whether there is enough evidence for a score. Raters without weight, however many, never make an agent
// thin.
func (s *scoring) status() Status {
	switch {
	case s.confidence() >= s.p.Rated.Confidence && s.severalRaters():
		return Rated
	case s.positive+s.negative >= s.p.Rated.Thin:
		return Thin
	}
	return Unrated
}

// channels returns each channel that has evidence, in the memory of views.
func (s *scoring) channels(views []ChannelView) []ChannelView {
	if views == nil {
		views = []ChannelView{} // none is an empty list, in JSON too
	}
	for i, c := range s.p.Tags.Channels {
		if sum := &s.sums[i]; sum.isUsed {
			views = append(views, ChannelView{c.Name, sum.weight, points(meanOf(sum.value, sum.weight))})
		}
	}
	return views
}

// guardLeast is the least effect of a related agent that is shown, in thousandths of a point.
const guardLeast Points = 500

// guard returns that related agent which takes most from an agent with this upper bound, nil where there is none. One
// that takes next to nothing is not named: a custodian's agents would all be marked for a single bad one among
// thousands.
func (s *scoring) guard(high Points) (most *GuardView) {
	below := guardBelow(s.p)
	for i := range s.related {
		k := &s.related[i]
		if k.High >= below {
			continue
		}
		g := &GuardView{k.Agent.String(), k.Score, k.Tier, k.Holder, k.Role, k.Share}
		if limited := g.limit(high); high-limited >= guardLeast && (most == nil || limited < most.limit(high)) {
			most = g
		}
	}
	return most
}

// limit is what remains of a score or a bound, all of it for nil.
func (g *GuardView) limit(p Points) Points {
	if g == nil {
		return p
	}
	over := max(0, p-min(0, g.Score))
	return p - Points(fixed.Fixed(over).Mul(g.Share))
}

// Held returns the mean limited by the guard. It equals the score unless the agent is
// unrated.
func (r *Result) Held() Points { return r.Guard.limit(r.Mean) }

// Unjudged returns the score of an agent without evidence as of a block: unrated, with the
// prior's interval.
func Unjudged(p *rating.Params, at repute.Block) Result {
	return Score(Evidence{Block: at, Weights: flow.NewGraphBuilder().Build().Walk(nil, p.Walk)}, p)
}

// guardBelow returns the upper bound below which an agent is surely bad.
func guardBelow(p *rating.Params) Points { return Points(p.Guard.Below.Round(1000)) }
