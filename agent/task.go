package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"repute/store/agentdb"
)

// Task names a request in the protocol that carried it, so that its answer is found by that name after
// a restart, where it was paid.
type Task struct {
	ID      string `json:"task,omitempty"`
	Context string `json:"taskContext,omitempty"`
}

// Recalled is the stored answer to a paid request.
type Recalled struct {
	*Response
	Task
	Capability string
	Time       time.Time // of the answer
}

// Recall returns the answer to the paid request of a task. repute.ErrNotFound where there is none.
func (r *Router) Recall(ctx context.Context, task string) (*Recalled, error) {
	row, e, err := agentdb.PaymentOfTask(ctx, r.db, r.o.ID.String(), task)
	if err != nil {
		return nil, err
	}
	out := &Recalled{Capability: row.Capability, Time: e.At}
	if err := json.Unmarshal(e.Detail, &out.Task); err != nil {
		return nil, fmt.Errorf("stored task: %w", err)
	}
	w := &work{router: r, row: &row, service: r.Service(row.Capability),
		response: &Response{Status: http.StatusOK, RequestID: row.RequestID, TaskHash: row.TaskHash, Mode: Normal}}
	if err := w.replay(); err != nil {
		w.response.Problem = problemOf(err)
		w.response.Status = w.response.Problem.Status
	} else {
		w.response.Output = w.output
	}
	out.Response = w.response
	return out, nil
}
