package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// TaskRequest is the request to submit a task.
type TaskRequest struct {
	Goal        string          `json:"goal" pattern:"\\S" maxLength:"8192" doc:"what to do"`
	Input       json.RawMessage `json:"input,omitempty" doc:"what the coordinator takes, as its manifest says, mostly an object; 256 KiB, 64 levels"`
	Coordinator string          `json:"coordinatorSlug,omitempty" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64" doc:"who plans it; absent: the configured agent"`
	Terms
	Key string `json:"idempotencyKey,omitempty" maxLength:"80" doc:"equal keys: one task"`
}

// Terms are the conditions of a task.
type Terms struct {
	Budget      policy.Bounds    `json:"budget,omitzero" doc:"of the run and all runs below it"`
	Threshold   policy.Threshold `json:"threshold,omitzero" doc:"minimum for agents, added to the policy's"`
	ValueAtRisk string           `json:"valueAtRisk,omitempty" pattern:"^[0-9]{1,78}$" doc:"in wei"`
	Tags        []string         `json:"tags,omitempty" maxItems:"16" doc:"words for the rules of the policy"`
}

// Task is the form of a task in answers.
type Task struct {
	ID          string            `json:"id"`
	Goal        string            `json:"goal"`
	Input       json.RawMessage   `json:"input,omitempty"`
	Coordinator string            `json:"coordinatorSlug"`
	Status      repute.TaskStatus `json:"status" enum:"pending,assigned,running,completed,failed,cancelled,rejected"`
	RunID       string            `json:"runId" doc:"the run of the whole task"`
	Awaiting    string            `json:"awaiting,omitempty" doc:"awaiting_approval while a person must decide: POST /v1/runs/{id}/approval, with runId or the run in runs that waits"`
	Error       string            `json:"error,omitempty" doc:"why the run of the whole task failed"`
	Terms
	AskedBy string    `json:"askedBy"`
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
	// Runs lists all runs of the task, the root run first. It is set only in the answer about a
	// single task.
	Runs []RunLine `json:"runs,omitempty"`
}

// RunLine is the short form of a run.
type RunLine struct {
	ID       string           `json:"id"`
	Parent   string           `json:"parentRunId,omitempty"`
	Step     string           `json:"parentStepId,omitempty"`
	Agent    string           `json:"agentSlug"`
	Status   repute.RunStatus `json:"status" enum:"pending,planning,running,completed,failed,cancelled"`
	Awaiting string           `json:"awaiting,omitempty"`
	Attempt  int              `json:"attempt"`
	Error    string           `json:"error,omitempty"`
}

// TaskList is a page of tasks.
type TaskList struct {
	Tasks []Task `json:"tasks"`
	Next  string `json:"nextCursor,omitempty"`
}

// Cancellation is the request to cancel a task.
type Cancellation struct {
	Reason string `json:"reason,omitempty" maxLength:"2048"`
}

// RetryFrom is the request to retry a task, with the first phase to repeat.
type RetryFrom struct {
	From string `json:"from,omitempty" enum:"discover,plan,trust,policy,dry_run,execute,verify,summarize" doc:"the phase that failed when absent"`
}

// TasksInput selects a page of tasks, the newest first.
type TasksInput struct {
	Status      string `query:"status" enum:"pending,assigned,running,completed,failed,cancelled,rejected"`
	Coordinator string `query:"coordinator" doc:"slug"`
	Awaiting    string `query:"awaiting" enum:"approval" doc:"approval: those about which a person must decide"`
	rest.PageInput
}

// submitInput is the idempotency key of a submission, where it is in the header.
type submitInput struct {
	Key string `header:"Idempotency-Key" maxLength:"80" doc:"equal keys: one task; also idempotencyKey in the body"`
}

// check refuses a request with impossible terms, including those that only this handler can check.
func (c *Control) check(r *standard.Request) error {
	if err := r.Check(); err != nil {
		return err
	}
	return r.Threshold.CheckGates("threshold", c.o.Gates)
}

