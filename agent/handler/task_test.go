package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/agent/capability"
	"repute/agent/handler"
)

// planner answers requests of tasks: each path with its statuses and bodies in order, the last again.
type planner struct {
	t       *testing.T
	answers map[string][]string // "METHOD path": bodies, beginning with another status
	seen    map[string]*atomic.Int32
}

func (p *planner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.Path
	list := p.answers[key]
	if len(list) == 0 {
		p.t.Errorf("unexpected request: %s", key)
		http.Error(w, "secret", http.StatusNotFound)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if key == "POST /v1/tasks" && (r.Header.Get("Idempotency-Key") != "r-1" ||
		r.Header.Get("Authorization") != "Bearer token" || !strings.Contains(string(body), `"input":{"text":"hi"}`)) {
		p.t.Errorf("the orchestrator got %s", body)
	}
	n := int(p.seen[key].Add(1)) - 1
	answer := list[min(n, len(list)-1)]
	if code, rest, has := strings.Cut(answer, "|"); has {
		w.WriteHeader(map[string]int{"401": 401, "500": 500, "503": 503, "400": 400}[code])
		answer = rest
	}
	_, _ = io.WriteString(w, answer)
}

// plan serves answers and returns a handler that asks for them.
func plan(t *testing.T, answers map[string][]string) (*handler.Task, *planner) {
	t.Helper()
	p := &planner{t: t, answers: answers, seen: map[string]*atomic.Int32{}}
	for key := range answers {
		p.seen[key] = &atomic.Int32{}
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return &handler.Task{URL: s.URL + "/", Token: "token", Goal: "echo", Client: s.Client(), Poll: time.Millisecond}, p
}

const (
	submit = "POST /v1/tasks"
	ask    = "GET /v1/tasks/t1"
	result = "GET /v1/runs/r1"
)

func TestTaskAnswers(t *testing.T) {
	t.Parallel()
	pending, done := `{"id":"t1","runId":"r1","status":"pending"}`, `{"id":"t1","runId":"r1","status":"completed"}`
	one := `{"steps":[{"stepId":"a","result":{"n":1}},{"stepId":"skipped"}]}`
	two := `{"steps":[{"stepId":"a","result":{"n":1}},{"stepId":"b","result":2}]}`
	tests := map[string]struct {
		answers    map[string][]string
		step, want string
		err        error
	}{
		"only step": {map[string][]string{submit: {pending}, ask: {pending, done}, result: {one}}, "",
			`{"n":1}`, nil},
		"named step":  {map[string][]string{submit: {done}, result: {two}}, "b", `2`, nil},
		"all steps":   {map[string][]string{submit: {done}, result: {two}}, "", `{"a":{"n":1},"b":2}`, nil},
		"absent step": {map[string][]string{submit: {done}, result: {two}}, "c", "", handler.ErrFailed},
		"asked again": {map[string][]string{submit: {pending}, ask: {`503|`, done}, result: {one}}, "",
			`{"n":1}`, nil},
		"failed": {map[string][]string{submit: {pending}, ask: {`{"status":"failed","error":"secret"}`}}, "", "",
			handler.ErrFailed},
		"rejected":      {map[string][]string{submit: {`{"id":"t1","status":"rejected"}`}}, "", "", handler.ErrFailed},
		"refused token": {map[string][]string{submit: {`401|secret`}}, "", "", repute.ErrUnavailable},
		"refused input": {map[string][]string{submit: {`400|secret`}}, "", "", handler.ErrFailed},
		"no capacity":   {map[string][]string{submit: {`503|secret`}}, "", "", repute.ErrUnavailable},
		"no JSON":       {map[string][]string{submit: {`secret`}}, "", "", handler.ErrFailed},
		"gone task": {map[string][]string{submit: {pending}, ask: {`500|secret`},
			"POST /v1/tasks/t1/cancel": {pending}}, "", "", handler.ErrFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := plan(t, tt.answers)
			h.Step = tt.step
			out, err := h.Run(t.Context(), request())
			if !errors.Is(err, tt.err) || string(out) != tt.want {
				t.Errorf("got %s, %v; want %s, %v", out, err, tt.want, tt.err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the orchestrator: %v", err)
			}
		})
	}
	gone := &handler.Task{URL: "http://127.0.0.1:1", Client: http.DefaultClient}
	if _, err := gone.Run(t.Context(), request()); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// TestTaskIsCanceled: a task that does not end in time is canceled, but not the task of a paid call
// that ends with the process: the repeated call waits for it.
func TestTaskIsCanceled(t *testing.T) {
	t.Parallel()
	running := `{"id":"t1","runId":"r1","status":"running","awaiting":"awaiting_approval"}`
	const cancel = "POST /v1/tasks/t1/cancel"
	for name, tt := range map[string]struct {
		paid, late bool
		want       int32
	}{"late": {true, true, 1}, "paid": {true, false, 0}, "free": {false, false, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p := plan(t, map[string][]string{submit: {running}, ask: {running}, cancel: {running}})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if tt.late {
				ctx, stop = context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer stop()
			} else {
				time.AfterFunc(100*time.Millisecond, stop)
			}
			c := request()
			if tt.paid {
				c.Payment = &capability.Payment{}
			}
			_, err := h.Run(ctx, c)
			if errors.Is(err, handler.ErrTimeout) != tt.late || !tt.late && !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if n := p.seen[cancel].Load(); n != tt.want {
				t.Errorf("canceled %d times", n)
			}
		})
	}
}

// FuzzTaskAnswer: no answer of an orchestrator makes an answer that is no JSON.
func FuzzTaskAnswer(f *testing.F) {
	f.Add(`{"id":"t1","runId":"r1","status":"completed"}`, `{"steps":[{"stepId":"a","result":{"n":1}}]}`)
	f.Add(`{"id":"t1","runId":"r1","status":"completed"}`, `{"steps":null}`)
	f.Fuzz(func(t *testing.T, task, run string) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/tasks") {
				_, _ = io.WriteString(w, task)
				return
			}
			_, _ = io.WriteString(w, run)
		}))
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		h := &handler.Task{URL: s.URL, Client: s.Client(), Poll: time.Millisecond}
		if out, err := h.Run(ctx, request()); err == nil && !json.Valid(out) {
			t.Errorf("%q", out)
		}
	})
}
