// Package a2aserver offers the capabilities of an agent over A2A 1.0 and 0.3 as JSON-RPC, paid by the x402 extension of
// A2A. A message is one execution of a capability; a task that is not paid waits for the payment in the state
// input-required.
//
// Server implements the handler of the A2A library: the library speaks the protocol, and this package decides what a
// message asks for (request) and how an answer of the router looks as a task (finish). A message is answered when the
// work has ended, unless its client asks for the task at once or streams it.
//
// Tasks are remembered by the process for an hour, within a bound of bytes. A paid task is in the database as long as
// its payment: any process tells about it, and a new message with the same input and payment gets the same answer. Paid
// work cannot be canceled; free work ends when it is canceled or when its client leaves a stream. Callers are not
// known, so that tasks are not listed, and any caller that knows the id of a task may read it.
package a2aserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"repute"
	"repute/agent"
	"repute/agent/envelope"
	"repute/internal/httpapi"
	"repute/x402"
)

// Members of metadata beside those of x402.
const (
	// MetaStatus is the status that HTTP clients get, MetaSignature an envelope.Signature over the
	// data of the artifact or of the status message, MetaMode how the agent works where it is not
	// normal, and MetaValidation says that a validator must confirm the result.
	MetaStatus    = "agent402.status"
	MetaSignature = "agent402.signature"
	// MetaRequest names the request in the agent's log.
	MetaRequest    = "agent402.requestId"
	MetaMode       = "agent402.mode"
	MetaValidation = "agent402.validation"
	// MetaSkill names the capability in a message, where its data does not.
	MetaSkill = "skillId"
)

// States of a payment, in the metadata of messages.
const (
	paymentRequired  = "payment-required"
	paymentSubmitted = "payment-submitted"
	paymentRejected  = "payment-rejected" // by the client
	paymentCompleted = "payment-completed"
	paymentFailed    = "payment-failed"
)

// Options configure the surface.
type Options struct {
	Router *agent.Router
	// Name and Description are the card's.
	Name, Description, Image string
	// MaxBody bounds a request in bytes.
	MaxBody int64
	Log     *slog.Logger
}

// Server answers A2A. It implements a2asrv.RequestHandler.
//
// A message is worked on by one goroutine, which owns its exchange; what others see is the copy that tasks has. Two
// messages to one task at the same time both start; once one has ended the task, the other changes nothing.
type Server struct {
	o      Options
	router *agent.Router
	tasks  *tasks
	// background are tasks whose clients did not wait.
	background sync.WaitGroup
	// running are the tasks that are worked on here and cost nothing: *context.CancelFunc by their id.
	running sync.Map
}

// New returns a server.
func New(o Options) *Server { return &Server{o: o, router: o.Router, tasks: newTasks(taskBytes)} }

// Close waits until tasks whose clients did not wait have ended. The router MUST be drained before.
func (s *Server) Close() { s.background.Wait() }

// exchange is one message on its way.
// finish completes it: the task is a copy of the remembered one until put stores it.
type exchange struct {
	task    *a2a.Task
	message *a2a.Message
	request agent.Request
}

// SendMessage implements a2asrv.RequestHandler.
//
// A client that does not wait gets a copy of the task, because the work changes the original later. The work has a
// context of its own: the end of the request MUST NOT end it.
func (s *Server) SendMessage(ctx context.Context, q *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	x, err := s.open(q)
	if err != nil {
		return nil, err
	}
	if x.message.Metadata[x402.A2AStatus] == paymentRejected {
		return s.cancel(x.task)
	}
	if q.Config == nil || !q.Config.ReturnImmediately {
		return s.run(ctx, x)
	}
	x.task.Status = status(a2a.TaskStateWorking, nil)
	if err := s.tasks.put(x.task); err != nil {
		return nil, err
	}
	shown, ctx := *x.task, context.WithoutCancel(ctx)
	s.background.Go(func() {
		if _, err := s.run(ctx, x); err != nil {
			s.o.Log.ErrorContext(ctx, "task not remembered", "task", x.task.ID, "error", err)
		}
	})
	return &shown, nil
}

