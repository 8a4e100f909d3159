package control_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator/control"
)

// tokenOf is a token that newRoles makes.
func tokenOf(name string) string { return name + "-and-something-long" }

func newRoles(t *testing.T, private bool) *house {
	return newHouse(t, func(o *options) {
		o.PrivateReads, o.on.Roles = private, map[string][]string{"asks": {"ask"}, "decides": {"approve"},
			"runs": {"operate"},
			"owns": {"own"}, "looks": {"read"}}
		o.on.Tokens = map[string]string{"ann": annsToken}
		for name := range o.on.Roles {
			o.on.Tokens[name] = tokenOf(name)
		}
	}, worker{slug: "plain"})
}

// as sends a request with a token of newRoles.
func (h *house) as(name, method, path, body string) reply {
	h.t.Helper()
	return h.call(method, path, body, "Authorization", "Bearer "+tokenOf(name))
}

// Who asks for a task does not approve of it, nor does who looks at it.
func TestRoles(t *testing.T) {
	t.Parallel()
	h := newRoles(t, false)
	task := h.submit(`{"goal":"dear one","coordinatorSlug":"plain"}`)
	run := h.waits(task.RunID, "waits", awaits)
	answer := `{"subject":"` + run.Awaited[0].Subject + `","approved":true}`
	refused := func(name, method, path, body, role string) {
		t.Helper()
		if r := h.as(name, method, path, body); r.status != http.StatusForbidden ||
			!strings.Contains(string(r.body), role) {
			t.Errorf("%s, %s %s: %d %s", name, method, path, r.status, r.body)
		}
	}
	for _, name := range []string{"asks", "runs", "looks"} {
		refused(name, http.MethodPost, "/v1/runs/"+task.RunID+"/approval", answer, "approve")
	}
	for _, name := range []string{"decides", "runs", "looks"} {
		refused(name, http.MethodPost, "/v1/tasks", `{"goal":"g"}`, "ask")
		refused(name, http.MethodPost, "/v1/ingress/openclaw/task", `{"goal":"g"}`, "ask")
		refused(name, http.MethodPost, "/v1/tasks/"+task.ID+"/cancel", ``, "ask")
	}
	for _, name := range []string{"decides", "asks", "looks"} {
		refused(name, http.MethodPost, "/v1/agents", `{}`, "operate")
		refused(name, http.MethodDelete, "/v1/agents/plain", ``, "operate")
		refused(name, http.MethodPost, "/v1/treasury/calls", `{}`, "operate")
	}
	refused("runs", http.MethodPost, "/v1/treasury/calls?approve=true", `{}`, "approve")
	// A role that spends sets no caps, and a role that sets caps spends nothing.
	for _, name := range []string{"decides", "asks", "looks", "runs"} {
		refused(name, http.MethodPut, "/v1/treasury/policies/plain", `{"nativePerTxCapWei":"1"}`, `\"own\"`)
		refused(name, http.MethodPut, "/v1/treasury/policies/plain?dry_run=true", `{"nativePerTxCapWei":"1"}`,
			`\"own\"`)
		h.tools(tokenOf(name)).refuses("openfi_configure_treasury_policy",
			`{"agentSlug":"plain","nativePerTxCapWei":"1"}`,
			`role "own"`)
	}
	refused("owns", http.MethodPost, "/v1/treasury/calls", `{}`, "operate")
	refused("owns", http.MethodPost, "/v1/treasury/transfers", `{}`, "operate")
	refused("owns", http.MethodPut, "/v1/treasury/policies/plain?approve=true", `{}`, "approve")
	if r := h.as("owns", http.MethodPut, "/v1/treasury/policies/plain",
		`{"nativePerTxCapWei":"1"}`); r.status == http.StatusForbidden || r.status == http.StatusUnauthorized {
		t.Errorf("owns: %d %s", r.status, r.body)
	}
	if r := h.as("looks", http.MethodPost, "/v1/agents/plain/trust", `{}`); r.status != http.StatusOK {
		t.Errorf("a question about trust: %d %s", r.status, r.body)
	}
	h.into(h.as("decides", http.MethodPost, "/v1/runs/"+task.RunID+"/approval", answer), http.StatusOK, &run)
	if r := h.ended(task); r.Status != repute.RunCompleted {
		t.Errorf("approved: %s %s", r.Status, r.Error)
	}
	if r := h.as("asks", http.MethodPost, "/v1/tasks", `{"goal":"g"}`); r.status != http.StatusCreated {
		t.Errorf("asks: %d %s", r.status, r.body)
	}
	// The tools follow the token as the routes do.
	const wallet = `{"slug":"plain","operatorWallet":"0x00000000000000000000000000000000000000aB","approve":true}`
	h.tools(tokenOf("looks")).refuses("openfi_submit_task", `{"goal":"g"}`, `role "ask"`)
	h.tools(tokenOf("asks")).refuses("openfi_set_agent_wallet", wallet, `role "operate"`)
	h.tools(tokenOf("runs")).refuses("openfi_set_agent_wallet", wallet, `role "approve"`)
}

