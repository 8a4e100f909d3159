package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"repute"
	"repute/orchestrator/control/rest"
	"repute/store/rundb"
)

// ListedRun is an entry of GET /v1/runs.
type ListedRun struct {
	RunLine
	TaskID    string     `json:"taskId"`
	Root      string     `json:"rootRunId"`
	Goal      string     `json:"goal"`
	Phase     string     `json:"phase" doc:"the last that was recorded; the text none before the first"`
	LastCall  *Receipt   `json:"lastCall,omitempty" doc:"the newest call, without request and result"`
	PaidUSD   string     `json:"paidUsd" doc:"x402 payments that it signed in all attempts, also those that are not settled, in US dollars"`
	Trust     string     `json:"trust,omitempty" enum:"allow,deny,require_approval" doc:"newest decision of the trust gate in the current attempt"`
	Verified  *float64   `json:"verified,omitempty" doc:"the agent's score of its own work in the current attempt, 0 to 1; absent before"`
	CreatedAt time.Time  `json:"createdAt"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// RunList is a page of runs.
type RunList struct {
	Runs []ListedRun `json:"runs"`
	Next string      `json:"nextCursor,omitempty"`
}

// runsInput selects a page of runs. AgentID finds the runs of every agent that has the identity now.
type runsInput struct {
	Status   string `query:"status" enum:"pending,planning,running,completed,failed,cancelled"`
	Agent    string `query:"agent" doc:"slug of the agent"`
	AgentID  string `query:"agentId" doc:"identity on the chain, e.g. 8453:22: runs of every agent that has it now"`
	Awaiting string `query:"awaiting" enum:"approval" doc:"approval: those that wait for a person"`
	rest.PageInput
}

// list is the list that the parameters name.
func (in *runsInput) list() rest.List {
	return ListOfRuns(repute.RunStatus(in.Status), in.Agent, in.AgentID, in.Awaiting == "approval")
}

// ListOfRuns returns the list of runs by these filters, for its cursors: the slug of an agent, and an identity on the
// chain; each is the zero value where it was not given.
func ListOfRuns(status repute.RunStatus, agent, agentID string, isAwaiting bool) rest.List {
	return rest.ListOf("runs", string(status), agent, agentID, strconv.FormatBool(isAwaiting))
}

// filter reads the parameters of a list of runs. Agent is nil without an identity.
func (in *runsInput) filter() (f rundb.RunFilter, agent *repute.AgentRef, size int, err error) {
	if size, err = in.Size(); err != nil {
		return f, nil, 0, err
	}
	f.Status, f.Agent, f.Awaiting = repute.RunStatus(in.Status), in.Agent, in.Awaiting == "approval"
	if in.Status != "" && !slices.Contains(runStatuses(), f.Status) {
		return f, nil, 0, repute.Invalid("status", fmt.Sprintf("%.40q is no status of a run", in.Status),
			"pending, planning, running, completed, failed or cancelled")
	}
	if in.Awaiting != "" && !f.Awaiting {
		return f, nil, 0, repute.Invalid("awaiting", fmt.Sprintf("%.40q is not supported", in.Awaiting), "approval")
	}
	if err := rest.Known("agent", in.Agent); err != nil {
		return f, nil, 0, err
	}
	if in.AgentID != "" {
		if agent, err = parseAgentID(in.AgentID); err != nil {
			return f, nil, 0, err
		}
	}
	f.Before, f.BeforeID, err = in.list().ReadCursor(in.Cursor)
	return f, agent, size, err
}

// agentIDForm is how agentId is written.
const agentIDForm = "eip155:{chainId}:{registry}:{tokenId} or {chainId}:{tokenId}"

// parseAgentID reads the parameter agentId, which must name the chain.
func parseAgentID(id string) (*repute.AgentRef, error) {
	ref, err := repute.ParseAgentRef(id)
	var wrong *repute.InputError
	switch {
	case errors.As(err, &wrong):
		return nil, repute.Invalid("agentId", wrong.Reason, agentIDForm)
	case err == nil && ref.ChainID == 0:
		return nil, repute.Invalid("agentId", "names no chain", agentIDForm)
	}
	return &ref, err
}

// runStatuses returns the statuses that the list of runs can be filtered by.
func runStatuses() []repute.RunStatus {
	return []repute.RunStatus{repute.RunPending, repute.RunPlanning, repute.RunRunning, repute.RunCompleted,
		repute.RunFailed,
		repute.RunCancelled}
}

// listRuns serves GET /v1/runs, the newest first.
func (c *Control) listRuns(ctx context.Context, in *runsInput) (*rest.Answer[RunList], error) {
	f, agent, size, err := in.filter()
	if err != nil {
		return nil, err
	}
	var list []repute.Run
	if agent == nil {
		list, err = rundb.Runs(ctx, c.db, f, size+1)
	} else {
		var of [][]repute.Run
		if of, err = rundb.AgentRuns(ctx, c.db, []repute.AgentRef{*agent}, f, size+1); err == nil {
			list = of[0]
		}
	}
	if err != nil {
		return nil, err
	}
	list, next, err := CutRuns(list, size, in.list())
	if err != nil {
		return nil, err
	}
	details, err := rundb.ReadDetails(ctx, c.db, list)
	if err != nil {
		return nil, err
	}
	out := RunList{Runs: []ListedRun{}, Next: next}
	for i := range list {
		out.Runs = append(out.Runs, listedRun(&list[i], details[list[i].ID]))
	}
	return rest.Say(&out), nil
}

// CutRuns returns the first size runs and the cursor of the next page of l, empty at the end. list MUST have been read
// with a limit of size + 1.
func CutRuns(list []repute.Run, size int, l rest.List) (page []repute.Run, next string, err error) {
	return rest.Cut(l, list, size, func(r repute.Run) (time.Time, string) { return r.Created, r.ID })
}

// listedRun converts a run into its form in the list of all runs.
func listedRun(r *repute.Run, d rundb.RunDetails) ListedRun {
	out := ListedRun{RunLine: lineOnWire(r), TaskID: r.Task, Root: r.Root, Goal: r.Goal, Phase: r.Phase.String(),
		PaidUSD: d.Purchases.String(), Trust: d.Trust, Verified: d.Verified,
		CreatedAt: r.Created, StartedAt: rest.OptionalTime(r.Started), EndedAt: rest.OptionalTime(r.Ended)}
	if d.LastCall != nil {
		call := receiptOnWire(*d.LastCall)
		out.LastCall = &call
	}
	return out
}

// lineOnWire converts a run into its short form.
func lineOnWire(r *repute.Run) RunLine {
	return RunLine{ID: r.ID, Parent: r.Parent, Step: r.ParentStep, Agent: r.Agent, Status: r.Status,
		Awaiting: r.Awaiting,
		Attempt:  r.Attempt, Error: r.Error}
}
