package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/explain"
	"repute/trust/fixed"
	"repute/trust/replay"
)

// The wire types of scores, of REST and, by their field names, of GraphQL. Numbers are
// exact decimals: points have three digits after the point, others six.
type (
	// Standing is how far an agent can be trusted, in short.
	Standing struct {
		Score      float64 `json:"score" doc:"-100 to 100; 0 while unrated. Compare a minimum with low, not with score"`
		Low        float64 `json:"low" doc:"one standard deviation below; gates that admit read it"`
		High       float64 `json:"high" doc:"one standard deviation above; gates that refuse read it"`
		Confidence float64 `json:"confidence" doc:"0 to 1: how much of the score is evidence"`
		Status     string  `json:"status" enum:"rated,thin,unrated" doc:"rated: two or more independent raters with weight; thin: one; unrated: none. The score of an unrated agent means nothing"`
		Tier       int32   `json:"tier" doc:"0 unrated or to be rejected, 1 thin, to 4"`
	}
	// Scored is a score with what it follows from.
	Scored struct {
		Standing
		Sentence string  `json:"sentence" example:"27.9: 8 trusted clients, on average lukewarm; their weight comes from roots; full service needs about 10 more trusted clients" doc:"what the score says, and on what it rests, in words"`
		Reason   *string `json:"reason" doc:"why the agent is thin or unrated, and what limits it; null when it is rated and nothing does"`
		Guard    *Guard  `json:"guard" doc:"related agent whose bad score limits this one, and by how much; null without"`
		// Sourced is what facts about raters give.
		Sourced    *Sourced      `json:"sourced" doc:"the part of the evidence that sources give, by facts about raters that are costly to forge; null where they give nothing"`
		Sources    []SourceState `json:"sources" doc:"of the epoch whose weights count: the sources that were off or not read completely; empty where all were, or none is read"`
		Gates      []Gate        `json:"gates" doc:"lines a policy may draw, and what is missing to pass them"`
		Scorer     *string       `json:"scorer" doc:"version of the engine; null where none has scored the agent"`
		Finality   *string       `json:"finality" enum:"provisional,final" doc:"final: of a closed epoch, kept and replayable; provisional: of the newest block"`
		Epoch      *Long         `json:"epoch" doc:"whose weights of raters count"`
		Verified   bool          `json:"verified" doc:"every block that a final score follows from is proven to be indexed completely; false for provisional ones"`
		VerifiedTo *Long         `json:"verifiedTo" doc:"block up to which every block from the chain's start on was proven when the epoch was scored; null for none"`
		ScoredAt   *ScoredAt     `json:"scoredAt" doc:"the block the score is of: the newest event it follows from, or the epoch's"`
		Hashes     *ScoreHashes  `json:"hashes" doc:"sha256 of what else the score follows from"`
		Roots      *string       `json:"roots" doc:"whose roots: default, the name of a set, or given"`
		OwnRoots   *OwnRoots     `json:"ownRoots" doc:"how many the caller's roots are; null by the chain's own"`
	}
	// OwnRoots counts roots of the caller.
	OwnRoots struct {
		Given   Long `json:"given" doc:"that have not expired"`
		Known   Long `json:"known" doc:"of these, whose identity rated any agent of the chain, well or badly, in terms that count, up to the newest epoch: the others have no say"`
		Sourced bool `json:"sourced" doc:"the chain's sources give raters weight too, because sources=default asked for that"`
	}
	// Sourced is the part of a score that sources give.
	Sourced struct {
		Raters  Long     `json:"raters" doc:"whose opinions have weight by sources"`
		Classes []string `json:"classes" doc:"of these sources: A, a person or business was checked; B, money is gone; C, cheap, but takes time"`
		Praise  float64  `json:"praise" doc:"units of evidence for the agent"`
		Blame   float64  `json:"blame" doc:"units of evidence against it"`
	}
	// SourceState is how a source was read.
	SourceState struct {
		Source     string  `json:"source" doc:"its id in the policy of sources"`
		Status     string  `json:"status" enum:"ok,off,incomplete" doc:"off: it is not what was declared, so that nothing it says counts; incomplete: some raters were not answered for, and their last credentials count for as long as the source allows"`
		Reason     *string `json:"reason" doc:"null where it is ok"`
		Chain      Long    `json:"chain" doc:"on which it was read"`
		Block      Long    `json:"block" doc:"as of which it was read"`
		ReadAt     *Time   `json:"readAt" format:"date-time" doc:"of that block"`
		CompleteAt *Time   `json:"completeAt" format:"date-time" doc:"of the newest reading that was complete; null for none"`
		Kept       Long    `json:"kept" doc:"credentials of earlier readings that count on"`
	}
	// Guard is an agent that limits another one, which somebody is behind who had the first.
	Guard struct {
		Agent  ID      `json:"agent" doc:"agent id"`
		Score  float64 `json:"score" doc:"score of that agent from ratings while holder owned it; where share is 1 the bounds of the limited agent are not above this, nor above 0"`
		Tier   int32   `json:"tier" doc:"where share is 1 no tier is above this"`
		Holder Address `json:"holder" doc:"owner or wallet at that time"`
		Role   string  `json:"role" enum:"owner,wallet,registrar" doc:"what the holder, or one it is linked to, is to the agent that is limited"`
		Share  float64 `json:"share" doc:"how far it limits, 0 to 1: 1 where a quarter or more of the identity's known agents are that bad, in proportion less where fewer are; the limited agent loses this part of what it has above score, or above 0"`
		Roots  string  `json:"roots" enum:"default" doc:"by whose roots the other agent was judged: always the chain's own, also where roots= is given"`
	}
	// ScoredAt is a block.
	ScoredAt struct {
		Block Long  `json:"block"`
		Hash  *Hash `json:"hash"`
		Time  *Time `json:"time" format:"date-time"`
	}
	// ScoreHashes name the inputs of a score.
	ScoreHashes struct {
		Params      Hash  `json:"params"`
		Tags        Hash  `json:"tags"`
		Roots       Hash  `json:"roots"`
		Links       *Hash `json:"links"`
		Sources     *Hash `json:"sources" doc:"of the policy of sources; null where none is read"`
		Credentials *Hash `json:"credentials" doc:"of what the sources said of raters; null where none is read"`
		FileScales  *Hash `json:"fileScales" doc:"of the scales that files of feedback state; null where none does"`
		Evidence    *Hash `json:"evidence" doc:"of the manifest of what was read besides events; null for roots of the caller"`
	}
	// Gate is a line and what an agent lacks to pass it.
	Gate struct {
		ID        string    `json:"id" example:"service"`
		Direction string    `json:"direction" enum:"admits,keepsOut" doc:"admits: an agent that passes is good enough; keepsOut: one that passes is that bad, and not to pass is no bad news"`
		Passed    bool      `json:"passed" doc:"good news of a gate that admits, bad news of one that keeps out"`
		Lacks     []Lacking `json:"lacks" doc:"what is missing to pass; empty when passed"`
	}
	// Lacking is one thing missing.
	Lacking struct {
		What  string   `json:"what" enum:"rated,low,high,tier,paths,evidence,recentRaters,registrationResolves,walletDeclared,domainsProven,checked" doc:"checked: the agent has no score, so its identity was not checked"`
		Have  float64  `json:"have"`
		Must  string   `json:"must" enum:"atLeast,below" doc:"atLeast: have must be need or more; below: have must be less (high of gates that keep out)"`
		Need  float64  `json:"need"`
		Units *float64 `json:"units,omitempty" doc:"only in explanations: full-weight ratings of +1 that are missing for low"`
	}
	// Independence says how far raters look like different people.
	Independence struct {
		Ratings       Long    `json:"ratings" doc:"looked at: the newest live ones, no more than a thousand"`
		Raters        Long    `json:"raters" doc:"distinct clients of these"`
		Clusters      Long    `json:"clusters" doc:"identities they seem to be: raters count as one that own, or are the wallet of, agents of one owner, or whose first of these ratings came in one block with equal value, tags and URI"`
		OneAgentShare float64 `json:"oneAgentShare" doc:"part of the raters without a live rating of another agent, 0 to 1"`
		Burstiness    float64 `json:"burstiness" doc:"part of the ratings that came within the busiest 24 hours, 0 to 1"`
	}
)

