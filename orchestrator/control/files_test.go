package control_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/manifest"
	"repute/manifest/schemas"
	"repute/orchestrator/control"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// published reads a file and holds it against its schema.
func (h *house) published(path string, kind repute.DocumentKind) []byte {
	h.t.Helper()
	r := h.call(http.MethodGet, path, "")
	if r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") {
		h.t.Fatalf("%s: %d %s", path, r.status, r.body)
	}
	found, err := schemas.Check(kind, r.body)
	ok(h.t, err)
	for _, p := range found {
		h.t.Errorf("%s %s: %s", path, p.Path, p.Message)
	}
	return r.body
}

func registrationOf(h *house) string {
	return string(h.published("/v1/agents/plain/agent-registration.json", repute.RegistrationDocument))
}

// An agent that names no endpoint is reached through this service.
func TestRegistrationNamesThisService(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ok(t, rundb.SaveModule(t.Context(), h.db,
		repute.Module{Slug: "plain", Manifest: json.RawMessage(`{"name":"Plain"}`)}))
	if r := registrationOf(h); !strings.Contains(r, `"endpoint":"https://repute.example/v1/agents/plain"`) {
		t.Errorf("registration %s", r)
	}
}

// Files follow their schemas, and the registration file the ERC too.
func TestFilesFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	if r := registrationOf(h); !strings.Contains(r, `"endpoint":"https://worker.example/api"`) ||
		strings.Contains(r, "repute.example") {
		t.Errorf("an agent with an API of its own: %s", r)
	}
	id := repute.AgentID{ChainID: 31337, Registry: common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432")}
	m, err := rundb.Module(t.Context(), h.db, "plain")
	ok(t, err)
	m.Agent = &id
	ok(t, rundb.SaveModule(t.Context(), h.db, m))
	h.ended(h.submit(`{"goal":"do it"}`))
	for _, at := range []string{"/.well-known/", "/v1/agents/plain/"} {
		registration := h.published(at+"agent-registration.json", repute.RegistrationDocument)
		_, problems := manifest.Parse(registration)
		for _, p := range problems {
			if p.Severity == repute.SeverityError {
				t.Errorf("%s: %+v", registration, p)
			}
		}
		if !strings.Contains(string(registration), `"agentRegistry":"`+strings.TrimSuffix(id.String(), ":0")+`"`) {
			t.Errorf("registration %s", registration)
		}
		if !strings.Contains(string(registration),
			`"endpoint":"eip155:31337:0x00000000000000000000000000000000000000AB"`) {
			t.Errorf("the registration does not name the agent's wallet: %s", registration)
		}
		h.published(at+"agent.json", schemas.CapabilityDocument)
		log := h.published(at+"agent_log.json", schemas.LogDocument)
		if !strings.Contains(string(log), `"summary":"did it"`) {
			t.Errorf("log %s", log)
		}
	}
	for _, path := range []string{"/v1/agents/nobody/agent.json", "/v1/agents/nobody/log",
		"/v1/agents/plain/agent_log.txt"} {
		if r := h.call(http.MethodGet, path, ""); r.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	for _, query := range []string{"limit=0", "limit=x", "cursor=AAAA", "cursor=MS94"} {
		if r := h.call(http.MethodGet, "/v1/agents/plain/log?"+query, ""); r.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

type logEntry struct {
	RunID    string
	Attempt  int
	Status   string
	Retries  []any
	Failures []any
}

// A log keeps its entries as they are when a run is tried again, and its pages hold each
// once.
func TestLogOnlyGrows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	task := h.submit(`{"goal":"dear one"}`)
	h.waits(task.RunID, "run waits", awaits)
	if r := h.ann(http.MethodPost, "/v1/runs/"+task.RunID+"/approval",
		`{"subject":"policy","approved":false,"reason":"no"}`); r.status != http.StatusOK {
		t.Fatalf("refusal: %d", r.status)
	}
	h.ended(task)
	before := entries(h, "")
	if r := h.ann(http.MethodPost, "/v1/tasks/"+task.ID+"/retry", ``); r.status != http.StatusOK {
		t.Fatalf("retry: %d %s", r.status, r.body)
	}
	h.waits(task.RunID, "second attempt waits", func(r control.Run) bool { return awaits(r) && r.Attempt == 2 })
	if r := h.ann(http.MethodPost, "/v1/runs/"+task.RunID+"/approval",
		`{"subject":"policy","approved":true}`); r.status != http.StatusOK {
		t.Fatalf("approval: %d", r.status)
	}
	h.ended(task)
	after := entries(h, "")
	if len(before) != 1 || len(after) != 2 || before[0] != after[0] {
		t.Fatalf("log was %v and is %v", before, after)
	}
	var first, second logEntry
	ok(t, json.Unmarshal([]byte(after[0]), &first))
	ok(t, json.Unmarshal([]byte(after[1]), &second))
	if first.Attempt != 1 || first.Status != "failed" || len(first.Failures) != 1 || second.Attempt != 2 ||
		second.Status != "completed" || len(second.Retries) != 1 || len(second.Failures) != 0 {
		t.Errorf("entries %+v and %+v", first, second)
	}
}

// entries are those of plain's log, page by page.
func entries(h *house, cursor string) (out []string) {
	h.t.Helper()
	for {
		var page struct {
			Runs []json.RawMessage
			Next string `json:"nextCursor"`
		}
		query := "?limit=1"
		if cursor != "" {
			query += "&cursor=" + cursor
		}
		h.into(h.call(http.MethodGet, "/v1/agents/plain/log"+query, ""), http.StatusOK, &page)
		for _, r := range page.Runs {
			out = append(out, string(r))
		}
		if cursor = page.Next; len(page.Runs) == 0 {
			return out
		}
	}
}

// An agent elsewhere is taken when it is who it is said to be, and only then.
func TestRegisterAgent(t *testing.T) {
	t.Parallel()
	info := remote.Info{Protocol: remote.Protocol, Slug: "faraway", DisplayName: "Faraway", Version: "1.2.3",
		IdentityMode: standard.IdentityMode,
		Manifest: standard.Manifest{Schema: standard.ManifestSchema, Name: "Faraway", Slug: "faraway",
			Version: "1.2.3"}}
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/html/info" {
			w.Header().Set("Content-Type", "text/html")
		}
		_ = json.NewEncoder(w).Encode(info)
	}))
	t.Cleanup(agent.Close)
	h := newHouse(t, func(o *options) { o.Agents = agent.Client() }, worker{slug: "plain"})
	register := func(slug, url, id string) reply {
		return h.ann(http.MethodPost, "/v1/agents", fmt.Sprintf(`{"slug":%q,"url":%q,"agentId":%q}`, slug, url, id))
	}
	for name, c := range map[string]struct {
		slug, url, id string
		status        int
		says          string
	}{
		"other slug":     {"nearby", agent.URL, "", 400, "the agent says"},
		"HTML":           {"faraway", agent.URL + "/html", "", 400, "text/html"},
		"nobody there":   {"faraway", "http://127.0.0.1:1", "", 400, "does not answer"},
		"a password":     {"faraway", "http://ann:secret@127.0.0.1", "", 400, "url"},
		"no URL":         {"faraway", "ftp://x.example", "", 400, "url"},
		"no id":          {"faraway", agent.URL, "seven", 400, "agentId"},
		"unknown id":     {"faraway", agent.URL, "31337:7", 404, ""},
		"a local agent":  {"plain", agent.URL, "", 409, "part of the program"},
		"slug with path": {"../x", agent.URL, "", 400, "slug"},
	} {
		if r := register(c.slug, c.url, c.id); r.status != c.status || !strings.Contains(string(r.body), c.says) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := register("faraway", agent.URL, ""); r.status != http.StatusCreated ||
		r.header.Get("Location") != "/v1/agents/faraway" {
		t.Fatalf("registration: %d %s", r.status, r.body)
	}
	if r := register("faraway", agent.URL, ""); r.status != http.StatusOK {
		t.Errorf("again: %d %s", r.status, r.body)
	}
	if r := register("faraway", agent.URL+"/other", ""); r.status != http.StatusConflict {
		t.Errorf("elsewhere: %d %s", r.status, r.body)
	}
	var list control.TaskAgentList
	if h.into(h.call(http.MethodGet, "/v1/agents", ""), http.StatusOK, &list); len(list.Agents) != 2 ||
		list.Agents[0].Kind != "remote" {
		t.Errorf("agents %+v", list)
	}
	if r := h.ann(http.MethodDelete, "/v1/agents/faraway", ""); r.status != http.StatusOK {
		t.Errorf("removal: %d", r.status)
	}
	if r := h.call(http.MethodGet, "/v1/agents/faraway", ""); r.status != http.StatusNotFound {
		t.Errorf("removed agent: %d", r.status)
	}
	var trust control.TrustAnswer
	h.into(h.ann(http.MethodPost, "/v1/agents/plain/trust", `{"threshold":{"minReputation":10}}`), http.StatusOK,
		&trust)
	if trust.Decision.Effect != "deny" || trust.Verified == nil || !*trust.Verified ||
		trust.Decision.Reasons[0].ID != "trust.unrated" {
		t.Errorf("trust %+v", trust)
	}
}
