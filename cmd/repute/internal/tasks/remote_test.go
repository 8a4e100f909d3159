package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"repute"
	"repute/cmd/repute/internal/apiclient"
	"repute/cmd/repute/internal/cli"
)

// orchestrator answers each "METHOD path" with the next of its texts, the last one again and again, and keeps what it
// was asked. What it has no text for is not found.
type orchestrator struct {
	*httptest.Server
	mu     sync.Mutex
	texts  map[string][]string
	asked  []string
	bodies []string // of the requests, in the same order
}

func newOrchestrator(t *testing.T, texts map[string][]string) *orchestrator {
	t.Helper()
	o := &orchestrator{texts: texts}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		o.mu.Lock()
		defer o.mu.Unlock()
		what := r.Method + " " + r.URL.RequestURI()
		o.asked, o.bodies = append(o.asked, what), append(o.bodies, string(body))
		list := o.texts[what]
		if len(list) == 0 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if len(list) > 1 {
			o.texts[what] = list[1:]
		}
		_, _ = w.Write([]byte(list[0]))
	}))
	t.Cleanup(o.Close)
	return o
}

// run runs a command that asks the orchestrator.
func (o *orchestrator) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return run(t, append(args, "--orchestrator", o.URL)...)
}

// A stream that is cut off is asked for again from the last whole event, so that no event is printed twice and none is
// left out. The result follows the last event.
func TestWatchContinues(t *testing.T) {
	t.Parallel()
	event := func(n int) string {
		return fmt.Sprintf("id: %d\ndata: {\"runId\":\"r\",\"kind\":\"event%d\",\"data\":{}}\n\n", n, n)
	}
	o := newOrchestrator(t, map[string][]string{
		"GET /v1/tasks/t":               {`{"id":"t","runId":"r"}`},
		"GET /v1/runs/r/events?after=0": {event(1) + event(2) + "id: 3\ndata: {\"runI"[:6]},
		"GET /v1/runs/r/events?after=2": {event(3)},
		"GET /v1/runs/r":                {`{"id":"r","status":"running"}`, `{"id":"r","status":"completed"}`},
	})
	out, err := o.run(t, "task", "watch", "t", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var e struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "event1 event2 event3 result" {
		t.Errorf("printed %s", got)
	}
}

// An answer goes to the run that itself waits, which is the last one: the runs above it wait for it. An id that is no
// task's is a run's.
func TestApproveFindsTheWaitingRun(t *testing.T) {
	t.Parallel()
	o := newOrchestrator(t, map[string][]string{
		"GET /v1/tasks/t": {`{"id":"t","runId":"r1","runs":[{"id":"r1","awaiting":"awaiting_approval"},
			{"id":"r2"},{"id":"r3","awaiting":"awaiting_approval"},{"id":"r4"}]}`},
		"GET /v1/tasks/none":        {`{"id":"none","runId":"r1","runs":[{"id":"r1"}]}`},
		"POST /v1/runs/r3/approval": {"{}"},
		"POST /v1/runs/r9/approval": {"{}"},
		"POST /v1/runs/r1/approval": {"{}"},
		"GET /v1/runs/r3":           {`{"id":"r3","awaited":[{"subject":"pay:1","reasons":[]}]}`},
		"GET /v1/runs/r1":           {`{"id":"r1","awaited":[]}`},
	})
	for _, c := range []struct{ id, run, flags, body, said string }{
		{"t", "r3", "", `{"subject":"pay:1","approved":true}`, "approved\n"},
		{"r9", "r9", "--deny", `{"subject":"pay:1","approved":false}`, "denied\n"},
		{"none", "r1", "--reason=why", `{"subject":"pay:1","approved":true,"reason":"why"}`, "approved\n"},
	} {
		out, err := o.run(t, append([]string{"task", "approve", c.id, "--subject", "pay:1"},
			strings.Fields(c.flags)...)...)
		last := len(o.asked) - 1
		if err != nil || out != c.said || o.asked[last] != "POST /v1/runs/"+c.run+"/approval" ||
			o.bodies[last] != c.body {
			t.Errorf("%s: %q, %v, asked %s %s", c.id, out, err, o.asked[last], o.bodies[last])
		}
	}
	out, err := o.run(t, "task", "approve", "t")
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(out, "pay:1") ||
		!strings.Contains(err.Error(), "pay:1") {
		t.Errorf("without a subject what is asked is shown: %q, %v", out, err)
	}
	if _, err := o.run(t, "task", "approve", "none"); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("nothing is pending: %v", err)
	}
}

// Ids of callers are parts of paths, and cannot lead to another route.
func TestIdsAreEscaped(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"t": "t", "../runs/x": "..%2Fruns%2Fx",
		"a?b#c": "a%3Fb%23c", "a b": "a%20b"} {
		if got := taskPath(id, "/cancel"); got != "/v1/tasks/"+want+"/cancel" {
			t.Errorf("%q: %s", id, got)
		}
		if got := runPath(id, ""); got != "/v1/runs/"+want {
			t.Errorf("%q: %s", id, got)
		}
	}
}

