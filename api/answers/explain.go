package answers

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/trust/explain"
)

// ExplainQuery are the parameters of an explanation.
type ExplainQuery struct {
	Request
	AtQuery
	Without string         `query:"without" pattern:"^ *0x[0-9a-fA-F]{40} *(, *0x[0-9a-fA-F]{40} *)*$" doc:"addresses divided by commas, no more than 100: what the score would be without their rows"`
	Roots   string         `query:"roots" doc:"as in a reputation: the explanation, with its counterfactuals, is of the score by these roots, at latest only"`
	Sources string         `query:"sources" enum:"none,default" doc:"as in a reputation"`
	Limit   httpapi.Number `query:"limit" minimum:"1" maximum:"100" doc:"contributions and excluded rows to list, 1 to 100, 20 when absent"`
}

// ExplainPlan has the parsed parameters of an explanation. Plan makes it. By is checked against At already. Limit is
// from 1 to MaxListed.
type ExplainPlan struct {
	At      repute.At
	Without []common.Address
	By      OwnRoots
	Limit   int
	// Stored is the score to explain, in the view AsOf; nil for the score that is stored now. Plan leaves it nil.
	Stored *repute.Score
	AsOf   repute.AsOf
}

// Bounds of an explanation.
const (
	// DefaultListed is how many contributions and excluded rows are listed without the parameter limit.
	DefaultListed = 20
	// MaxListed is how many of them may be asked for.
	MaxListed = 100
	// MaxWithout is how many raters may be left out.
	MaxWithout = 100
)

// Plan reads the parameters of an explanation.
func (q *ExplainQuery) Plan() (p ExplainPlan, err error) {
	if p.At, err = ParseAt(q.At); err != nil {
		return p, err
	}
	if p.Without, err = ParseAddresses("without", q.Without); err != nil {
		return p, err
	}
	if len(p.Without) > MaxWithout {
		return p, repute.Invalid("without", "too many addresses", fmt.Sprintf("at most %d", MaxWithout))
	}
	p.By = OwnRoots{q.Roots, q.Sources}
	if err := p.By.Check(false, p.At); err != nil {
		return p, err
	}
	p.Limit, err = httpapi.PageSize(q.Limit, DefaultListed, MaxListed)
	return p, err
}

// Explanation explains a score within the limit on walks of the graph that callers may cause. The limit is applied
// before anything is read, and counts an agent that does not exist too.
func (x *Index) Explanation(ctx context.Context, id repute.AgentID, p ExplainPlan) (w wire.ExplainAnswer, err error) {
	if err := x.admitWalk(ctx); err != nil {
		return w, err
	}
	return p.explain(ctx, x.trust, id)
}

// explain computes the explanation, by the chain's own roots or by those of the caller.
func (p *ExplainPlan) explain(ctx context.Context, r *explain.Reader, id repute.AgentID) (w wire.ExplainAnswer,
	err error) {
	if p.By.Roots == "" {
		account, err := p.account(ctx, r, id)
		if err != nil {
			return w, err
		}
		return wire.EncodeAccount(id, account, p.Limit)
	}
	set, name, err := p.By.read(ctx, r, id.ChainID)
	if err != nil {
		return w, err
	}
	// The caller of explain has applied the limit already: a walk from own roots costs no more than an explanation.
	account, err := r.ExplainPersonal(ctx, id, set, p.Without, func() error { return nil })
	if err != nil {
		return w, err
	}
	if w.Scored, err = wire.EncodePersonal(account.Personal, name); err != nil {
		return w, err
	}
	w.AsOf = wire.EncodeAsOf(account.AsOf)
	return w, w.Tell(id, account.Breakdown, p.Limit)
}

// account explains the stored score of a snapshot, or the one that is current.
func (p *ExplainPlan) account(ctx context.Context, r *explain.Reader, id repute.AgentID) (explain.Account, error) {
	if p.Stored != nil {
		return r.ExplainScore(ctx, *p.Stored, p.AsOf, p.At, p.Without)
	}
	return r.Explain(ctx, id, p.At, p.Without)
}

// Rate limit of explanations and of walks from a caller's roots: walkBurst at once, then one per walkPeriod.
const (
	walkPeriod = time.Second
	walkBurst  = 20
)

// admitWalk applies the rate limit of the caller to an expensive computation. The error is the answer 429.
func (x *Index) admitWalk(ctx context.Context) error {
	if wait := x.walks.Allow(ctx, httpapi.CallerOf(ctx)); wait > 0 && x.limited {
		return tooSoon("too many explanations and walks from roots of your own", wait)
	}
	return nil
}

// Explain returns the answer of the REST operation for an explanation without its rate limit. `repute score explain`
// calls it.
func Explain(ctx context.Context, r *explain.Reader, id repute.AgentID, q ExplainQuery) (w wire.ExplainAnswer,
	err error) {
	p, err := q.Plan()
	if err != nil {
		return w, err
	}
	return p.explain(ctx, r, id)
}
