package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// logSchema is the schema that a log names.
const logSchema = "https://openfi.dev/schemas/agent-log/v1"

// Bounds of a log's pages, in attempts.
const (
	logPage    = 20
	maxLogPage = 50
	// maxLogReceipts is how many receipts an attempt shows.
	maxLogReceipts = 200
	// maxLogBytes is after how many bytes of results a page ends early.
	maxLogBytes = 4 << 20
)

// stamp is a time as logs write it.
const stamp = "2006-01-02T15:04:05.000Z"

// logDoc is agent_log.json. An attempt may be given again by the next page while those
// that end at the same moment are still being stored: runId and attempt name it.
type logDoc struct {
	Schema string   `json:"schema"`
	Agent  logAgent `json:"agent"`
	Runs   []logRun `json:"runs"`
	Next   string   `json:"nextCursor,omitempty"` // of the runs that come after
}

type logAgent struct {
	Slug    string       `json:"slug"`
	Name    string       `json:"name"`
	Version string       `json:"version"`
	ID      *json.Number `json:"erc8004AgentId"` // null: none
}

type logRun struct {
	RunID    string           `json:"runId"`
	Attempt  int              `json:"attempt"`
	Parent   string           `json:"parentRunId,omitempty"`
	Status   repute.RunStatus `json:"status"`
	Started  string           `json:"startedAt"`
	Ended    string           `json:"endedAt"`
	Goal     string           `json:"goal"`
	Budget   Amounts          `json:"budget"`
	Plan     []logStep        `json:"plan"`
	Steps    []logResult      `json:"steps"`
	Retries  []logFailure     `json:"retries"`  // how earlier attempts ended
	Failures []logFailure     `json:"failures"` // of this attempt
	Receipts []logReceipt     `json:"receipts"`
	Omitted  int              `json:"receiptsOmitted,omitempty"` // that are not shown; /v1/runs/{id}/receipts has all
	Summary  string           `json:"summary"`
}

type logStep struct {
	ID          string `json:"stepId"`
	Description string `json:"description"`
	Agent       string `json:"agentSlug"`
}

type logResult struct {
	StepID string          `json:"stepId"`
	Status string          `json:"status"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

type logFailure struct {
	Attempt int    `json:"attempt"`
	Phase   string `json:"phase"`
	Status  string `json:"status"`
	Error   string `json:"error"`
}

type logReceipt struct {
	Kind    repute.CallKind `json:"type"`
	Ref     string          `json:"ref"`
	Summary string          `json:"summary"`
}

// logFileOf is a page of an agent's log.
func (c *Control) logFileOf(ctx context.Context, e echo.Context, m repute.Module) (any, error) {
	return c.agentLog(ctx, m, e.QueryParam("limit"), e.QueryParam("cursor"))
}

// agentLog makes a page of an agent's log: its runs and decisions, oldest first.
func (c *Control) agentLog(ctx context.Context, m repute.Module, limit, cursor string) (doc logDoc, err error) {
	size := logPage
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 1 || n > maxLogPage {
			return doc, repute.Invalid("limit", fmt.Sprintf("%.20q is out of range", limit), fmt.Sprintf("1 to %d", maxLogPage))
		}
		size = n
	}
	after, err := readPlace(cursor)
	if err != nil {
		return doc, err
	}
	f, err := manifestOf(m)
	if err != nil {
		return doc, err
	}
	list, err := rundb.ReadLog(ctx, c.db, m.Slug, after, size)
	if err != nil {
		return doc, err
	}
	doc = logDoc{Schema: logSchema, Agent: logAgent{Slug: m.Slug, Name: f.Name, Version: f.Version}, Runs: []logRun{}}
	if m.Agent != nil {
		id := json.Number(m.Agent.TokenID.String())
		doc.Agent.ID = &id
	}
	bytes := 0
	for _, l := range list {
		entry, err := c.logged(ctx, l)
		if err != nil {
			return doc, err
		}
		doc.Runs = append(doc.Runs, entry)
		bytes += entry.bytes()
		if l.Settled || len(list) == size || bytes > maxLogBytes {
			doc.Next = placeOf(l.LogPlace)
		}
		if bytes > maxLogBytes {
			break
		}
	}
	if doc.Next == "" {
		doc.Next = cursor // nothing is settled after it
	}
	return doc, nil
}

// placeOf writes a place in an agent's log as a cursor.
func placeOf(p rundb.LogPlace) string {
	return cursorOf(p.At, p.Root+"/"+strconv.FormatInt(p.Number, 10))
}

// readPlace reads a cursor that placeOf wrote; empty for the beginning.
func readPlace(text string) (p rundb.LogPlace, err error) {
	at, id, err := readCursor(text)
	if err != nil || text == "" {
		return p, err
	}
	root, n, _ := strings.Cut(id, "/")
	number, err := strconv.ParseInt(n, 10, 64)
	if err != nil || number < 0 {
		return p, repute.Invalid("cursor", "is none of ours", "nextCursor of the page before")
	}
	return rundb.LogPlace{At: at, Root: root, Number: number}, nil
}

// logged is the entry of one attempt, from nothing but what later attempts leave alone.
func (c *Control) logged(ctx context.Context, l rundb.LoggedRun) (logRun, error) {
	run, err := rundb.Run(ctx, c.db, l.Run)
	if err != nil {
		return logRun{}, err
	}
	phases, err := rundb.Phases(ctx, c.db, l.Run)
	if err != nil {
		return logRun{}, err
	}
	receipts, all, err := rundb.ReceiptsUntil(ctx, c.db, l.Run, l.At, maxLogReceipts)
	if err != nil {
		return logRun{}, err
	}
	w := logRun{RunID: l.Run, Attempt: l.Attempt, Parent: run.Parent, Status: l.Status,
		Started: run.Created.Format(stamp), Ended: l.At.Format(stamp), Goal: run.Goal,
		Budget: Amounts{run.Limits.Steps, run.Limits.ToolCalls, run.Limits.Writes, run.Limits.Runtime.Milliseconds(),
			run.Limits.GasWei},
		Plan: []logStep{}, Steps: []logResult{}, Retries: []logFailure{}, Failures: []logFailure{},
		Receipts: []logReceipt{}}
	w.addPhases(phases)
	for _, r := range receipts {
		w.Receipts = append(w.Receipts, logReceipt{r.Kind, r.Ref, r.Summary})
	}
	w.Omitted = all - len(receipts)
	return w, nil
}

// bytes is about how much of an entry its agent wrote.
func (w *logRun) bytes() (n int) {
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

// addPhases takes what this attempt and those before it left behind.
func (w *logRun) addPhases(phases []repute.RunPhase) {
	var before time.Time // the end of the attempt before
	begun := false
	for _, p := range phases {
		failed := logFailure{p.Attempt, p.Phase.String(), string(p.Status), p.Error}
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

// take reads the results that a log shows; one that cannot be read shows nothing.
func (w *logRun) take(p repute.RunPhase) {
	switch p.Phase {
	case repute.PhasePlan:
		var plan standard.Plan
		_ = json.Unmarshal(p.Result, &plan)
		for _, s := range plan.Steps {
			w.Plan = append(w.Plan, logStep{s.ID, s.Description, s.Agent})
		}
	case repute.PhaseExecute:
		var done standard.Execution
		_ = json.Unmarshal(p.Result, &done)
		for _, s := range done.Steps {
			w.Steps = append(w.Steps, logResult(s))
		}
	case repute.PhaseSummarize:
		var said standard.Summary
		_ = json.Unmarshal(p.Result, &said)
		w.Summary = said.Text
	}
}