// Where reading takes a token, what tasks did is told to nobody else; what agents there are is.
func TestPrivateReads(t *testing.T) {
	t.Parallel()
	h := newRoles(t, true)
	var task control.Task
	h.into(h.ann(http.MethodPost, "/v1/tasks", `{"goal":"g","coordinatorSlug":"plain"}`), http.StatusCreated, &task)
	for _, path := range []string{"/v1/tasks", "/v1/tasks/" + task.ID, "/v1/runs", "/v1/runs?agentId=7:0",
		"/v1/runs/" + task.RunID,
		"/v1/runs/" + task.RunID + "/receipts", "/v1/runs/" + task.RunID + "/receipts/1",
		"/v1/runs/" + task.RunID + "/events", "/v1/runs/" + task.RunID + "/gate:verify", "/v1/acts",
		"/v1/treasury/events",
		"/v1/agents/plain/log", "/v1/agents/plain/agent_log.json",
		"/.well-known/agent_log.json"} {
		if r := h.call(http.MethodGet, path, ""); r.status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d %.100s", path, r.status, r.body)
		}
		if r := h.call(http.MethodGet, path, "", "Authorization",
			"Bearer wrong-and-long-enough"); r.status != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token: %d %.100s", path, r.status, r.body)
		}
		if r := h.as("looks", http.MethodGet, path, ""); r.status == http.StatusUnauthorized ||
			r.status == http.StatusForbidden {
			t.Errorf("%s with a token: %d %.100s", path, r.status, r.body)
		}
	}
	for tool, arguments := range map[string]string{"openfi_get_run": `{"runId":"` + task.RunID + `"}`,
		"openfi_get_run_receipts": `{"runId":"` + task.RunID + `"}`,
		"openfi_get_agent_log":    `{"slug":"plain"}`, "openfi_get_treasury_status": `{}`} {
		h.tools("").refuses(tool, arguments, "the caller sent none")
	}
	for _, path := range []string{"/v1/agents", "/v1/agents/plain", "/v1/agents/plain/trust", "/openapi.json",
		"/.well-known/agent.json"} {
		if r := h.call(http.MethodGet, path, ""); r.status != http.StatusOK {
			t.Errorf("%s without a token: %d %.100s", path, r.status, r.body)
		}
	}
}

// A role that there is none of, or of no token, is a slip of the pen.
func TestRolesAreChecked(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string][]string{"ann": {"aprove"}, "bob": {"ask"}, "eve": {}} {
		_, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{"ann": annsToken,
			"eve": annsToken + "2"},
			Roles: map[string][]string{name: roles}})
		if err == nil || !strings.Contains(err.Error(), "roles."+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is private stays so however the path ends: the guard in front sees it as it was sent.
func TestPrivatePathsWithSlash(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/tasks", "/v1/runs", "/v1/runs/x/events", "/v1/agents/plain/log",
		"/v1/agents/plain/agent_log.json", "/.well-known/agent_log.json", "/v1/treasury/status", "/v1/acts"} {
		for _, end := range []string{"", "/", "//"} {
			if !control.IsPrivate(path + end) {
				t.Errorf("%s is open", path+end)
			}
		}
	}
	h := newHouse(t, nil)
	if r := h.call(http.MethodHead, "/v1/runs/none/events/", ""); r.status != http.StatusMethodNotAllowed {
		t.Errorf("HEAD of a stream: %d", r.status)
	}
}