// The body of a task has the flags that were given. A bound of 0 allows nothing, and is not the same as no bound.
func TestSubmitSendsWhatWasGiven(t *testing.T) {
	t.Parallel()
	o := newOrchestrator(t, map[string][]string{"POST /v1/tasks": {`{"id":"t","runId":"r"}`}})
	for flags, want := range map[string]string{
		"": `{"goal":"do it","coordinatorSlug":"coordinator"}`,
		"--coordinator c --key k --tag a,b --value-at-risk 5": `{"goal":"do it","coordinatorSlug":"c",` +
			`"valueAtRisk":"5","tags":["a","b"],"idempotencyKey":"k"}`,
		"--max-steps 0 --max-gas 7":            `"budget":{`,
		"--min-reputation 0 --input {\"a\":1}": `"input":{"a":1}`,
	} {
		out, err := o.run(t, append([]string{"task", "submit", "do it"}, strings.Fields(flags)...)...)
		body := o.bodies[len(o.bodies)-1]
		if err != nil || out != "task t\nrun  r\n" || !strings.Contains(body, want) {
			t.Errorf("%s: %q, %v, sent %s", flags, out, err, body)
		}
		if strings.Contains(flags, "max-steps") != strings.Contains(body, `"maxSteps":0`) ||
			strings.Contains(flags, "min-reputation") != strings.Contains(body, `"minReputation":0`) {
			t.Errorf("%s: sent %s", flags, body)
		}
	}
	asked := len(o.asked)
	for _, flags := range []string{"--input {", "--max-steps x"} {
		if _, err := o.run(t, append([]string{"task", "submit", "do it"}, strings.Fields(flags)...)...); err == nil {
			t.Errorf("%s: submitted", flags)
		}
	}
	if len(o.asked) != asked {
		t.Errorf("wrong flags were sent: %v", o.asked[asked:])
	}
}

// The phase to begin with is checked before anything is asked, and left out where the failed one is meant.
func TestRetryPhase(t *testing.T) {
	t.Parallel()
	o := newOrchestrator(t, map[string][]string{"POST /v1/tasks/t/retry": {"{}"}})
	for from, want := range map[string]string{"": "{}", "plan": `{"from":"plan"}`} {
		args := []string{"task", "retry", "t"}
		if from != "" {
			args = append(args, "--from", from)
		}
		if out, err := o.run(t, args...); err != nil || out != "begun again\n" || o.bodies[len(o.bodies)-1] != want {
			t.Errorf("from %q: %q, %v, sent %s", from, out, err, o.bodies[len(o.bodies)-1])
		}
	}
	asked := len(o.asked)
	if _, err := o.run(t, "task", "retry", "t", "--from", "dance"); !errors.Is(err, repute.ErrInvalid) ||
		!strings.Contains(err.Error(), "discover") || len(o.asked) != asked {
		t.Errorf("an unknown phase: %v, asked %v", err, o.asked[asked:])
	}
}

// The pages of a check are joined. One page that is not verified makes the whole not verified, and pages of a server
// that do not end are refused.
func TestVerifyGateJoinsPages(t *testing.T) {
	t.Parallel()
	const first = "GET /v1/runs/r/gate:verify?limit=50"
	page := func(verified bool, n int, next string) string {
		return fmt.Sprintf(`{"verified":%t,"decisions":[{"number":%d,"verified":%t}],"nextCursor":%q}`, verified, n,
			verified, next)
	}
	for name, c := range map[string]struct {
		pages    map[string][]string
		verified bool
		numbers  int
		err      error
	}{
		"one": {map[string][]string{first: {page(true, 1, "")}}, true, 1, nil},
		"three": {map[string][]string{first: {page(true, 1, "a")}, first + "&cursor=a": {page(true, 2, "b&c")},
			first + "&cursor=b%26c": {page(true, 3, "")}}, true, 3, nil},
		"first wrong": {map[string][]string{first: {page(false, 1, "a")},
			first + "&cursor=a": {page(true, 2, "")}}, false, 2,
			nil},
		"last wrong": {map[string][]string{first: {page(true, 1, "a")},
			first + "&cursor=a": {page(false, 2, "")}}, false, 2,
			nil},
		"endless": {map[string][]string{first: {page(true, 1, "a")},
			first + "&cursor=a": {page(true, 2, "a")}}, false, 0,
			repute.ErrLimited},
	} {
		o := newOrchestrator(t, c.pages)
		e := &remoteClient{apiclient.Client{URL: o.URL}}
		check, err := e.verifyGate(t.Context(), "r")
		if !errors.Is(err, c.err) || c.err == nil && (check.Verified != c.verified ||
			len(check.Decisions) != c.numbers) {
			t.Errorf("%s: %+v, %v", name, check, err)
		}
	}
}

// A run whose decisions do not verify is shown, and the command exits with 1.
func TestShowOfUnverifiedRun(t *testing.T) {
	t.Parallel()
	for verified, code := range map[bool]int{true: 0, false: 1} {
		o := newOrchestrator(t, map[string][]string{
			"GET /v1/tasks/t":                     {`{"id":"t","runId":"r"}`},
			"GET /v1/runs/r":                      {`{"id":"r","taskId":"t","agentSlug":"a","status":"completed"}`},
			"GET /v1/runs/r/gate:verify?limit=50": {fmt.Sprintf(`{"verified":%t,"note":"unsigned"}`, verified)},
		})
		out, err := o.run(t, "run", "show", "t", "--verify-gate")
		var exit cli.ExitError
		if errors.As(err, &exit) != (code != 0) || exit.Code != code || !strings.Contains(out, "r of task t") ||
			!strings.Contains(out, "note     unsigned\n") {
			t.Errorf("verified %t: %v, printed %s", verified, err, out)
		}
	}
}
