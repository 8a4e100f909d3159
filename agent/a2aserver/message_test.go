package a2aserver

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"pgregory.net/rapid"

	"repute"
	"repute/agent"
	"repute/agent/envelope"
	"repute/x402"
)

// said returns a message of a client.
func said(parts ...*a2a.Part) *a2a.Message { return a2a.NewMessage(a2a.MessageRoleUser, parts...) }

// TestInput: the first data part is the input wherever it stands, else the first text, which may be JSON.
func TestInput(t *testing.T) {
	t.Parallel()
	data := a2a.NewDataPart(map[string]any{"a": 1})
	for want, m := range map[string]*a2a.Message{
		`{"a":1}`:    said(a2a.NewTextPart("look at this"), data, a2a.NewDataPart("second")),
		`[1,2]`:      said(a2a.NewTextPart("[1,2]")),
		`"1 2"`:      said(a2a.NewTextPart("1 2")),
		`"say \"\""`: said(a2a.NewTextPart(`say ""`), a2a.NewTextPart("[1]")),
		`null`:       said(a2a.NewDataPart(nil)),
	} {
		raw, err := input(m)
		if err != nil || string(raw) != want {
			t.Errorf("%s, not %s: %v", raw, want, err)
		}
	}
	_, err := input(said(a2a.NewFileURLPart("https://a.example/x", "text/plain")))
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "message.parts") ||
		!strings.Contains(err.Error(), "{capability, input}") {
		t.Errorf("a message without data: %v", err)
	}
}

// FuzzInput: the input of any text is JSON, and a text that is JSON is taken as it is.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{"", "hello", `{"a":1}`, `{"a":`, "\xff", "1e999", "\u2028", " true "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := input(said(a2a.NewTextPart(text)))
		switch {
		case err != nil:
			t.Errorf("%q: %v", text, err)
		case !json.Valid(raw):
			t.Errorf("%q: %s is no JSON", text, raw)
		case json.Valid([]byte(text)) && string(raw) != text:
			t.Errorf("%q is read as %s", text, raw)
		}
	})
}

// TestHistory: what is kept for a payment has the input and the skill, no payment, and nothing above its bound.
func TestHistory(t *testing.T) {
	t.Parallel()
	m := said(a2a.NewTextPart("hello"))
	m.Metadata = map[string]any{MetaSkill: "echo", x402.A2APayload: map[string]any{"signature": "0xsecret"}}
	kept := history(m)
	if len(kept) != 1 || kept[0].ID != m.ID || kept[0].Metadata[MetaSkill] != "echo" {
		t.Fatalf("%+v", kept)
	}
	if raw, err := json.Marshal(kept); err != nil || strings.Contains(string(raw), "secret") {
		t.Errorf("a payment is kept: %s, %v", raw, err)
	}
	if got, err := input(kept[0]); err != nil || string(got) != `"hello"` {
		t.Errorf("the input is %s, %v", got, err)
	}
	if plain := history(said(a2a.NewTextPart("x"))); plain[0].Metadata != nil {
		t.Errorf("metadata of nothing: %v", plain[0].Metadata)
	}
	if kept := history(said(a2a.NewTextPart(strings.Repeat("x", maxHistory)))); kept != nil {
		t.Error("a large input is kept")
	}
}

// answered returns the answer to a request.
func answered(status int, p *agent.Problem, s *x402.Settlement) *envelope.Answer {
	return &envelope.Answer{Response: &agent.Response{Status: status, Problem: p, Settlement: s, Mode: agent.Normal,
		RequestID: "r-1"}, Body: json.RawMessage(`{"x":1}`)}
}

// TestOutcome: the state of a task and the state of its payment, for every kind of answer.
func TestOutcome(t *testing.T) {
	t.Parallel()
	settled, failed := &x402.Settlement{Success: true, Transaction: "0x1"}, &x402.Settlement{}
	demand := &agent.Problem{Status: 402, Demand: &x402.Demand{Error: "no payment"}}
	busy, fault := &agent.Problem{Status: 503, Retry: time.Second}, &agent.Problem{Status: 500}
	wrong := &agent.Problem{Status: 400, Code: "invalid"}
	for name, c := range map[string]struct {
		pays    bool
		answer  *envelope.Answer
		state   a2a.TaskState
		payment any
	}{
		"free":                 {false, answered(200, nil, nil), a2a.TaskStateCompleted, nil},
		"paid":                 {true, answered(200, nil, settled), a2a.TaskStateCompleted, paymentCompleted},
		"not paid":             {false, answered(402, demand, nil), a2a.TaskStateInputRequired, paymentRequired},
		"payment refused":      {true, answered(402, demand, nil), a2a.TaskStateFailed, paymentFailed},
		"settlement failed":    {true, answered(402, demand, failed), a2a.TaskStateFailed, paymentFailed},
		"not settled yet":      {true, answered(503, busy, nil), a2a.TaskStateInputRequired, paymentSubmitted},
		"busy, free":           {false, answered(503, busy, nil), a2a.TaskStateRejected, nil},
		"wrong input":          {false, answered(400, wrong, nil), a2a.TaskStateRejected, nil},
		"wrong input, pays":    {true, answered(400, wrong, nil), a2a.TaskStateRejected, paymentFailed},
		"own fault":            {false, answered(500, fault, nil), a2a.TaskStateFailed, nil},
		"own fault after paid": {true, answered(500, fault, settled), a2a.TaskStateFailed, paymentCompleted},
	} {
		x := &exchange{task: &a2a.Task{ID: "t", ContextID: "c"}, request: agent.Request{Capability: "echo"}}
		if c.pays {
			x.request.Payment = &x402.Payment{}
		}
		x.finish(c.answer)
		s := x.task.Status
		if s.State != c.state || s.Message.Metadata[x402.A2AStatus] != c.payment {
			t.Errorf("%s: state %s, payment %v", name, s.State, s.Message.Metadata[x402.A2AStatus])
		}
		if (len(s.Message.Extensions) == 1) != (c.payment != nil) {
			t.Errorf("%s: extensions %v", name, s.Message.Extensions)
		}
		if (len(x.task.Artifacts) == 1) != (c.answer.Problem == nil) {
			t.Errorf("%s: artifacts %v", name, x.task.Artifacts)
		}
		if x.task.Metadata[MetaStatus] != c.answer.Status || s.Timestamp == nil {
			t.Errorf("%s: %v at %v", name, x.task.Metadata, s.Timestamp)
		}
	}
}