// A question to the index is open to all beside the orchestrator too, whatever its method.
func TestQuestionsNeedNoToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(o *options) { o.served = o.Tools })
	for path, body := range map[string]string{ // without one: nothing is known of the agent
		"/graphql":                      `{"query":"{__typename}"}`,
		"/mcp":                          `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"/agents/1:0/documents:refresh": "",
	} {
		r := h.call(http.MethodPost, path, body, "Content-Type", "application/json",
			"Accept", "application/json, text/event-stream")
		if want := map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[body == ""]; r.status != want {
			t.Errorf("POST %s without a token: %d %.200s", path, r.status, r.body)
		}
	}
}

// Pages of strangers read what is open to all, and not what tasks did; those that are listed do.
func TestPagesOfOtherSites(t *testing.T) {
	t.Parallel()
	const ours, evil = "https://app.example", "https://evil.example"
	for name, c := range map[string]struct {
		sites  []string
		origin string
		path   string
		want   string
	}{
		"agents":            {nil, evil, "/v1/agents", "*"},
		"tasks":             {nil, evil, "/v1/tasks", ""},
		"a log":             {nil, evil, "/v1/agents/plain/log", ""},
		"a log, with slash": {nil, evil, "/v1/agents/plain/log/", ""},
		"tasks, not listed": {[]string{ours}, evil, "/v1/tasks", ""},
		"tasks, listed":     {[]string{ours}, ours, "/v1/tasks", ours},
		"agents, listed":    {[]string{ours}, evil, "/v1/agents", "*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, func(o *options) { o.on.Origins = c.sites }, worker{slug: "plain"})
			r := h.call(http.MethodGet, c.path, "", "Origin", c.origin)
			if got := r.header.Get("Access-Control-Allow-Origin"); r.status != http.StatusOK || got != c.want {
				t.Errorf("%d, allowed %q, want %q", r.status, got, c.want)
			}
		})
	}
}

// What nobody decided about is closed: New refuses a route below /v1 that has no role, one that is added
// later needs all roles, and its path is private.
func TestRoutesAreClosedByDefault(t *testing.T) {
	t.Parallel()
	answer := func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }
	newServer := func() *httpapi.Server {
		s, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{"looks": tokenOf("looks"),
			"ann": annsToken},
			Roles: map[string][]string{"looks": {"read", "ask", "approve", "operate"}}})
		ok(t, err)
		return s
	}
	for _, path := range []string{"/v1/ledger", "/v1/tasks/:id/secret", "/v1/agents/:slug/keys"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			s := newServer()
			s.Echo.Add(method, path, answer)
			if _, err := control.New(control.Options{Server: s}); err == nil ||
				!strings.Contains(err.Error(), method+" "+path+":") {
				t.Errorf("%s %s is mounted: %v", method, path, err)
			}
			s = newServer()
			_, err := control.New(control.Options{Server: s})
			ok(t, err)
			s.Echo.Add(method, path, answer)
			handler, err := s.Handler()
			ok(t, err)
			for token, want := range map[string]int{"": http.StatusUnauthorized, tokenOf("looks"): http.StatusForbidden,
				annsToken: http.StatusNoContent} {
				r := httptest.NewRequest(method,
					strings.ReplaceAll(strings.ReplaceAll(path, ":id", "x"), ":slug", "x"), nil)
				if token != "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, r); w.Code != want {
					t.Errorf("%s %s with the token %q: %d, not %d", method, path, token, w.Code, want)
				}
			}
		}
		if !control.IsPrivate(path) {
			t.Errorf("%s is open", path)
		}
	}
}

// Webhooks are of the operator alone, also where everybody may read: an address may be a secret.
func TestWebhooksNeedOperate(t *testing.T) {
	t.Parallel()
	h := newRoles(t, false)
	for _, r := range [][2]string{{http.MethodGet, "/v1/webhooks"}, {http.MethodGet, "/v1/webhooks/x"},
		{http.MethodPost, "/v1/webhooks"},
		{http.MethodDelete, "/v1/webhooks/x"}, {http.MethodPost, "/v1/webhooks/x/test"},
		{http.MethodPost, "/v1/webhooks/x/replay"},
		{http.MethodPost, "/v1/webhooks/x/rotate"}} {
		if got := h.call(r[0], r[1], `{}`); got.status != http.StatusUnauthorized {
			t.Errorf("%s %s without a token: %d", r[0], r[1], got.status)
		}
		for _, name := range []string{"looks", "asks", "decides", "owns"} {
			if got := h.as(name, r[0], r[1], `{}`); got.status != http.StatusForbidden {
				t.Errorf("%s, %s %s: %d", name, r[0], r[1], got.status)
			}
		}
		if got := h.as("runs", r[0], r[1], `{}`); got.status == http.StatusForbidden ||
			got.status == http.StatusUnauthorized {
			t.Errorf("runs, %s %s: %d %s", r[0], r[1], got.status, got.body)
		}
	}
}
