package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/population"
	"repute/orchestrator/agents"
	"repute/orchestrator/control"
	"repute/policy"
)

const (
	// demoLeast is the reputation that the demo's tasks ask for.
	demoLeast = 20
	// tasksWithin is how long the demo's tasks and what follows of them may take.
	tasksWithin = 3 * time.Minute
	// rivalSlug names the agent that a ring of wallets praises, as the orchestrator knows it.
	rivalSlug = "axi-agent"
)

// shown is what became of the demo's tasks.
type shown struct {
	Accepted taskShown       `json:"accepted"`
	Rejected taskShown       `json:"rejected"`
	Reported agents.Reported `json:"-"` // what the reporter posted
	Paid     agents.Paid     `json:"-"`
	Feedback int             `json:"postedRatings"` // by the reporter, that the index shows
	// Before and After are the score of the agent that the reporter measured.
	Before float64 `json:"scoreBefore"`
	After  float64 `json:"scoreAfter"`
	Sold   sold    `json:"sold"`
	Guide  guided  `json:"guide"` // the task of an agent of the Open Agent Format
}

// taskShown is one of them.
type taskShown struct {
	Agent   string            `json:"agent"`
	ID      string            `json:"task"`
	Run     string            `json:"run"`
	Status  repute.TaskStatus `json:"status"`
	Reasons []policy.Reason   `json:"reasons,omitempty"`
	Seconds float64           `json:"seconds"`
}

// showTasks gives one task to an agent that is rated well, and the same one to an agent
// that a ring praises. Then the guide is asked, and an answer is bought. It waits for the final scores that the tasks'
// thresholds read, and therefore needs a chain that makes blocks.
func (d *demo) showTasks(ctx context.Context, p *population.Population) (s shown, err error) {
	rival, err := d.serveRival(ctx, p.Praised)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, tasksWithin)
	defer cancel()
	if err := d.registerRival(ctx, rival); err != nil {
		return s, err
	}
	chain, seen := d.chain.Chain().ID, d.crew.member(weather)
	for _, slug := range []string{agents.Coordinator, agents.Reporter, agents.Payer} {
		if err := d.awaitRated(ctx, d.crew.member(slug).id); err != nil {
			return s, err
		}
	}
	if s.Before, err = d.score(ctx, seen.id); err != nil {
		return s, err
	}
	request := control.TaskRequest{Goal: "Measure the weather agent and pay it if it answers",
		Coordinator: agents.Coordinator,
		Input: encoded(map[string]any{"report": agents.Report{Agent: seen.ref(chain)},
			"pay": agents.Payment{Agent: seen.ref(chain), Amount: "2000000000000000",
				Purpose: "forecasts", MinSuccessRate: 90}})}
	least := float64(demoLeast)
	request.Threshold = policy.Threshold{RequireIdentity: true, RequireRegistration: true, MinReputation: &least}
	if s.Accepted, err = d.task(ctx, request); err != nil {
		return s, err
	}
	request.Coordinator = rivalSlug
	if s.Rejected, err = d.task(ctx, request); err != nil {
		return s, err
	}
	if err := d.follow(ctx, &s); err != nil {
		return s, err
	}
	if s.Guide, err = d.guide(ctx); err != nil {
		return s, err
	}
	s.Sold, err = d.buy(ctx)
	return s, err
}

// mineTasks shows the tasks on a chain that makes blocks meanwhile.
func (d *demo) mineTasks(ctx context.Context, p *population.Population) (shown, error) {
	d.progress("giving a task to a trusted agent, and to one that a ring praises")
	d.chain.SetPeriod(250 * time.Millisecond)
	defer d.chain.SetPeriod(0)
	return d.showTasks(ctx, p)
}

// announceTasks shows the tasks to a person.
func (d *demo) announceTasks(ctx context.Context, p *population.Population) error {
	s, err := d.showTasks(ctx, p)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		d.progress("the tasks were not shown: " + err.Error())
		return nil
	}
	s.print(d.stdout, d.base)
	return nil
}

