package serve_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"repute/agent"
	"repute/agent/a2aserver"
	"repute/internal/pgtest"
	"repute/x402"
)

// rpc posts a message of JSON-RPC, and returns the whole answer as text and its result.
func (s *shop) rpc(t testing.TB, method, params string) (text string, result map[string]any) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+a2aserver.Path, strings.NewReader(body))
	ok(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Extensions", x402.A2AExtensionURI)
	res, err := http.DefaultClient.Do(r)
	ok(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	ok(t, err)
	if got := res.Header.Get("A2A-Extensions"); got != x402.A2AExtensionURI {
		t.Errorf("%s: extensions %q", method, got)
	}
	var answer struct{ Result map[string]any }
	ok(t, json.Unmarshal(raw, &answer))
	return string(raw), answer.Result
}

// TestTaskForms: messages of version 0.3, texts of JSON, null, tasks that are not waited for, refusals
// of the client, and messages that belong to no task or to one that has ended.
func TestTaskForms(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{out: `{"none":null}`}
	slow := &echo{begun: make(chan struct{}, 1), block: make(chan struct{})}
	s := w.open(t, agent.Options{}, service(t, "for-free", h, nil, nil), service(t, "for-money", h, w.price(), nil),
		service(t, "for-long", slow, nil, nil))
	if text, got := s.rpc(t, "message/send",
		`{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data",
		"data":{"capability":"for-free","input":{"text":"x","more":null}}}]}}`); got["kind"] != "task" ||
		!strings.Contains(text, `"completed"`) || !strings.Contains(text, `"none":null`) {
		t.Errorf("%s", text)
	}
	message := func(parts, more string) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[` + parts + `]` + more + `}}`
	}
	for what, c := range map[string]struct{ params, wants string }{
		"a text of JSON": {message(`{"text":"{\"capability\":\"for-free\",\"input\":{\"text\":\"x\"}}"}`, ""),
			"STATE_COMPLETED"},
		"a skill":       {message(`{"data":{"text":"x"}}`, `,"metadata":{"skillId":"for-free"}`), "STATE_COMPLETED"},
		"no capability": {message(`{"data":{"text":"x"}}`, ""), `"agent402.status":400`},
		"another":       {message(`{"data":{"capability":"other","input":1}}`, ""), `"agent402.status":404`},
		"a wrong payment": {message(`{"data":{"text":"x"}}`,
			`,"metadata":{"skillId":"for-money","x402.payment.payload":5}`), `:400`},
		"no parts":     {message("", ""), `"code":-32602`},
		"no such task": {message(`{"text":"x"}`, `,"taskId":"other"`), `"code":-32001`},
	} {
		if text, _ := s.rpc(t, "SendMessage", c.params); !strings.Contains(text, c.wants) {
			t.Errorf("%s: %s", what, text)
		}
	}
	for method, params := range map[string]string{"ListTasks": `{}`, "GetExtendedAgentCard": `{}`,
		"CancelTask":                       `{"id":"x"}`,
		"CreateTaskPushNotificationConfig": `{"taskId":"x","url":"http://127.0.0.1/"}`} {
		if text, _ := s.rpc(t, method, params); !strings.Contains(text, `"error"`) {
			t.Errorf("%s: %s", method, text)
		}
	}
	s.clientRefuses(t, message)

	_, got := s.rpc(t, "SendMessage", `{"configuration":{"returnImmediately":true},`+
		message(`{"data":{"capability":"for-long","input":{"text":"x"}}}`, "")[1:])
	id, _ := got["task"].(map[string]any)["id"].(string)
	<-slow.begun
	if text, _ := s.rpc(t, "GetTask", `{"id":"`+id+`"}`); !strings.Contains(text, "STATE_WORKING") {
		t.Errorf("%s", text)
	}
	if text, _ := s.rpc(t, "CancelTask", `{"id":"`+id+`"}`); !strings.Contains(text, "STATE_CANCELED") {
		t.Errorf("%s", text)
	}
	s.tasks.Close() // its work has ended, though nothing lets it
	if text, _ := s.rpc(t, "CancelTask", `{"id":"`+id+`"}`); !strings.Contains(text, `"code":-32002`) {
		t.Errorf("a task that was canceled: %s", text)
	}
	if text, _ := s.rpc(t, "GetTask", `{"id":"`+id+`"}`); !strings.Contains(text, "STATE_CANCELED") {
		t.Errorf("%s", text)
	}
	close(slow.block)
	_, got = s.rpc(t, "SendMessage", `{"configuration":{"returnImmediately":true},`+
		message(`{"data":{"capability":"for-long","input":{"text":"x"}}}`, "")[1:])
	id, _ = got["task"].(map[string]any)["id"].(string)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, _ := s.rpc(t, "GetTask", `{"id":"`+id+`"}`)
		if strings.Contains(text, "STATE_COMPLETED") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s", text)
		}
	}
}

// clientRefuses has a client that does not pay.
func (s *shop) clientRefuses(t *testing.T, message func(parts, more string) string) {
	t.Helper()
	_, got := s.rpc(t, "SendMessage", message(`{"data":{"capability":"for-money","input":{"text":"x"}}}`, ""))
	id, _ := got["task"].(map[string]any)["id"].(string)
	refusal := message(`{"text":"no"}`, `,"taskId":"`+id+`","metadata":{"x402.payment.status":"payment-rejected"}`)
	if text, _ := s.rpc(t, "SendMessage", refusal); !strings.Contains(text, "STATE_CANCELED") {
		t.Errorf("%s", text)
	}
	if text, _ := s.rpc(t, "SendMessage", refusal); !strings.Contains(text, `"code":-32004`) {
		t.Errorf("a task that has ended takes a message: %s", text)
	}
}

// TestPaidTaskAfterRestart: another process on the same database tells about a paid task, signed; one
// that was not paid is forgotten.
func TestPaidTaskAfterRestart(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &echo{}
	pays, err := json.Marshal(w.Pay(t, w.Requirements(10)))
	ok(t, err)
	message := func(name, more string) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"capability":"` + name +
			`","input":{"text":"x"}}}]` + more + `}}`
	}
	services := func() []*agent.Service {
		return []*agent.Service{service(t, "for-money", h, w.price(), nil), service(t, "for-free", h, nil, nil)}
	}
	first := w.open(t, agent.Options{}, services()...)
	_, got := first.rpc(t, "SendMessage", message("for-money",
		`,"contextId":"c-1","metadata":{"x402.payment.status":"payment-submitted",
		"x402.payment.payload":`+string(pays)+`}`))
	before, _ := got["task"].(map[string]any)
	paid, _ := before["id"].(string)
	_, got = first.rpc(t, "SendMessage", message("for-free", ""))
	free, _ := got["task"].(map[string]any)["id"].(string)

	second := w.open(t, agent.Options{Payments: first.payments}, services()...)
	text, after := second.rpc(t, "GetTask", `{"id":"`+paid+`"}`)
	for _, want := range []string{"STATE_COMPLETED", `"contextId":"c-1"`, `"x402.payment.status":"payment-completed"`,
		`"run":1`,
		`"agent402.signature"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if h.count() != 2 || w.paid(t) != 10 || len(after) == 0 {
		t.Errorf("%d runs, %d paid", h.count(), w.paid(t))
	}
	if text, _ := second.rpc(t, "CancelTask", `{"id":"`+paid+`"}`); !strings.Contains(text, `"code":-32002`) {
		t.Errorf("%s", text)
	}
	if text, _ := second.rpc(t, "GetTask", `{"id":"`+free+`"}`); !strings.Contains(text, `"code":-32001`) {
		t.Errorf("%s", text)
	}
}

// TestTaskStreams: a stream tells when the work begins and what became of it, in both versions of the
// protocol; another one follows the task.
func TestTaskStreams(t *testing.T) {
	t.Parallel()
	slow := &echo{begun: make(chan struct{}, 9), block: make(chan struct{})}
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{service(t, "for-long", slow, nil, nil)}})
	stream := func(method, params string) (*bufio.Scanner, func()) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+a2aserver.Path,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`))
		ok(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(r)
		ok(t, err)
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			raw, _ := io.ReadAll(res.Body)
			t.Fatalf("%s: %s %s", method, res.Header.Get("Content-Type"), raw)
		}
		return bufio.NewScanner(res.Body), func() { _ = res.Body.Close() }
	}
	next := func(in *bufio.Scanner) string {
		for in.Scan() {
			if data, found := strings.CutPrefix(in.Text(), "data:"); found {
				return data
			}
		}
		return ""
	}
	events, closeOne := stream("SendStreamingMessage",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"capability":"for-long","input":{"text":"x"}}}]}}`)
	defer closeOne()
	first := next(events) // before the handler has ended
	<-slow.begun
	var told struct {
		Result struct{ Task struct{ ID string } }
	}
	ok(t, json.Unmarshal([]byte(first), &told))
	if !strings.Contains(first, "STATE_WORKING") || told.Result.Task.ID == "" {
		t.Fatalf("%s", first)
	}
	followed, closeTwo := stream("SubscribeToTask", `{"id":"`+told.Result.Task.ID+`"}`)
	defer closeTwo()
	if begin := next(followed); !strings.Contains(begin, "STATE_WORKING") {
		t.Errorf("%s", begin)
	}
	close(slow.block)
	for what, in := range map[string]*bufio.Scanner{"sender": events, "follower": followed} {
		artifact, last, end := next(in), next(in), next(in)
		if !strings.Contains(artifact, `"artifactUpdate"`) || !strings.Contains(artifact, `"run":1`) ||
			!strings.Contains(last, "STATE_COMPLETED") || end != "" {
			t.Errorf("%s: %s, %s, %s", what, artifact, last, end)
		}
	}
	old, closeOld := stream("message/stream",
		`{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data",
		"data":{"capability":"for-long","input":{"text":"x"}}}]}}`)
	defer closeOld()
	if all := next(old) + next(old) + next(old); !strings.Contains(all, `"working"`) ||
		!strings.Contains(all, `"completed"`) {
		t.Errorf("%s", all)
	}
	if got := s.ask(t, http.MethodGet, "/.well-known/agent-card.json", "", nil); !strings.Contains(got.body,
		`"streaming": true`) ||
		strings.Contains(got.body, `"pushNotifications"`) {
		t.Errorf("%s", got.body)
	}
}