// takes refuses a task that an agent of this binary cannot do. Agents on other servers are asked during the run: a
// submission does not wait for another server.
func (c *Control) takes(ctx context.Context, r *standard.Request) error {
	for _, m := range c.o.Modules {
		if m.Info().Slug != r.Coordinator {
			continue
		}
		can, err := m.CanHandle(ctx, standard.Task{Goal: r.Goal, Input: r.Input, Tags: r.Tags,
			ValueAtRisk: cmp.Or(r.ValueAtRisk, "0")})
		switch {
		case errors.Is(err, repute.ErrInvalid):
			return err
		case err == nil && !can:
			return repute.Invalid("input", "is nothing that the agent does", "see docs/reference/agents.md")
		}
	}
	return nil
}

// request returns a task as it is submitted: with the configured coordinator where the caller names none, and with a
// key of the caller's own. header is the key in the header of the request. Terms that cannot be met are refused.
func (c *Control) request(ctx context.Context, by, header string, r *TaskRequest) (standard.Request, error) {
	key, err := keyOf(by, header, r.Key)
	if err != nil {
		return standard.Request{}, err
	}
	out := standard.Request{Goal: r.Goal, Input: r.Input, Coordinator: cmp.Or(r.Coordinator, c.o.Coordinator),
		Terms: standard.Terms(r.Terms), Key: key, By: by}
	return out, cmp.Or(c.check(&out), c.takes(ctx, &out))
}

// submitTask serves POST /v1/tasks. The same key with the same task returns the task that was
// stored first, with another task repute.ErrConflict.
func (c *Control) submitTask(ctx context.Context, by string, in *submitInput,
	r TaskRequest) (*rest.Answer[Task], error) {
	request, err := c.request(ctx, by, in.Key, &r)
	if err != nil {
		return nil, err
	}
	t, added, err := c.client.Submit(ctx, request)
	if err != nil {
		return nil, err
	}
	if !added && !same(t, request) {
		return nil, repute.Conflict("the idempotency key was used for task %s, which is another: take another key", t.ID)
	}
	w := taskOnWire(t)
	out := rest.Say(&w)
	out.Location = rest.Prefix + "/tasks/" + t.ID
	if added {
		out.Status = http.StatusCreated
	}
	return out, nil
}

// maxKey bounds idempotency keys, in characters.
const maxKey = 80

// keyOf returns the idempotency key of a task, unique among all callers: it begins with the caller's name, so that
// nobody gets the task of another by guessing a key.
func keyOf(by, header, body string) (string, error) {
	if header != "" && body != "" && header != body {
		return "", repute.Invalid("idempotencyKey", "differs from the header Idempotency-Key", "one of both")
	}
	switch key := cmp.Or(header, body); {
	case key == "":
		return "", nil
	case utf8.RuneCountInString(key) > maxKey || httpapi.Clean(key) != key:
		return "", repute.Invalid("idempotencyKey", "is too long or no text",
			fmt.Sprintf("at most %d characters", maxKey))
	default:
		return by + "/" + key, nil
	}
}

// same reports whether a stored task equals a request. Terms are compared in the form that they are stored in, and
// inputs without blanks; members in another order make another input.
func same(t repute.Task, r standard.Request) bool {
	var terms standard.Terms
	if json.Unmarshal(t.Terms, &terms) != nil {
		return false
	}
	return t.Goal == r.Goal && t.Coordinator == r.Coordinator && bytes.Equal(journal.JSON(terms), journal.JSON(r.Terms)) &&
		bytes.Equal(compact(t.Input), compact(r.Input))
}

// compact returns JSON without blanks, and null for missing JSON, so that equal inputs compare
// equal.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return []byte("null")
	}
	return b.Bytes()
}

// listTasks serves GET /v1/tasks, newest first.
func (c *Control) listTasks(ctx context.Context, in *TasksInput) (*rest.Answer[TaskList], error) {
	out, err := Tasks(ctx, c.db, in)
	return rest.Say(&out), err
}

