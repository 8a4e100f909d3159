package orchestrator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// mumbler is an agent whose answer to one phase holds JSON or a text that cannot be stored.
type mumbler struct {
	*worker
	phase repute.Phase
	raw   json.RawMessage // where the phase's answer has JSON
	text  string          // where it has texts alone
}

func (m mumbler) Plan(ctx context.Context, t standard.Task, c *orchestrator.Context) (standard.Plan, error) {
	p, err := m.worker.Plan(ctx, t, c)
	if m.phase == repute.PhasePlan {
		p.Steps[0].Input = m.raw
	}
	return p, err
}

func (m mumbler) DryRun(context.Context, standard.Task, standard.Plan,
	*orchestrator.Context) (d standard.DryRun, err error) {
	if m.phase == repute.PhaseDryRun {
		d.Warnings = []string{m.text}
	}
	return d, nil
}

func (m mumbler) Execute(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	e, err := m.worker.Execute(ctx, t, p, c)
	if m.phase == repute.PhaseExecute {
		e.Steps[0].Result = m.raw
	}
	return e, err
}

func (m mumbler) Verify(ctx context.Context, t standard.Task, e standard.Execution,
	c *orchestrator.Context) (standard.Verification, error) {
	v, err := m.worker.Verify(ctx, t, e, c)
	if m.phase == repute.PhaseVerify {
		v.Checks[0].Details = m.text
	}
	return v, err
}

func (m mumbler) Summarize(context.Context, standard.Task, standard.Execution, standard.Verification,
	*orchestrator.Context) (standard.Summary, error) {
	if m.phase == repute.PhaseSummarize {
		return standard.Summary{Text: m.text}, nil
	}
	return standard.Summary{Text: "did it"}, nil
}

// TestUnreadableAnswers has agents of this binary answer a phase with what cannot be stored
// and shown: the phase fails by its name, and nothing of the answer is kept.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	deep := json.RawMessage(strings.Repeat("[", 65) + strings.Repeat("]", 65))
	agents := map[string]mumbler{}
	var modules []orchestrator.Module
	for slug, m := range map[string]mumbler{
		"plan-deep":    {phase: repute.PhasePlan, raw: deep},
		"plan-half":    {phase: repute.PhasePlan, raw: json.RawMessage(`"\ud800"`)},
		"dry-nul":      {phase: repute.PhaseDryRun, text: "a\x00b"},
		"execute-nul":  {phase: repute.PhaseExecute, raw: json.RawMessage(`"\u0000"`)},
		"execute-deep": {phase: repute.PhaseExecute, raw: deep},
		"execute-none": {phase: repute.PhaseExecute, raw: json.RawMessage(`{`)},
		"verify-nul":   {phase: repute.PhaseVerify, text: "\x00"},
		"summary-nul":  {phase: repute.PhaseSummarize, text: "\x00"},
	} {
		m.worker = newWorker(slug)
		agents[slug], modules = m, append(modules, m)
	}
	h.start(orchestrator.Options{Lenient: true, Modules: modules})
	for slug, m := range agents {
		_, run := h.ended(h.submit(standard.Request{Coordinator: slug}))
		if run.Status != repute.RunFailed || !strings.Contains(run.Error, m.phase.String()) {
			t.Errorf("%s: run %s: %s", slug, run.Status, run.Error)
		}
		phases, err := rundb.Phases(t.Context(), h.db, run.ID)
		ok(t, err)
		for _, p := range phases {
			if p.Phase == m.phase && (p.Status != repute.PhaseFailed || strings.Contains(string(p.Result), `\u`) ||
				strings.Contains(string(p.Result), "[[[")) {
				t.Errorf("%s: phase %s is %s with %.200s", slug, p.Phase, p.Status, p.Result)
			}
		}
		if log, err := rundb.ReadLog(t.Context(), h.db, slug, rundb.LogPlace{}, 10); err != nil || len(log) != 1 {
			t.Errorf("%s: %d entries of its log, %v", slug, len(log), err)
		}
	}
}
