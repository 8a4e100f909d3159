package policy_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/policy"
)

// drawThreshold draws a threshold that Check accepts.
func drawThreshold(t *rapid.T, name string) (out policy.Threshold) {
	is := func(what string) bool { return rapid.Bool().Draw(t, name+" "+what) }
	out = policy.Threshold{MinTrustScore: rapid.Float64Range(0, 1).Draw(t, name+" trust"),
		RequireIdentity: is("identity"), RequireRegistration: is("registration"), RequireValidation: is("validation"),
		Verified: is("verified"), MinTier: rapid.Int64Range(0, 4).Draw(t, name+" tier"),
		Gates: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"service", "payment", "identity"}), 0, 3,
			rapid.ID[string]).Draw(t, name+" gates")}
	if is("reputation") {
		out.MinReputation = new(rapid.Float64Range(-100, 100).Draw(t, name+" least"))
	}
	return out
}

// drawAgent draws an agent with a score.
func drawAgent(t *rapid.T) policy.Agent {
	is := func(what string) bool { return rapid.Bool().Draw(t, what) }
	a := policy.Agent{Status: policy.StatusRated, Low: rapid.Float64Range(-100, 100).Draw(t, "low"),
		Tier: rapid.Int64Range(0, 4).Draw(t, "tier"), Verified: is("verified"), Gates: map[string]bool{},
		Trust01: rapid.Float64Range(0, 1).Draw(t, "trust"), IdentityExists: is("exists"),
		RegistrationResolves: is("resolves"),
		Validation: rapid.SampledFrom([]string{policy.ValidationDisabled, policy.ValidationPassed,
			policy.ValidationFailed}).Draw(t, "validation")}
	for _, g := range []string{"service", "payment", "identity"} {
		a.Gates[g] = is(g)
	}
	return a
}

// TestDemandsAreTheHardest: an agent passes what Demands returns exactly if it passes the policy and the task's own
// threshold, and Demands does not change what it was made of.
func TestDemandsAreTheHardest(t *testing.T) {
	t.Parallel()
	p := parse(t, `
trust:
  threshold: {minReputation: -20, gates: [service]}
  byValue:
    - {fromWei: "5", threshold: {minReputation: 30, minTier: 2, gates: [identity, service]}}
    - {fromWei: "50", threshold: {minTrustScore: 0.5, requireIdentity: true, verified: true}}
`)
	bare := parse(t, "")
	rapid.Check(t, func(t *rapid.T) {
		own, agent := drawThreshold(t, "own"), drawAgent(t)
		task := policy.Task{Value: rapid.SampledFrom([]string{"0", "4", "5", "49", "50", "51"}).Draw(t, "value")}
		gates := slices.Clone(own.Gates)
		all, err := p.Demands(task, own)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(own.Gates, gates) {
			t.Fatalf("the task's gates became %v", own.Gates)
		}
		if err := all.Check("all"); err != nil {
			t.Fatalf("no threshold: %v", err)
		}
		by, demanded := p.Gate(task, own, agent), bare.Gate(policy.Task{Value: "0"}, all, agent)
		if by.Effect != demanded.Effect {
			t.Fatalf("the policy says %+v, what it demands %+v", by, demanded)
		}
		again, err := p.Demands(task, all)
		if err != nil || fmt.Sprint(again.Gates) != fmt.Sprint(all.Gates) || again.MinTier != all.MinTier ||
			(again.MinReputation == nil) != (all.MinReputation == nil) {
			t.Fatalf("demanded again: %+v after %+v, %v", again, all, err)
		}
		for _, r := range by.Reasons {
			if r.Effect != policy.Deny || r.Text == "" || r.Need == "" || !strings.HasPrefix(r.ID, "trust.") {
				t.Fatalf("a reason that does not say what to do: %+v", r)
			}
		}
	})
}

// TestStepsForPayments: the built-in policy asks for more with each power of ten of the value.
func TestStepsForPayments(t *testing.T) {
	t.Parallel()
	p, err := policy.ForPayments()
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		low   float64
		tier  int64
		gates []string
	}{{0, 1, nil}, {0, 2, nil}, {25, 2, nil}, {25, 2, []string{"service"}}, {65, 2, []string{"service", "identity"}}}
	for i, s := range steps {
		a := policy.Agent{Status: policy.StatusRated, Score: s.low, Low: s.low, Tier: s.tier,
			Gates: map[string]bool{"service": false, "identity": false}}
		for _, g := range s.gates {
			a.Gates[g] = true
		}
		for j := range steps {
			below := policy.Task{Value: "1" + strings.Repeat("0", 15+j)} // 0.001, 0.01, 0.1, 1 and 10 coins
			if got := p.Gate(below, policy.Threshold{}, a).Effect; (got == policy.Allow) != (j <= i) {
				t.Errorf("an agent of step %d is given step %d: %s", i, j, got)
			}
		}
	}
	if err := p.CheckGates([]string{"service", "identity"}); err != nil {
		t.Error(err)
	}
}