// Tasks returns a page of the tasks of a database. repute.ErrInvalid names the wrong member of in.
func Tasks(ctx context.Context, db *store.DB, in *TasksInput) (out TaskList, err error) {
	size, err := in.Size()
	if err != nil {
		return out, err
	}
	f := rundb.TaskFilter{Status: repute.TaskStatus(in.Status), Coordinator: in.Coordinator}
	if in.Status != "" && !slices.Contains(taskStatuses(), f.Status) {
		return out, repute.Invalid("status", fmt.Sprintf("%.40q is no status of a task", in.Status),
			"pending, assigned, running, completed, failed, cancelled or rejected")
	}
	if f.Awaiting = in.Awaiting == "approval"; in.Awaiting != "" && !f.Awaiting {
		return out, repute.Invalid("awaiting", fmt.Sprintf("%.40q is not supported", in.Awaiting), "approval")
	}
	if err := rest.Known("agent", in.Coordinator); err != nil {
		return out, err
	}
	l := rest.ListOf("tasks", in.Status, in.Coordinator, in.Awaiting)
	if f.Before, f.BeforeID, err = l.ReadCursor(in.Cursor); err != nil {
		return out, err
	}
	list, err := rundb.Tasks(ctx, db, f, size+1)
	if err != nil {
		return out, err
	}
	out.Tasks = []Task{}
	list, out.Next, err = rest.Cut(l, list, size, func(t repute.Task) (time.Time, string) { return t.Created, t.ID })
	for _, t := range list {
		out.Tasks = append(out.Tasks, taskOnWire(t))
	}
	return out, err
}

// taskStatuses returns the statuses that the list can be filtered by.
func taskStatuses() []repute.TaskStatus {
	return []repute.TaskStatus{repute.TaskPending, repute.TaskAssigned, repute.TaskRunning, repute.TaskCompleted,
		repute.TaskFailed, repute.TaskCancelled, repute.TaskRejected}
}

// getTask serves GET /v1/tasks/{id}: a task with all of its runs.
func (c *Control) getTask(ctx context.Context, in *rest.IDInput) (*rest.Answer[Task], error) {
	if err := rest.Known("task", in.ID); err != nil {
		return nil, err
	}
	t, err := rundb.Task(ctx, c.db, in.ID)
	if err != nil {
		return nil, err
	}
	runs, err := rundb.TaskRuns(ctx, c.db, t.ID)
	if err != nil {
		return nil, err
	}
	w := taskOnWire(t)
	for i := range runs {
		w.Runs = append(w.Runs, lineOnWire(&runs[i]))
	}
	return rest.Say(&w), nil
}

// maxReason bounds reasons that people give, in characters.
const maxReason = 2 << 10

// checkReason refuses a reason that is too long. What cannot be stored of it is removed by the store.
func checkReason(s string) error {
	if n := utf8.RuneCountInString(s); n > maxReason {
		return repute.Invalid("reason", fmt.Sprintf("has %d characters", n), fmt.Sprintf("at most %d", maxReason))
	}
	return nil
}

// cancelTask serves POST /v1/tasks/{id}/cancel.
func (c *Control) cancelTask(ctx context.Context, by string, in *rest.IDInput,
	r Cancellation) (*rest.Answer[Task], error) {
	if err := rest.Known("task", in.ID); err != nil {
		return nil, err
	}
	if err := checkReason(r.Reason); err != nil {
		return nil, err
	}
	if err := c.client.Cancel(ctx, in.ID, by, r.Reason); err != nil {
		return nil, err
	}
	return c.getTask(ctx, in)
}

// retryTask serves POST /v1/tasks/{id}/retry: another attempt, beginning with a phase.
func (c *Control) retryTask(ctx context.Context, by string, in *rest.IDInput, r RetryFrom) (*rest.Answer[Task], error) {
	if err := rest.Known("task", in.ID); err != nil {
		return nil, err
	}
	from, ok := repute.ParsePhase(r.From)
	if r.From != "" && (!ok || from == repute.PhaseRecord) {
		return nil, repute.Invalid("from", fmt.Sprintf("%.40q is no phase to retry from", r.From),
			fmt.Sprintf("one of %v", repute.Phases()[:repute.PhaseSummarize]))
	}
	if err := c.client.Retry(ctx, in.ID, from, by); err != nil {
		return nil, err
	}
	return c.getTask(ctx, in)
}

// taskOnWire converts a task into the form of the API, without its runs.
func taskOnWire(t repute.Task) Task {
	w := Task{ID: t.ID, Goal: t.Goal, Input: t.Input, Coordinator: t.Coordinator, Status: t.Status, RunID: t.Run,
		Awaiting: t.Awaiting, Error: t.Error, AskedBy: t.By, Created: t.Created, Updated: t.Updated}
	var terms standard.Terms
	_ = json.Unmarshal(t.Terms, &terms) // as stored by Submit
	w.Terms = Terms(terms)
	return w
}
