package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/httpapi"
	"repute/trust"
	"repute/trust/engine"
	"repute/trust/fixed"
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
		Kind      string    `json:"kind" enum:"opinion,rest,prior,unrated,guard,age" doc:"opinion: of raters that count as one; rest: all that are not listed; prior: the agent's own vouching; unrated: takes away what cannot be relied on; guard: another agent of the same party; age: what age changed since the earlier epoch that the score was kept from, less than 0.1"`
		Points    float64   `json:"points"`
		Channel   *string   `json:"channel"`
		Raters    []Address `json:"raters" doc:"no more than ten"`
		Weight    float64   `json:"weight" doc:"of the strongest rater, 0 to 1"`
		Opinion   float64   `json:"opinion" doc:"-1 to 1"`
		Evidence  float64   `json:"evidence" doc:"units after all bounds: one full-weight opinion is one"`
		Unvouched float64   `json:"unvouched" doc:"the part of evidence that nobody vouches for"`
		Path      []Address `json:"path" doc:"from a root to the strongest rater; empty when there is none"`
		Rows      []Row     `json:"rows" doc:"newest first, no more than ten"`
		Count     Long      `json:"count" doc:"number of rows, of opinions in a rest"`
	}
	// Row says where a rating or an answer of a validator is on the chain.
	Row struct {
		Tx       *Hash   `json:"tx"`
		Block    Long    `json:"block"`
		Time     *Time   `json:"time" doc:"of the block; null where it is unknown"`
		LogIndex Long    `json:"logIndex"`
		Rater    Address `json:"rater"`
		Index    Long    `json:"index" doc:"of the rating; 0 for an answer of a validator"`
		Tag1     string  `json:"tag1"`
		Value    Decimal `json:"value"`
	}
	// Excluded is a row that does not count, and why.
	Excluded struct {
		Row
		Reason string `json:"reason" enum:"self,unknown-tag,out-of-range,scale,other-channel,earlier-owner,future,undated"`
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

func (w ExplainAnswer) steady() any { w.AsOf = w.AsOf.steady(); return w }

// ExplainQuery are the parameters of an explanation.
type ExplainQuery struct {
	Request
	AtQuery
	Without string         `query:"without" pattern:"^ *0x[0-9a-fA-F]{40} *(, *0x[0-9a-fA-F]{40} *)*$" doc:"addresses divided by commas, no more than 100: what the score would be without their rows"`
	Roots   string         `query:"roots" doc:"as in a reputation: the explanation, with its counterfactuals, is of the score by these roots, at latest only"`
	Limit   httpapi.Number `query:"limit" minimum:"1" maximum:"100" doc:"contributions and excluded rows to list, 1 to 100, 20 when absent"`
}

// Query is the query itself, also where it is embedded.
func (q *ExplainQuery) Query() *ExplainQuery { return q }

// explainPlan is what an explanation was asked with.
type explainPlan struct {
	at      repute.At
	without []common.Address
	roots   string
	limit   int
	// stored is the score to explain, in the view asOf; nil: the one that is stored now.
	stored *repute.Score
	asOf   repute.AsOf
}

const (
	defaultListed = 20
	maxListed     = 100
	maxWithout    = 100
)

// plan reads the parameters of an explanation.
func (q *ExplainQuery) plan() (p explainPlan, err error) {
	if p.at, err = parseAt(q.At); err != nil {
		return p, err
	}
	if p.without, err = parseAddresses("without", q.Without); err != nil {
		return p, err
	}
	if len(p.without) > maxWithout {
		return p, repute.Invalid("without", "too many addresses", fmt.Sprintf("at most %d", maxWithout))
	}
	p.roots = q.Roots
	if err := checkRoots(p.roots, false, p.at); err != nil {
		return p, err
	}
	p.limit, err = httpapi.PageSize(q.Limit, defaultListed, maxListed)
	return p, err
}

// explain serves GET /agents/{id}/reputation/explain.
func (a *API) explain(ctx context.Context, ref repute.AgentRef, q *ExplainQuery) (*output[ExplainAnswer], error) {
	p, err := q.plan()
	if err != nil {
		return nil, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	answer, err := a.explanation(ctx, id, p)
	if err != nil {
		return nil, unknownAgent(err)
	}
	return ok(answer), nil
}

// explanation explains a score within the limit on walks of the graph that callers may cause.
func (a *API) explanation(ctx context.Context, id repute.AgentID, p explainPlan) (w ExplainAnswer, err error) {
	if err := a.admitWalk(ctx); err != nil {
		return w, err
	}
	return p.explain(ctx, a.trust, id)
}

// explain is the answer that was planned.
func (p *explainPlan) explain(ctx context.Context, r *engine.Reader, id repute.AgentID) (w ExplainAnswer, err error) {
	if p.roots == "" {
		account, err := p.account(ctx, r, id)
		if err != nil {
			return w, err
		}
		return encodeAccount(id, account, p.limit)
	}
	set, name, err := rootsOf(ctx, r, id.ChainID, p.roots)
	if err != nil {
		return w, err
	}
	// Whoever explains has been admitted: the walk is no dearer.
	account, err := r.ExplainPersonal(ctx, id, set, p.without, func() error { return nil })
	if err != nil {
		return w, err
	}
	if w.Scored, err = encodePersonal(account.Personal, name); err != nil {
		return w, err
	}
	w.AsOf = encodeAsOf(account.AsOf)
	return w, w.tell(id, account.Breakdown, p.limit)
}

// account explains the stored score of a snapshot, or the one that is current.
func (p *explainPlan) account(ctx context.Context, r *engine.Reader, id repute.AgentID) (engine.Account, error) {
	if p.stored != nil {
		return r.ExplainScore(ctx, *p.stored, p.asOf, p.at, p.without)
	}
	return r.Explain(ctx, id, p.at, p.without)
}

// Explanations and walks by a caller's roots: so many at once, then one per period.
const (
	walkPeriod = time.Second
	walkBurst  = 20
)

// admitWalk counts what is dearer than a read against the caller's own bucket.
func (a *API) admitWalk(ctx context.Context) error {
	if wait := a.walks.Allow(ctx, httpapi.CallerOf(ctx)); wait > 0 && a.server.Limits.Rate >= 0 {
		return tooSoon("too many explanations and walks from roots of your own", wait)
	}
	return nil
}

// encodeAccount writes the explanation of a stored score, with so many contributions and excluded
// rows.
func encodeAccount(id repute.AgentID, account engine.Account, limit int) (w ExplainAnswer, err error) {
	w.AsOf = encodeAsOf(account.AsOf)
	if w.Scored, err = encodeScored(account.Score); err != nil {
		return w, err
	}
	return w, w.tell(id, account.Breakdown, limit)
}

// tell adds what the score is made of.
func (w *ExplainAnswer) tell(id repute.AgentID, account engine.Breakdown, limit int) error {
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
	for _, reason := range trust.Reasons() {
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
		w.Counterfactuals = append(w.Counterfactuals, Counterfactual{each(c.Without, address), standing})
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
	rest.Count += count
}

// encodeContribution writes one part of a score; points of all parts add up to the score.
func encodeContribution(c trust.Contribution) Contribution {
	return Contribution{
		Kind: c.Kind, Points: points(c.Points), Channel: orNull(c.Channel), Raters: each(c.Raters, address),
		Weight: decimalOf(c.Weight), Opinion: decimalOf(c.Opinion), Evidence: decimalOf(c.Evidence),
		Unvouched: decimalOf(c.Unvouched),
		Path:      each(c.Path, address), Rows: each(c.Rows, encodeRow), Count: Long(c.Count),
	}
}

// encodeRow writes where on the chain a rating or an answer of a validator is.
func encodeRow(r trust.RowRef) Row {
	at := time.Time{}
	if r.Time > 0 {
		at = time.Unix(r.Time, 0)
	}
	return Row{Tx: encodeHash(r.Tx), Block: Long(r.Block), Time: encodeTime(at), LogIndex: Long(r.LogIndex), Rater: address(r.Rater),
		Index: Long(r.Index), Tag1: briefText(r.Tag1), Value: Decimal(r.Value)}
}

// decimalOf gives the six digits after the point that results are written with.
func decimalOf(f fixed.Fixed) (out float64) {
	raw, err := f.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return 0
	}
	return out
}

// Explain is what the explanation's route answers about an agent, for other ways to
// show it.
func Explain(ctx context.Context, r *engine.Reader, id repute.AgentID, q ExplainQuery) (w ExplainAnswer, err error) {
	p, err := q.plan()
	if err != nil {
		return w, err
	}
	return p.explain(ctx, r, id)
}
