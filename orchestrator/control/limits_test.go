package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// free is a chain on which every transaction succeeds and costs one wei, and a tool that
// answers nothing.
type free struct{}

func (free) Call(context.Context, transaction.Origin, string, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage("null"), nil
}

func (free) Read(context.Context, uint64, common.Address, []byte) ([]byte, error) { return nil, nil }

func (free) Simulate(context.Context, transaction.Origin, transaction.Tx) (transaction.Simulation, error) {
	return transaction.Simulation{OK: true, FeeWei: "1"}, nil
}

func (free) Send(_ context.Context, i transaction.Intent) (transaction.Sent, error) {
	return transaction.Sent{OK: true, FeeWei: "1", Hash: common.BytesToHash([]byte(i.ID))}, nil
}

// spender serves an agent over HTTP that calls a tool and sends a transaction. manifest is
// the text of the members of its manifest that bound it.
func spender(t *testing.T, slug, manifest string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var q remote.Question
		_ = json.NewDecoder(r.Body).Decode(&q)
		switch method := strings.TrimPrefix(r.URL.Path, "/"); {
		case method == "info":
			fmt.Fprintf(w,
				`{"protocol":%q,"slug":%q,"displayName":"Spender","version":"1.0.0","identityMode":"erc8004-required","dryRun":true,
				"manifest":{"schema":%q,"name":"Spender","slug":%q,"version":"1.0.0"%s}}`, remote.Protocol, slug, standard.ManifestSchema, slug, manifest)
		case method == "can-handle":
			fmt.Fprint(w, `{"result":true}`)
		case method == "plan":
			fmt.Fprintf(w, `{"result":{"steps":[{"stepId":"spend","agentSlug":%q,"dependsOn":[]}]}}`, slug)
		case method == "dry-run":
			fmt.Fprintf(w, `{"result":{"calls":[%s]}}`, spent)
		case method == "execute" && len(q.Outcomes) == 0:
			fmt.Fprintf(w, `{"calls":[{"kind":"tool","tool":"free"},{"kind":"send","tx":%s}]}`, spent)
		case method == "execute" && q.Outcomes[0].Error+q.Outcomes[1].Error != "":
			fmt.Fprintf(w, `{"error":%q}`, q.Outcomes[0].Error+q.Outcomes[1].Error)
		case method == "execute":
			fmt.Fprint(w, `{"result":{}}`)
		case method == "verify":
			fmt.Fprint(w, `{"result":{"checks":[{"name":"done","passed":true}],"score":1}}`)
		default:
			fmt.Fprint(w, `{"result":{"text":"spent"}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const spent = `{"chainId":7,"target":"0x0100000000000000000000000000000000000000","value":"1","data":"AQIDBA==","purpose":"pay"}`

// Every number of a task's budget, of a manifest and of a policy is its default where it is
// absent, and allows nothing where it is 0.
func TestZeroAllowsNone(t *testing.T) {
	t.Parallel()
	counts := map[string]string{"maxSteps": "teps", "maxToolCalls": "maxToolCalls", "maxRuntimeMs": "maxRuntimeMs",
		"maxOnchainWrites": "maxOnchainWrites"}
	type limited struct{ policy, manifest, task, want string }
	cases := map[string]limited{
		"nothing is bounded": {},
		"task maxGasWei":     {task: `"budget":{"maxGasWei":"0"}`, want: "maxGasWei"},
		"policy maxGasWei":   {policy: `limits: {maxGasWei: "0"}`, want: "maxGasWei"},
		"manifest maxOnchainWritesPerRun": {manifest: `,"safety":{"maxOnchainWritesPerRun":0}`,
			want: "maxOnchainWrites"},
		"task minReputation":   {task: `"threshold":{"minReputation":0}`, want: "trust.unrated"},
		"policy minReputation": {policy: `trust: {threshold: {minReputation: 0}}`, want: "trust.unrated"},
		"policy fromWei": {policy: `trust: {byValue: [{fromWei: "0", threshold: {minReputation: 0}}]}`,
			want: "trust.unrated"},
		"task minTier":         {task: `"threshold":{"minTier":0}`}, // every agent has tier 0
		"policy minTier":       {policy: `trust: {threshold: {minTier: 0}}`},
		"task minTrustScore":   {task: `"threshold":{"minTrustScore":0}`},
		"policy minTrustScore": {policy: `trust: {threshold: {minTrustScore: 0}}`},
		"task valueAtRisk": {task: `"valueAtRisk":"0"`,
			policy: `trust: {byValue: [{fromWei: "1", threshold: {minReputation: 0}}]}`, want: "nobody can rate it"},
		"task valueAtRisk of 1": {task: `"valueAtRisk":"1"`,
			policy: `trust: {byValue: [{fromWei: "2", threshold: {minReputation: 0}}]}`},
	}
	for name, want := range counts {
		cases["task "+name] = limited{task: fmt.Sprintf(`"budget":{%q:0}`, name), want: want}
		cases["manifest "+name] = limited{manifest: fmt.Sprintf(`,"computeConstraints":{%q:0}`, name), want: want}
		cases["policy "+name] = limited{policy: fmt.Sprintf(`limits: {%s: 0}`, name), want: want}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.Parse([]byte("version: \"1\"\n" + c.policy + "\n"))
			ok(t, err)
			current := func() *policy.Policy { return p }
			h := newHouse(t, func(o *options) { o.Agents, o.Policy = http.DefaultClient, current })
			h.spends(current)
			body := fmt.Sprintf(`{"slug":"spender","url":%q}`, spender(t, "spender", c.manifest))
			h.into(h.ann(http.MethodPost, "/v1/agents", body), http.StatusCreated, &control.TaskAgent{})
			task := `{"goal":"spend","coordinatorSlug":"spender"`
			if c.task != "" {
				task += "," + c.task
			}
			run := h.ended(h.submit(task + "}"))
			if fine := run.Status == "completed"; fine != (c.want == "") ||
				!strings.Contains(fmt.Sprint(run.Error, run.Reasons), c.want) {
				t.Errorf("run %s: %s %v", run.Status, run.Error, run.Reasons)
			}
			if c.want == "" && (run.Used.Writes != 1 || run.Used.ToolCalls != 1 || run.Limits.Steps != 10 ||
				run.Limits.ToolCalls != 50 || run.Limits.RuntimeMS != 300_000 || run.Limits.Writes != 5) {
				t.Errorf("the run used %+v of %+v", run.Used, run.Limits)
			}
			if c.want == "maxOnchainWrites" && run.Used.Writes != 0 {
				t.Errorf("%d transactions were sent, none is allowed", run.Used.Writes)
			}
		})
	}
}

// spends runs an engine whose agents are elsewhere and reach a chain.
func (h *house) spends(current func() *policy.Policy) {
	h.t.Helper()
	e, err := orchestrator.New(h.db, orchestrator.Options{Lenient: true, Policy: current, Chain: free{},
		ExecutionChain: 7, Hold: 2 * time.Second,
		Tools: map[string]orchestrator.Tool{"free": free{}},
		Remote: func(m repute.Module) (orchestrator.Module, error) {
			return remote.Stored(m, remote.Options{Client: http.DefaultClient})
		}})
	ok(h.t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	h.t.Cleanup(func() { stop(); <-done })
}