// agentAddress is where repute agent run listens by default. The demo's orchestrator may reach
// it.
const agentAddress = "127.0.0.1:8099"

// follow reads what came of the tasks: the refusal's reasons, what the specialists did, and
// what the index makes of it.
func (d *demo) follow(ctx context.Context, s *shown) error {
	var refused, done control.Run
	if err := errors.Join(d.call(ctx, demoAsk, "GET", "/v1/runs/"+s.Rejected.Run, nil, &refused),
		d.call(ctx, demoAsk, "GET", "/v1/runs/"+s.Accepted.Run, nil, &done)); err != nil {
		return err
	}
	s.Rejected.Reasons = refused.Reasons // none: nothing was refused, which is seen
	for _, step := range done.Steps {
		var result struct {
			Steps []struct{ Result json.RawMessage }
		}
		if json.Unmarshal(step.Result, &result) != nil || len(result.Steps) == 0 {
			continue
		}
		switch step.ID {
		case "report":
			_ = json.Unmarshal(result.Steps[0].Result, &s.Reported)
		case "pay":
			_ = json.Unmarshal(result.Steps[0].Result, &s.Paid)
		}
	}
	if s.Accepted.Status != repute.TaskCompleted {
		return nil
	}
	return d.awaitMoved(ctx, s)
}

// awaitMoved waits until the index shows what the reporter posted, and the score follows it.
func (d *demo) awaitMoved(ctx context.Context, s *shown) error {
	seen := d.crew.member(weather).id
	return d.await(ctx, "the reporter's ratings move the score", func() (bool, error) {
		var list wire.FeedbackList
		query := url.Values{"client": {d.crew.member(agents.Reporter).wallet.Address.Hex()}}
		err := getJSON(ctx, fmt.Sprintf("%s/agents/%d:%d/feedback?%s", d.base, d.chain.Chain().ID, seen,
			query.Encode()),
			&list)
		if err != nil {
			return false, err
		}
		s.Feedback = len(list.Items)
		s.After, err = d.score(ctx, seen)
		return s.Feedback >= len(s.Reported.Ratings) && s.After != s.Before, err
	})
}

// score is an agent's newest.
func (d *demo) score(ctx context.Context, id uint64) (float64, error) {
	var r wire.ReputationAnswer
	err := getJSON(ctx, fmt.Sprintf("%s/agents/%d:%d/reputation", d.base, d.chain.Chain().ID, id), &r)
	return r.Score, err
}

// awaitRated waits until an agent's final score passes the tasks' threshold.
func (d *demo) awaitRated(ctx context.Context, id uint64) error {
	return d.await(ctx, fmt.Sprintf("agent %d is rated", id), func() (bool, error) {
		var r wire.ReputationAnswer
		err := getJSON(ctx, fmt.Sprintf("%s/agents/%d:%d/reputation?at=finalized", d.base, d.chain.Chain().ID, id), &r)
		return err == nil && r.Low >= demoLeast, nil // before the first epoch there is none
	})
}

