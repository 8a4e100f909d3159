package policy_test

import (
	"errors"
	"strings"
	"testing"

	"repute"
	"repute/policy"
)

// What agents may pay is stated by the policy alone: nothing without payments, the usual caps where
// they name none.
func TestSpending(t *testing.T) {
	t.Parallel()
	if s := parse(t, "").Spending(); s.Allowed() || s != (policy.Spending{}) {
		t.Errorf("without payments: %+v", s)
	}
	want := policy.Spending{Index: "http://127.0.0.1:8080", MinScore: 20, MaxCall: 50_000, MaxTask: 250_000,
		MaxHost: 1_000_000, MaxDay: 5_000_000}
	if s := parse(t, "payments: {index: \"http://127.0.0.1:8080\"}").Spending(); !s.Allowed() || s != want {
		t.Errorf("usual payments: %+v", s)
	}
	want = policy.Spending{Index: "https://a.example/x", MinScore: 0, AllowUnknown: true, MaxCall: 1,
		MaxTask: 2_000_000,
		MaxHost: 0, MaxDay: 12_500_000}
	if s := parse(t, `payments: {index: "https://a.example/x", minScore: 0, allowUnknown: true, maxCall: "0.000001",
  maxTask: "2", maxHost: "0", maxDay: "12.50"}`).Spending(); s != want {
		t.Errorf("payments: %+v", s)
	}
}

// Payments that nobody can mean are refused by the name of their field.
func TestWrongSpending(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{`{}`: "payments.index", `{index: a}`: "payments.index",
		`{index: "ftp://a.example"}`:                      "payments.index",
		`{index: "http://a.example", minScore: 101}`:      "payments.minScore",
		`{index: "http://a.example", minScore: .nan}`:     "payments.minScore",
		`{index: "http://a.example", maxCall: "-1"}`:      "payments.maxCall",
		`{index: "http://a.example", maxTask: "1e3"}`:     "payments.maxTask",
		`{index: "http://a.example", maxHost: "1,5"}`:     "payments.maxHost",
		`{index: "http://a.example", maxDay: 0.0000001}`:  "payments.maxDay",
		`{index: "http://a.example", maxRun: "1"}`:        "policy",
		`{index: "http://a.example", maxDay: 9999999999}`: "payments.maxDay"} {
		_, err := policy.Parse([]byte("version: \"1\"\npayments: " + text + "\n"))
		if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), field+":") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSpendingOf: the bounds of a task lower what is paid for it, and never raise it.
func TestSpendingOf(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte("version: \"1\"\npayments: {index: \"http://127.0.0.1:1\", maxCall: \"0.1\", maxTask: \"0.2\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string][2]repute.Micros{"": {100_000, 200_000}, "0.15": {100_000, 150_000},
		"0.05": {50_000, 50_000}, "0": {0, 0}, "7": {100_000, 200_000}, "1e3": {0, 0}} {
		s := p.SpendingOf(policy.Bounds{PaymentUSD: asked})
		if s.MaxCall != want[0] || s.MaxTask != want[1] || s.MaxDay != p.Spending().MaxDay {
			t.Errorf("%q: %+v", asked, s)
		}
		d := p.Decide(t.Context(), &policy.Input{Task: policy.Task{Budget: p.Budget(policy.Bounds{PaymentUSD: asked})}})
		if denied := asked == "7" || asked == "1e3"; (d.Effect == policy.Deny) != denied {
			t.Errorf("%q: %+v", asked, d)
		}
	}
	if _, err := policy.Parse([]byte("version: \"1\"\nlimits: {maxPaymentUsd: \"1\"}\n")); !errors.Is(err,
		repute.ErrInvalid) {
		t.Errorf("a policy has the bound of tasks: %v", err)
	}
}
