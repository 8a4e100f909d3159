package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"repute/orchestrator/control"
	"repute/orchestrator/operate"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// toolbox is a caller of tools, with what they promise.
type toolbox struct {
	h       *house
	session *sdk.ClientSession
	tools   map[string]*sdk.Tool
	// answered has the tools whose answers were held against their schemas.
	answered map[string]bool
}

// bearing adds a token to every request.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// tools are what a caller with a token has, who has none when it is empty.
func (h *house) tools(token string) toolbox {
	h.t.Helper()
	s := httptest.NewServer(h.o.Tools.Handler())
	h.t.Cleanup(s.Close)
	return h.over(&sdk.StreamableClientTransport{Endpoint: s.URL, DisableStandaloneSSE: true,
		HTTPClient: &http.Client{Transport: bearing(token)}})
}

// piped are the same tools on a pair of streams.
func (h *house) piped(token string) toolbox {
	h.t.Helper()
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- h.o.Tools.Stdio(context.Background(), in, out, token) }()
	h.t.Cleanup(func() { ok(h.t, <-done) }) // after the session has closed
	return h.over(&sdk.IOTransport{Reader: answers, Writer: ask})
}

func (h *house) over(transport sdk.Transport) toolbox {
	h.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(h.t.Context(), transport, nil)
	ok(h.t, err)
	h.t.Cleanup(func() { _ = session.Close() })
	b := toolbox{h, session, map[string]*sdk.Tool{}, map[string]bool{}}
	list, err := session.ListTools(h.t.Context(), nil)
	ok(h.t, err)
	for _, tool := range list.Tools {
		b.tools[tool.Name] = tool
	}
	return b
}

func (b toolbox) call(name, arguments string) *sdk.CallToolResult {
	b.h.t.Helper()
	r, err := b.session.CallTool(b.h.t.Context(),
		&sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	ok(b.h.t, err)
	return r
}

func said(r *sdk.CallToolResult) string { return r.Content[0].(*sdk.TextContent).Text }

// into decodes an answer, which must be as the tool's schema says.
func (b toolbox) into(name, arguments string, v any) {
	b.h.t.Helper()
	r := b.call(name, arguments)
	if r.IsError {
		b.h.t.Fatalf("%s %s: %s", name, arguments, said(r))
	}
	c := jsonschema.NewCompiler()
	ok(b.h.t, c.AddResource("mem:///out", b.tools[name].OutputSchema))
	schema, err := c.Compile("mem:///out")
	ok(b.h.t, err)
	if err := schema.Validate(r.StructuredContent); err != nil {
		b.h.t.Errorf("%s: the answer is not as its schema says: %v", name, err)
	}
	b.answered[name] = true
	ok(b.h.t, json.Unmarshal([]byte(said(r)), v))
}

// refuses wants an error that says so.
func (b toolbox) refuses(name, arguments, says string) {
	b.h.t.Helper()
	if r := b.call(name, arguments); !r.IsError || !strings.Contains(said(r), says) {
		b.h.t.Errorf("%s %.200s: %s", name, arguments, said(r))
	}
}

type task struct {
	DryRun                 bool
	Task                   *control.Task
	Decision, GateDecision *control.GateDecision
	Policy                 struct{ Effect string }
	Budget                 struct{ MaxSteps int }
}

// A task from asking to its log, by tools alone.
func TestTaskThroughTools(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*house, string) toolbox{"http": (*house).tools, "stdio": (*house).piped} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, nil, worker{slug: "plain"}, worker{slug: "second"})
			h.task(open(h, annsToken))
		})
	}
}

