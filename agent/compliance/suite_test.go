package compliance

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"repute"
)

// TestOptionsAreChecked: wrong options are refused before anything is asked, with the option and what to write.
func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o          Options
		field, fix string
	}{
		{Options{}, "url", "http://HOST:PORT"},
		{Options{URL: "agent.example"}, "url", "http://HOST:PORT"},
		{Options{URL: "ftp://agent.example"}, "url", "https://HOST"},
		{Options{URL: "http://"}, "url", "https://HOST"},
		{Options{URL: "https://a.example", Mode: "asleep"}, "expect-mode", "normal, degraded or shutdown"},
		{Options{URL: "https://a.example", Input: json.RawMessage(`{`)}, "input", "an input of the capability"},
	} {
		r, err := Run(t.Context(), c.o)
		var wrong *repute.InputError
		if !errors.As(err, &wrong) || wrong.Field != c.field || !strings.Contains(wrong.Hint, c.fix) || r != nil {
			t.Errorf("%+v: %+v, %v", c.o, r, err)
		}
	}
	s, err := newSuite(Options{URL: "https://a.example:8443/base//"})
	if err != nil || s.o.URL != "https://a.example:8443/base" || s.host != "a.example" || !s.secure ||
		s.o.Mode != Normal || s.o.MaxBody != DefaultMaxBody || s.o.MaxPay != DefaultMaxPay || s.o.Timeout <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestExit: a failed check outweighs one that could not be made.
func TestExit(t *testing.T) {
	t.Parallel()
	passed, skipped, failed := Check{OK: true}, Check{Skipped: true}, Check{}
	for want, r := range map[int]*Report{0: {OK: true, Checks: []Check{passed}},
		2: {OK: true, Checks: []Check{passed, skipped}}, 1: {Checks: []Check{skipped, failed}}} {
		if got := r.Exit(); got != want {
			t.Errorf("%+v: %d, not %d", r, got, want)
		}
	}
}

// TestShown: what is shown of a runtime is one line of bounded length, whatever it was.
func TestShown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		got := shown(text)
		if n := utf8.RuneCountInString(got); n > 400 || strings.ContainsAny(got, "\r\n\t\x1b\x00\x7f") {
			rt.Fatalf("%d characters: %q", n, got)
		}
	})
	if got := shown(strings.Repeat("ä", 500)); got != strings.Repeat("ä", 400) {
		t.Errorf("%q", got)
	}
}

// TestPlain: the name of a capability that could lead a request elsewhere is no part of a path.
func TestPlain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"echo", "code-review", "v2.sum_up", "Echo", strings.Repeat("a", 100)} {
		if !plain(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", "a/b", "../admin", "a?b=c", "a#b", "a%2fb", "a b", "a\\b", "é", "a\x00",
		strings.Repeat("a", 101)} {
		if plain(name) {
			t.Errorf("%q is taken", name)
		}
	}
}

// TestOther: the other input is valid JSON that differs in exactly one text, and there is none without a text.
func TestOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		members := map[string]any{}
		for _, name := range rapid.SliceOfDistinct(rapid.StringMatching(`[a-z]{1,4}`), rapid.ID).Draw(rt, "names") {
			members[name] = rapid.OneOf(rapid.String().AsAny(), rapid.Float64Range(-9, 9).AsAny(),
				rapid.Bool().AsAny(), rapid.Just[any](nil)).Draw(rt, "value")
		}
		input, err := json.Marshal(members)
		if err != nil {
			rt.Fatal(err)
		}
		texts := 0
		for _, v := range members {
			if _, is := v.(string); is {
				texts++
			}
		}
		got, ok := other(input)
		if ok != (texts > 0) {
			rt.Fatalf("%s: %t", input, ok)
		}
		if !ok {
			return
		}
		var before, after map[string]any
		if json.Unmarshal(input, &before) != nil || json.Unmarshal(got, &after) != nil || len(before) != len(after) {
			rt.Fatalf("%s became %s", input, got)
		}
		changed := 0
		for name := range before {
			if before[name] != after[name] {
				changed++
			}
		}
		if changed != 1 {
			rt.Fatalf("%s became %s", input, got)
		}
	})
	for _, input := range []string{"", "[]", `"text"`, "null", "{"} {
		if got, ok := other(json.RawMessage(input)); ok {
			t.Errorf("%s became %s", input, got)
		}
	}
}

// TestCandidates: the operator's own request is the first, no capability is asked that a path cannot name, and a
// runtime that names thousands is asked for a bounded number.
func TestCandidates(t *testing.T) {
	t.Parallel()
	s := &suite{o: Options{Capability: "sum", Input: json.RawMessage(`{"a":1}`)},
		state: health{Capabilities: []string{"../admin", "sum", "echo"}}}
	var got []string
	for _, q := range s.candidates() {
		got = append(got, q.name+" "+string(q.input))
	}
	if want := []string{`sum {"a":1}`, `echo {"a":1}`, `echo {"text":"hello"}`, `echo {}`}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	s = &suite{}
	for range 5000 {
		s.state.Capabilities = append(s.state.Capabilities, "echo")
	}
	if n := len(s.candidates()); n != 2*maxCapabilities {
		t.Errorf("%d requests", n)
	}
}

