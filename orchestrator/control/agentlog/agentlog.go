// Package agentlog makes agent_log.json, the append-only log of an agent's runs, which OpenFi's clients read and may
// keep.
//
// An entry is one attempt of a run that ended, the oldest first. It is made of data that later attempts do not
// change, so that it has the same bytes whenever it is read: a retry adds an entry and changes none. A page has a
// number of attempts, and ends early where the results of agents are large. Attempts that end at the same moment may
// still be stored by another process: the cursor stays before them, and a reader may see one again, which runId and
// attempt tell.
package agentlog

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"repute"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/standard"
	"repute/store"
	"repute/store/rundb"
)

// Schema is the schema that a log names.
const Schema = "https://openfi.dev/schemas/agent-log/v1"

// Bounds of a log's pages, in attempts.
const (
	defaultPage = 20
	MaxPage     = 50
	// maxReceipts bounds the receipts of one attempt.
	maxReceipts = 200
	// maxBytes is the size of results in bytes after which a page ends early.
	maxBytes = 4 << 20
)

// stamp is the form of times in logs.
const stamp = "2006-01-02T15:04:05.000Z"

// File is a page of agent_log.json. The next page may repeat an attempt while attempts that end at
// the same moment are still being stored: runId and attempt identify it.
type File struct {
	Schema string `json:"schema"`
	Agent  Agent  `json:"agent"`
	Runs   []Run  `json:"runs"`
	Next   string `json:"nextCursor,omitempty"` // cursor of the next page; empty on the last one
}

// Agent identifies the agent of a log.
type Agent struct {
	Slug    string       `json:"slug"`
	Name    string       `json:"name"`
	Version string       `json:"version"`
	ID      *json.Number `json:"erc8004AgentId"` // null without identity
}

// Run is one finished attempt of a run.
type Run struct {
	RunID    string           `json:"runId"`
	Attempt  int              `json:"attempt"`
	Parent   string           `json:"parentRunId,omitempty"`
	Status   repute.RunStatus `json:"status"`
	Started  string           `json:"startedAt"`
	Ended    string           `json:"endedAt"`
	Goal     string           `json:"goal"`
	Budget   rest.Amounts     `json:"budget"`
	Plan     []Step           `json:"plan"`
	Steps    []Result         `json:"steps"`
	Retries  []Failure        `json:"retries"`  // how earlier attempts ended
	Failures []Failure        `json:"failures"` // of this attempt
	Receipts []Receipt        `json:"receipts"`
	Omitted  int              `json:"receiptsOmitted,omitempty"` // that are not shown; /v1/runs/{id}/receipts has all
	Summary  string           `json:"summary"`
}

// Step is a step of the plan.
type Step struct {
	ID          string `json:"stepId"`
	Description string `json:"description"`
	Agent       string `json:"agentSlug"`
}