// Points converts thousandths of a point.
func Points(p repute.Points) float64 { return float64(p) / 1000 }

// EncodeStanding writes the numbers of a score, 0 where the agent is unrated.
func EncodeStanding(s repute.Score) Standing {
	return Standing{
		Score: Points(s.Score), Low: Points(s.Low), High: Points(s.High), Confidence: float64(s.Confidence) / 1e6,
		Status: string(cmp.Or(s.Status, trust.Unrated)), Tier: int32(s.Tier),
	}
}

// resultView is what answers show of a stored result.
type resultView struct {
	Guard    *Guard `json:"guard"`
	Gates    []Gate `json:"gates"`
	Rows     int    `json:"rows"`
	Excluded int    `json:"excluded"`

	Mean           float64   `json:"mean"`
	Evidence       float64   `json:"evidence"`
	Confidence     float64   `json:"confidence"`
	Sourced        *sourced  `json:"sourced"`
	TrustedFor     int       `json:"trustedFor"`
	TrustedAgainst int       `json:"trustedAgainst"`
	Channels       []channel `json:"channels"`
}

// channel is the evidence of one channel and its mean, in points.
type channel struct {
	Evidence float64 `json:"evidence"`
	Mean     float64 `json:"mean"`
}

// sourced is what sources gave, with what sentences tell of it.
type sourced struct {
	Sourced
	Alone int `json:"alone"` // clients with weight by sources alone
	// Low and High are the bounds without sources.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// shown is the part that answers show, nil where sources gave nothing.
func (s *sourced) shown() *Sourced {
	if s == nil {
		return nil
	}
	return &s.Sourced
}

// EncodeScored writes a stored score with its gates and, where the agent is unrated, the reason.
func EncodeScored(s repute.Score) (w Scored, err error) {
	w = Scored{Standing: EncodeStanding(s), Gates: []Gate{}, Sources: []SourceState{}}
	var view resultView
	if s.Scorer != "" {
		if err := json.Unmarshal(s.Result, &view); err != nil {
			return w, fmt.Errorf("stored result: %w", err)
		}
	}
	if s.Status != trust.Rated {
		w.Reason = OrNull(unratedReason(s, view))
	}
	if s.Scorer == "" {
		w.Sentence = w.inWords(view)
		return w, nil
	}
	w.Gates, w.Sourced = settleGates(view.Gates), view.Sourced.shown()
	w.limit(view.Guard)
	w.Sentence = w.inWords(view)
	w.Verified, w.VerifiedTo = s.Verified, OrNull(Long(s.VerifiedTo))
	if w.Sources, err = troubledSources(s.Readings); err != nil {
		return w, err
	}
	finality := "provisional"
	if s.Final {
		finality = "final"
	}
	w.Scorer, w.Finality, w.Epoch, w.Roots = &s.Scorer, &finality, new(Long(s.Epoch)), OrNull(repute.DefaultRoots)
	w.ScoredAt = encodeScoredAt(s.Block)
	w.Hashes = &ScoreHashes{Params: Hash(s.Params.Hex()), Tags: Hash(s.Tags.Hex()), Roots: Hash(s.Roots.Hex()),
		Links: encodeHash(s.Links), Sources: encodeHash(s.Sources), Credentials: encodeHash(s.Credentials),
		FileScales: encodeHash(s.FileScales), Evidence: encodeHash(s.Evidence)}
	return w, nil
}

// limit says which agent limits this one.
func (s *Scored) limit(by *Guard) {
	s.Guard = by
	if by == nil {
		return
	}
	by.Roots = repute.DefaultRoots
	far := ""
	if by.Share < 1 {
		far = fmt.Sprintf(", by %.1f %% of the difference,", 100*by.Share)
	}
	why := fmt.Sprintf("limited%s by agent %s, which came to %.3f while %s had it, which is of one party with this one's %s", far, by.Agent, by.Score, by.Holder, by.Role)
	if s.Reason != nil {
		why = *s.Reason + "; " + why
	}
	s.Reason = &why
}

// encodeScoredAt writes the block of a score; its hash and time are null where they are not stored.
func encodeScoredAt(b repute.Block) *ScoredAt {
	return &ScoredAt{Long(b.Number), encodeHash(b.Hash), EncodeTime(b.Time)}
}

// settleGates never leaves a list null, and says which way each number must go.
func settleGates(gates []Gate) []Gate {
	return Each(gates, func(g Gate) Gate {
		g.Lacks = Each(g.Lacks, func(l Lacking) Lacking {
			if l.Must = "atLeast"; l.What == "high" {
				l.Must = "below"
			}
			return l
		})
		return g
	})
}

// EncodeGates writes the gates of a score, with the numbers out of their fixed-point form.
func EncodeGates(list []trust.GateView) []Gate {
	number := func(f fixed.Fixed) float64 { return math.Round(float64(f)/float64(fixed.One)*1e6) / 1e6 }
	return settleGates(Each(list, func(g trust.GateView) Gate {
		return Gate{ID: g.ID, Direction: string(g.Direction), Passed: g.Passed,
			Lacks: Each(g.Lacks, func(l trust.Lacking) Lacking {
				return Lacking{What: l.What, Have: number(l.Have), Need: number(l.Need)}
			})}
	}))
}

// unratedReason says why an agent is unrated or thin, and what would change that.
func unratedReason(s repute.Score, view resultView) string {
	switch {
	case s.Pruned:
		return "the final score as of this block is not kept any more"
	case s.Scorer == "":
		return "no score was computed: no epoch of its chain was closed yet"
	case s.Roots == replay.NoRoots() && s.Credentials == (common.Hash{}):
		return "the chain has neither roots nor sources: nobody is rated; see docs/how-to/roots.md or pass roots="
	case s.Run == 0:
		return "nobody has rated the agent, or no epoch was closed since it was rated"
	}
	by := ""
	if s.Roots == replay.NoRoots() {
		by = " by the chain's sources (it has no roots)"
	}
	return view.tooLittle(by, float64(s.Confidence)/1e6)
}

// tooLittle says why an agent is not rated although something was said of it.
func (v resultView) tooLittle(by string, confidence float64) string {
	switch {
	case v.Rows == 0 && v.Excluded == 0:
		return "nothing is said of it: nobody rated it, or every rating was withdrawn"
	case v.Rows == 0:
		return fmt.Sprintf("nothing that was said of it counts: of %d rows all are excluded; the explanation says why (excludedByReason)", v.Excluded)
	}
	if v.TrustedFor+v.TrustedAgainst > 0 {
		return fmt.Sprintf("too few trusted clients%s for a rating: confidence is %.3f", by, confidence)
	}
	return fmt.Sprintf("too little of what was said of it is vouched for%s: confidence is %.3f", by, confidence)
}

// encodeResult gives the parts of a result that was computed for this answer.
func encodeResult(r trust.Result) (Standing, resultView, error) {
	s := Standing{Score: Points(r.Score), Low: Points(r.Low), High: Points(r.High), Status: string(r.Status),
		Tier: int32(r.Tier)}
	var view resultView
	raw, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(raw, &view)
	}
	s.Confidence = view.Confidence
	view.Gates = settleGates(view.Gates)
	return s, view, err
}