// TestFinishSaysHowTheAgentWorks: mode and validation are in the metadata only where they say something.
func TestFinishSaysHowTheAgentWorks(t *testing.T) {
	t.Parallel()
	x := &exchange{task: &a2a.Task{ID: "t"}}
	x.finish(answered(200, nil, nil))
	meta := x.task.Status.Message.Metadata
	if _, said := meta[MetaMode]; said || meta[MetaValidation] != nil || meta[MetaRequest] != "r-1" {
		t.Errorf("%v", meta)
	}
	a := answered(200, nil, nil)
	a.Mode, a.Validation = agent.Degraded, true
	x.finish(a)
	if meta = x.task.Status.Message.Metadata; meta[MetaMode] != agent.Degraded || meta[MetaValidation] != "required" {
		t.Errorf("%v", meta)
	}
}

// TestOpen: a message that is none, that wants notifications, or that belongs to a task which does not wait for it, is
// refused before any work.
func TestOpen(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	for id, state := range map[a2a.TaskID]a2a.TaskState{"open": a2a.TaskStateInputRequired, "done": a2a.TaskStateCompleted,
		"working": a2a.TaskStateWorking} {
		if err := s.tasks.put(&a2a.Task{ID: id, ContextID: "c", Status: status(state, nil)}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(change func(*a2a.SendMessageRequest)) error {
		q := &a2a.SendMessageRequest{Message: said(a2a.NewTextPart("x"))}
		change(q)
		_, err := s.open(q)
		return err
	}
	type query = a2a.SendMessageRequest
	for name, c := range map[string]struct {
		change func(*query)
		want   error
	}{
		"new":          {func(*query) {}, nil},
		"no message":   {func(q *query) { q.Message = nil }, a2a.ErrInvalidParams},
		"no id":        {func(q *query) { q.Message.ID = "" }, a2a.ErrInvalidParams},
		"no parts":     {func(q *query) { q.Message.Parts = nil }, a2a.ErrInvalidParams},
		"of the agent": {func(q *query) { q.Message.Role = a2a.MessageRoleAgent }, a2a.ErrInvalidParams},
		"notifications": {func(q *query) {
			q.Config = &a2a.SendMessageConfig{PushConfig: &a2a.PushConfig{}}
		}, a2a.ErrPushNotificationNotSupported},
		"open task":       {func(q *query) { q.Message.TaskID = "open" }, nil},
		"its context":     {func(q *query) { q.Message.TaskID, q.Message.ContextID = "open", "c" }, nil},
		"another context": {func(q *query) { q.Message.TaskID, q.Message.ContextID = "open", "d" }, a2a.ErrInvalidParams},
		"ended task":      {func(q *query) { q.Message.TaskID = "done" }, a2a.ErrUnsupportedOperation},
		"working task":    {func(q *query) { q.Message.TaskID = "working" }, a2a.ErrUnsupportedOperation},
		"unknown task":    {func(q *query) { q.Message.TaskID = "none" }, a2a.ErrTaskNotFound},
	} {
		if err := ask(c.change); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRejectedPayment: a client that rejects the payment ends a task that waits for it, once, and no other task.
func TestRejectedPayment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := New(Options{})
		state := rapid.SampledFrom([]a2a.TaskState{a2a.TaskStateInputRequired, a2a.TaskStateCompleted,
			a2a.TaskStateWorking, a2a.TaskStateFailed}).Draw(rt, "state")
		if err := s.tasks.put(&a2a.Task{ID: "t", ContextID: "c", Status: status(state, nil)}); err != nil {
			rt.Fatal(err)
		}
		m := said(a2a.NewTextPart("no"))
		m.TaskID, m.Metadata = "t", map[string]any{x402.A2AStatus: paymentRejected}
		_, err := s.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: m})
		got, lost := s.tasks.get("t")
		if lost != nil {
			rt.Fatal(lost)
		}
		want := state
		if state == a2a.TaskStateInputRequired {
			want = a2a.TaskStateCanceled
		}
		if got.Status.State != want || (err == nil) != (want == a2a.TaskStateCanceled) {
			rt.Fatalf("%s became %s: %v", state, got.Status.State, err)
		}
		if _, err := s.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: m}); err == nil {
			rt.Fatal("it is rejected twice")
		}
	})
}
