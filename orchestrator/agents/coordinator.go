package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"repute"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

// Names of jobs: members of a coordinator's input, and ids of its steps.
const (
	jobRegister = "register"
	jobDescribe = "describe"
	jobWallet   = "wallet"
	jobReport   = "report"
	jobValidate = "validate"
	jobPay      = "pay"
)

// job is a part of a task for a specialist.
type job struct {
	Name  string   // the member of the input, and the step's id
	Agent string   // the default agent
	After []string // jobs of the same task that it waits for
	Does  string
}

// jobs returns the jobs that the coordinator knows, in the order of its plans: each comes after those that it waits
// for.
func jobs() []job {
	return []job{
		{jobRegister, Registrar, nil, "register an agent"},
		{jobDescribe, Registrar, []string{jobRegister}, "publish the agent's registration file"},
		{jobWallet, Registrar, []string{jobRegister}, "set the agent's wallet with its consent"},
		{jobReport, Reporter, []string{jobDescribe}, "measure an agent and rate it"},
		{jobValidate, Validator, nil, "answer a validation request"},
		{jobPay, Payer, []string{jobReport, jobValidate}, "pay from the treasury"},
	}
}

// stepConclude is the coordinator's own last step.
const stepConclude = "conclude"

// Conclusion is the result of a coordinator's last step: the result of each job.
type Conclusion struct {
	Jobs map[string]Concluded `json:"jobs"`
}

// Concluded is the result of one job.
type Concluded struct {
	Run     string `json:"run"`
	Summary string `json:"summary"`
}

// coordinator splits a task over specialists. It makes no calls of its own: what a specialist did is checked by the
// specialist's run, and the coordinator checks only that there was such a run for each job.
type coordinator struct {
	info standard.Info
	team map[string]string
}

// newCoordinator returns a coordinator. team replaces the default agents of jobs.
func newCoordinator(self Self, team map[string]string) *coordinator {
	return &coordinator{self.info(sheet{name: "Coordinator",
		does:         "Splits a task into jobs for specialists and says what they came to.",
		capabilities: []string{"task-coordination"},
		categories: []string{"general", jobRegister, jobReport, jobValidate,
			jobPay}}), team}
}

// Info implements worker.
func (c *coordinator) Info() standard.Info { return c.info }

// jobs returns the parts of a task: the members of its input. A task with one tag that names a job
// may have only that job's input.
func (c *coordinator) jobs(t standard.Task) (map[string]json.RawMessage, error) {
	known := map[string]bool{}
	for _, j := range jobs() {
		known[j.Name] = true
	}
	if i := slices.IndexFunc(t.Tags, func(tag string) bool { return known[tag] }); i >= 0 && len(t.Tags) == 1 {
		var asked map[string]json.RawMessage
		if json.Unmarshal(t.Input, &asked) == nil && asked[t.Tags[i]] == nil {
			return map[string]json.RawMessage{t.Tags[i]: t.Input}, nil
		}
	}
	var asked map[string]json.RawMessage
	if err := json.Unmarshal(t.Input, &asked); err != nil || len(asked) == 0 {
		return nil, repute.Invalid("input", "names no job", fmt.Sprintf("an object with some of %v", names()))
	}
	for name := range asked {
		if !known[name] {
			return nil, repute.Invalid("input", fmt.Sprintf("%.80q is no job", name),
				fmt.Sprintf("some of %v", names()))
		}
	}
	return asked, nil
}

// names returns the names of all jobs.
func names() (out []string) {
	for _, j := range jobs() {
		out = append(out, j.Name)
	}
	return out
}

// accepts implements worker.
func (c *coordinator) accepts(t standard.Task) error {
	_, err := c.jobs(t)
	return err
}

