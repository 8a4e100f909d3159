package control_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator/control"
)

// changed is the answer of the tools that do something with a task.
type changed struct {
	DryRun bool
	Task   control.Task
}

// asks submits a task that a person is asked about, and waits until it does.
func (b toolbox) asks(goal string) (t control.Task, subject string) {
	b.h.t.Helper()
	var submitted task
	b.into("openfi_submit_task", `{"goal":"dear `+goal+`","coordinatorSlug":"plain"}`, &submitted)
	run := b.h.waits(submitted.Task.RunID, "waits", awaits)
	return *submitted.Task, run.Awaited[0].Subject
}

// decided lets every tool for a task that waits answer once: it is denied, tried again and
// cancelled.
func (b toolbox) decided() {
	t := b.h.t
	t.Helper()
	asked, subject := b.asks("one")
	var list control.TaskList
	if b.into("openfi_list_tasks", `{"awaiting":"approval"}`, &list); len(list.Tasks) != 1 ||
		list.Tasks[0].ID != asked.ID {
		t.Errorf("waiting tasks %+v", list.Tasks)
	}
	var said struct {
		DryRun bool
		About  control.Awaited
		Run    *control.Run
	}
	answer := `{"runId":"` + asked.RunID + `","subject":"` + subject + `","approved":false,"reason":"no"`
	b.into("openfi_approve_run", answer+`,"dry_run":true}`, &said)
	if !said.DryRun || said.Run != nil || said.About.Subject != subject || len(said.About.Reasons) == 0 {
		t.Errorf("dry answer %+v", said)
	}
	if r := b.h.waits(asked.RunID, "still waits", awaits); len(r.Approvals) != 0 {
		t.Errorf("a dry run left %+v", r.Approvals)
	}
	b.refuses("openfi_approve_run", strings.Replace(answer, subject, "another", 1)+`}`, "conflict: ")
	b.into("openfi_approve_run", answer+`}`, &said)
	if said.DryRun || said.Run == nil || said.About.Subject != subject {
		t.Errorf("answer %+v", said)
	}
	if run := b.h.ended(asked); run.Status != repute.RunFailed || len(run.Approvals) != 1 ||
		run.Approvals[0].By != "ann" || run.Approvals[0].Reason != "no" {
		t.Errorf("denied run is %s with %+v", run.Status, run.Approvals)
	}
	var did changed
	if b.into("openfi_retry_task", `{"taskId":"`+asked.ID+`","dry_run":true}`, &did); !did.DryRun ||
		b.h.ended(asked).Attempt != 1 {
		t.Errorf("dry retry %+v", did)
	}
	b.into("openfi_retry_task", `{"taskId":"`+asked.ID+`"}`, &did)
	b.h.waits(asked.RunID, "waits again", func(r control.Run) bool { return awaits(r) && r.Attempt == 2 })
	b.refuses("openfi_retry_task", `{"taskId":"`+asked.ID+`","dry_run":true}`, "conflict: ")
	b.into("openfi_cancel_task", `{"taskId":"`+asked.ID+`","dry_run":true}`, &did)
	if did.Task.Status == repute.TaskCancelled {
		t.Error("a dry run cancelled a task")
	}
	b.into("openfi_cancel_task", `{"taskId":"`+asked.ID+`","reason":"enough"}`, &did)
	var now control.Task
	if b.into("openfi_list_runs", `{"taskId":"`+asked.ID+`"}`, &now); now.Status != repute.TaskCancelled ||
		len(now.Runs) != 1 {
		t.Errorf("cancelled task %+v", now)
	}
	b.refuses("openfi_cancel_task", `{"taskId":"`+asked.ID+`","dry_run":true}`, "conflict: ")
}

// TestTaskToolsFollowRoles: a caller who may submit tasks may not approve, and what tasks did is shown to nobody where
// reading takes a token.
func TestTaskToolsFollowRoles(t *testing.T) {
	t.Parallel()
	h := newRoles(t, true)
	asks, decides, looks := h.tools(tokenOf("asks")), h.tools(tokenOf("decides")), h.tools(tokenOf("looks"))
	var submitted task
	asks.into("openfi_submit_task", `{"goal":"dear one","coordinatorSlug":"plain"}`, &submitted)
	run := control.Run{}
	h.until("waits", func() bool {
		looks.into("openfi_get_run", `{"runId":"`+submitted.Task.RunID+`"}`, &run)
		return awaits(run)
	})
	answer := `{"runId":"` + run.ID + `","subject":"` + run.Awaited[0].Subject + `","approved":true}`
	for tool, arguments := range map[string]string{"openfi_list_tasks": `{}`,
		"openfi_list_runs": `{"taskId":"` + submitted.Task.ID + `"}`} {
		h.tools("").refuses(tool, arguments, "unauthorized: ")
		looks.into(tool, arguments, &map[string]any{})
	}
	for _, b := range []toolbox{asks, looks} {
		b.refuses("openfi_approve_run", answer, `role "approve"`)
		b.refuses("openfi_approve_run", strings.Replace(answer, "{", `{"dry_run":true,`, 1), `role "approve"`)
	}
	for _, b := range []toolbox{decides, looks} {
		b.refuses("openfi_cancel_task", `{"taskId":"`+submitted.Task.ID+`"}`, `role "ask"`)
		b.refuses("openfi_retry_task", `{"taskId":"`+submitted.Task.ID+`"}`, `role "ask"`)
	}
	decides.into("openfi_approve_run", answer, &map[string]any{})
	h.until("task ends", func() bool {
		var list control.TaskList
		looks.into("openfi_list_tasks", `{"status":"completed"}`, &list)
		return slices.ContainsFunc(list.Tasks, func(t control.Task) bool { return t.ID == submitted.Task.ID })
	})
	if r := h.as("looks", http.MethodGet, "/v1/tasks/"+submitted.Task.ID, ""); r.status != http.StatusOK {
		t.Errorf("the task: %d", r.status)
	}
}