func (h *house) task(b toolbox) {
	t := h.t
	var agents struct {
		Agents []control.TaskAgent
		Next   string `json:"nextCursor"`
	}
	if b.into("openfi_list_agents", `{}`, &agents); len(agents.Agents) != 2 || agents.Next != "" {
		t.Errorf("agents %+v", agents)
	}
	if b.into("openfi_list_agents", `{"limit":1}`, &agents); len(agents.Agents) != 1 || agents.Next != "plain" {
		t.Errorf("first page %+v", agents)
	}
	if b.into("openfi_list_agents", `{"limit":1,"cursor":"plain"}`, &agents); agents.Agents[0].Slug != "second" {
		t.Errorf("second page %+v", agents)
	}
	var agent control.TaskAgent
	if b.into("openfi_get_agent", `{"slug":"plain"}`, &agent); agent.Slug != "plain" {
		t.Errorf("agent %+v", agent)
	}
	var manifest standard.Manifest
	if b.into("openfi_get_agent_manifest", `{"slug":"plain"}`, &manifest); manifest.Schema != standard.ManifestSchema {
		t.Errorf("manifest %+v", manifest)
	}
	var submitted, again task
	const ask = `{"goal":"do <it>","input":{"n":[1,2]},"budget":{"maxSteps":3},"valueAtRisk":"5","idempotencyKey":"once"}`
	b.into("openfi_submit_task", ask, &submitted)
	if b.into("openfi_submit_task", ask, &again); submitted.Task.AskedBy != "ann" ||
		again.Task.ID != submitted.Task.ID {
		t.Errorf("submitted %+v, then %+v", submitted.Task, again.Task)
	}
	run := h.ended(*submitted.Task)
	var shown control.Run
	if b.into("openfi_get_run", `{"runId":"`+run.ID+`"}`, &shown); shown.Status != run.Status ||
		len(shown.Phases) != 9 || shown.Used.Steps != 1 {
		t.Errorf("run %+v", shown)
	}
	var receipts control.ReceiptList
	if b.into("openfi_get_run_receipts", `{"runId":"`+run.ID+`","limit":1}`, &receipts); len(receipts.Receipts) != 1 {
		t.Errorf("receipts %+v", receipts)
	}
	var log struct{ Runs []struct{ RunID string } }
	if b.into("openfi_get_agent_log", `{"slug":"plain","limit":5}`, &log); len(log.Runs) != 1 ||
		log.Runs[0].RunID != run.ID {
		t.Errorf("log %+v", log)
	}
	var trust control.TrustAnswer
	if b.into("openfi_get_trust_summary", `{"slug":"plain","valueAtRisk":"7"}`,
		&trust); trust.Decision.Effect != "allow" || trust.Decision.Value != "7" {
		t.Errorf("trust %+v", trust)
	}
	if b.into("openfi_recompute_trust_summary", `{"slug":"plain","threshold":{"requireIdentity":true}}`,
		&trust); trust.Decision.Effect != "deny" || trust.Verified == nil {
		t.Errorf("recomputed %+v", trust)
	}
}

// rows counts everything that tools may leave behind.
func (h *house) rows() string {
	h.t.Helper()
	tasks, err := rundb.Tasks(h.t.Context(), h.db, rundb.TaskFilter{}, 100)
	ok(h.t, err)
	var inputs, acts, jobs int
	for query, into := range map[string]*int{"SELECT count(*) FROM trust_inputs": &inputs,
		"SELECT count(*) FROM acts": &acts, "SELECT count(*) FROM river_job": &jobs} {
		ok(h.t, h.db.Pool().QueryRow(h.t.Context(), query).Scan(into))
	}
	return fmt.Sprintf("%d tasks, %d inputs, %d acts, %d jobs", len(tasks), inputs, acts, jobs)
}

