package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"repute"
	"repute/internal/httpapi"
	"repute/policy"
	"repute/store/query"
	"repute/trust"
)

// The wire types of a decision.
type (
	// DecisionAnswer says whether an agent may be paid or delegated to.
	DecisionAnswer struct {
		Agent ID `json:"agent" doc:"agent id"`
		Decision
		AsOf AsOf `json:"asOf" doc:"the view in which the score is the agent's"`
	}
	// Decision is what thresholds say of a score.
	Decision struct {
		Decision string           `json:"decision" enum:"allow,deny" doc:"allow: every threshold is reached and no gate keeps the agent out"`
		Reasons  []DecisionReason `json:"reasons" doc:"all that speaks against the agent; empty when allowed"`
		Missing  []Missing        `json:"missing" doc:"what the agent would have to reach, as far as it can be counted; empty when allowed"`
		Demanded Demanded         `json:"demanded" doc:"what was demanded: of each condition the hardest"`
		Standing
		Finality *string   `json:"finality" enum:"provisional,final" doc:"of the score"`
		ScoredAt *ScoredAt `json:"scoredAt" doc:"the block the score is of; null where no engine has run"`
	}
	// DecisionReason is one thing that speaks against an agent.
	DecisionReason struct {
		ID   string `json:"id" doc:"trust.unrated, trust.thin, trust.minReputation, trust.minTier, trust.gates.{gate}, or keptOut.{gate}" example:"trust.minReputation"`
		Text string `json:"text"`
		Have string `json:"have"`
		Need string `json:"need"`
	}
	// Missing is one number that is not reached.
	Missing struct {
		Gate *string `json:"gate" doc:"whose condition it is; null for a threshold of the question"`
		Lacking
	}
	// Demanded are the thresholds of a decision.
	Demanded struct {
		MinScore    *float64 `json:"minScore" doc:"of low; null for none"`
		Tier        int32    `json:"tier" doc:"at least this; 0 for any"`
		Gates       []string `json:"gates" doc:"that must be passed"`
		ValueAtRisk *BigInt  `json:"valueAtRisk" doc:"in wei; null when not given"`
	}
)

func (b DecisionAnswer) steady() any { b.AsOf = b.AsOf.steady(); return b }

// DecisionQuery are the parameters of a decision.
type DecisionQuery struct {
	Request
	AtQuery
	MinScore    httpapi.Real   `query:"minScore" minimum:"-100" maximum:"100" doc:"low, the lower bound of the score, must be at least this, -100 to 100"`
	Tier        httpapi.Number `query:"tier" minimum:"0" maximum:"4" doc:"the agent's tier must be at least this, 0 to 4"`
	Gates       string         `query:"gates" doc:"gates that admit, divided by commas: the agent must pass all of them"`
	ValueAtRisk string         `query:"valueAtRisk" pattern:"^[0-9]{1,78}$" doc:"in wei, decimal: adds what the steps by value demand; they also apply, from 0, where nothing else is given"`
}

// Query is the query itself, also where it is embedded.
func (q *DecisionQuery) Query() *DecisionQuery { return q }

// demand is a question for a decision, read.
type demand struct {
	own   policy.Threshold
	value string // "" when not given
}

// demand reads the thresholds of a question. At least one MUST be given.
func (q *DecisionQuery) demand() (d demand, err error) {
	f, err := parseScoreFilter(string(q.MinScore), "", string(q.Tier), "")
	if err != nil {
		return d, err
	}
	if f.MinScore != nil {
		least := points(*f.MinScore)
		d.own.MinReputation = &least
	}
	if f.Tier != nil {
		d.own.MinTier = int64(*f.Tier)
	}
	if q.Gates != "" {
		for gate := range strings.SplitSeq(q.Gates, ",") {
			d.own.Gates = append(d.own.Gates, strings.TrimSpace(gate))
		}
	}
	d.value = q.ValueAtRisk
	return d, nil
}

