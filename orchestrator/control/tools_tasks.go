package control

import (
	"cmp"
	"context"
	"slices"

	"repute"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/orchestrator/control/rest"
)

// The inputs and answers of the tools for tasks that were submitted.
type (
	tasksTool struct {
		Status      string `json:"status,omitempty" enum:"pending,assigned,running,completed,failed,cancelled,rejected"`
		Coordinator string `json:"coordinator,omitempty" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" doc:"slug"`
		Awaiting    string `json:"awaiting,omitempty" enum:"approval" doc:"only those about which a person must decide"`
		rest.PageTool
	}
	// TaskTool names a task.
	TaskTool struct {
		TaskID string `json:"taskId" doc:"task_…, as openfi_list_tasks gives it"`
	}
	cancelTool struct {
		TaskTool
		Cancellation
		rest.DryRunTool
	}
	retryTool struct {
		TaskTool
		RetryFrom
		rest.DryRunTool
	}
	// changedTask is a task and the change that was made, or would be made.
	changedTask struct {
		DryRun bool `json:"dryRun"`
		Task   Task `json:"task" doc:"as it is now, with its runs"`
	}
	approveTool struct {
		RunTool
		Subject  string `json:"subject" minLength:"1" doc:"one of the run's awaited: it names exactly what that shows"`
		Approved bool   `json:"approved" doc:"true: yes, false: no"`
		Reason   string `json:"reason,omitempty" maxLength:"2048"`
		rest.DryRunTool
	}
	// answered is the result of an answer to an approval request.
	answered struct {
		DryRun  bool    `json:"dryRun"`
		RunID   string  `json:"runId"`
		Subject Awaited `json:"about" doc:"what was decided: decoded calls, amounts, names, what leaves the treasury, the agent's score"`
		Run     *Run    `json:"run,omitempty" doc:"after the answer; absent in a dry run"`
	}
)

// addTaskTools adds the tools about tasks.
func (c *Control) addTaskTools(s *mcp.Server) error {
	return cmp.Or(
		mcp.Add(s, mcp.Tool[tasksTool, TaskList]{Name: "openfi_list_tasks",
			Description: "Lists tasks, newest first. Next: openfi_list_runs; where awaiting is set, openfi_get_run of its runId.",
			Do: rest.Private(c.router, func(ctx context.Context, in tasksTool) (TaskList, error) {
				return rest.Body(c.listTasks(ctx, &TasksInput{in.Status, in.Coordinator, in.Awaiting, in.Input()}))
			})}),
		mcp.Add(s, mcp.Tool[TaskTool, Task]{Name: "openfi_list_runs",
			Description: "One task with all its runs, that of the whole task first. Next: openfi_get_run.",
			Do: rest.Private(c.router, func(ctx context.Context, in TaskTool) (Task, error) {
				return rest.Body(c.getTask(ctx, &rest.IDInput{ID: in.TaskID}))
			})}),
		mcp.Add(s, mcp.Tool[cancelTool, changedTask]{Name: "openfi_cancel_task",
			Description: "Asks that a task end. A transaction under way is still followed. Next: openfi_list_runs until it is cancelled.",
			Effect:      mcp.Effect{Changes: true, Repeats: true, Destroy: true}, Do: c.cancelTool}),
		mcp.Add(s, mcp.Tool[retryTool, changedTask]{Name: "openfi_retry_task",
			Description: "Begins another attempt of a task that failed, was rejected or cancelled; what is completed is not done again. Next: openfi_get_run.",
			Effect:      mcp.Effect{Changes: true, World: true}, Do: c.retryTool}),
		mcp.Add(s, mcp.Tool[approveTool, answered]{Name: "openfi_approve_run",
			Description: "Approves or denies one subject of a run's awaited, which openfi_get_run, or dry_run here, shows whole: look first. Takes the role approve.",
			Effect:      mcp.Effect{Changes: true, Destroy: true, World: true}, Do: c.approveTool}),
	)
}

// cancelTool is the tool openfi_cancel_task.
func (c *Control) cancelTool(ctx context.Context, in cancelTool) (w changedTask, err error) {
	by, err := c.router.Caller(ctx, httpapi.RoleAsk)
	if err != nil {
		return w, err
	}
	do := func() (*rest.Answer[Task], error) {
		return c.cancelTask(ctx, by, &rest.IDInput{ID: in.TaskID}, in.Cancellation)
	}
	return c.changed(ctx, in.TaskID, in.DryRun, taskEnded, "has ended", do)
}

// retryTool is the tool openfi_retry_task.
func (c *Control) retryTool(ctx context.Context, in retryTool) (w changedTask, err error) {
	by, err := c.router.Caller(ctx, httpapi.RoleAsk)
	if err != nil {
		return w, err
	}
	do := func() (*rest.Answer[Task], error) {
		return c.retryTask(ctx, by, &rest.IDInput{ID: in.TaskID}, in.RetryFrom)
	}
	return c.changed(ctx, in.TaskID, in.DryRun, func(s repute.TaskStatus) bool {
		return s == repute.TaskCompleted ||
			!taskEnded(s)
	}, "did not fail", do)
}

// taskEnded reports whether nothing more happens to a task by itself.
func taskEnded(s repute.TaskStatus) bool {
	return s == repute.TaskCompleted || s == repute.TaskFailed || s == repute.TaskCancelled || s == repute.TaskRejected
}

// changed applies a change to a task. A dry run only checks whether the status of the task allows
// it.
func (c *Control) changed(ctx context.Context, id string, dry bool, not func(repute.TaskStatus) bool, why string,
	do func() (*rest.Answer[Task], error)) (w changedTask, err error) {
	if !dry {
		w.Task, err = rest.Body(do())
		return w, err
	}
	w.DryRun = true
	if w.Task, err = rest.Body(c.getTask(ctx, &rest.IDInput{ID: id})); err == nil && not(w.Task.Status) {
		err = repute.Conflict("task %s is %s: it %s", id, w.Task.Status, why)
	}
	return w, err
}

// approveTool is the tool openfi_approve_run. A dry run reports whether the run waits for that answer. The answer
// shows what was decided, since a model that only knows the subject could approve what it never saw.
func (c *Control) approveTool(ctx context.Context, in approveTool) (w answered, err error) {
	by, err := c.router.Caller(ctx, httpapi.RoleApprove)
	if err != nil {
		return w, err
	}
	run, err := c.Run(ctx, in.RunID)
	if err != nil {
		return w, err
	}
	at := slices.IndexFunc(run.Awaited, func(a Awaited) bool { return a.Subject == in.Subject })
	if at < 0 {
		return w, repute.Conflict("run %s does not wait for an answer about %.80q: openfi_get_run lists its awaited",
			run.ID, in.Subject)
	}
	w = answered{DryRun: in.DryRun, RunID: run.ID, Subject: run.Awaited[at]}
	if in.DryRun {
		return w, nil
	}
	after, err := rest.Body(c.approveRun(ctx, by, &rest.IDInput{ID: run.ID},
		ApprovalAnswer{in.Subject, &in.Approved, in.Reason}))
	w.Run = &after
	return w, err
}