// await calls f every 200 ms until it returns true or an error. When ctx ends, the error names what was waited for.
func (d *demo) await(ctx context.Context, what string, f func() (bool, error)) error {
	for {
		done, err := f()
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// task submits a task and waits for its end.
func (d *demo) task(ctx context.Context, r control.TaskRequest) (taskShown, error) {
	var t control.Task
	began := time.Now()
	if err := d.call(ctx, demoAsk, "POST", "/v1/tasks", r, &t); err != nil {
		return taskShown{}, err
	}
	path := "/v1/tasks/" + t.ID
	err := d.await(ctx, "task "+t.ID+" ended", func() (bool, error) {
		err := d.call(ctx, demoAsk, "GET", path, nil, &t)
		return t.Status == repute.TaskCompleted || t.Status == repute.TaskFailed || t.Status == repute.TaskRejected, err
	})
	return taskShown{Agent: r.Coordinator, ID: t.ID, Run: t.RunID, Status: t.Status,
		Seconds: time.Since(began).Round(time.Millisecond).Seconds()}, err
}

// serveRival serves a coordinator under the identity of the agent that the ring praises, as
// its owner would, until ctx ends.
func (d *demo) serveRival(ctx context.Context, praised uint64) (member, error) {
	m := member{slug: rivalSlug, id: praised}
	a, err := agents.New(agents.Coordinator, agents.Self{Slug: m.slug, ID: m.identity(d.chain.Chain())},
		agents.Options{})
	if err != nil {
		return m, err
	}
	guard, err := httpapi.NewGuard(httpapi.GuardOptions{}) // it answers requests for names of this machine alone
	if err != nil {
		return m, err
	}
	server := &http.Server{Handler: guard.Over(agents.Handler(a)), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(d.rival) }()
	return m, nil
}

// registerRival makes it known to the orchestrator, once the index has the agent.
func (d *demo) registerRival(ctx context.Context, m member) error {
	r := control.AgentRegistration{Slug: m.slug, URL: "http://" + d.rival.Addr().String(),
		AgentID: m.ref(d.chain.Chain().ID)}
	return d.await(ctx, m.slug+" is registered", func() (bool, error) {
		return d.call(ctx, demoOperate, http.MethodPost, "/v1/agents", r, nil) == nil, nil
	})
}

// tasks checks what became of the tasks.
func (v *verification) tasks(s shown) {
	if err := s.Guide.check(); err != nil {
		v.Mismatches = append(v.Mismatches, err.Error())
	}
	v.compare("task for an agent that is rated well", s.Accepted.ID, s.Accepted.Status, repute.TaskCompleted)
	v.compare("task for an agent that a ring praises", s.Rejected.ID, s.Rejected.Status, repute.TaskRejected)
	v.compare("reason of the refusal", s.Rejected.ID, len(s.Rejected.Reasons) > 0, true)
	v.compare("posted ratings in the index", s.Reported.Agent, s.Feedback, 2)
	v.compare("payment", s.Paid.To, s.Paid.Event.Amount, "2000000000000000")
	v.compare("score that a report lifted", s.Reported.Agent, s.After > s.Before, true)
}

// print writes the result for a person.
func (s shown) print(w io.Writer, base string) {
	fmt.Fprintf(w, "A task for the demo's coordinator, which is rated well: %s in %.0f s.\n", s.Accepted.Status,
		s.Accepted.Seconds)
	for _, r := range s.Reported.Ratings {
		fmt.Fprintf(w, "  posted %s %s of agent %s\n", r.Tag1, decimal(r.Value, r.Decimals), s.Reported.Agent)
	}
	if s.Paid.Amount != "" {
		fmt.Fprintf(w, "  paid %s wei to its wallet %s from the treasury\n", s.Paid.Amount, s.Paid.To)
	}
	fmt.Fprintf(w, "  its score went from %.1f to %.1f\n  %s/v1/runs/%s\n", s.Before, s.After, base, s.Accepted.Run)
	fmt.Fprintf(w, "The same task for %s, which fifty fresh wallets praise: %s.\n", rivalSlug, s.Rejected.Status)
	for _, r := range s.Rejected.Reasons {
		fmt.Fprintf(w, "  %s (has %s, needs %s)\n", r.Text, r.Have, r.Need)
	}
	fmt.Fprintf(w, "  %s/v1/runs/%s\n\n", base, s.Rejected.Run)
	fmt.Fprintf(w,
		"A question to an agent of the Open Agent Format: %s, %q, %d tokens for %s dollars.\n  %s/v1/runs/%s\n\n",
		s.Guide.Status, s.Guide.Answer, s.Guide.Tokens, s.Guide.CostUSD, base, s.Guide.Run)
	s.Sold.print(w, base)
}

// decimal writes a value with decimals.
func decimal(value int64, decimals uint8) string {
	v := float64(value)
	for range decimals {
		v /= 10
	}
	return fmt.Sprintf("%.*f", decimals, v)
}
