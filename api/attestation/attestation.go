// Package attestation answers the trust gates of payments in the form that they read: an evaluation of the trust
// provider extension that is proposed for x402 (x402-foundation/x402, issue 2299, x402-trust-evaluation-v0.1). A gate
// asks whether to pay an account, its seller, or to take a payment from one, its buyer.
//
// The evaluation says nothing that the decisions on the account's agents do not say. An account with several agents is
// as good as the worst of them: see Evaluate.
package attestation

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
)

const (
	// Schema names the form of an evaluation.
	Schema = "x402-trust-evaluation-v0.1"
	// MaxAgents is the most agents of one account that are looked at. An account with more is uncertain.
	MaxAgents = 20
	// lifetime is how long an evaluation may be used. Scores change with the blocks of a chain, so it is short.
	lifetime = time.Minute
	// maxLag is how old the newest indexed block may be where the chain has no newer one.
	maxLag = time.Hour
	// maxBehind is how old it may be while the chain has newer ones.
	maxBehind = 5 * time.Minute
)

// Decisions of an evaluation.
const (
	Pass      = "PASS"
	Fail      = "FAIL"
	Uncertain = "UNCERTAIN"
)

// Codes of evaluations that rest on no score.
const (
	UnknownSubject   = "unknown_subject"
	UnsupportedChain = "unsupported_chain"
	TooManyAgents    = "too_many_agents"
	StaleIndex       = "stale_index"
	// demandsMet is the code of an evaluation that passes.
	demandsMet = "demands_met"
)

type (
	// Query are the parameters of an evaluation: which account or agent it is about, and what is demanded of its
	// agents.
	Query struct {
		answers.Request
		Subject     string         `query:"subject" required:"true" maxLength:"200" doc:"an account, 0x… or by CAIP-10, or the id of an agent" example:"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`
		Network     string         `query:"network" maxLength:"60" doc:"chain by CAIP-2, eip155:8453, or by its name in version 1 of x402, base; all indexed chains when absent" example:"eip155:8453"`
		Direction   string         `query:"direction" enum:"seller,buyer" doc:"seller (default): whether to pay the subject; buyer: whether to take its payment. Both are answered alike, by the work of its agents"`
		MinScore    httpapi.Real   `query:"minScore" minimum:"-100" maximum:"100" doc:"low, the lower bound of the score, must be at least this, -100 to 100"`
		Tier        httpapi.Number `query:"tier" minimum:"0" maximum:"4" doc:"the tier must be at least this, 0 to 4"`
		Gates       string         `query:"gates" doc:"gates that admit, divided by commas: all of them must be passed"`
		ValueAtRisk string         `query:"valueAtRisk" pattern:"^[0-9]{1,78}$" doc:"in wei, decimal: adds what the steps by value demand; they also apply, from 0, where nothing else is given"`
	}
	// Evaluation is the answer to a trust gate.
	Evaluation struct {
		Schema      string                `json:"schema" enum:"x402-trust-evaluation-v0.1"`
		Provider    string                `json:"provider" doc:"repute"`
		ProviderURL string                `json:"provider_url" doc:"of this server"`
		Direction   string                `json:"direction" enum:"seller,buyer"`
		Subject     string                `json:"subject" doc:"as it was asked"`
		Network     *string               `json:"network" doc:"the one asked for by CAIP-2, or as it was asked where it is no chain of the EVM; null where all chains were asked"`
		Decision    string                `json:"decision" enum:"PASS,FAIL,UNCERTAIN" doc:"PASS: each agent of the subject meets what is demanded. FAIL: a gate keeps one out, or the upper bound of its score is below minScore. UNCERTAIN: everything else, so do not pay"`
		Score       *float64              `json:"score" minimum:"0" maximum:"1" doc:"of the worst agent, (score + 100) / 200; null without a score"`
		NullReason  string                `json:"null_reason,omitempty" enum:"unknown_subject,unsupported_chain,insufficient_signal,evaluation_failed" doc:"why score is null"`
		ReasonCode  string                `json:"reason_code" doc:"demands_met, unknown_subject, unsupported_chain, too_many_agents, stale_index, or the id of the first reason" example:"trust.minReputation"`
		Reasons     []wire.DecisionReason `json:"reasons" doc:"all that speaks against the worst agent"`
		Basis       []Basis               `json:"basis" doc:"what the score rests on; empty without one"`
		EvidenceURI *string               `json:"evidence_uri" doc:"the newest reputation of the worst agent, signed where this server signs"`
		Agents      []wire.ID             `json:"agents" doc:"agents of the subject, the worst first"`
		TTLSeconds  int32                 `json:"ttl_seconds" doc:"how long the evaluation may be used"`
		EvaluatedAt wire.Time             `json:"evaluated_at" format:"date-time"`
		IssuedAt    wire.Time             `json:"issued_at" format:"date-time" doc:"evaluated_at"`
		ExpiresAt   wire.Time             `json:"expires_at" format:"date-time" doc:"do not use the evaluation from then on"`
	}
	// Basis is one kind of evidence.
	Basis struct {
		Class      string     `json:"class" enum:"curated" doc:"curated: ratings count by the trust that flows to their clients from reviewed roots and sources, and not otherwise"`
		Kind       string     `json:"kind" enum:"erc8004_feedback"`
		Ref        string     `json:"ref" doc:"URL of the agent's ratings with what each adds to the score"`
		ObservedAt *wire.Time `json:"observed_at" format:"date-time" doc:"time of the block that the score is of"`
	}
)