// A dry run answers and changes nothing; without a token nothing that changes anything
// answers, dry or not.
func TestToolsThatChange(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain", gate: make(chan struct{})})
	before, ann := h.rows(), h.tools(annsToken)
	var dry task
	ann.into("openfi_submit_task",
		`{"goal":"dear me","coordinatorSlug":"plain","budget":{"maxSteps":4},"dry_run":true}`,
		&dry)
	if !dry.DryRun || dry.Task != nil || dry.GateDecision.Effect != "allow" ||
		dry.Policy.Effect != "require_approval" ||
		dry.Budget.MaxSteps != 4 {
		t.Errorf("dry run %+v", dry)
	}
	var trust control.TrustAnswer
	if ann.into("openfi_recompute_trust_summary", `{"slug":"plain","dry_run":true}`, &trust); trust.Decision == nil ||
		trust.Verified != nil {
		t.Errorf("dry recomputation %+v", trust)
	}
	ann.refuses("openfi_submit_task", `{"goal":"x","coordinatorSlug":"nobody","dry_run":true}`, "not_found: ")
	for _, stranger := range []toolbox{h.tools(""), h.tools("a-token-that-nobody-has"), h.piped("")} {
		for name, arguments := range changing() {
			stranger.refuses(name, arguments, "unauthorized: ")
			if !strings.HasPrefix(name, "openfi_dry_run") {
				stranger.refuses(name, strings.Replace(arguments, "{", `{"dry_run":true,`, 1), "unauthorized: ")
			}
		}
	}
	ann.refuses("openfi_execute_call", changing()["openfi_execute_call"],
		"not_found: wallet is not configured here. Fix: ")
	ann.refuses("openfi_get_treasury_status", `{}`, "not_found: wallet is not configured here")
	if after := h.rows(); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

// changing are the tools that change something, with arguments that they take.
func changing() map[string]string {
	return map[string]string{
		"openfi_submit_task":               `{"goal":"x","coordinatorSlug":"plain"}`,
		"openfi_recompute_trust_summary":   `{"slug":"plain"}`,
		"openfi_register_identity":         `{"slug":"plain"}`,
		"openfi_set_agent_wallet":          `{"slug":"plain","operatorWallet":"0x00000000000000000000000000000000000000aa"}`,
		"openfi_configure_treasury_policy": `{"agentSlug":"plain","nativePerTxCapWei":"120"}`,
		"openfi_dry_run_call":              payment(40),
		"openfi_execute_call":              payment(40),
		"openfi_dry_run_transfer_erc20":    `{"agentSlug":"plain","token":"0x00000000000000000000000000000000000000bb","to":"0x00000000000000000000000000000000000000aa","amount":"1"}`,
		"openfi_transfer_erc20":            `{"agentSlug":"plain","token":"0x00000000000000000000000000000000000000bb","to":"0x00000000000000000000000000000000000000aa","amount":"1"}`,
		"openfi_cancel_task":               `{"taskId":"task_x"}`,
		"openfi_retry_task":                `{"taskId":"task_x"}`,
		"openfi_approve_run":               `{"runId":"run_x","subject":"trust","approved":true}`,
		"openfi_post_feedback":             `{"agentId":1,"fromAddress":"0x00000000000000000000000000000000000000aa","value":850,"valueDecimals":2,"tag1":"uptime"}`,
	}
}

func payment(wei int) string {
	return fmt.Sprintf(`{"agentSlug":"plain","target":"0x00000000000000000000000000000000000000aa","value":"%d"}`, wei)
}

// Tools say what they do, and take nothing that they do not know.
func TestToolsAreDescribed(t *testing.T) {
	t.Parallel()
	b := newHouse(t, nil).tools(annsToken)
	if len(b.tools) != 24 {
		t.Errorf("%d tools", len(b.tools))
	}
	for name, tool := range b.tools {
		_, changes := changing()[name]
		changes = changes && !strings.HasPrefix(name, "openfi_dry_run")
		if a := tool.Annotations; a.ReadOnlyHint == changes || len(tool.Description) < 40 {
			t.Errorf("%s: %+v", name, a)
		}
		schema := tool.InputSchema.(map[string]any)
		fields, _ := schema["properties"].(map[string]any)
		if _, has := fields["dry_run"]; has != changes || schema["additionalProperties"] != false ||
			schema["type"] != "object" {
			t.Errorf("%s: dry_run is %t in %v", name, has, schema)
		}
		for field, of := range fields {
			if !explained(of.(map[string]any)) {
				t.Errorf("%s: nobody knows what %s is", name, field)
			}
		}
		b.refuses(name, `{"surprise":1}`, "surprise")
	}
}

// explained reports whether a field's schema says more than a type.
func explained(field map[string]any) bool {
	for _, word := range []string{"description", "enum", "pattern", "maximum", "maxLength"} {
		if field[word] != nil {
			return true
		}
	}
	return false
}

// What cannot be meant is refused with the field and the way out.
func TestToolsRefuse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	b := h.tools(annsToken)
	for _, c := range []struct{ tool, arguments, says string }{
		{"openfi_get_agent", `{"slug":"nobody"}`, "not_found: "},
		{"openfi_get_agent", `{"slug":5}`, "slug: must be string. Fix: as openfi_list_agents gives it"},
		{"openfi_get_agent_log", `{"slug":"plain","limit":51}`, "limit: "},
		{"openfi_get_run", `{"runId":"run_x"}`, "not_found: "},
		{"openfi_get_run_receipts", `{"runId":"run_x","cursor":"x"}`, "cursor: "},
		{"openfi_submit_task", `{}`, "goal: is missing. Fix: what to do"},
		{"openfi_submit_task", `{"goal":" "}`, "goal: must be"},
		{"openfi_submit_task", `{"goal":"x","budget":{"maxSteps":-1}}`, "maxSteps"},
		{"openfi_submit_task", `{"goal":"x","budget":{"steps":1}}`, "budget.steps: "},
		{"openfi_submit_task", `{"goal":"x","valueAtRisk":"1.5"}`, "valueAtRisk: "},
		{"openfi_submit_task", `{"goal":"` + strings.Repeat("x", 9<<10) + `"}`, "goal: must be length <= 8192"},
		{"openfi_submit_task", `{"goal":"x","input":"` + strings.Repeat("x", 300<<10) + `"}`, "input: has"},
		{"openfi_submit_task", `{"goal":"x","dry_run":"yes"}`, "dry_run: must be boolean"},
		{"openfi_configure_treasury_policy", `{"active":false}`, "agentSlug: is missing"},
		{"openfi_post_feedback", `{"agentId":1,"fromAddress":"0x00000000000000000000000000000000000000aa","value":1.5}`,
			"value: must be text or a whole number"},
		{"openfi_recompute_trust_summary", `{"slug":"plain","threshold":{"minReputation":900}}`, "minReputation"},
	} {
		b.refuses(c.tool, c.arguments, c.says)
	}
	if list, err := rundb.Tasks(t.Context(), h.db, rundb.TaskFilter{}, 1); err != nil || len(list) > 0 {
		t.Errorf("%d tasks, %v", len(list), err)
	}
}

