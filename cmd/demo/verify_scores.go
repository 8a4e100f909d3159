package main

import (
	"context"
	"fmt"
	"net/url"
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
	return nil
}

// rated is how many agents are.
func (v *verification) rated(ctx context.Context) (n int, err error) {
	var list wire.AgentList
	err = v.get(ctx, "/agents", url.Values{"rating": {"rated"}, "limit": {"100"}}, &list)
	return len(list.Items), err
}
