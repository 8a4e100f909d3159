package control_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/remote"
)

var update = flag.Bool("update", false, "write the golden file")

// golden is the OpenAPI document of everything that is served.
const golden = "../../docs/reference/openapi.json"

// A change of the contract must be seen: raise its version, then run with -update.
func TestContract(t *testing.T) {
	t.Parallel()
	got := ask(new(options).handler(t), "/openapi.json", "192.0.2.1:1")
	if kind := got.Header().Get("Content-Type"); kind != "application/openapi+json" {
		t.Errorf("content type %s", kind)
	}
	want, err := os.ReadFile(golden)
	if got.Body.String() == string(want) {
		return
	}
	was, is := versionOf(t, string(want)), versionOf(t, got.Body.String())
	switch {
	case err == nil && was == is:
		t.Errorf("the OpenAPI document changed, its version did not (%s): raise apiVersion in internal/httpapi/openapi.go, "+
			"then go test ./orchestrator/control -run TestContract -update", is)
	case *update:
		ok(t, os.WriteFile(golden, got.Body.Bytes(), 0o644))
	default:
		t.Errorf("the OpenAPI document differs from %s (%v): go test ./orchestrator/control -run TestContract -update",
			golden, err)
	}
}

// versionOf is the version of a document, empty where there is none yet.
func versionOf(t *testing.T, doc string) string {
	t.Helper()
	var d struct {
		OpenAPI string
		Info    struct{ Version string }
	}
	if doc == "" {
		return ""
	}
	ok(t, json.Unmarshal([]byte(doc), &d))
	if !strings.HasPrefix(d.OpenAPI, "3.1.") {
		t.Errorf("OpenAPI %s", d.OpenAPI)
	}
	return d.Info.Version
}

// The protocol of agents elsewhere is served beside the contract.
func TestProtocolOfAgentsIsServed(t *testing.T) {
	t.Parallel()
	w := ask(new(options).handler(t), "/v1/agents/openapi.json", "192.0.2.1:1")
	if w.Code != http.StatusOK || w.Body.String() != string(remote.OpenAPI()) {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
}

// TestDocsShowWhatIsServed finds every OpenAPI document on the page /docs, and serves it.
func TestDocsShowWhatIsServed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../web/templates/docs.html")
	ok(t, err)
	h := new(options).handler(t)
	shown := regexp.MustCompile(`href="([^"]+)" data-openapi`).FindAllStringSubmatch(string(page), -1)
	var paths []string
	for _, link := range shown {
		paths = append(paths, link[1])
		w := ask(h, "/"+link[1], "192.0.2.1:1")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/openapi+json" {
			t.Errorf("%s: %d %v", link[1], w.Code, w.Header())
		}
	}
	if want := []string{"openapi.json", "v1/agents/openapi.json"}; !slices.Equal(paths, want) {
		t.Errorf("/docs shows %v, want %v", paths, want)
	}
}