// plan has one step for each job, and a last own step after them.
func (c *coordinator) plan(t standard.Task) (p standard.Plan, err error) {
	asked, err := c.jobs(t)
	if err != nil {
		return p, err
	}
	done := []string{}
	for _, j := range jobs() {
		input, ok := asked[j.Name]
		if !ok {
			continue
		}
		s := standard.Step{ID: j.Name, Description: j.Does + ": " + t.Goal, Agent: c.does(j), Input: input,
			DependsOn: []string{}}
		for _, before := range j.After {
			if asked[before] != nil {
				s.DependsOn = append(s.DependsOn, before)
			}
		}
		if s.Description = standard.StepText(s.Description); j.Agent == Registrar {
			if s.Input, err = withAction(j.Name, input); err != nil {
				return p, err
			}
		}
		p.Steps, done = append(p.Steps, s), append(done, j.Name)
	}
	p.Steps = append(p.Steps, standard.Step{ID: stepConclude, Description: "say what the jobs came to",
		Agent: c.info.Slug, DependsOn: done})
	return p, nil
}

// does is who does a job.
func (c *coordinator) does(j job) string {
	if slug := c.team[j.Name]; slug != "" {
		return slug
	}
	return j.Agent
}

// withAction tells the registrar which of its jobs is meant.
func withAction(job string, input json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, repute.Invalid("input."+job, "is no object", "docs/reference/agents.md lists the fields")
	}
	action, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	members["action"] = action
	return json.Marshal(members)
}

// tryOut implements worker: the coordinator itself sends nothing.
func (c *coordinator) tryOut(context.Context, standard.Task, World) (standard.DryRun, error) {
	return standard.DryRun{Warnings: []string{}, Calls: []transaction.Tx{}, Violations: []string{}}, nil
}

// work gathers what the specialists came to.
func (c *coordinator) work(_ context.Context, _ standard.Task, inputs map[string]json.RawMessage,
	_ World) (json.RawMessage, error) {
	out := Conclusion{Jobs: map[string]Concluded{}}
	for job, raw := range inputs {
		var d delegated
		if err := json.Unmarshal(raw, &d); err != nil || d.Run == "" {
			return nil, repute.Invalid("inputs."+job, "is no result of another agent's run",
				"a specialist of its own for each job")
		}
		out.Jobs[job] = Concluded{d.Run, d.Summary}
	}
	return json.Marshal(out)
}

// compare compares the results with the plan: each job was completed by a run of its own, and the
// conclusion names that run.
func (c *coordinator) compare(_ context.Context, t standard.Task, done standard.Execution,
	_ World) (v standard.Verification, err error) {
	p, err := c.plan(t)
	if err != nil {
		return v, err
	}
	said, runs := conclusion(done), map[string]string{}
	checks := []standard.Check{check("steps", len(done.Steps), len(p.Steps)),
		check("jobs concluded", len(said.Jobs), len(p.Steps)-1)}
	for _, s := range done.Steps {
		var d delegated
		if s.StepID == stepConclude || json.Unmarshal(s.Result, &d) != nil {
			continue
		}
		one := check(s.StepID, said.Jobs[s.StepID].Run, d.Run)
		if other := runs[d.Run]; other != "" || d.Run == "" || len(d.Steps) == 0 || s.Status != "completed" {
			one.Passed, one.Details = false, "was not done by a run of its own"
		}
		runs[d.Run] = s.StepID
		checks = append(checks, one)
	}
	return scored(checks), nil
}

// conclusion decodes the result of the last step.
func conclusion(done standard.Execution) (out Conclusion) {
	for _, s := range done.Steps {
		if s.StepID == stepConclude {
			_ = json.Unmarshal(s.Result, &out) // an invalid conclusion names no job, and fails the checks
		}
	}
	return out
}

// summarize describes the result of each specialist's job.
func (c *coordinator) summarize(_ standard.Task, done standard.Execution, _ standard.Verification) standard.Summary {
	s := standard.Summary{KeyActions: []string{}, Receipts: []string{}, Warnings: []string{}}
	said := conclusion(done)
	for _, name := range names() {
		if job, ok := said.Jobs[name]; ok {
			s.KeyActions = append(s.KeyActions, name+": "+job.Summary)
		}
	}
	for _, step := range done.Steps {
		if step.Error != "" {
			s.Warnings = append(s.Warnings, step.StepID+": "+step.Error)
		}
	}
	s.Text = fmt.Sprintf("%d of %d jobs were done.", len(s.KeyActions), max(len(done.Steps)-1, 0))
	return s
}
