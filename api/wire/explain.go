package wire

import (
	"encoding/json"
	"time"

	"repute"
	"repute/trust"
	"repute/trust/explain"
	"repute/trust/fixed"
	"repute/trust/rating"
)

// The wire types of an explanation.
type (
	// ExplainAnswer tells what a score is made of.
	ExplainAnswer struct {
		Agent ID `json:"agent" doc:"agent id"`
		Scored
		Contributions    []Contribution `json:"contributions" doc:"their points add up to score exactly; those with most points first, what is not listed as one of kind rest, prior and adjustments at the end"`
		Excluded         []Excluded     `json:"excluded" doc:"rows that do not count, in the order of the chain: the first ones, as many as limit allows"`
		ExcludedByReason []ReasonCount  `json:"excludedByReason" doc:"all rows that do not count"`
		// Counterfactuals are without others' words.
		Counterfactuals []Counterfactual `json:"counterfactuals" doc:"what the score would be without the rows of some raters: first those of without, then each of the three strongest, then all of these"`
		AsOf            AsOf             `json:"asOf" doc:"the view in which it is the agent's score; scoredAt is the block that the score is of"`
	}
	// Contribution is one part of a score.
	Contribution struct {
		Kind      string    `json:"kind" enum:"opinion,rest,prior,unrated,guard,age" doc:"opinion: of raters that count as one; rest: sum of the contributions not listed; prior: starting value of an agent from its own weight; unrated: subtraction that sets an unrated agent to 0; guard: another agent of the same identity; age: what age changed since the earlier epoch that the score was kept from, less than 0.1"`
		Points    float64   `json:"points"`
		Channel   *string   `json:"channel"`
		Raters    []Address `json:"raters" doc:"no more than ten"`
		Weight    float64   `json:"weight" doc:"of the strongest rater, 0 to 1"`
		Opinion   float64   `json:"opinion" doc:"-1 to 1"`
		Evidence  float64   `json:"evidence" doc:"units after all bounds: one full-weight opinion is one"`
		Unvouched float64   `json:"unvouched" doc:"part of evidence from raters without weight"`
		Sourced   float64   `json:"sourced" doc:"the part of evidence that sources give"`
		Sources   []string  `json:"sources" doc:"ids of the sources that give the raters weight"`
		Path      []Address `json:"path" doc:"from a root to the strongest rater; empty when there is none"`
		Rows      []Row     `json:"rows" doc:"newest first, no more than ten"`
		Count     Long      `json:"count" doc:"number of rows, of opinions in a rest"`
	}
	// Row says where a rating or an answer of a validator is on the chain.
	Row struct {
		Tx       *Hash    `json:"tx"`
		Block    Long     `json:"block"`
		Time     *Time    `json:"time" doc:"of the block; null where it is unknown"`
		LogIndex Long     `json:"logIndex"`
		Rater    Address  `json:"rater"`
		Via      *Address `json:"via" doc:"the feedback gateway that wrote the rating for rater; null for none"`
		Index    Long     `json:"index" doc:"of the rating; 0 for an answer of a validator"`
		Tag1     string   `json:"tag1"`
		Value    Decimal  `json:"value"`
	}
	// Excluded is a row that does not count, and why.
	Excluded struct {
		Row
		Reason string `json:"reason" enum:"self,unknown-tag,out-of-range,scale,other-channel,earlier-owner,future,undated,gateway"`
		// Readings are what the value may mean.
		Readings []string `json:"readings" doc:"of scale: what the value may mean, such as 5 of 5 and 5 of 100; empty otherwise"`
	}
	// ReasonCount counts rows that do not count.
	ReasonCount struct {
		Reason string `json:"reason"`
		Count  Long   `json:"count"`
	}
	// Counterfactual is what a score would be without some raters' rows.
	Counterfactual struct {
		Without []Address `json:"without"`
		Standing
	}
)

// Steady returns the body without what moves while nothing happens, for its ETag.
func (w ExplainAnswer) Steady() any { w.AsOf = SteadyAsOf(w.AsOf); return w }

// EncodeAccount writes the explanation of a stored score, with so many contributions and excluded
// rows.
func EncodeAccount(id repute.AgentID, account explain.Account, limit int) (w ExplainAnswer, err error) {
	w.AsOf = EncodeAsOf(account.AsOf)
	if w.Scored, err = EncodeScored(account.Score); err != nil {
		return w, err
	}
	return w, w.Tell(id, account.Breakdown, limit)
}