// A task from asking to its run, as a client sees it.
func TestTaskThroughTheRoutes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	const body = `{"goal":"do <it>","input":{"n":1},"budget":{"maxSteps":3},"valueAtRisk":"5"}`
	first := h.ann(http.MethodPost, "/v1/tasks", body, "Idempotency-Key", "once")
	var task, again control.Task
	h.into(first, http.StatusCreated, &task)
	if got := first.header.Get("Location"); got != "/v1/tasks/"+task.ID {
		t.Errorf("location %s", got)
	}
	if h.into(h.ann(http.MethodPost, "/v1/tasks", body, "Idempotency-Key", "once"), http.StatusOK,
		&again); again.ID != task.ID {
		t.Errorf("the same key made %s beside %s", again.ID, task.ID)
	}
	if r := h.ann(http.MethodPost, "/v1/tasks", `{"goal":"other"}`, "Idempotency-Key",
		"once"); r.status != http.StatusConflict {
		t.Errorf("the same key for another task: %d %s", r.status, r.body)
	}
	run := h.ended(task)
	if run.Status != repute.RunCompleted || len(run.Phases) != 9 || run.Used.Steps != 1 || run.Limits.Steps != 3 ||
		run.GateDecision == nil || run.GateDecision.Effect != "allow" {
		t.Errorf("run %+v", run)
	}
	if len(run.Steps) != 1 || run.Steps[0].Status != "completed" || run.Summary == nil ||
		run.Summary.Text != "did it" ||
		len(run.Decisions) != 2 {
		t.Errorf("steps %+v, summary %+v, decisions %+v", run.Steps, run.Summary, run.Decisions)
	}
	raw := h.call(http.MethodGet, "/v1/runs/"+run.ID, "")
	if strings.ContainsAny(string(raw.body), "<>") {
		t.Errorf("an answer holds markup: %s", raw.body)
	}
	var receipts control.ReceiptList
	h.into(h.call(http.MethodGet, "/v1/runs/"+run.ID+"/receipts?limit=1", ""), http.StatusOK, &receipts)
	if len(receipts.Receipts) != 1 || receipts.Receipts[0].Kind != repute.CallDryRun &&
		receipts.Receipts[0].Kind != repute.CallVerification {
		t.Errorf("receipts %+v", receipts)
	}
	var check control.GateCheck
	h.into(h.call(http.MethodGet, "/v1/runs/"+run.ID+"/gate:verify", ""), http.StatusOK, &check)
	if !check.Verified || len(check.Decisions) != 1 {
		t.Errorf("gate %+v", check)
	}
	if r := h.call(http.MethodGet, "/v1/runs/"+run.ID+"/gate", ""); r.status != http.StatusNotFound {
		t.Errorf("/gate answers %d", r.status)
	}
}

// TestRunShowsTheNewestDecisions bounds the decisions in an answer about a run.
func TestRunShowsTheNewestDecisions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	run := h.ended(h.submit(`{"goal":"g","coordinatorSlug":"plain"}`))
	_, err := h.db.Pool().Exec(t.Context(),
		`insert into run_decisions (root_id, run_id, number, attempt, phase, kind, subject, effect, reasons, policy, input, at, previous, hash)
		select root_id, run_id, number + n, attempt, phase, kind, 'copy ' || n, effect, reasons, policy, input, at,
			previous, hash
		from run_decisions, generate_series(10, 309) n where run_id = $1 and number = 1`, run.ID)
	if err != nil {
		t.Fatal(err)
	}
	var got control.Run
	h.into(h.call(http.MethodGet, "/v1/runs/"+run.ID, ""), http.StatusOK, &got)
	if n := len(got.Decisions); n != 200 || got.Decisions[n-1].Subject != "copy 309" ||
		got.Decisions[0].Subject != "copy 110" {
		t.Errorf("%d decisions, from %q to %q", n, got.Decisions[0].Subject, got.Decisions[n-1].Subject)
	}
}

// Pages of tasks hold each task once, in order.
func TestTaskPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	made := map[string]bool{}
	for i := range 5 {
		made[h.submit(fmt.Sprintf(`{"goal":"task %d","coordinatorSlug":"plain"}`, i)).ID] = true
	}
	cursor, seen := "", 0
	for {
		var page control.TaskList
		h.into(h.call(http.MethodGet, "/v1/tasks?limit=2&coordinator=plain"+cursor, ""), http.StatusOK, &page)
		for _, task := range page.Tasks {
			if seen++; !made[task.ID] {
				t.Errorf("task %s came twice or was never made", task.ID)
			}
			delete(made, task.ID)
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
		for _, other := range []string{"/v1/tasks?coordinator=other", "/v1/tasks?coordinator=plain&awaiting=approval",
			"/v1/runs?agent=plain",
			"/v1/agents/plain/log?limit=2"} {
			if r := h.call(http.MethodGet, other+cursor, ""); r.status != http.StatusBadRequest ||
				!strings.Contains(string(r.body), `"cursor"`) {
				t.Errorf("%s with a cursor of another list: %d %s", other, r.status, r.body)
			}
		}
	}
	if seen != 5 {
		t.Errorf("%d tasks", seen)
	}
}

