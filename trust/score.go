package trust

import (
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Status says whether a score means anything.
type Status string

// Statuses. An unrated agent has score 0: whoever asks for a minimum refuses it.
const (
	Rated   Status = "rated"
	Unrated Status = "unrated"
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
	Low        Points         `json:"low"`   // one standard deviation below and above the mean, held by the guard
	High       Points         `json:"high"`
	Mean       Points         `json:"mean"`       // before the rule for unrated agents and the guard
	Confidence Fixed          `json:"confidence"` // 0 to 1
	Evidence   Fixed          `json:"evidence"`   // units: one full-weight opinion is one
	Positive   Fixed          `json:"positive"`   // vouched evidence for and against
	Negative   Fixed          `json:"negative"`
	Pool       Fixed          `json:"pool"`     // unvouched evidence
	Vouching   Fixed          `json:"vouching"` // of the agent's own party, 0 to 1
	Prior      Points         `json:"prior"`    // where the agent starts
	// PathsFor and PathsAgainst count independent ways from roots to raters.
	PathsFor     int           `json:"pathsFor"`
	PathsAgainst int           `json:"pathsAgainst"`
	Channels     []ChannelView `json:"channels"`
	Gates        []GateView    `json:"gates"`
	Tier         int           `json:"tier"`
	Guard        *GuardView    `json:"guard,omitempty"` // nil when no other agent limits this one
	Rows         int           `json:"rows"`            // that count
	Excluded     int           `json:"excluded"`        // that do not
}

// ChannelView is the evidence of one channel.
type ChannelView struct {
	Channel  string `json:"channel"`
	Evidence Fixed  `json:"evidence"`
	Mean     Points `json:"mean"`
}

// GuardView names the agent that limits this one, and why.
type GuardView struct {
	Agent  string         `json:"agent"`
	Score  Points         `json:"score"`
	Tier   int            `json:"tier"`   // this agent's is no better
	Holder common.Address `json:"holder"` // who had the other agent when that was said of it
	Role   Role           `json:"role"`   // of the holder's party with regard to this agent
}

// scoring is one agent's evaluation.
type scoring struct {
	p     *Params
	w     *Weights
	f     *finder
	a     account
	block repute.Block
	kin   []Kin
	who   *Identity

	voices  []voice
	members []Node  // of voices, as far as the graph knows them
	shares  []Fixed // weight of the rater by record
	flat    []Node  // memory of groups
	groups  [][]Node
	sums    []blend // by channel
	lacking []Lacking

	positive, negative, pool Fixed // evidence of each kind
	pathsFor, pathsAgainst   int
	vouching, prior          Fixed
	mean, deviation          Fixed
	total                    moments
}

// Score evaluates an agent. It does not change the evidence and may run many times at once.
func Score(e Evidence, p *Params) Result { return NewScorer(e.Weights, p).Score(e) }

// Scorer evaluates many agents against the same weights, reusing memory. It is for one
// goroutine at a time.
type Scorer struct {
	scoring
	l *listener
}

// NewScorer makes a scorer for evidence with these weights.
func NewScorer(w *Weights, p *Params) *Scorer {
	return &Scorer{scoring{p: p, w: w, f: newFinder(w)}, newListener(w.graph, p)}
}

// Score is the package's function of this name; e.Weights must be the scorer's.
func (s *Scorer) Score(e Evidence) (r Result) {
	s.hearOf(&e)
	s.lacking = nil // the result keeps it
	s.result(&r)
	r.Agent = e.Agent
	return r
}

func (s *Scorer) hearOf(e *Evidence) {
	s.evaluate(s.l.listen(e), e.Block, e.Kin)
	s.who = e.Identity
}

func (s *scoring) evaluate(a account, at repute.Block, kin []Kin) {
	s.a, s.block, s.kin, s.who = a, at, kin, nil
	s.hear()
	s.boundRaters()
	s.boundPool()
	s.boundPaths()
	s.average()
}

// boundRaters holds what a rater, or raters that count as one, weigh together in all
// channels to what they weigh in the strongest of them: who says the same thing in three
// ways is no three raters. What is vouched for and what is not weigh together no more than
// the strongest would with full weight: a stranger that copies a trusted rater adds nothing.
func (s *scoring) boundRaters() {
	for at := 0; at < len(s.voices); {
		next := at + 1
		for next < len(s.voices) && !s.voices[next].opensBurst {
			next++
		}
		boundRater(s.voices[at:next])
		at = next
	}
}

func boundRater(voices []voice) {
	var vouched, pooled, most, strength Fixed
	for i := range voices {
		v := &voices[i]
		vouched, pooled = vouched+v.vouched, pooled+v.pooled
		most, strength = max(most, v.vouched), max(strength, v.strength)
	}
	rest := strength - most
	for i := range voices {
		if v := &voices[i]; vouched > most {
			v.vouched = v.vouched.scaled(int64(most), int64(vouched))
		}
		if v := &voices[i]; pooled > rest {
			v.pooled = v.pooled.scaled(int64(rest), int64(pooled))
		}
	}
}

// boundPool holds all unvouched weight of the agent together below the pool's size.
func (s *scoring) boundPool() {
	var total Fixed
	for i := range s.voices {
		total += s.voices[i].pooled
	}
	s.pool = 0
	for i := range s.voices {
		v := &s.voices[i]
		if total > s.p.Evidence.Pool {
			v.pooled = v.pooled.scaled(int64(s.p.Evidence.Pool), int64(total))
		}
		s.pool += v.pooled
	}
}

func isFor(v Fixed) bool     { return v >= 0 }
func isAgainst(v Fixed) bool { return v < 0 }

// boundPaths holds each side's vouched weight below the number of independent paths to
// its raters, and then lets bad news weigh more once it comes by enough of them. More
// paths than a side weighs make no difference but to the rules that ask for a number.
func (s *scoring) boundPaths() {
	subject, praise, blame := s.a.owner, s.weigh(isFor), s.weigh(isAgainst)
	s.pathsFor = s.paths(isFor, subject, min(max(s.p.countedFor, above(praise)), s.p.Paths.Most))
	s.pathsAgainst = s.paths(isAgainst, subject, min(max(s.p.countedAgainst, above(blame)), s.p.Paths.Most))
	s.positive = s.boundSide(isFor, praise, Int(s.pathsFor))
	s.boundSide(isAgainst, blame, Int(s.pathsAgainst))
	factor := s.p.Negative.of(s.pathsAgainst)
	s.negative = 0
	for i := range s.voices {
		if v := &s.voices[i]; isAgainst(v.value) {
			v.vouched = v.vouched.mul(factor)
			s.negative += v.vouched
		}
	}
	s.vouching = s.w.vouching(subject, s.p.Prior.Decades)
	paths := min(One, ratio(int64(s.pathsFor), int64(s.p.Prior.Paths)))
	s.prior = s.p.Prior.Most.mul(s.vouching).mul(paths)
}

// above is the first whole number that is not below a weight.
func above(weight Fixed) int { return int((weight + One - 1) >> 32) }

// boundSide holds what one side weighs together below most and gives what is left of it.
func (s *scoring) boundSide(side func(Fixed) bool, total, most Fixed) (sum Fixed) {
	if total <= most {
		return total
	}
	for i := range s.voices {
		if v := &s.voices[i]; side(v.value) {
			v.vouched = v.vouched.scaled(int64(most), int64(total))
			sum += v.vouched
		}
	}
	return sum
}

// weigh adds up one side.
func (s *scoring) weigh(side func(Fixed) bool) (sum Fixed) {
	for i := range s.voices {
		if v := &s.voices[i]; side(v.value) {
			sum += v.vouched
		}
	}
	return sum
}

// moments are sums over all opinions: of weights, and of weights times opinions and
// their squares.
type moments struct{ weight, value, square Fixed }

func (m *moments) add(weight, value Fixed) {
	part := weight.mul(value)
	m.weight += weight
	m.value += part
	m.square += part.mul(value)
}

// average is the mean of prior and opinions, each as often as it weighs, and how far it
// may be off: one standard deviation.
func (m *moments) average(p EvidenceParams, prior Fixed) (mean, deviation Fixed) {
	total := p.Base + m.weight
	mean = bounded((p.Base.mul(prior) + m.value).div(total), -One)
	spread := m.square - 2*m.value.mul(mean) + m.weight.mul(mean).mul(mean) + p.Base.mul(p.BaseVariance)
	return mean, max(0, spread).div(total).div(total).sqrt()
}

func (s *scoring) average() {
	s.total = moments{}
	for i := range s.voices {
		v := &s.voices[i]
		s.total.add(v.vouched, v.value)
		s.total.add(v.pooled, v.poolValue)
	}
	s.mean, s.deviation = s.total.average(s.p.Evidence, s.prior)
}

func (s *scoring) evidence() Fixed { return s.positive + s.negative + s.pool }

func (s *scoring) confidence() Fixed { return s.evidence().div(s.p.Evidence.Base + s.evidence()) }

// points turns -1..1 into points.
func points(v Fixed) Points { return Points(v.round(100_000)) }

// result fills r, in the memory that r has, but for the agent's name.
func (s *scoring) result(r *Result) {
	*r = Result{
		Block: s.block.Number, BlockHash: s.block.Hash, Params: s.p.Hash, TagTable: s.p.TagsHash,
		Status: Rated, Mean: points(s.mean), Confidence: s.confidence(), Evidence: s.evidence(),
		Low: points(bounded(s.mean-s.deviation, -One)), High: points(bounded(s.mean+s.deviation, -One)),
		Positive: s.positive, Negative: s.negative, Pool: s.pool, Vouching: s.vouching, Prior: points(s.prior),
		PathsFor: s.pathsFor, PathsAgainst: s.pathsAgainst, Channels: s.channels(r.Channels[:0]), Gates: r.Gates[:0],
		Rows: len(s.a.records), Excluded: s.a.excluded,
	}
	s.guard(r)
	r.Score = r.Held()
	if r.Confidence < s.p.Rated.Confidence {
		r.Status, r.Score = Unrated, 0
	}
	s.judge(r)
}

// channels adds up each channel that has evidence, in the memory of views.
func (s *scoring) channels(views []ChannelView) []ChannelView {
	if views == nil {
		views = []ChannelView{} // none is an empty list, in JSON too
	}
	s.sums = append(s.sums[:0], make([]blend, len(s.p.Tags.Channels))...)
	for i := range s.voices {
		v := &s.voices[i]
		s.sums[v.channel].add(v.value, v.vouched)
		s.sums[v.channel].add(v.poolValue, v.pooled)
	}
	for i, c := range s.p.Tags.Channels {
		if s.sums[i].count > 0 {
			views = append(views, ChannelView{c.Name, s.sums[i].weight, points(s.sums[i].mean())})
		}
	}
	return views
}

// isNew tells whether an agent has not stood the guard's days yet: they run from when its
// owner got it, and not before somebody who is vouched for rated it. Agents that lie
// unused until they are needed do not get older.
func (s *scoring) isNew() bool {
	if s.p.guarded(s.a.held, s.block) {
		return true
	}
	first := int64(math.MaxInt64)
	for i := range s.a.records {
		if r := &s.a.records[i]; s.w.weight(r.node) > 0 {
			first = min(first, int64(r.time))
		}
	}
	return first == math.MaxInt64 || s.p.guarded(first, s.block)
}

// isNew is the same of evidence.
func (s *Scorer) isNew(e *Evidence) bool {
	if s.p.guarded(e.Held, e.Block) {
		return true
	}
	s.a, s.block = s.l.listen(e), e.Block
	return s.scoring.isNew()
}

// guard lets a new agent be no better than one that was surely bad when a party had it
// that is behind both.
func (s *scoring) guard(r *Result) {
	if len(s.kin) == 0 || !s.isNew() {
		return
	}
	below := s.p.guardBelow()
	kin := slices.DeleteFunc(slices.Clone(s.kin), func(k Kin) bool { return k.High >= below })
	if len(kin) == 0 {
		return
	}
	worst := slices.MinFunc(kin, func(a, b Kin) int { return a.compare(&b) })
	r.Guard = &GuardView{worst.Agent.String(), worst.Score, worst.Tier, worst.Holder, worst.Role}
	most := min(0, worst.Score)
	r.Low, r.High = min(r.Low, most), min(r.High, most)
}

// Held is the mean as far as the guard lets it: the score, but for the rule for unrated
// agents.
func (r *Result) Held() Points {
	if r.Guard == nil {
		return r.Mean
	}
	return min(r.Mean, 0, r.Guard.Score)
}

// Unjudged is the score of an agent of which nothing is said, as of a block: unrated, with
// the prior's own interval.
func Unjudged(p *Params, at repute.Block) Result {
	return Score(Evidence{Block: at, Weights: NewGraphBuilder().Build().Walk(nil, p)}, p)
}