// decision serves GET /agents/{id}/decision: whether the agent meets the caller's thresholds, and
// what it lacks.
func (a *API) decision(ctx context.Context, ref repute.AgentRef, q *DecisionQuery) (*output[DecisionAnswer], error) {
	at, err := parseAt(q.At)
	if err != nil {
		return nil, err
	}
	d, err := q.demand()
	if err != nil {
		return nil, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	score, asOf, err := query.ScoreOf(ctx, a.db, id, at)
	var missing *repute.MissingError
	if none := errors.Is(err, repute.ErrNotFound) && !errors.As(err, &missing); err != nil && !none &&
		!errors.Is(err, repute.ErrGone) {
		return nil, unknownAgent(err)
	} // else the score says that there is none
	w, err := a.decide(score, d)
	return ok(DecisionAnswer{Agent: ID(id.String()), Decision: w, AsOf: encodeAsOf(asOf)}), err
}

// decide compares a score with what is demanded. It reads the lower bound, as gates that
// admit do: thin evidence does not admit.
func (a *API) decide(score repute.Score, d demand) (w Decision, err error) {
	if err := d.own.CheckGates("gates", a.trust.Passable()); err != nil {
		var input *repute.InputError
		if errors.As(err, &input) {
			err = repute.Invalid("gates", input.Reason, input.Hint)
		}
		return w, err
	}
	scored, err := encodeScored(score)
	if err != nil {
		return w, err
	}
	rules := a.bare
	if d.value != "" || d.own.MinReputation == nil && d.own.MinTier == 0 && len(d.own.Gates) == 0 {
		rules = a.payments
	}
	task := policy.Task{Value: cmp.Or(d.value, "0")}
	all, err := rules.Demands(task, d.own)
	if err != nil {
		return w, repute.Invalid("valueAtRisk", "not an amount", "wei, as a decimal number of at most 78 digits")
	}
	judged := rules.Gate(task, d.own, agentOf(scored))
	w = Decision{Decision: string(policy.Allow), Reasons: []DecisionReason{}, Standing: scored.Standing,
		Finality: scored.Finality, ScoredAt: scored.ScoredAt,
		Demanded: Demanded{all.MinReputation, int32(all.MinTier), each(all.Gates, func(g string) string { return g }),
			orNull(BigInt(d.value))}}
	for _, r := range judged.Reasons {
		w.Reasons = append(w.Reasons, DecisionReason{r.ID, r.Text, r.Have, r.Need})
	}
	for _, g := range scored.Gates {
		if g.Direction == string(trust.KeepsOut) && g.Passed {
			w.Reasons = append(w.Reasons,
				DecisionReason{"keptOut." + g.ID, fmt.Sprintf("the gate %q keeps the agent out", g.ID), "true", "false"})
		}
	}
	w.Missing = []Missing{}
	if len(w.Reasons) > 0 {
		w.Decision, w.Missing = string(policy.Deny), missingOf(scored, all)
	}
	return w, nil
}

// agentOf is what a policy sees of a score.
func agentOf(s Scored) policy.Agent {
	a := policy.Agent{Status: s.Status, Score: s.Score, Low: s.Low, High: s.High, Confidence: s.Confidence,
		Tier:  int64(s.Tier),
		Gates: map[string]bool{}, IdentityExists: true}
	if s.Reason != nil {
		a.WhyUnrated = *s.Reason
	}
	for _, g := range s.Gates {
		a.Gates[g.ID] = g.Passed
	}
	return a
}

// missingOf lists the numbers that a score does not reach.
func missingOf(s Scored, t policy.Threshold) []Missing {
	out := []Missing{}
	lack := func(what string, have, need float64) {
		if have < need {
			out = append(out, Missing{nil, Lacking{What: what, Have: have, Must: "atLeast", Need: need}})
		}
	}
	if t.MinReputation != nil {
		lack("low", s.Low, *t.MinReputation)
	}
	lack("tier", float64(s.Tier), float64(t.MinTier))
	for _, g := range s.Gates {
		if slices.Contains(t.Gates, g.ID) {
			for _, l := range g.Lacks {
				out = append(out, Missing{&g.ID, l})
			}
		}
	}
	return out
}

type (
	// decisionTool is the input of the tool that decides.
	decisionTool struct {
		AgentTool
		MinScore    *float64 `json:"minScore,omitempty" minimum:"-100" maximum:"100" doc:"that low, the lower bound of the score, must reach"`
		Tier        *int     `json:"tier,omitempty" minimum:"0" maximum:"4" doc:"at least"`
		Gates       []string `json:"gates,omitempty" maxItems:"8" doc:"that admit, e.g. service: all must be passed"`
		ValueAtRisk string   `json:"valueAtRisk,omitempty" pattern:"^[0-9]{1,78}$" doc:"in wei: adds what the steps by value demand"`
	}
	// decisionArgs are the arguments of Agent.decision.
	decisionArgs struct {
		MinScore    *float64
		Tier        *int32
		Gates       *[]string
		ValueAtRisk *BigInt
	}
)

// decisionTool is the tool repute_decide, which answers as GET /agents/{id}/decision does.
func (a *API) decisionTool(ctx context.Context, in decisionTool) (w DecisionAnswer, err error) {
	ref, err := in.ref()
	if err != nil {
		return w, err
	}
	return bodyOf(a.decision(ctx, ref,
		&DecisionQuery{AtQuery: AtQuery{string(in.At)}, MinScore: httpapi.Real(textOf(in.MinScore)),
			Tier: httpapi.Number(textOf(in.Tier)), Gates: strings.Join(in.Gates, ","), ValueAtRisk: in.ValueAtRisk}))
}

// Decision says whether the agent may be paid or delegated to.
func (n *agentNode) Decision(ctx context.Context, args decisionArgs) (*Decision, error) {
	q := DecisionQuery{MinScore: httpapi.Real(textOf(args.MinScore)), Tier: httpapi.Number(textOf(args.Tier)),
		ValueAtRisk: orEmpty(args.ValueAtRisk)}
	if args.Gates != nil {
		q.Gates = strings.Join(*args.Gates, ",")
	}
	d, err := q.demand()
	if err != nil {
		return nil, err
	}
	score := n.stored
	if n.group.list { // without results, which hold the gates
		if score, err = n.group.scoreOf(ctx, n.key); err != nil {
			return nil, err
		}
	}
	w, err := n.group.api.decide(score, d)
	return &w, err
}
