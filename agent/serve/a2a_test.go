package serve_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"repute/agent"
	"repute/agent/a2aserver"
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
	if text, got := s.rpc(t, "message/send", `{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"data",
		"data":{"capability":"for-free","input":{"text":"x","more":null}}}]}}`); got["kind"] != "task" ||
		!strings.Contains(text, `"completed"`) || !strings.Contains(text, `"none":null`) {
		t.Errorf("%s", text)
	}
	message := func(parts, more string) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[` + parts + `]` + more + `}}`
	}
	for what, c := range map[string]struct{ params, wants string }{
		"a text of JSON":  {message(`{"text":"{\"capability\":\"for-free\",\"input\":{\"text\":\"x\"}}"}`, ""), "STATE_COMPLETED"},
		"a skill":         {message(`{"data":{"text":"x"}}`, `,"metadata":{"skillId":"for-free"}`), "STATE_COMPLETED"},
		"no capability":   {message(`{"data":{"text":"x"}}`, ""), `"agent402.status":400`},
		"another":         {message(`{"data":{"capability":"other","input":1}}`, ""), `"agent402.status":404`},
		"a wrong payment": {message(`{"data":{"text":"x"}}`, `,"metadata":{"skillId":"for-money","x402.payment.payload":5}`), `:400`},
		"no parts":        {message("", ""), `"code":-32602`},
		"no such task":    {message(`{"text":"x"}`, `,"taskId":"other"`), `"code":-32001`},
	} {
		if text, _ := s.rpc(t, "SendMessage", c.params); !strings.Contains(text, c.wants) {
			t.Errorf("%s: %s", what, text)
		}
	}
	for method, params := range map[string]string{"ListTasks": `{}`, "GetExtendedAgentCard": `{}`, "CancelTask": `{"id":"x"}`,
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
	if text, _ := s.rpc(t, "CancelTask", `{"id":"`+id+`"}`); !strings.Contains(text, `"code":-32002`) {
		t.Errorf("%s", text)
	}
	close(slow.block)
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