// A person's answer, with the name of the token, lets a run go on; cancel and retry too.
func TestPeopleDecide(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	dear := h.submit(`{"goal":"dear one"}`)
	h.waits(dear.RunID, "run waits", awaits)
	var waiting control.TaskList
	if h.into(h.call(http.MethodGet, "/v1/tasks?awaiting=approval", ""), http.StatusOK,
		&waiting); len(waiting.Tasks) != 1 || waiting.Tasks[0].Awaiting != repute.AwaitingApproval {
		t.Errorf("tasks that wait: %+v", waiting.Tasks)
	}
	if r := h.call(http.MethodGet, "/v1/tasks?awaiting=rain", ""); r.status != http.StatusBadRequest {
		t.Errorf("tasks that wait for rain: %d", r.status)
	}
	if r := h.ann(http.MethodPost, "/v1/runs/"+dear.RunID+"/approval",
		`{"subject":"policy","reason":"?"}`); r.status != http.StatusBadRequest {
		t.Errorf("neither yes nor no: %d", r.status)
	}
	if r := h.ann(http.MethodPost, "/v1/runs/"+dear.RunID+"/approval",
		`{"subject":"policy","approved":true,"reason":"fine"}`); r.status != http.StatusOK {
		t.Fatalf("approval: %d %s", r.status, r.body)
	}
	run := h.ended(dear)
	if h.into(h.call(http.MethodGet, "/v1/tasks?awaiting=approval", ""), http.StatusOK,
		&waiting); len(waiting.Tasks) != 0 {
		t.Errorf("tasks that still wait: %+v", waiting.Tasks)
	}
	if len(run.Approvals) != 1 || run.Approvals[0].By != "ann" || run.Approvals[0].Reason != "fine" ||
		run.Status != repute.RunCompleted {
		t.Errorf("run %s, approvals %+v", run.Status, run.Approvals)
	}
	if r := h.ann(http.MethodPost, "/v1/runs/"+dear.RunID+"/approval",
		`{"subject":"policy","approved":true}`); r.status != http.StatusConflict {
		t.Errorf("a second answer: %d", r.status)
	}
	other := h.submit(`{"goal":"dear two"}`)
	h.waits(other.RunID, "run waits", awaits)
	var task control.Task
	h.into(h.ann(http.MethodPost, "/v1/tasks/"+other.ID+"/cancel", `{"reason":"changed my mind"}`), http.StatusOK,
		&task)
	if task.Status != repute.TaskCancelled || len(task.Runs) != 1 ||
		!strings.Contains(task.Runs[0].Error, "by ann: changed my mind") || task.Error != task.Runs[0].Error {
		t.Errorf("cancelled task %+v", task)
	}
	h.into(h.ann(http.MethodPost, "/v1/tasks/"+other.ID+"/retry", `{"from":"discover"}`), http.StatusOK, &task)
	again := h.waits(other.RunID, "second attempt waits",
		func(r control.Run) bool { return awaits(r) && r.Attempt == 2 })
	if again.Status != repute.RunPlanning {
		t.Errorf("second attempt is %s", again.Status)
	}
}

