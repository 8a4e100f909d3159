package answers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/policy"
	"repute/trust/rating"
)

// DecisionQuery are the parameters of a decision. The tags of patterns and bounds only document; ReadDemand and
// CheckDemand refuse what is out of range.
type DecisionQuery struct {
	Request
	AtQuery
	MinScore    httpapi.Real   `query:"minScore" minimum:"-100" maximum:"100" doc:"low, the lower bound of the score, must be at least this, -100 to 100"`
	Tier        httpapi.Number `query:"tier" minimum:"0" maximum:"4" doc:"the agent's tier must be at least this, 0 to 4"`
	Gates       string         `query:"gates" doc:"gates that admit, divided by commas: the agent must pass all of them"`
	Verified    httpapi.Flag   `query:"verified" doc:"1: the score must be final and follow from verified blocks alone; ask with at=finalized"`
	ValueAtRisk string         `query:"valueAtRisk" pattern:"^[0-9]{1,78}$" doc:"in wei, decimal: adds what the steps by value demand; they also apply, from 0, where nothing else is given"`
}

// Demand has the parsed thresholds of a request for a decision.
type Demand struct {
	own   policy.Threshold
	value string // "" when not given
}

// ReadDemand parses the thresholds of a request. Without any threshold, Decide applies the steps by value from 0. It
// reads no list of gates and no database: CheckDemand compares the gates with those of the scores.
func (q *DecisionQuery) ReadDemand() (d Demand, err error) {
	f, err := parseScoreFilter(string(q.MinScore), "", string(q.Tier), "")
	if err != nil {
		return d, err
	}
	if f.MinScore != nil {
		d.own.MinReputation = new(wire.Points(*f.MinScore))
	}
	if f.Tier != nil {
		d.own.MinTier = int64(*f.Tier)
	}
	if q.Gates != "" {
		for gate := range strings.SplitSeq(q.Gates, ",") {
			d.own.Gates = append(d.own.Gates, strings.TrimSpace(gate))
		}
	}
	if d.own.Verified, err = q.Verified.Bool("verified"); err != nil {
		return d, err
	}
	d.value = q.ValueAtRisk
	return d, nil
}

// CheckDemand refuses gates that no agent can pass, and a value that is no amount. repute.ErrInvalid. Callers check
// before they read the agent, so that a wrong parameter is 400 also for an agent that does not exist.
func (x *Index) CheckDemand(d Demand) error {
	_, _, err := x.demanded(d)
	return err
}

// demanded returns the rules that apply to a demand, and of each condition the hardest. The steps by value apply where
// the caller gives a value, in addition to its own thresholds, and where it gives nothing at all. With own thresholds
// alone the policy is the one without any. The error of policy names a field of its own, which becomes that of the
// parameter here.
func (x *Index) demanded(d Demand) (rules *policy.Policy, all policy.Threshold, err error) {
	err = d.own.CheckGates("gates", x.trust.Passable())
	var input *repute.InputError
	switch {
	case errors.As(err, &input):
		return nil, all, repute.Invalid("gates", input.Reason, input.Hint)
	case err != nil:
		return nil, all, err
	}
	rules = x.bare
	if d.value != "" || d.own.MinReputation == nil && d.own.MinTier == 0 && len(d.own.Gates) == 0 {
		rules = x.payments
	}
	if all, err = rules.Demands(d.task(), d.own); err != nil {
		return nil, all, repute.Invalid("valueAtRisk", "not an amount", "wei, as a decimal number of at most 78 digits")
	}
	return rules, all, nil
}

// task returns what the value at risk means for a policy.
func (d *Demand) task() policy.Task { return policy.Task{Value: cmp.Or(d.value, "0")} }

// Decide compares a score with thresholds. It compares the lower bound of the score, as gates that admit do, so that
// little evidence does not admit an agent.
//
// The answer has two parts that are found by different code: Reasons come from the policy, and gates that keep out are
// added to them, as they are to no threshold. Missing has the numbers that an agent would need, for programs. An agent
// without a score is denied by any threshold on reputation, tier or gates.
func (x *Index) Decide(score repute.Score, d Demand) (w wire.Decision, err error) {
	rules, all, err := x.demanded(d)
	if err != nil {
		return w, err
	}
	scored, err := wire.EncodeScored(score)
	if err != nil {
		return w, err
	}
	judged := rules.Gate(d.task(), d.own, agentOf(scored))
	w = wire.Decision{Decision: string(policy.Allow), Reasons: []wire.DecisionReason{}, Standing: scored.Standing,
		Finality: scored.Finality, ScoredAt: scored.ScoredAt, Verified: scored.Verified, VerifiedTo: scored.VerifiedTo,
		Demanded: wire.Demanded{MinScore: all.MinReputation, Tier: int32(all.MinTier), Verified: all.Verified,
			Gates:       append([]string{}, all.Gates...),
			ValueAtRisk: wire.OrNull(wire.BigInt(d.value))}}
	for _, r := range judged.Reasons {
		w.Reasons = append(w.Reasons, wire.DecisionReason{ID: r.ID, Text: r.Text, Have: r.Have, Need: r.Need})
	}
	for _, g := range scored.Gates {
		if g.Direction == string(rating.KeepsOut) && g.Passed {
			w.Reasons = append(w.Reasons,
				wire.DecisionReason{ID: "keptOut." + g.ID, Text: fmt.Sprintf("the gate %q keeps the agent out", g.ID),
					Have: "true", Need: "false"})
		}
	}
	w.Missing = []wire.Missing{}
	if len(w.Reasons) > 0 {
		w.Decision, w.Missing = string(policy.Deny), missingOf(scored, all)
	}
	return w, nil
}

// agentOf converts a score to the input of a policy. The agent exists, since it has a score record; checks of OpenFi
// are left at their zero values, because no demand of the API asks for them.
func agentOf(s wire.Scored) policy.Agent {
	a := policy.Agent{Status: s.Status, Score: s.Score, Low: s.Low, High: s.High, Confidence: s.Confidence,
		Tier: int64(s.Tier), Verified: s.Verified,
		Gates: map[string]bool{}, IdentityExists: true}
	if s.Reason != nil {
		a.WhyUnrated = *s.Reason
	}
	for _, g := range s.Gates {
		a.Gates[g.ID] = g.Passed
	}
	return a
}

// missingOf returns the thresholds that a score does not reach, with the numbers that are missing. Gates that are
// passed have no Lacks. The order is the lower bound, the tier, and the gates in the order of the score.
func missingOf(s wire.Scored, t policy.Threshold) []wire.Missing {
	out := []wire.Missing{}
	lack := func(what string, have, need float64) {
		if have < need {
			out = append(out, wire.Missing{Lacking: wire.Lacking{What: what, Have: have, Must: "atLeast", Need: need}})
		}
	}
	if t.MinReputation != nil {
		lack("low", s.Low, *t.MinReputation)
	}
	lack("tier", float64(s.Tier), float64(t.MinTier))
	for _, g := range s.Gates {
		if slices.Contains(t.Gates, g.ID) {
			for _, l := range g.Lacks {
				out = append(out, wire.Missing{Gate: &g.ID, Lacking: l})
			}
		}
	}
	return out
}