// open checks a message and reads the task that it belongs to.
// A message to a task that is not remembered is a2a.ErrTaskNotFound, also where the database has the paid answer:
// only GetTask looks there.
func (s *Server) open(q *a2a.SendMessageRequest) (*exchange, error) {
	m := q.Message
	switch {
	case m == nil || m.ID == "" || m.Role != a2a.MessageRoleUser || len(m.Parts) == 0:
		return nil, a2a.NewError(a2a.ErrInvalidParams, "message: messageId, the user's role and a part are needed")
	case q.Config != nil && q.Config.PushConfig != nil:
		return nil, a2a.ErrPushNotificationNotSupported
	case m.TaskID == "":
		return &exchange{message: m, task: &a2a.Task{ID: a2a.NewTaskID(),
			ContextID: cmp.Or(m.ContextID, a2a.NewContextID())}}, nil
	}
	task, err := s.tasks.get(m.TaskID)
	switch {
	case err != nil:
		return nil, err
	case m.ContextID != "" && m.ContextID != task.ContextID:
		return nil, a2a.NewError(a2a.ErrInvalidParams, "contextId: is not the task's")
	case task.Status.State != a2a.TaskStateInputRequired:
		return nil, a2a.NewError(a2a.ErrUnsupportedOperation, "taskId: the task does not wait for a message")
	}
	return &exchange{message: m, task: task}, nil
}

// run asks the router and remembers the task.
//
// cancel is stored before the work begins, so that a task which is shown as working can be canceled. request takes it
// out again for a paid task. An answer is put into the task even where the client has gone.
func (s *Server) run(ctx context.Context, x *exchange) (*a2a.Task, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.running.Store(x.task.ID, cancel)
	defer s.running.Delete(x.task.ID)
	answer, err := s.ask(ctx, x)
	if err != nil {
		s.o.Log.ErrorContext(ctx, "message failed", "task", x.task.ID, "error", err)
		return nil, a2a.ErrInternalError
	}
	x.finish(answer)
	return x.task, s.tasks.put(x.task)
}

// ask gives an answer in any case: a message that cannot be read gets a signed one, too. The error is the agent's fault.
func (s *Server) ask(ctx context.Context, x *exchange) (*envelope.Answer, error) {
	if err := s.request(ctx, x); err != nil {
		return envelope.Refused(ctx, s.router, err)
	}
	return envelope.Do(ctx, s.router, x.request)
}