// TestProblem: an error of appendix B has a media type of JSON, error and message, and a status that is the answer's.
func TestProblem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ media, body, why string }{
		"plain":          {"application/json", `{"error":"invalid","message":"x"}`, ""},
		"details":        {"application/problem+json; charset=utf-8", `{"error":"a","message":"b","status":400}`, ""},
		"html":           {"text/html", `<p>`, "Content-Type"},
		"no media type":  {"", `{"error":"a","message":"b"}`, "Content-Type"},
		"no object":      {"application/json", `["error"]`, "no JSON object"},
		"null":           {"application/json", `null`, "no JSON object"},
		"no message":     {"application/json", `{"error":"a"}`, "member message"},
		"empty error":    {"application/json", `{"error":"","message":"b"}`, "member error"},
		"error, number":  {"application/json", `{"error":400,"message":"b"}`, "member error"},
		"another status": {"application/json", `{"error":"a","message":"b","status":500}`, "the answer has 400"},
	} {
		a := &answer{what: "POST /capability/x", status: 400, header: http.Header{"Content-Type": {c.media}},
			body: []byte(c.body)}
		err := a.problem()
		if (err == nil) != (c.why == "") || err != nil && (!strings.Contains(err.Error(), c.why) ||
			!strings.Contains(err.Error(), a.what)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIs: the error of an answer names the request, what it got and what was wanted.
func TestIs(t *testing.T) {
	t.Parallel()
	var none *answer
	if none.is(200) == nil {
		t.Error("no answer is one")
	}
	broken := errors.New("connection refused")
	if err := (&answer{what: "GET /x", status: 200, err: broken}).is(200); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	err := (&answer{what: "GET /x", status: 418, body: []byte(strings.Repeat("y", 1000))}).is(200, 404)
	if err == nil || !strings.HasPrefix(err.Error(), "GET /x is answered with 418, wanted is 200 or 404: yyy") ||
		len(err.Error()) > 200 {
		t.Errorf("%v", err)
	}
}

// TestRegistrationFile: the error names the member of appendix A that is missing or of another agent.
func TestRegistrationFile(t *testing.T) {
	t.Parallel()
	const good = `{"agentId":"7","name":"Echo","version":"1.0.0","endpoints":{"http":"x"},"registrations":[{"agentId":7}]}`
	if err := registrationFile([]byte(good), "7"); err != nil {
		t.Error(err)
	}
	for old, c := range map[string]struct{ new, why string }{
		`"agentId":"7",`:    {`"agentId":7,`, "is of agent 7"},
		`"Echo"`:            {`""`, "has no name"},
		`"1.0.0"`:           {`"1.0"`, "wanted are three numbers"},
		`{"http":"x"}`:      {`{}`, "has no endpoints"},
		`[{"agentId":7}]`:   {`[{"agentId":70}]`, "do not name agent 7"},
		`{"agentId":"7","n`: {`[{"agentId":"7","n`, "no JSON"},
	} {
		err := registrationFile([]byte(strings.Replace(good, old, c.new, 1)), "7")
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

// TestShutdownIsNotAsked: an agent that is expected to accept nothing is asked for one capability, which it has to
// refuse. Its checks of payments are skipped and say so.
func TestShutdownIsNotAsked(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(r.URL.Path, "/capability/") {
			asked++
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/health" {
			_, _ = w.Write([]byte(`{"status":"shutdown","agentId":"7","version":"1.0.0","uptime":1,"capabilities":["echo"],` +
				`"acceptingRequests":false}`))
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":"shutdown","message":"the agent accepts nothing"}`))
	}))
	defer s.Close()
	r, err := Run(t.Context(), Options{URL: s.URL, Mode: Shutdown, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 {
		t.Errorf("%d requests for capabilities", asked)
	}
	outcome := map[string]Check{}
	for _, c := range r.Checks {
		outcome[c.ID] = c
	}
	for _, id := range []string{"mode", "ready", "health"} {
		if c := outcome[id]; !c.OK {
			t.Errorf("%+v", c)
		}
	}
	for _, id := range []string{"payment-headers", "task-hash", "paid", "free", "invalid-400", "unknown-404"} {
		if c := outcome[id]; !c.Skipped || c.OK || c.Detail == "" {
			t.Errorf("%s: %+v", id, c)
		}
	}
	if r.Exit() != 1 || outcome["signatures"].OK {
		t.Errorf("an unsigned agent passes: %+v", outcome["signatures"])
	}
}