// TestGatesOfPolicies: a gate that nobody can pass is named with its place in the policy and with those that exist.
func TestGatesOfPolicies(t *testing.T) {
	t.Parallel()
	known := []string{"service", "identity"}
	for text, field := range map[string]string{
		"trust: {threshold: {gates: [service, servcie]}}\n": "trust.threshold.gates[1]",
		"trust: {byValue: [{fromWei: \"1\", threshold: {gates: [identity]}}, " +
			"{fromWei: \"2\", threshold: {gates: [x]}}]}\n": "trust.byValue[1].threshold.gates[0]",
		"trust: {threshold: {gates: [\"\"]}}\n": "trust.threshold.gates[0]",
	} {
		err := parse(t, text).CheckGates(known)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != field || !strings.Contains(input.Hint, "service, identity") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := parse(t, "trust: {threshold: {gates: [identity]}}\n").CheckGates(known); err != nil {
		t.Error(err)
	}
}

// TestStatusesThatAreNone: an agent of which nothing is known counts as unrated wherever reputation is asked for.
func TestStatusesThatAreNone(t *testing.T) {
	t.Parallel()
	p := parse(t, "trust: {unrated: require_approval}\n")
	for _, status := range []string{"", "RATED", "unknown", policy.StatusUnrated} {
		a := policy.Agent{Status: status, Low: 100, Tier: 4, Score: -100, IdentityExists: true}
		want(t, p.Gate(policy.Task{Value: "0"}, policy.Threshold{MinTier: 1}, a), policy.RequireApproval, "trust.unrated")
		want(t, p.Gate(policy.Task{Value: "0"}, policy.Threshold{}, a), policy.Allow)
	}
	d := p.Gate(policy.Task{Value: "0"}, policy.Threshold{MinTier: 1}, policy.Agent{WhyUnrated: "it is new"})
	if want(t, d, policy.RequireApproval, "trust.unrated"); !strings.Contains(d.Reasons[0].Text, "no identity") {
		t.Errorf("an agent without an identity: %s", d.Reasons[0].Text)
	}
}

// TestUnproven: a program that cannot show that it speaks for its identity is refused before any threshold.
func TestUnproven(t *testing.T) {
	t.Parallel()
	a := input().Agent
	a.Unproven = "its certificate has expired"
	for text, effect := range map[string]policy.Effect{"": policy.Deny,
		"trust: {unproven: require_approval}\n": policy.RequireApproval, "trust: {unproven: allow}\n": policy.Allow} {
		d := parse(t, text).Gate(policy.Task{Value: "0"}, policy.Threshold{}, a)
		if want(t, d, effect, "identity.proof"); d.Reasons[0].Text != a.Unproven {
			t.Errorf("%q: %+v", text, d)
		}
	}
}

// TestMerge: of decisions that are joined the strongest effect counts, in any order, and no reason is listed twice.
func TestMerge(t *testing.T) {
	t.Parallel()
	strength := map[policy.Effect]int{policy.Allow: 0, policy.RequireApproval: 1, policy.Deny: 2}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (d policy.Decision) {
			d.Effect = policy.Allow
			for i := range rapid.IntRange(0, 4).Draw(t, name) {
				effect := rapid.SampledFrom([]policy.Effect{policy.Allow, policy.RequireApproval, policy.Deny})
				d.Merge(policy.Decision{Reasons: []policy.Reason{{ID: fmt.Sprint("r", i%3),
					Effect: effect.Draw(t, "effect")}}})
			}
			return d
		}
		a, b := draw("a"), draw("b")
		ab, ba := a, b
		ab.Reasons, ba.Reasons = slices.Clone(a.Reasons), slices.Clone(b.Reasons)
		ab.Merge(b)
		ba.Merge(a)
		if ab.Effect != ba.Effect || strength[ab.Effect] != max(strength[a.Effect], strength[b.Effect]) {
			t.Fatalf("%+v and %+v are %s or %s", a, b, ab.Effect, ba.Effect)
		}
		seen := map[policy.Reason]bool{}
		for _, r := range ab.Reasons {
			if seen[r] {
				t.Fatalf("%+v is listed twice", r)
			}
			seen[r] = true
		}
		if len(ab.Reasons) != len(ba.Reasons) {
			t.Fatalf("%v or %v", ab.Reasons, ba.Reasons)
		}
	})
}