// request reads what a message asks for. A message that pays for a task has the task's input, unless
// it has one itself.
func (s *Server) request(ctx context.Context, x *exchange) error {
	m, q := x.message, &x.request
	q.Caller, q.Correlation = httpapi.CallerOf(ctx), httpapi.RequestID(ctx)
	payment, err := envelope.ReadPayment(m.Metadata[x402.A2APayload])
	if err != nil {
		return err
	}
	first := m
	if len(x.task.History) > 0 && !hasData(m) {
		first = x.task.History[0]
	}
	raw, err := input(first)
	if err != nil {
		return err
	}
	skill, _ := first.Metadata[MetaSkill].(string)
	order, err := envelope.ReadOrder(s.router, raw, skill)
	if err != nil {
		return err
	}
	// A payment in the metadata, which is the place of the extension, wins over one in the data.
	if q.Payment = payment; payment == nil {
		q.Payment = order.Payment
	}
	q.Task = agent.Task{ID: string(x.task.ID), Context: x.task.ContextID}
	if q.Payment != nil || q.Promise != nil {
		s.running.Delete(x.task.ID) // paid work continues without its client and cannot be canceled
	}
	q.Capability, q.Input, q.Resource = order.Capability, order.Input, "a2a://skill/"+order.Capability
	x.task.History = history(first)
	call, ok := a2asrv.CallContextFrom(ctx)
	if !ok {
		return nil
	}
	h := http.Header{}
	for name, values := range call.ServiceParams().List() {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return q.Identify(h)
}

// hasData reports whether a message has an input of its own: one that only pays has none.
func hasData(m *a2a.Message) bool {
	for _, p := range m.Parts {
		if _, ok := p.Content.(a2a.Data); ok {
			return true
		}
	}
	return false
}

// input is the first part of a message that is JSON: data, or a text of JSON. Any other text is the
// input itself.
func input(m *a2a.Message) (json.RawMessage, error) {
	for _, p := range m.Parts {
		if data, ok := p.Content.(a2a.Data); ok {
			return json.Marshal(data.Value)
		}
	}
	for _, p := range m.Parts {
		if text, ok := p.Content.(a2a.Text); ok {
			if json.Valid([]byte(text)) {
				return json.RawMessage(text), nil
			}
			return json.Marshal(string(text))
		}
	}
	return nil, repute.Invalid("message.parts", "have no data", "a data part {capability, input}")
}

// maxHistory bounds the input that is kept for a payment, in bytes. A client sends a larger one again
// with its payment.
const maxHistory = 64 << 10

// history is what is kept of the first message of a task, so that one that pays need not repeat the input; nothing where
// that is large. Metadata is left out but for the skill: it can have a payment.
// It is what a later payment repeats, and no record of the conversation.
func history(first *a2a.Message) []*a2a.Message {
	kept := &a2a.Message{ID: first.ID, Role: first.Role, Parts: first.Parts, TaskID: first.TaskID,
		ContextID: first.ContextID}
	if skill, ok := first.Metadata[MetaSkill]; ok {
		kept.Metadata = map[string]any{MetaSkill: skill}
	}
	if raw, err := json.Marshal(kept); err != nil || len(raw) > maxHistory {
		return nil
	}
	return []*a2a.Message{kept}
}

// finish puts an answer into its task.
func (x *exchange) finish(a *envelope.Answer) {
	meta := map[string]any{MetaStatus: a.Status, MetaSignature: a.Signature, MetaRequest: a.RequestID}
	if a.Mode != agent.Normal {
		meta[MetaMode] = a.Mode
	}
	if a.Validation {
		meta[MetaValidation] = "required"
	}
	body := a2a.NewDataPart(a.Body)
	body.MediaType = "application/json"
	state := outcome(x, a, meta)
	var message *a2a.Message
	if a.Problem == nil {
		x.task.Artifacts = []*a2a.Artifact{{ID: a2a.NewArtifactID(), Name: x.request.Capability,
			Parts:    a2a.ContentParts{body},
			Metadata: map[string]any{MetaSignature: a.Signature}}}
		message = a2a.NewMessageForTask(a2a.MessageRoleAgent, x.task, a2a.NewTextPart("done"))
	} else {
		message = a2a.NewMessageForTask(a2a.MessageRoleAgent, x.task, a2a.NewTextPart(a.Problem.Message), body)
	}
	if message.Metadata = meta; meta[x402.A2AStatus] != nil {
		message.Extensions = []string{x402.A2AExtensionURI}
	}
	x.task.Status = status(state, message)
	if x.task.Metadata == nil {
		x.task.Metadata = map[string]any{}
	}
	x.task.Metadata[MetaStatus] = a.Status
}

// outcome is the state of a task, and adds what the payment extension says of it to the metadata.
//
// The order decides: an answer without a problem is completed whatever its settlement, and a problem with a payment
// that may still settle waits for the same payment. A server's own fault fails the task; anything else rejects it.
func outcome(x *exchange, a *envelope.Answer, meta map[string]any) a2a.TaskState {
	if a.Settlement != nil {
		meta[x402.A2AReceipts] = []x402.Settlement{*a.Settlement}
		if meta[x402.A2AStatus] = paymentCompleted; !a.Settlement.Success {
			meta[x402.A2AStatus] = paymentFailed
		}
	}
	p, pays := a.Problem, x.request.Payment != nil || x.request.Promise != nil
	switch {
	case p == nil:
		return a2a.TaskStateCompleted
	case p.Demand != nil && !pays:
		meta[x402.A2AStatus], meta[x402.A2ARequired] = paymentRequired, a.Body
		return a2a.TaskStateInputRequired
	case p.Demand != nil:
		meta[x402.A2AStatus], meta[x402.A2AError] = paymentFailed, p.Demand.Error
		return a2a.TaskStateFailed
	case pays && p.Retry > 0: // the same payment is to be sent again
		meta[x402.A2AStatus] = paymentSubmitted
		return a2a.TaskStateInputRequired
	case pays && a.Settlement == nil:
		meta[x402.A2AStatus], meta[x402.A2AError] = paymentFailed, p.Code
	}
	if p.Status >= http.StatusInternalServerError && p.Status != http.StatusServiceUnavailable {
		return a2a.TaskStateFailed
	}
	return a2a.TaskStateRejected
}

// status is a state of a task as of now.
func status(state a2a.TaskState, message *a2a.Message) a2a.TaskStatus {
	now := time.Now().UTC()
	return a2a.TaskStatus{State: state, Message: message, Timestamp: &now}
}

// cancel ends a task that waits for its payment.
// A payment that comes afterwards finds a task that has ended, and is refused. A payment that was submitted and is not
// settled yet stands: its answer is had by a new message with the same payment.
func (s *Server) cancel(t *a2a.Task) (*a2a.Task, error) {
	if t.Status.State != a2a.TaskStateInputRequired {
		return nil, a2a.ErrTaskNotCancelable
	}
	t.Status = status(a2a.TaskStateCanceled, nil)
	return t, s.tasks.put(t)
}

// GetTask implements a2asrv.RequestHandler.
func (s *Server) GetTask(ctx context.Context, q *a2a.GetTaskRequest) (*a2a.Task, error) {
	t, err := s.find(ctx, q.ID)
	if err == nil && q.HistoryLength != nil && *q.HistoryLength == 0 {
		t.History = nil
	}
	return t, err
}

// find returns a task that is remembered here, or a paid one that the database has.
// A task of the database is made anew for each look, and has no history: its input is not kept.
func (s *Server) find(ctx context.Context, id a2a.TaskID) (*a2a.Task, error) {
	t, err := s.tasks.get(id)
	if !errors.Is(err, a2a.ErrTaskNotFound) {
		return t, err
	}
	stored, answer, err := envelope.Recall(ctx, s.router, string(id))
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return nil, a2a.ErrTaskNotFound
	case err != nil:
		s.o.Log.ErrorContext(ctx, "task not recalled", "task", id, "error", err)
		return nil, a2a.ErrInternalError
	}
	x := &exchange{task: &a2a.Task{ID: id, ContextID: stored.Context},
		request: agent.Request{Capability: stored.Capability, Payment: &x402.Payment{}}} // it was paid
	x.finish(answer)
	x.task.Status.Timestamp = &stored.Time
	return x.task, nil
}