// Tell adds what the score is made of.
func (w *ExplainAnswer) Tell(id repute.AgentID, account explain.Breakdown, limit int) error {
	w.Agent = ID(id.String())
	_, view, err := encodeResult(account.Result)
	if err != nil {
		return err
	}
	w.Gates = measured(w.Gates, view.Gates)
	w.Contributions = encodeContributions(account.Contributions, limit)
	w.Excluded = []Excluded{}
	for i, e := range account.Excluded {
		if i < limit {
			w.Excluded = append(w.Excluded, Excluded{encodeRow(e.RowRef), string(e.Reason),
				append([]string{}, e.Readings...)})
		}
	}
	w.ExcludedByReason = []ReasonCount{}
	for _, reason := range rating.Reasons() {
		if n := account.ByReason[reason]; n > 0 {
			w.ExcludedByReason = append(w.ExcludedByReason, ReasonCount{string(reason), Long(n)})
		}
	}
	w.Counterfactuals = []Counterfactual{}
	for _, c := range account.Counterfactuals {
		standing, _, err := encodeResult(c.Result)
		if err != nil {
			return err
		}
		w.Counterfactuals = append(w.Counterfactuals, Counterfactual{Each(c.Without, AddressOf), standing})
	}
	return nil
}

// measured adds to the gates of a score how much is missing, as the breakdown says.
func measured(gates, by []Gate) []Gate {
	if len(gates) != len(by) {
		return by
	}
	for i := range gates {
		for j := range gates[i].Lacks {
			for _, l := range by[i].Lacks {
				if l.What == gates[i].Lacks[j].What {
					gates[i].Lacks[j].Units = l.Units
				}
			}
		}
	}
	return gates
}

// encodeContributions lists so many opinions and adds up the others, so that the points
// still add up.
func encodeContributions(list []trust.Contribution, limit int) []Contribution {
	out := []Contribution{}
	rest := trust.Contribution{Kind: trust.KindRest}
	flush := func() {
		if rest.Count > 0 {
			out = append(out, encodeContribution(rest))
			rest.Count = 0
		}
	}
	opinions := 0
	for _, c := range list {
		switch {
		case c.Kind == trust.KindOpinion && opinions < limit:
			opinions++
			out = append(out, encodeContribution(c))
		case c.Kind == trust.KindOpinion:
			addUp(&rest, c, 1)
		case c.Kind == trust.KindRest:
			addUp(&rest, c, c.Count)
		default:
			flush()
			out = append(out, encodeContribution(c))
		}
	}
	flush()
	return out
}

// addUp adds a contribution to the one that stands for all that are not listed.
func addUp(rest *trust.Contribution, c trust.Contribution, count int) {
	rest.Points += c.Points
	rest.Evidence += c.Evidence
	rest.Unvouched += c.Unvouched
	rest.Sourced += c.Sourced
	rest.Count += count
}

// encodeContribution writes one part of a score; points of all parts add up to the score.
func encodeContribution(c trust.Contribution) Contribution {
	return Contribution{
		Kind: c.Kind, Points: Points(c.Points), Channel: OrNull(c.Channel), Raters: Each(c.Raters, AddressOf),
		Weight: DecimalOf(c.Weight), Opinion: DecimalOf(c.Opinion), Evidence: DecimalOf(c.Evidence),
		Unvouched: DecimalOf(c.Unvouched), Sourced: DecimalOf(c.Sourced), Sources: append([]string{}, c.Sources...),
		Path: Each(c.Path, AddressOf), Rows: Each(c.Rows, encodeRow), Count: Long(c.Count),
	}
}

// encodeRow writes where on the chain a rating or an answer of a validator is.
func encodeRow(r trust.RowRef) Row {
	at := time.Time{}
	if r.Time > 0 {
		at = time.Unix(r.Time, 0)
	}
	var via *Address
	if r.Via != nil {
		via = encodeAddress(*r.Via)
	}
	return Row{Via: via, Tx: encodeHash(r.Tx), Block: Long(r.Block), Time: EncodeTime(at), LogIndex: Long(r.LogIndex),
		Rater: AddressOf(r.Rater),
		Index: Long(r.Index), Tag1: BriefText(r.Tag1), Value: Decimal(r.Value)}
}

// DecimalOf gives the six digits after the point that results are written with.
func DecimalOf(f fixed.Fixed) (out float64) {
	raw, err := f.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return 0
	}
	return out
}
