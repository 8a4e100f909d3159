package policy_test

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/policy"
)

func parse(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte("version: \"1\"\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// input is one that nothing of the standard refuses.
func input() *policy.Input {
	return &policy.Input{Phase: "policy", Task: policy.Task{ID: "t", Value: "0", Budget: policy.DefaultBudget()},
		Plan: policy.Plan{Steps: 2},
		Agent: policy.Agent{Slug: "payer", Status: policy.StatusRated, Score: 60, Low: 52, High: 70, Tier: 3,
			Gates:   map[string]bool{"service": true},
			Trust01: .85, IdentityExists: true, RegistrationResolves: true, Validation: policy.ValidationDisabled},
		Call: policy.Call{Value: "0"}}
}

func ids(d policy.Decision) (out []string) {
	for _, r := range d.Reasons {
		out = append(out, r.ID)
	}
	return out
}

func want(t *testing.T, d policy.Decision, effect policy.Effect, reasons ...string) {
	t.Helper()
	if d.Effect != effect || !slices.Equal(ids(d), reasons) {
		t.Errorf("decided %s %v, want %s %v", d.Effect, d.Reasons, effect, reasons)
	}
}

func TestRules(t *testing.T) {
	p := parse(t, `
rules:
  - {id: big, when: 'gt(task.value, "10000000000000000000")', effect: require_approval, reason: more than ten ether}
  - {id: huge, when: 'gte(task.value, mul("1000", "1000000000000000000"))', effect: deny, reason: far too much}
  - {id: young, when: 'agent.confidence < 0.2 && !("trial" in task.tags)', effect: deny, reason: thin evidence}
  - {id: known, when: 'agent.gates["service"]', effect: allow, reason: passes the service gate}
`)
	in := input()
	in.Agent.Confidence = .5
	want(t, p.Decide(t.Context(), in), policy.Allow, "known")
	in.Task.Value = "10000000000000000001" // above what 64 bits hold
	want(t, p.Decide(t.Context(), in), policy.RequireApproval, "big", "known")
	in.Task.Value = "1000000000000000000000"
	want(t, p.Decide(t.Context(), in), policy.Deny, "big", "huge", "known")
	in.Task.Value, in.Agent.Confidence, in.Task.Tags = "0", .1, []string{"trial"}
	want(t, p.Decide(t.Context(), in), policy.Allow, "known")
}

// TestBrokenRuleDenies: a rule that fails at run time must not let anything pass.
func TestBrokenRuleDenies(t *testing.T) {
	for name, when := range map[string]string{
		"no such key":     `agent.gates["nothing"]`,
		"no amount":       `gt(task.goal, "1")`,
		"negative":        `gt(sub("1", "2"), "0")`,
		"by zero":         `gt(div("1", "0"), "0")`,
		"hex":             `lt("0x10", "20")`,
		"too dear":        `task.tags.all(a, task.tags.all(b, task.tags.all(c, a + b + c != "x")))`,
		"too many digits": `lt("` + strings.Repeat("9", 161) + `", "1")`,
	} {
		p := parse(t, "rules:\n  - {id: r, when: '"+when+"', effect: allow, reason: x}\n")
		in := input()
		in.Task.Tags = slices.Repeat([]string{"y"}, 60)
		if d := p.Decide(t.Context(), in); d.Effect != policy.Deny ||
			!strings.Contains(d.Reasons[0].Text, "could not be evaluated") {
			t.Errorf("%s: decided %+v", name, d)
		}
	}
}

func TestDefault(t *testing.T) {
	p := parse(t,
		"default: deny\nrules:\n  - {id: listed, when: 'task.coordinator == \"planner\"', effect: allow, reason: listed}\n")
	in := input()
	want(t, p.Decide(t.Context(), in), policy.Deny, "default")
	in.Task.Coordinator = "planner"
	want(t, p.Decide(t.Context(), in), policy.Allow, "listed")
}

const token = "0x000000000000000000000000000000000000000a"

func priced(s string) string { return "version: \"1\"\ntrust: {tokens: [{" + s + "}]}" }

// Tokens are worth what the policy says, on their chain alone, rounded up.
func TestWorth(t *testing.T) {
	p, err := policy.Parse([]byte(priced(`chainId: 7, token: "` + token + `", units: "1000", wei: "7"`)))
	if err != nil {
		t.Fatal(err)
	}
	at := common.HexToAddress(token)
	for amount, want := range map[int64]int64{0: 0, 1: 1, 143: 2, 1000: 7, 1001: 8} {
		if wei, priced := p.Worth(7, at, big.NewInt(amount)); !priced || wei.Int64() != want {
			t.Errorf("%d units are %v wei, want %d", amount, wei, want)
		}
	}
	if _, priced := p.Worth(8, at, big.NewInt(1)); priced {
		t.Error("the token of another chain has a price")
	}
	if _, priced := p.Worth(7, common.Address{1}, big.NewInt(1)); priced {
		t.Error("another token has a price")
	}
}

func TestParseRefuses(t *testing.T) {
	rule := func(s string) string { return "version: \"1\"\nrules:\n  - " + s }
	for text, field := range map[string]string{
		"version: \"2\"":                                                                "version",
		"version: \"1\"\ndefault: perhaps":                                              "default",
		"version: \"1\"\n---\nversion: \"1\"\ndefault: deny":                            "policy",
		"version: \"1\"\nlimits: {maxSteps: -1}":                                        "maxSteps",
		"version: \"1\"\nlimits: {maxGasWei: 1e9}":                                      "maxGasWei",
		"version: \"1\"\ntrust: {unrated: maybe}":                                       "trust.unrated",
		"version: \"1\"\ntrust: {threshold: {minReputation: 101}}":                      "trust.threshold.minReputation",
		"version: \"1\"\ntrust: {threshold: {minTrustScore: .nan}}":                     "trust.threshold.minTrustScore",
		"version: \"1\"\ntrust: {byValue: [{fromWei: \"-1\"}]}":                         "trust.byValue[0].fromWei",
		"version: \"1\"\ntrust: {byValue: [{fromWei: \"1\", threshold: {minTier: 5}}]}": "trust.byValue[0].threshold.minTier",
		priced(`chainId: 1, token: "0x0", units: "1", wei: "1"`):                        "trust.tokens[0].token",
		priced(`chainId: 0, token: "` + token + `", units: "1", wei: "1"`):              "trust.tokens[0].chainId",
		priced(`chainId: 1, token: "` + token + `", units: "0", wei: "1"`):              "trust.tokens[0].units",
		priced(`chainId: 1, token: "` + token + `", units: "1", wei: "-1"`):             "trust.tokens[0].wei",
		priced(`chainId: 1, token: "` + token + `", units: "1", wei: "1"}, {chainId: 1, token: "` + token +
			`", units: "2", wei: "1"`): "trust.tokens[1].token",
		"version: \"1\"\nrule: []":                                           "policy",
		rule(`{when: "true", effect: deny, reason: x}`):                      "rules[0].id",
		rule(`{id: a, when: "true", effect: deny}`):                          "rules[0].reason",
		rule(`{id: a, when: "true", effect: no, reason: x}`):                 "rules[0].effect",
		rule(`{id: a, when: "agent.scores < 1.0", effect: deny, reason: x}`): "rules[0].when",
		rule(`{id: a, when: "agent.score", effect: deny, reason: x}`):        "rules[0].when",
		rule(`{id: a, when: "agent.score < ", effect: deny, reason: x}`):     "rules[0].when",
		rule(`{id: a, when: "true", effect: deny, reason: x}` + "\n  - " +
			`{id: a, when: "true", effect: deny, reason: x}`): "rules[1].id",
	} {
		_, err := policy.Parse([]byte(text))
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != field {
			t.Errorf("%s\ngave %v, want an error of %s", text, err, field)
		}
	}
}

func TestLimits(t *testing.T) {
	p := parse(t, "limits: {maxSteps: 3, maxGasWei: \"1000\"}\n")
	in := input()
	in.Task.Budget = policy.Budget{Steps: 4, ToolCalls: 51, RuntimeMS: 300_001, OnchainWrites: 6, GasWei: "1001"}
	in.Plan.Steps = 5
	want(t, p.Decide(t.Context(), in), policy.Deny, "limit.maxSteps", "limit.maxToolCalls", "limit.maxRuntimeMs",
		"limit.maxOnchainWrites", "limit.planSteps", "limit.maxGasWei")
	in.Task.Budget = policy.Budget{Steps: 3, GasWei: "1000"}
	in.Plan.Steps = 3
	want(t, p.Decide(t.Context(), in), policy.Allow)
	in.Task.Budget.GasWei = ""
	want(t, p.Decide(t.Context(), in), policy.Deny, "limit.maxGasWei")
	if in.Task.Budget = p.Budget(policy.Bounds{}); in.Task.Budget.Steps != 3 || in.Task.Budget.ToolCalls != 50 ||
		in.Task.Budget.GasWei != "1000" {
		t.Errorf("a task that asks for nothing gets %+v", in.Task.Budget)
	}
	want(t, p.Decide(t.Context(), in), policy.Allow)
	want(t, p.Decide(t.Context(), &policy.Input{Task: policy.Task{Budget: p.Budget(policy.Bounds{GasWei: "1001"})}}),
		policy.Deny, "limit.maxGasWei")
	in.Task.Budget = policy.Budget{Steps: -1}
	want(t, p.Decide(t.Context(), in), policy.Deny, "limit.budget")
}

func TestGate(t *testing.T) {
	p := parse(t, `
trust:
  threshold: {requireIdentity: true, minTrustScore: 0.65}
  byValue:
    - {fromWei: "1000", threshold: {minReputation: 50, minTier: 3, gates: [service]}}
    - {fromWei: "1000000", threshold: {minReputation: 80, requireValidation: true, gates: [validator]}}
`)
	gate := func(value string, own policy.Threshold, change func(*policy.Agent)) policy.Decision {
		in := input()
		in.Task.Value = value
		if change != nil {
			change(&in.Agent)
		}
		return p.Gate(in.Task, own, in.Agent)
	}
	want(t, gate("0", policy.Threshold{}, nil), policy.Allow)
	want(t, gate("1000", policy.Threshold{}, nil), policy.Allow)
	want(t, gate("1000000", policy.Threshold{}, nil), policy.Deny, "trust.requireValidation", "trust.minReputation",
		"trust.gates.validator")
	want(t, gate("0", policy.Threshold{MinTier: 4, RequireIdentity: true},
		func(a *policy.Agent) { a.IdentityExists, a.Trust01 = false, .4 }),
		policy.Deny, "trust.requireIdentity", "trust.minTrustScore", "trust.minTier")
	slip := gate("0", policy.Threshold{Gates: []string{"servcie"}}, nil)
	if want(t, slip, policy.Deny, "trust.gates.servcie"); !strings.Contains(slip.Reasons[0].Text,
		"there is no gate \"servcie\": scores have service") {
		t.Errorf("a gate that there is none of: %s", slip.Reasons[0].Text)
	}
	unrated := func(a *policy.Agent) { *a = policy.Agent{IdentityExists: true, Trust01: 1, Status: "unrated"} }
	want(t, gate("0", policy.Threshold{}, unrated), policy.Allow) // nothing asks for reputation
	want(t, gate("1000", policy.Threshold{}, unrated), policy.Deny, "trust.unrated")
	want(t, gate("1 ether", policy.Threshold{}, nil), policy.Deny, "trust.value")
	// The score itself is not enough: the lower bound decides.
	want(t, gate("1000", policy.Threshold{}, func(a *policy.Agent) { a.Score, a.Low = 90, 49.999 }), policy.Deny,
		"trust.minReputation")
}

func TestUnratedByPolicy(t *testing.T) {
	p := parse(t, "trust: {unrated: require_approval, threshold: {minReputation: 0}}\n")
	in := input()
	in.Agent.Status = "unrated"
	want(t, p.Gate(in.Task, policy.Threshold{}, in.Agent), policy.RequireApproval, "trust.unrated")
}

// The word of few raters opens nothing that asks for more than the tier it gives, however good it is.
func TestThinReachesItsTierAlone(t *testing.T) {
	p := parse(t, "trust: {unrated: require_approval}\n")
	in := input()
	in.Agent.Status, in.Agent.Tier, in.Agent.Low = policy.StatusThin, 1, 4
	least := -100.0
	want(t, p.Gate(in.Task, policy.Threshold{}, in.Agent), policy.Allow)
	want(t, p.Gate(in.Task, policy.Threshold{MinTier: 1}, in.Agent), policy.Allow)
	for _, more := range []policy.Threshold{{MinTier: 2}, {MinReputation: &least}, {Gates: []string{"service"}}} {
		want(t, p.Gate(in.Task, more, in.Agent), policy.RequireApproval, "trust.thin")
	}
}

// A policy, a step by value or a task can demand that a score follows from verified blocks alone.
func TestVerifiedIsDemanded(t *testing.T) {
	p := parse(t, "trust: {byValue: [{fromWei: \"10\", threshold: {verified: true}}]}\n")
	a := input().Agent
	a.Verified = false
	small, large := policy.Task{Value: "9"}, policy.Task{Value: "10"}
	want(t, p.Gate(small, policy.Threshold{}, a), policy.Allow)
	want(t, p.Gate(large, policy.Threshold{}, a), policy.Deny, "trust.verified")
	want(t, p.Gate(small, policy.Threshold{Verified: true}, a), policy.Deny, "trust.verified")
	if all, err := p.Demands(large, policy.Threshold{}); err != nil || !all.Verified {
		t.Errorf("demanded %+v, %v", all, err)
	}
	a.Verified = true
	want(t, p.Gate(large, policy.Threshold{Verified: true}, a), policy.Allow)
	rule := parse(t, "rules:\n  - {id: proven, when: '!agent.verified', effect: deny, reason: blocks}\n")
	in := input()
	if in.Agent.Verified = false; rule.Decide(t.Context(), in).Effect != policy.Deny {
		t.Error("a rule that names verified allows an agent that is not")
	}
}

// TestGateIsMonotone: a better agent is never refused for more, and more at risk never
// asks for less.
func TestGateIsMonotone(t *testing.T) {
	p := parse(t, `
trust:
  threshold: {minTrustScore: 0.5, minReputation: 0}
  byValue: [{fromWei: "10", threshold: {minReputation: 50, minTier: 2}}, {fromWei: "100", threshold: {minReputation: 80, minTier: 4}}]
`)
	rapid.Check(t, func(t *rapid.T) {
		draw := func() policy.Agent {
			return policy.Agent{Status: policy.StatusRated, Low: rapid.Float64Range(-100, 100).Draw(t, "low"),
				Tier: rapid.Int64Range(0, 4).Draw(t, "tier"), Trust01: rapid.Float64Range(0, 1).Draw(t, "trust")}
		}
		a, b := draw(), draw()
		best := policy.Agent{Status: policy.StatusRated, Low: max(a.Low, b.Low), Tier: max(a.Tier, b.Tier),
			Trust01: max(a.Trust01, b.Trust01)}
		values := []string{"0", "10", "99", "100", "100000000000000000000000"}
		i := rapid.IntRange(0, len(values)-2).Draw(t, "value")
		of := func(value string, a policy.Agent) int {
			return len(p.Gate(policy.Task{Value: value}, policy.Threshold{}, a).Reasons)
		}
		if of(values[i], best) > of(values[i], a) {
			t.Fatalf("%+v is refused for more than %+v", best, a)
		}
		if of(values[i], a) > of(values[i+1], a) {
			t.Fatalf("%s at risk asks for more than %s", values[i], values[i+1])
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("version: \"1\"\nrules:\n  - {id: a, when: 'agent.score < 1.0', effect: deny, reason: x}\n"))
	f.Add([]byte("version: \"1\"\nlimits: &a {maxSteps: 3}\ntrust: {threshold: *a}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := policy.Parse(text); err == nil {
			p.Decide(t.Context(), input())
		}
	})
}

// A negative score is refused also where nothing asks for reputation, and only the policy
// can say otherwise: no threshold of a task does.
func TestNegativeScore(t *testing.T) {
	a := input().Agent
	a.Score, a.Low, a.High = -.001, -20, 20
	task, lowest := policy.Task{Value: "0"}, -100.0
	want(t, parse(t, "").Gate(task, policy.Threshold{}, a), policy.Deny, "trust.negative")
	want(t, parse(t, "").Gate(task, policy.Threshold{MinReputation: &lowest}, a), policy.Deny, "trust.negative")
	want(t, parse(t, "trust: {negative: require_approval}\n").Gate(task, policy.Threshold{}, a), policy.RequireApproval,
		"trust.negative")
	want(t, parse(t, "trust: {negative: allow}\n").Gate(task, policy.Threshold{}, a), policy.Allow, "trust.negative")
	a.Score = 0
	want(t, parse(t, "").Gate(task, policy.Threshold{}, a), policy.Allow)
	a.Status, a.Score = "unrated", -1
	want(t, parse(t, "").Gate(task, policy.Threshold{}, a), policy.Allow)
}