// troubledSources lists the sources that were off or not read completely for a run.
func troubledSources(readings string) ([]SourceState, error) {
	states, err := repute.ParseSourceStates(readings)
	return encodeSources(slices.DeleteFunc(states,
		func(s repute.SourceState) bool { return s.Status == repute.SourceOK })), err
}

// encodeSources writes how sources were read.
func encodeSources(states []repute.SourceState) []SourceState {
	at := func(seconds uint64) *Time {
		if seconds == 0 {
			return nil
		}
		return EncodeTime(time.Unix(int64(seconds), 0))
	}
	return Each(states, func(s repute.SourceState) SourceState {
		return SourceState{Source: s.Source, Status: s.Status, Reason: OrNull(WithoutSecrets(s.Reason)),
			Chain: Long(s.Chain),
			Block: Long(s.Block), ReadAt: at(s.Time), CompleteAt: at(s.Complete), Kept: Long(s.Kept)}
	})
}

// EncodePersonal writes a score by a caller's roots. It is of no epoch, and nothing of it is
// stored.
func EncodePersonal(p explain.Personal, set string) (w Scored, err error) {
	standing, view, err := encodeResult(p.Result)
	if err != nil {
		return w, err
	}
	w.Standing, w.Gates, w.Sourced, w.Sources = standing, view.Gates, view.Sourced.shown(), []SourceState{}
	w.OwnRoots = &OwnRoots{Given: Long(p.Given), Known: Long(p.Known), Sourced: p.Sourced}
	switch {
	case p.Result.Status == trust.Rated:
	case p.Known == 0 && !p.Sourced && p.Result.Rows > 0:
		w.Reason = OrNull("none of these roots ever rated anybody in terms that count: they vouch for nobody; look at the addresses")
	default:
		w.Reason = OrNull(view.tooLittle(" by these roots", w.Confidence))
	}
	w.limit(view.Guard)
	w.Sentence = w.inWords(view)
	w.Scorer, w.Finality, w.Epoch, w.Roots = OrNull(p.Run.Scorer), OrNull("provisional"), new(Long(p.Run.Epoch)), &set
	w.ScoredAt = encodeScoredAt(p.Block)
	w.Hashes = &ScoreHashes{Params: Hash(p.Params.Hash.Hex()), Tags: Hash(p.Params.TagsHash.Hex()),
		Roots: Hash(p.Roots.Hex()), Links: encodeHash(p.Run.Links), FileScales: encodeHash(p.Run.FileScales)}
	w.VerifiedTo = OrNull(Long(p.Run.VerifiedTo))
	if p.Sourced {
		w.Hashes.Sources, w.Hashes.Credentials = encodeHash(p.Run.Sources), encodeHash(p.Run.Credentials)
		if w.Sources, err = troubledSources(p.Run.Readings); err != nil {
			return w, err
		}
	}
	return w, nil
}

// EncodeIndependence writes how far raters look like different people.
func EncodeIndependence(i repute.Independence) Independence {
	return Independence{Ratings: Long(i.Ratings), Raters: Long(i.Raters), Clusters: Long(i.Clusters),
		OneAgentShare: round6(i.OneAgentShare()), Burstiness: round6(i.Burstiness())}
}

// round6 keeps six digits after the point.
func round6(f float64) float64 { return float64(int64(f*1e6+0.5)) / 1e6 }
