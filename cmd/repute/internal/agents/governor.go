package agents

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/governance"
	"repute/agent/reputation"
	"repute/agent/signed"
	"repute/store"
	"repute/store/agentdb"
)

// governor decides by a policy.json. It is safe for concurrent use: requests are decided at once, and the mutex is
// never held while the index or the database is asked.
type governor struct {
	loader *governance.Loader
	db     *store.DB
	id     repute.AgentID
	scores *reputation.Client // nil: there is no index, and scores of clients are unknown
	log    *slog.Logger

	mu     sync.Mutex
	before governance.Mode // standing of the last evaluation
	state  governance.State
	known  map[common.Address]agent.Score
	silent time.Time // until when the index is not asked for clients, because it did not answer
}

const (
	// scoreAge is how long the score of a client is believed; one that cannot be read again counts for
	// governance.MaxScoreAge.
	scoreAge = 10 * time.Minute
	maxKnown = 10_000 // clients whose scores are kept
	// silence is the time between questions to an index that does not answer: each waits for it.
	silence = 5 * time.Second
)

// Decide implements agent.Governor. A free request is counted last, so that one that is refused for another reason
// takes nothing from its client.
func (g *governor) Decide(ctx context.Context, q agent.Question) agent.Decision {
	p := g.loader.Current().Policy
	if p == nil {
		return agent.Decision{Reasons: []string{"the agent has no policy"}}
	}
	d := q.Service.Definition()
	req := &governance.Request{Capability: d.Name, TrustTier: d.TrustTier, RequiresValidation: d.RequiresValidation,
		Client: governance.Client{Address: q.Client, Identity: q.Caller, Score: g.client(ctx, p, &q)}, Paid: q.Paid}
	if req.Client.Score.Rated { // others make a new key for each request
		req.Client.Identity = q.Client.Hex()
	}
	if price := q.Service.Price; price != nil {
		req.Price = &governance.Price{Amount: price.Amount, Currency: price.Currency}
	}
	g.mu.Lock()
	state := g.state
	g.mu.Unlock()
	verdict := p.Decide(ctx, req, state, q.Time)
	out := agent.Decision{Allow: true, Refund: p.RefundsFailure()}
	if refused(&verdict, req) {
		out.Allow, out.Reasons, out.Unavailable, out.Retry = false, texts(&verdict), unknown(&verdict), silence
		return out
	}
	out.Validation = verdict.Has(governance.RequireValidation)
	free, err := p.TakeFree(ctx, counter{g.db, g.id.String()}, req, q.Time)
	switch {
	case err != nil:
		g.log.WarnContext(ctx, "free requests cannot be counted", "error", err)
		return agent.Decision{Limited: true, Retry: 5 * time.Second,
			Reasons: []string{"free requests cannot be counted now"}}
	case free.Effect == governance.Deny:
		out.Allow, out.Limited, out.Retry = false, true, time.Minute
		if until := free.Reasons[0].Until; !until.IsZero() {
			out.Retry = until.Sub(q.Time)
		}
	}
	verdict.Merge(free)
	out.Reasons = texts(&verdict)
	return out
}

// refused reports whether a decision refuses a request. A payment that is asked for is demanded in the
// next step, where the capability has a price.
func refused(d *governance.Decision, req *governance.Request) bool {
	return d.Has(governance.Deny) || d.Has(governance.RequireApproval) ||
		d.Has(governance.RequirePayment) && req.Price == nil
}

// unknown reports whether a decision refuses a request for what cannot be read now, and for nothing
// else.
func unknown(d *governance.Decision) bool {
	for _, r := range d.Reasons {
		if r.Effect == d.Effect && r.Code != governance.CodeUnknown {
			return false
		}
	}
	return d.Effect == governance.Deny
}

// texts returns the reasons of a decision for people, each with its code.
func texts(d *governance.Decision) (out []string) {
	for _, r := range d.Reasons {
		out = append(out, string(r.Code)+": "+r.Text)
	}
	return out
}