// Every tool that acts on a chain, dry first: that changes nothing.
func TestActsThroughTools(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*house, string) toolbox{"http": (*house).tools, "stdio": (*house).piped} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := treasuryHouse(t, worker{slug: "plain"})
			h.dryThenDone(open(h, annsToken))
		})
	}
}

func (h *house) dryThenDone(b toolbox) {
	t := h.t
	var status operate.TreasuryStatus
	var lets operate.TreasuryPolicy
	b.into("openfi_get_treasury_status", `{}`, &status)
	if b.into("openfi_get_treasury_policy", `{"agentSlug":"plain"}`, &lets); status.Balance != "1000" ||
		lets.NativePerTxCapWei != "100" {
		t.Errorf("status %+v, policy %+v", status, lets)
	}
	before := h.rows()
	var act operate.Act
	for _, name := range []string{"openfi_execute_call", "openfi_configure_treasury_policy",
		"openfi_register_identity"} {
		b.into(name, strings.Replace(changing()[name], "{", `{"dry_run":true,`, 1), &act)
		if !act.DryRun || act.Status != operate.Simulated || act.ID != "" || act.Transactions[0].Simulation == nil {
			t.Errorf("%s dry: %+v", name, act)
		}
		act = operate.Act{}
	}
	if b.into("openfi_dry_run_call", payment(40), &act); act.Status != operate.Simulated {
		t.Errorf("simulated call %+v", act)
	}
	if b.into("openfi_dry_run_transfer_erc20", changing()["openfi_dry_run_transfer_erc20"],
		&act); act.Status != operate.Refused || len(act.Policy.Reasons) == 0 {
		t.Errorf("simulated transfer of a token that is not allowed %+v", act)
	}
	if after := h.rows(); after != before {
		t.Errorf("dry runs left %s where %s were", after, before)
	}
	h.acts(b)
}

// acts does each act once.
func (h *house) acts(b toolbox) {
	h.t.Helper()
	done := map[string]operate.Act{}
	for _, name := range []string{"openfi_execute_call", "openfi_configure_treasury_policy",
		"openfi_register_identity"} {
		var act, again operate.Act
		arguments := strings.Replace(changing()[name], "{", `{"idempotencyKey":"`+name+`",`, 1)
		b.into(name, arguments, &act)
		if again = act; act.Kind != "identity" { // once registered there is nothing to ask for
			b.into(name, arguments, &again)
		}
		if act.Status != operate.Confirmed || act.AskedBy != "ann" || again.ID != act.ID ||
			act.Transactions[0].Hash == "" {
			h.t.Errorf("%s: %+v, then %+v", name, act, again)
		}
		done[name] = act
	}
	b.refuses("openfi_execute_call", payment(121), "over the cap of 120")
	b.refuses("openfi_transfer_erc20", changing()["openfi_transfer_erc20"], "token")
	b.refuses("openfi_set_agent_wallet", changing()["openfi_set_agent_wallet"], "signature")
	b.refuses("openfi_post_feedback", changing()["openfi_post_feedback"], "fromAddress")
	var agent control.TaskAgent
	if b.into("openfi_get_agent", `{"slug":"plain"}`, &agent); agent.AgentID == "" ||
		agent.AgentID != done["openfi_register_identity"].AgentID {
		h.t.Errorf("agent %+v after %+v", agent, done)
	}
}
