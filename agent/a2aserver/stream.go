package a2aserver

import (
	"context"
	"iter"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"repute/x402"
)

// followEvery is the time between looks at a task that another request works on.
// Looks are at memory, and at the database only for a task that this process does not remember.
const followEvery = 200 * time.Millisecond

// SendStreamingMessage implements a2asrv.RequestHandler: the task when its work begins, and what became
// of it. A client that leaves ends work that costs nothing.
//
// The request's own context ends the work, where SendMessage without waiting detaches it: request keeps paid work
// going nevertheless.
func (s *Server) SendStreamingMessage(ctx context.Context, q *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		x, err := s.open(q)
		if err != nil {
			yield(nil, err)
			return
		}
		if x.message.Metadata[x402.A2AStatus] == paymentRejected {
			t, err := s.cancel(x.task)
			if err != nil {
				yield(nil, err)
				return
			}
			yield(t, nil)
			return
		}
		x.task.Status = status(a2a.TaskStateWorking, nil)
		if err := s.tasks.put(x.task); err != nil {
			yield(nil, err)
			return
		}
		shown := *x.task
		if !yield(&shown, nil) {
			return
		}
		t, err := s.run(ctx, x)
		if err != nil {
			yield(nil, err)
			return
		}
		if kept, err := s.tasks.get(t.ID); err == nil { // it may have been canceled meanwhile
			t = kept
		}
		ending(t, yield)
	}
}

// SubscribeToTask implements a2asrv.RequestHandler: the task as it is, and what becomes of it.
//
// A task of another process is never shown as working, since the database has answers only.
func (s *Server) SubscribeToTask(ctx context.Context, q *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		t, err := s.find(ctx, q.ID)
		switch {
		case err != nil:
			yield(nil, err)
			return
		case t.Status.State != a2a.TaskStateWorking:
			yield(t, nil)
			return
		case !yield(t, nil):
			return
		}
		for t.Status.State == a2a.TaskStateWorking {
			select {
			case <-ctx.Done():
				return
			case <-time.After(followEvery):
			}
			if t, err = s.find(ctx, q.ID); err != nil {
				yield(nil, err)
				return
			}
		}
		ending(t, yield)
	}
}

// ending sends the last events of a task.
// The status is the last event: clients stop reading at a state that ends the task.
func ending(t *a2a.Task, yield func(a2a.Event, error) bool) {
	for _, artifact := range t.Artifacts {
		if !yield(&a2a.TaskArtifactUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Artifact: artifact,
			LastChunk: true}, nil) {
			return
		}
	}
	yield(&a2a.TaskStatusUpdateEvent{TaskID: t.ID, ContextID: t.ContextID, Status: t.Status, Metadata: t.Metadata}, nil)
}