// CancelTask implements a2asrv.RequestHandler. It cancels a task that waits for its payment, and a free task that this
// process works on. Paid work cannot be canceled.
//
// The canceled state is stored before the work is told to stop: put ignores what the work stores after it.
func (s *Server) CancelTask(ctx context.Context, q *a2a.CancelTaskRequest) (*a2a.Task, error) {
	t, err := s.find(ctx, q.ID)
	if err != nil {
		return nil, err
	}
	cancel, working := s.running.Load(t.ID)
	if !working || t.Status.State != a2a.TaskStateWorking {
		return s.cancel(t)
	}
	t.Status = status(a2a.TaskStateCanceled, nil)
	if err := s.tasks.put(t); err != nil { // before the end of its work, which does not replace it
		return nil, err
	}
	cancel.(context.CancelFunc)() //nolint:forcetypeassert // the map has nothing else
	return t, nil
}

// ListTasks implements a2asrv.RequestHandler: callers are not known, so that nobody's tasks are listed.
func (s *Server) ListTasks(context.Context, *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	return nil, a2a.ErrUnsupportedOperation
}

// GetTaskPushConfig implements a2asrv.RequestHandler.
func (s *Server) GetTaskPushConfig(context.Context, *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// ListTaskPushConfigs implements a2asrv.RequestHandler.
func (s *Server) ListTaskPushConfigs(context.Context, *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse,
	error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// CreateTaskPushConfig implements a2asrv.RequestHandler.
func (s *Server) CreateTaskPushConfig(context.Context, *a2a.PushConfig) (*a2a.PushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// DeleteTaskPushConfig implements a2asrv.RequestHandler.
func (s *Server) DeleteTaskPushConfig(context.Context, *a2a.DeleteTaskPushConfigRequest) error {
	return a2a.ErrPushNotificationNotSupported
}

// GetExtendedAgentCard implements a2asrv.RequestHandler.
func (s *Server) GetExtendedAgentCard(context.Context, *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	return nil, a2a.ErrExtendedCardNotConfigured
}

// trimmed is a URL without a slash at its end.
func trimmed(url string) string { return strings.TrimRight(url, "/") }