// client is the score of a client, where the policy compares it with anything or counts free requests.
// While the index does not answer the last one counts for an hour. After that, and for a client that was
// never looked up, the score is unknown. A client without a proof of its account is unrated.
func (g *governor) client(ctx context.Context, p *governance.Policy, q *agent.Question) governance.Score {
	who := q.Client
	counted := p.File().Rules.Payment.FreeTierRateLimit != nil && q.Service.Price == nil
	if who == (common.Address{}) || !p.ReadsClientScore() && !counted {
		return governance.Score{}
	}
	g.mu.Lock()
	s, known := g.known[who]
	silent := time.Now().Before(g.silent)
	g.mu.Unlock()
	if known && time.Since(s.At) < scoreAge {
		return scoreOf(&s)
	}
	if g.scores != nil && !silent {
		now, err := g.scores.Of(ctx, who)
		if err == nil {
			g.learn(who, now)
			return scoreOf(&now)
		}
		g.log.WarnContext(ctx, "the index does not tell a client's score", "client", who, "error", err)
		if ctx.Err() == nil { // else the client has gone
			g.mu.Lock()
			g.silent = time.Now().Add(silence)
			g.mu.Unlock()
		}
	}
	if known && time.Since(s.At) < governance.MaxScoreAge {
		return scoreOf(&s)
	}
	return governance.Score{Unknown: true}
}

// learn keeps the score of a client. A full cache is emptied as a whole: scores are cheap to ask again, and no order
// has to be kept.
func (g *governor) learn(who common.Address, s agent.Score) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil || len(g.known) >= maxKnown {
		g.known = map[common.Address]agent.Score{}
	}
	g.known[who] = s
}

// scoreOf returns a score as rules see it. An agent that nobody rated is unrated, whatever number the index gives.
func scoreOf(s *agent.Score) governance.Score {
	rated := s.Status != "unrated" && s.Status != ""
	return governance.Score{Value: s.Value, Low: s.Low, High: s.High, Rated: rated, At: s.At}
}

// Mode implements agent.Governor. The standing of the evaluation before is an input, because an agent that was stopped
// needs a higher score to come back.
func (g *governor) Mode(own *agent.Score, now time.Time) (agent.Mode, string) {
	p := g.loader.Current().Policy
	if p == nil {
		return agent.Shutdown, "the agent has no policy"
	}
	var s agent.Score
	if own != nil {
		s = *own
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = p.Mode(governance.Own{Score: scoreOf(&s), Before: g.before}, now)
	g.before = g.state.Standing
	reasons := []string{}
	for _, r := range g.state.Reasons {
		reasons = append(reasons, r.Text)
	}
	return agent.Mode(g.state.Mode), strings.Join(reasons, "; ")
}

// recall sets the standing that an earlier process had. Without it a restart would serve again an agent that was
// stopped for its reputation.
func (g *governor) recall(ctx context.Context) error {
	last, err := agentdb.LastEvent(ctx, g.db, g.id.String(), "mode ")
	if mode := governance.Mode(strings.TrimPrefix(last, "mode ")); mode == governance.Stopped {
		g.before = mode
	}
	return err
}

// counter counts free requests in the database.
type counter struct {
	db    *store.DB
	agent string
}

// TakeFree implements governance.FreeCounter.
func (c counter) TakeFree(ctx context.Context, k governance.FreeKey, limit int) (bool, error) {
	f := agentdb.Free{Agent: c.agent, Client: k.Client, Capability: k.Capability, Since: k.Hour}
	return agentdb.TakeFree(ctx, c.db, f, limit)
}

// policyVerifier checks that the agent's owner signed a policy.
type policyVerifier struct {
	id       repute.AgentID
	registry agent.Registry
	wallets  signed.Wallets
}

// VerifyPolicy implements governance.Verifier.
func (v policyVerifier) VerifyPolicy(ctx context.Context, hash common.Hash, signature []byte) error {
	a, err := v.registry.Agent(ctx)
	if err != nil {
		return err
	}
	p, domain := signed.Policy{AgentID: v.id.TokenID, PolicyHash: hash}, signed.DomainOf(v.id)
	return signed.Check(ctx, v.wallets, domain, a.Owner, p.Data(domain), signature)
}

// policies remembers in the database which signed policies were in force.
type policies struct {
	db    *store.DB
	agent string
}

// LastPolicy implements governance.History.
func (p policies) LastPolicy(ctx context.Context) (governance.Issue, error) {
	last, err := agentdb.LastPolicy(ctx, p.db, p.agent)
	return governance.Issue{At: last.Issued, Hash: last.Hash, Stored: last.Stored}, err
}

// AddPolicy implements governance.History.
func (p policies) AddPolicy(ctx context.Context, i governance.Issue) error {
	return agentdb.AddPolicy(ctx, p.db, agentdb.Policy{Agent: p.agent, Hash: i.Hash, Issued: i.At})
}
