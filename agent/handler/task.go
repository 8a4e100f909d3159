package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"repute"
	"repute/agent/capability"
	"repute/policy"
)

// Task hands calls to an orchestrator as tasks (POST /v1/tasks) and waits for their end. The call's
// input is the task's input, and its request id the idempotency key: a repeated call waits for the
// task that the first one submitted. The gates and limits of the orchestrator apply to the task.
type Task struct {
	URL         string // of the orchestrator, without /v1
	Token       string // bearer token
	Coordinator string // slug of the agent that plans the task; "" for the orchestrator's choice
	Goal        string // what to do, for the plan and for people
	Tags        []string
	// Budget bounds the run and all runs below it; what is absent has the orchestrator's default.
	Budget policy.Bounds
	// Step names the step of the plan whose result is the answer. Without a name it is the result of
	// the only step; of several steps it is an object of all results by step id.
	Step      string
	Client    Doer
	MaxAnswer int64         // 10 MiB when 0
	Poll      time.Duration // between questions about the task, 500 ms when 0
	Log       *slog.Logger
}

// defaultPoll is the time between two questions about a task.
const defaultPoll = 500 * time.Millisecond

// cancelTime bounds the request that cancels a task which did not end in time.
const cancelTime = 5 * time.Second

// taskRequest is the request to submit a task.
type taskRequest struct {
	Goal        string          `json:"goal"`
	Input       json.RawMessage `json:"input"`
	Coordinator string          `json:"coordinatorSlug,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Budget      policy.Bounds   `json:"budget,omitzero"`
}

// taskView is what is read of a task.
type taskView struct {
	ID       string            `json:"id"`
	RunID    string            `json:"runId"`
	Status   repute.TaskStatus `json:"status"`
	Awaiting string            `json:"awaiting"`
	Error    string            `json:"error"`
}

// ended reports whether a task does not change any more.
func (t *taskView) ended() bool {
	switch t.Status {
	case repute.TaskCompleted, repute.TaskFailed, repute.TaskCancelled, repute.TaskRejected:
		return true
	}
	return false
}

// runView is what is read of the run of a task.
type runView struct {
	Steps []struct {
		ID     string          `json:"stepId"`
		Status string          `json:"status"`
		Result json.RawMessage `json:"result"`
	} `json:"steps"`
}

// Run implements agent.Handler.
func (t *Task) Run(ctx context.Context, call capability.Call) (json.RawMessage, error) {
	var task taskView
	ask := taskRequest{Goal: t.Goal, Input: call.Input, Coordinator: t.Coordinator, Tags: t.Tags, Budget: t.Budget}
	if err := t.ask(ctx, call, http.MethodPost, "/v1/tasks", ask, &task); err != nil {
		return nil, err
	}
	if err := t.await(ctx, call, &task); err != nil {
		t.giveUp(ctx, call, &task)
		return nil, err
	}
	if task.Status != repute.TaskCompleted {
		logger(t.Log).WarnContext(ctx, "task not completed", "task", task.ID, "status", task.Status, "error",
			task.Error)
		return nil, fmt.Errorf("%w: its task ended as %s", ErrFailed, task.Status)
	}
	var run runView
	if err := t.ask(ctx, call, http.MethodGet, "/v1/runs/"+url.PathEscape(task.RunID), nil, &run); err != nil {
		return nil, err
	}
	return t.answer(&run)
}

// await waits until a task has ended. It retries an orchestrator that does not answer until ctx ends, because the
// orchestrator continues the task without its client.
func (t *Task) await(ctx context.Context, call capability.Call, task *taskView) error {
	told := ""
	for !task.ended() {
		if task.Awaiting != told && task.Awaiting != "" {
			logger(t.Log).WarnContext(ctx, "task waits for a person", "task", task.ID, "awaiting", task.Awaiting)
		}
		told = task.Awaiting
		if repute.Pause(ctx, cmp.Or(t.Poll, defaultPoll)); ctx.Err() != nil {
			return handlerError(ctx, ctx.Err())
		}
		err := t.ask(ctx, call, http.MethodGet, "/v1/tasks/"+url.PathEscape(task.ID), nil, task)
		if err != nil && !errors.Is(err, repute.ErrUnavailable) {
			return err
		}
	}
	return nil
}

// giveUp cancels the task of a call that ended before it: of a free call after any error of await, of a paid call only
// if its deadline passed. Otherwise the task of a paid call keeps running, because another process repeats the call and
// waits for the same task.
func (t *Task) giveUp(ctx context.Context, call capability.Call, task *taskView) {
	if call.Payment != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	err := t.ask(ctx, call, http.MethodPost, "/v1/tasks/"+url.PathEscape(task.ID)+"/cancel",
		map[string]string{"reason": "the client's time is up"}, task)
	if err != nil {
		logger(t.Log).WarnContext(ctx, "task not canceled", "task", task.ID, "error", err)
	}
}

// answer is the result of the run of a completed task.
func (t *Task) answer(run *runView) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, s := range run.Steps {
		if len(s.Result) > 0 {
			all[s.ID] = s.Result
		}
	}
	one, named := all[t.Step]
	switch {
	case named:
		return checked(one)
	case t.Step != "":
		return nil, fmt.Errorf("%w: its task has no result of the step that is the answer", ErrFailed)
	case len(all) == 1:
		for _, only := range all {
			return checked(only)
		}
	}
	out, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("%w: the results of its task are no JSON", ErrFailed)
	}
	return out, nil
}

// ask sends a request to the orchestrator and decodes the answer. A refused token is the operator's
// mistake and no client's: repute.ErrUnavailable.
func (t *Task) ask(ctx context.Context, call capability.Call, method, path string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%w: the call is no JSON", ErrFailed)
	}
	if body == nil {
		raw = nil
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(t.URL, "/")+path, bytes.NewReader(raw))
	if err != nil {
		return fmt.Errorf("%w: the orchestrator's URL is malformed", repute.ErrUnavailable)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+t.Token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", call.RequestID)
	}
	correlate(ctx, req.Header, call)
	res, err := t.Client.Do(req)
	if err != nil {
		logger(t.Log).WarnContext(ctx, "orchestrator not reached", "error", withoutURL(err))
		return handlerError(ctx, fmt.Errorf("%w: the handler's orchestrator cannot be reached", repute.ErrUnavailable))
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return t.refused(ctx, path, res)
	}
	most := cmp.Or(t.MaxAnswer, defaultMaxAnswer)
	text, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	switch {
	case err != nil:
		return handlerError(ctx, fmt.Errorf("%w: the orchestrator's answer broke off", repute.ErrUnavailable))
	case int64(len(text)) > most:
		return fmt.Errorf("%w: its answer has more than %d bytes", ErrFailed, most)
	case json.Unmarshal(text, into) != nil:
		return fmt.Errorf("%w: its orchestrator did not answer with JSON of a task", ErrFailed)
	}
	return nil
}

// refused logs what an orchestrator said and returns the kind of its status.
func (t *Task) refused(ctx context.Context, path string, res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // for the log, as far as it is readable
	logger(t.Log).WarnContext(ctx, "orchestrator refused", "path", path, "status", res.StatusCode, "body", string(text))
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: the orchestrator does not take the handler's token", repute.ErrUnavailable)
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("%w: the orchestrator has no capacity now", repute.ErrUnavailable)
	}
	return handlerError(ctx, fmt.Errorf("%w: its orchestrator answered with status %d", ErrFailed, res.StatusCode))
}