// TestBoundsOr: a bound that is given counts, also a 0, and others stay.
func TestBoundsOr(t *testing.T) {
	t.Parallel()
	usual := policy.DefaultBudget()
	usual.GasWei, usual.CostUSD, usual.PaymentUSD, usual.Tokens = "7", "1.5", "0.1", 9
	if got := (policy.Bounds{}).Or(usual); got != usual {
		t.Errorf("without bounds: %+v", got)
	}
	zero := int64(0)
	got := policy.Bounds{Steps: &zero, OnchainWrites: &zero, GasWei: "0"}.Or(usual)
	want := usual
	want.Steps, want.OnchainWrites, want.GasWei = 0, 0, "0"
	if got != want {
		t.Errorf("with zeros: %+v", got)
	}
	if got := (policy.Bounds{PaymentUSD: "0.01"}).Payment(policy.Budget{Steps: 3}); got !=
		(policy.Budget{Steps: 3, PaymentUSD: "0.01"}) {
		t.Errorf("the bound of payments alone: %+v", got)
	}
}

// TestFixesOfLimits: a refusal says the bound, what was asked for and what to change.
func TestFixesOfLimits(t *testing.T) {
	t.Parallel()
	p := parse(t, "limits: {maxToolCalls: 0, maxCostUsd: \"2\"}\n")
	in := input()
	in.Task.Budget.ToolCalls, in.Task.Budget.CostUSD, in.Plan.Steps = 1, "2.000001", 11
	d := p.Decide(t.Context(), in)
	want(t, d, policy.Deny, "limit.maxToolCalls", "limit.planSteps", "limit.maxCostUsd")
	for i, says := range []string{"maxToolCalls is 1, at most 0 is allowed: give budget.maxToolCalls of at most that",
		"planSteps is 11, at most 10 is allowed: plan fewer, or give a larger budget.maxSteps",
		"maxCostUsd is 2.000001, at most 2 is allowed: give budget.maxCostUsd of at most that"} {
		if d.Reasons[i].Text != says || d.Reasons[i].Have == "" || d.Reasons[i].Need == "" {
			t.Errorf("%+v, want %q", d.Reasons[i], says)
		}
	}
	in.Task.Budget.CostUSD = ""
	if d = p.Decide(t.Context(), in); d.Reasons[2].Have != "no bound" {
		t.Errorf("a task without the bound: %+v", d.Reasons)
	}
}

// TestText: a policy keeps the bytes that it was read from, and their hash, whatever callers do with them.
func TestText(t *testing.T) {
	t.Parallel()
	text := []byte("version: \"1\" # mine\n")
	p, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(text)
	text[0] = 'x'
	p.Text()[0] = 'y'
	if p.Hash() != hash || string(p.Text()) != "version: \"1\" # mine\n" {
		t.Errorf("%x of %q", p.Hash(), p.Text())
	}
	if _, err := policy.Parse(make([]byte, 1<<20+1)); !errors.Is(err, repute.ErrInvalid) ||
		!strings.HasPrefix(err.Error(), "policy: larger") {
		t.Errorf("a text of more than 1 MiB: %v", err)
	}
	many := "rules:\n" + strings.Repeat("  - {id: a, when: \"true\", effect: deny, reason: x}\n", 201)
	if _, err := policy.Parse([]byte("version: \"1\"\n" + many)); !errors.Is(err, repute.ErrInvalid) ||
		!strings.HasPrefix(err.Error(), "rules: 201 rules") {
		t.Errorf("too many rules: %.100v", err)
	}
}

// TestTerms: what a person approves of has no score, and stays the same when the score of the payee changes.
func TestTerms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		micros := repute.Micros(rapid.Int64Range(0, 1e12).Draw(t, "micros"))
		p := policy.Payment{Host: "a.example", Network: "base", Asset: "0xa", To: "0xb", Amount: "5", Payee: "1:2",
			By: "wallet", Status: policy.StatusRated, Score: 60, Low: 50, Tier: 3, USD: float64(micros) / 1e6}
		if p.Micros() != micros {
			t.Fatalf("%d millionths are %d", micros, p.Micros())
		}
		worse := p
		worse.Score, worse.Low, worse.Tier, worse.Status, worse.By = -60, -80, 0, policy.StatusThin, "domain"
		if p.Terms() != worse.Terms() {
			t.Fatalf("%+v, %+v", p.Terms(), worse.Terms())
		}
		other := p
		other.Amount = "6"
		if p.Terms() == other.Terms() {
			t.Fatal("another amount has the same terms")
		}
	})
}