// Nothing is changed without a token that is known.
func TestWritesNeedAToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	for _, route := range []string{"POST /v1/tasks", "POST /v1/agents", "DELETE /v1/agents/plain",
		"POST /v1/agents/plain/trust",
		"POST /v1/tasks/t/cancel", "POST /v1/tasks/t/retry", "POST /v1/runs/r/approval"} {
		method, path, _ := strings.Cut(route, " ")
		for _, proof := range []string{"", "Bearer", "Bearer wrong-but-quite-long", "Basic " + annsToken,
			"Bearer " + annsToken[:20]} {
			r := h.call(method, path, `{"goal":"x"}`, "Authorization", proof)
			if r.status != http.StatusUnauthorized || r.header.Get("WWW-Authenticate") != "Bearer" ||
				strings.Contains(string(r.body), annsToken) {
				t.Errorf("%s with %q: %d %s", route, proof, r.status, r.body)
			}
		}
	}
	var list control.TaskList
	if h.into(h.call(http.MethodGet, "/v1/tasks", ""), http.StatusOK, &list); len(list.Tasks) != 0 {
		t.Errorf("tasks were made: %+v", list)
	}
	for name, text := range map[string]string{"ann": "short", "": annsToken, "a/b": annsToken, "a b": annsToken} {
		if _, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{name: text}}); err == nil {
			t.Errorf("token %q of %q is taken", text, name)
		}
	}
}

// Whatever is sent is refused with a field and a way out, and nothing breaks.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) { o.on.Limits.Body = 4 << 10 }, worker{slug: "plain"})
	long := strings.Repeat("x", 3<<10)
	for _, c := range []struct {
		route, body string
		status      int
		says        string
	}{
		{"POST /v1/tasks", ``, 400, "goal"},
		{"POST /v1/tasks", `{`, 400, "body"},
		{"POST /v1/tasks", `[]`, 400, "body"},
		{"POST /v1/tasks", `{"goal":"x"} {}`, 400, "has more"},
		{"POST /v1/tasks", `{"goal":7}`, 400, "goal"},
		{"POST /v1/tasks", `{"goal":"x","golem":1}`, 400, "golem"},
		{"POST /v1/tasks", `{"goal":"x","coordinatorSlug":"nobody"}`, 404, "nobody"},
		{"POST /v1/tasks", `{"goal":"x","coordinatorSlug":"` + long + `"}`, 400, "coordinatorSlug"},
		{"POST /v1/tasks", `{"goal":"x","budget":{"maxSteps":-1}}`, 400, "maxSteps"},
		{"POST /v1/tasks", `{"goal":"x","budget":{"maxSteps":1e30}}`, 400, "maxSteps"},
		{"POST /v1/tasks", `{"goal":"x","threshold":{"minReputation":101}}`, 400, "minReputation"},
		{"POST /v1/tasks", `{"goal":"x","valueAtRisk":"-5"}`, 400, "valueAtRisk"},
		{"POST /v1/tasks", `{"goal":"x","idempotencyKey":"` + long[:100] + `"}`, 400, "idempotencyKey"},
		{"POST /v1/tasks", `{"goal":"` + long + long + `"}`, 413, "larger"},
		{"GET /v1/tasks?limit=0", ``, 400, "limit"},
		{"GET /v1/tasks?limit=100000", ``, 400, "limit"},
		{"GET /v1/tasks?coordinatr=plain", ``, 400, "coordinatr: unknown parameter"},
		{"GET /v1/tasks?limit=1&limit=2", ``, 400, "limit"},
		{"GET /v1/tasks?cursor=", ``, 400, "cursor"},
		{"POST /v1/tasks?dry=1", `{"goal":"x"}`, 400, "dry"},
		{"GET /v1/agents/plain/log?limt=1", ``, 400, "limt"},
		{"GET /v1/runs/none/events?since=1", ``, 400, "since"},
		{"GET /v1/agents/openapi.json?x=1", ``, 400, "unknown"},
		{"GET /v1/tasks?status=asleep", ``, 400, "status"},
		{"GET /v1/tasks?cursor=%00", ``, 400, "cursor"},
		{"GET /v1/tasks?cursor=OTk5OTk5OTk5OTk5OTk5OTk5OS94", ``, 400, "cursor"},
		{"GET /v1/tasks?coordinator=%00", ``, 404, ""},
		{"GET /v1/tasks/" + long, ``, 404, "GET /v1/tasks lists"},
		{"GET /v1/tasks/%00", ``, 404, "task"},
		{"GET /v1/runs/run_1%2F..%2Fx", ``, 404, ""},
		{"GET /v1/runs/%ff%fe", ``, 404, "run"},
		{"GET /v1/runs/none/events", ``, 404, "run"},
		{"GET /v1/runs/none/receipts?cursor=-1", ``, 400, "cursor"},
		{"GET /v1/runs/none/gate:verify", ``, 404, "GET /v1/runs lists runs"},
		{"GET /v1/runs?status=asleep", ``, 400, "status"},
		{"GET /v1/runs?awaiting=rain", ``, 400, "awaiting"},
		{"GET /v1/runs?limit=0", ``, 400, "limit"},
		{"GET /v1/runs?agentId=22", ``, 400, "agentId"},
		{"GET /v1/runs?agentId=7:x", ``, 400, "agentId"},
		{"GET /v1/runs?agent=%00", ``, 404, ""},
		{"GET /v1/runs?cursor=%00", ``, 400, "cursor"},
		{"GET /v1/runs?coordinator=plain", ``, 400, "coordinator: unknown parameter"},
		{"POST /v1/runs/none/approval", `{"subject":"policy","approved":true}`, 404, "run"},
		{"POST /v1/runs/none/approval", `{"subject":"policy","approved":"yes"}`, 400, "approved"},
		{"POST /v1/tasks/none/cancel", `{"reason":"` + long + `"}`, 400, "reason"},
		{"POST /v1/tasks/none/cancel", ``, 404, "task"},
		{"POST /v1/tasks/none/retry", `{"from":"record"}`, 400, "from"},
		{"POST /v1/tasks/none/retry", `{"from":"nowhere"}`, 400, "from"},
		{"GET /v1/agents/Plain", ``, 404, "agent"},
		{"GET /v1/agents/plain/trust?valueAtRisk=much", ``, 400, "valueAtRisk"},
		{"POST /v1/agents/plain/trust", `{"threshold":{"minTier":9}}`, 400, "minTier"},
		{"POST /v1/agents", `{}`, 400, "slug"},
		{"POST /v1/agents", `{"slug":"plain","url":"https://x.example"}`, 409, "part of the program"},
		{"DELETE /v1/agents/plain", ``, 409, "part of the program"},
		{"DELETE /v1/agents/nobody", ``, 404, "nobody"},
		{"PUT /v1/tasks/", ``, 405, "one of OPTIONS, GET, POST"},
		{"GET /v1/nothing", ``, 404, "route"},
	} {
		method, path, _ := strings.Cut(c.route, " ")
		r := h.ann(method, path, c.body)
		if r.status != c.status || !strings.Contains(string(r.body), c.says) ||
			r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.80s %.80s: %d %.300s", c.route, c.body, r.status, r.body)
		}
	}
}