// Result is the outcome of a step.
type Result struct {
	StepID string          `json:"stepId"`
	Status string          `json:"status"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Failure is a phase that did not succeed.
type Failure struct {
	Attempt int    `json:"attempt"`
	Phase   string `json:"phase"`
	Status  string `json:"status"`
	Error   string `json:"error"`
}

// Receipt is one recorded call of the attempt.
type Receipt struct {
	Kind    repute.CallKind `json:"type"`
	Ref     string          `json:"ref"`
	Summary string          `json:"summary"`
}

// Page returns a page of an agent's log, whose manifest is f: its finished attempts of runs, oldest first. limit and
// cursor are query parameters; repute.ErrInvalid if one of them is not valid.
func Page(ctx context.Context, db *store.DB, m repute.Module, f standard.Manifest, limit, cursor string) (doc File,
	err error) {
	size := defaultPage
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > MaxPage {
			return doc, repute.Invalid("limit", fmt.Sprintf("%.20q is out of range", limit),
				fmt.Sprintf("1 to %d", MaxPage))
		}
		size = n
	}
	of := string(rest.ListOf("agent log", m.Slug))
	after, known, err := store.DecodeCursor[rundb.LogPlace](of, cursor)
	if known && (rest.Known("run", after.Root) != nil || after.Number < 0) { // the database could not compare it
		err = store.BadCursor()
	}
	if err != nil {
		return doc, err
	}
	list, err := rundb.ReadLog(ctx, db, m.Slug, after, size)
	if err != nil {
		return doc, err
	}
	doc = File{Schema: Schema, Agent: Agent{Slug: m.Slug, Name: f.Name, Version: f.Version}, Runs: []Run{}}
	if m.Agent != nil {
		id := json.Number(m.Agent.TokenID.String())
		doc.Agent.ID = &id
	}
	bytes := 0
	for _, l := range list {
		entry, err := logged(ctx, db, l)
		if err != nil {
			return doc, err
		}
		doc.Runs = append(doc.Runs, entry)
		bytes += entry.bytes()
		if l.Settled || len(list) == size || bytes > maxBytes {
			if doc.Next, err = store.EncodeCursor(of, l.LogPlace); err != nil {
				return doc, err
			}
		}
		if bytes > maxBytes {
			break
		}
	}
	if doc.Next == "" {
		doc.Next = cursor // nothing is settled after it
	}
	return doc, nil
}

// logged returns the entry of one attempt. It uses only data that later attempts do not change,
// because entries are never changed.
func logged(ctx context.Context, db *store.DB, l rundb.LoggedRun) (Run, error) {
	run, err := rundb.Run(ctx, db, l.Run)
	if err != nil {
		return Run{}, err
	}
	phases, err := rundb.Phases(ctx, db, l.Run)
	if err != nil {
		return Run{}, err
	}
	receipts, all, err := rundb.ReceiptsUntil(ctx, db, l.Run, l.At, maxReceipts)
	if err != nil {
		return Run{}, err
	}
	w := Run{RunID: l.Run, Attempt: l.Attempt, Parent: run.Parent, Status: l.Status,
		Started: run.Created.Format(stamp), Ended: l.At.Format(stamp), Goal: run.Goal,
		Budget: rest.AmountsOf(run.Limits),
		Plan:   []Step{}, Steps: []Result{}, Retries: []Failure{}, Failures: []Failure{},
		Receipts: []Receipt{}}
	w.addPhases(phases)
	for _, r := range receipts {
		w.Receipts = append(w.Receipts, Receipt{r.Kind, r.Ref, r.Summary})
	}
	w.Omitted = all - len(receipts)
	return w, nil
}

// bytes returns about the size of the agent's texts in an entry.
func (w *Run) bytes() (n int) {
	n = len(w.Goal) + len(w.Summary)
	for _, s := range w.Plan {
		n += len(s.Description)
	}
	for _, s := range w.Steps {
		n += len(s.Result) + len(s.Error)
	}
	for _, r := range w.Receipts {
		n += len(r.Ref) + len(r.Summary)
	}
	return n
}

// addPhases adds the phases of this attempt, and the failures of those before it.
func (w *Run) addPhases(phases []repute.RunPhase) {
	var before time.Time // the end of the attempt before
	begun := false
	for _, p := range phases {
		failed := Failure{p.Attempt, p.Phase.String(), string(p.Status), p.Error}
		bad := p.Status != repute.PhaseOK
		switch {
		case p.Attempt < w.Attempt:
			if before = p.Ended; bad {
				w.Retries = append(w.Retries, failed)
			}
		case p.Attempt > w.Attempt:
		default:
			if !begun && p.Started.After(before) {
				begun, w.Started = true, p.Started.Format(stamp)
			}
			if bad {
				w.Failures = append(w.Failures, failed)
			}
			w.take(p)
		}
	}
}

// take adds the stored result of a phase; an unreadable one is left out.
func (w *Run) take(p repute.RunPhase) {
	switch p.Phase {
	case repute.PhasePlan:
		var plan standard.Plan
		_ = json.Unmarshal(p.Result, &plan)
		for _, s := range plan.Steps {
			w.Plan = append(w.Plan, Step{s.ID, s.Description, s.Agent})
		}
	case repute.PhaseExecute:
		var done standard.Execution
		_ = json.Unmarshal(p.Result, &done)
		for _, s := range done.Steps {
			w.Steps = append(w.Steps, Result(s))
		}
	case repute.PhaseSummarize:
		var summary standard.Summary
		_ = json.Unmarshal(p.Result, &summary)
		w.Summary = summary.Text
	}
}
