package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"repute/api/wire"
	"repute/internal/population"
)

const (
	// wantRated is how many agents of the demo somebody trusted rates, at least.
	wantRated = 10
	// maxPraised is the score that a ring of fresh wallets must not lift an agent above.
	maxPraised = 10
	// scoresWithin is how long the demo's scores may take, from its last block on.
	scoresWithin = time.Minute
)

// scores checks that agents are rated by what the roots vouch for, and that the praise of
// the ring does not count. It waits for the run that follows the roots.
func (v *verification) scores(ctx context.Context, p *population.Population) error {
	ctx, cancel := context.WithTimeout(ctx, scoresWithin)
	defer cancel()
	rated, err := v.rated(ctx)
	for err == nil && rated < wantRated {
		select {
		case <-ctx.Done():
			v.compare("rated agents", "all", rated, fmt.Sprintf("at least %d", wantRated))
			return nil
		case <-time.After(200 * time.Millisecond):
			rated, err = v.rated(ctx)
		}
	}
	if err != nil {
		return err
	}
	v.Checked["rated agents"] = rated
	var praised wire.ReputationAnswer
	if err := v.get(ctx, fmt.Sprintf("/agents/%d/reputation", p.Praised), nil, &praised); err != nil {
		return err
	}
	v.compare("score that a ring bought", praised.Agent, praised.Score <= maxPraised, true)
	return v.tutorial(ctx)
}

// tutorialStep is a question that docs/tutorials/gate-a-payment.md asks the demo.
type tutorialStep struct {
	query  string // path and query of a decision
	want   string // allow or deny
	reason string // that a denial gives
}

// tutorialSteps are the decisions that the tutorial shows. A test compares them with the page.
func tutorialSteps() []tutorialStep {
	return []tutorialStep{
		{"/agents/1/decision?minScore=20", "allow", ""},
		{"/agents/5/decision?minScore=20", "deny", "trust.minReputation"},
		{"/agents/1/decision?valueAtRisk=10000000000000000", "allow", ""},
		{"/agents/9/decision?valueAtRisk=10000000000000000", "deny", "trust.negative"},
	}
}

// tutorial checks that the agents which the tutorial names are allowed and denied as it says. All have
// a final wallet, so that the decision alone keeps a payment back.
func (v *verification) tutorial(ctx context.Context) error {
	for _, step := range tutorialSteps() {
		var got wire.DecisionAnswer
		var agent wire.Agent
		if err := getJSON(ctx, v.base+step.query, &got); err != nil {
			return err
		}
		reasons := []string{}
		for _, r := range got.Reasons {
			reasons = append(reasons, r.ID)
		}
		v.compare("decision of the tutorial", step.query,
			fmt.Sprint(got.Decision.Decision, slices.Contains(reasons, step.reason)),
			fmt.Sprint(step.want, step.reason != ""))
		path, _, _ := strings.Cut(step.query, "/decision")
		if err := getJSON(ctx, v.base+path+"?at=finalized", &agent); err != nil {
			return err
		}
		v.compare("wallet of the tutorial", step.query, agent.Wallet != nil, true)
	}
	return nil
}

// rated is how many agents are, of the first hundred: the population has some fifty.
func (v *verification) rated(ctx context.Context) (n int, err error) {
	var list wire.AgentList
	err = v.get(ctx, "/agents", url.Values{"rating": {"rated"}, "limit": {"100"}}, &list)
	return len(list.Items), err
}