// Demand parses what is demanded. repute.ErrInvalid names the wrong parameter.
func (q *Query) Demand() (answers.Demand, error) {
	d := answers.DecisionQuery{MinScore: q.MinScore, Tier: q.Tier, Gates: q.Gates, ValueAtRisk: q.ValueAtRisk}
	return d.ReadDemand()
}

// Issuer makes evaluations.
type Issuer struct {
	// URL of the server, without a slash at the end.
	URL string
	// Signs reports whether the server signs scores.
	Signs bool
	Now   time.Time
}

// Without returns the evaluation of a subject that was not scored, for a reason such as UnknownSubject.
func (s Issuer) Without(q *Query, network *string, code string) Evaluation {
	issued := s.Now.Truncate(time.Second)
	e := Evaluation{Schema: Schema, Provider: "repute", ProviderURL: s.URL, Direction: cmp.Or(q.Direction, "seller"),
		Subject: httpapi.Clean(q.Subject), Network: network, Decision: Uncertain, ReasonCode: code,
		Reasons: []wire.DecisionReason{}, Basis: []Basis{}, Agents: []wire.ID{}, TTLSeconds: int32(lifetime.Seconds()),
		EvaluatedAt: *wire.EncodeTime(issued), IssuedAt: *wire.EncodeTime(issued),
		ExpiresAt: *wire.EncodeTime(issued.Add(lifetime))}
	switch e.NullReason = code; code {
	case UnknownSubject, UnsupportedChain:
	case TooManyAgents, StaleIndex:
		e.NullReason = "evaluation_failed"
	default:
		e.NullReason = "insufficient_signal"
	}
	return e
}

// Judged is the decision on an agent of a subject.
type Judged struct {
	Agent wire.ID
	wire.Decision
}

// Evaluate returns the evaluation of a subject with at least one agent. The worst decides: an agent that fails is worse
// than one that is uncertain, and that worse than one that passes; then the lower bound of the score counts.
func (s Issuer) Evaluate(q *Query, network *string, agents []Judged) Evaluation {
	agents = slices.Clone(agents)
	slices.SortStableFunc(agents, func(a, b Judged) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Low, b.Low), cmp.Compare(a.Agent, b.Agent))
	})
	worst := agents[0]
	code := demandsMet
	if len(worst.Reasons) > 0 {
		code = worst.Reasons[0].ID
	}
	e := s.Without(q, network, code)
	e.Decision, e.Reasons = worst.verdict(), worst.Reasons
	e.Agents = wire.Each(agents, func(j Judged) wire.ID { return j.Agent })
	if worst.Status == string(repute.Unrated) {
		return e
	}
	e.Score, e.NullReason = new(math.Round((worst.Score+100)*5000)/1e6), "" // scores have three decimals
	at := s.URL + "/agents/" + string(worst.Agent) + "/reputation"
	e.Basis = []Basis{{Class: "curated", Kind: "erc8004_feedback", Ref: at + "/explain"}}
	if worst.ScoredAt != nil {
		e.Basis[0].ObservedAt = worst.ScoredAt.Time
	}
	if s.Signs {
		at += "?signed=1"
	}
	e.EvidenceURI = &at
	return e
}

// verdict returns what the decision on one agent is for a gate. Only evidence against an agent fails it; too little
// evidence for it leaves it uncertain.
func (j Judged) verdict() string {
	if len(j.Reasons) == 0 {
		return Pass
	}
	for _, r := range j.Reasons {
		if strings.HasPrefix(r.ID, "keptOut.") {
			return Fail
		}
	}
	if j.Status == string(repute.Rated) && j.Demanded.MinScore != nil && j.High < *j.Demanded.MinScore {
		return Fail
	}
	return Uncertain
}

// rank orders decisions, the worst first.
func (j Judged) rank() int { return slices.Index([]string{Fail, Uncertain, Pass}, j.verdict()) }

// IsCurrent reports whether the index knows what happened on a chain lately: it sees the chain's head, its newest block
// is not old, no event is known to be missing, and scores follow its ratings.
func IsCurrent(c repute.ChainStatus) bool {
	if c.LagBlocks == nil || c.LagSeconds == nil || c.Scoring.Late || c.Halted || c.Stalled ||
		c.Completeness.Status == repute.Incomplete {
		return false
	}
	age := time.Duration(*c.LagSeconds) * time.Second
	return age <= maxBehind || *c.LagBlocks == 0 && age <= maxLag
}