// Where no coordinator is configured, a task must name one.
func TestTaskWithoutCoordinator(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) { o.Coordinator = "" })
	r := h.ann(http.MethodPost, "/v1/tasks", `{"goal":"x"}`)
	if r.status != http.StatusBadRequest || !strings.Contains(string(r.body), `"coordinatorSlug"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// A caller that asks too much is told when to come back.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	o := options{on: httpapi.ServerOptions{Limits: httpapi.Limits{Rate: 1.0 / 60, Burst: 2},
		Logger: slog.New(slog.DiscardHandler)}}
	h := o.handler(t)
	var last *httptest.ResponseRecorder
	for range 3 {
		last = ask(h, "/v1/agents/openapi.json", "192.0.2.1:1")
	}
	wait, err := strconv.Atoi(last.Header().Get("Retry-After"))
	if last.Code != http.StatusTooManyRequests || err != nil || wait < 1 || wait > 61 ||
		!strings.Contains(last.Body.String(), `"limited"`) {
		t.Errorf("%d %v %s", last.Code, last.Header(), last.Body)
	}
	if other := ask(h, "/v1/agents/openapi.json", "198.51.100.7:1"); other.Code != http.StatusOK {
		t.Errorf("another caller: %d", other.Code)
	}
}

var _ orchestrator.Module = worker{}
