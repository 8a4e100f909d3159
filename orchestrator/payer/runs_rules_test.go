package payer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/outbound"
	"repute/orchestrator/quote"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store/rundb"
)

// shows is a buyer with a dry run that shows its payments.
type shows struct {
	buyer
	ask   bool
	times int
}

// DryRun implements orchestrator.DryRunner.
func (s shows) DryRun(_ context.Context, t standard.Task, _ standard.Plan, _ *orchestrator.Context) (d standard.DryRun,
	err error) {
	var list []outbound.PaidRequest
	err = json.Unmarshal(t.Input, &list)
	for _, q := range list {
		d.Payments = append(d.Payments, quote.Planned{HTTPRequest: q.HTTPRequest, Ask: s.ask, Times: s.times})
	}
	return d, err
}

// quotes are those of a run's dry run.
func (o *office) quotes(t *testing.T, run repute.Run) []quote.Quote {
	t.Helper()
	phases, err := rundb.Phases(t.Context(), o.db, run.ID)
	ok(t, err)
	for _, p := range phases {
		if p.Phase == repute.PhaseDryRun {
			var r struct{ Quotes []quote.Quote }
			ok(t, json.Unmarshal(p.Result, &r))
			return r.Quotes
		}
	}
	return nil
}

// TestDryRunQuotes: the dry run shows each planned payment with its payee, amount, score and verdict; one that
// would be refused, or all together over the cap, end the run before anything is paid.
func TestDryRunQuotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, handler := w.runtime(t)
	rules := fmt.Sprintf(payments, w.index)
	rule := func(effect string) string {
		return rules + "rules:\n  - {id: dear, when: 'phase == \"payment\" && payment.usd >= 0.01', effect: " + effect +
			", reason: too dear}\n"
	}
	for _, c := range []struct {
		name, rules, low string
		agent            shows
		verdict, why     string
		pays             bool
	}{
		{"trusted", rules, "40", shows{ask: true}, quote.Pays, "", true},
		{"not asked", rules, "40", shows{}, quote.NotKnown, "asked in Execute alone", true},
		{"a low score", rules, "19", shows{ask: true}, quote.Refuses, "has a score of at least 19, 20 are needed",
			false},
		{"a rule denies", rule("deny"), "40", shows{ask: true}, quote.Refuses, "dear: too dear", false},
		{"over the cap together", rules, "40", shows{ask: true, times: 26}, quote.Pays, "limit.maxPaymentUsd", false},
		{"no payments", "version: \"1\"\n", "40", shows{ask: true}, quote.Refuses, "lets no agent pay", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.trusted("wallet", c.low)
			o, before, runs := w.open(t, c.rules, c.agent), w.paid(t), handler.count()
			task, run := o.ended(t, o.submit(t, input(url+"?secret=1", c.name)))
			q := o.quotes(t, run)
			if len(q) != 1 || q[0].Verdict != c.verdict || q[0].URL != url ||
				!strings.Contains(run.Error+string(run.Reasons)+q[0].Reason, c.why) {
				t.Fatalf("%+v, task %s: %s %s", q, task.Status, run.Error, run.Reasons)
			}
			if p := q[0].Payment; c.verdict == quote.Pays &&
				(p == nil || p.Payee != "eip155:31337:0xa:1" || p.Amount != "10000" ||
					p.USD != 0.01 || p.Low != 40 || p.Score != 60 || p.To != w.Payee().Hex() ||
					!strings.HasPrefix(p.Network, "eip155:")) {
				t.Errorf("%+v", p)
			}
			paid, ran := w.paid(t)-before, handler.count()-runs
			if (task.Status == repute.TaskCompleted) != c.pays || c.pays && (paid != 10_000 || ran != 1) ||
				!c.pays && paid+int64(ran) != 0 {
				t.Errorf("task %s, %d units, %d runs: %s", task.Status, paid, ran, run.Error)
			}
		})
	}
}

// TestRulesSeePayments: the rules of the policy see each payment before it is signed, as they see transactions.
func TestRulesSeePayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, handler := w.runtime(t)
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	w.trusted("wallet", "40")
	w.script("/agents/eip155:31337:0xa:1/reputation", `{"score":60,"low":40,"status":"rated","tier":2}`)
	deny := func(when string) string {
		return fmt.Sprintf(payments, w.index) + "rules:\n  - id: watched\n    when: " + fmt.Sprintf("%q", when) +
			"\n    effect: deny\n    reason: not this one\n"
	}
	for when, denies := range map[string]bool{
		`phase == "payment" && payment.tier < 3 && payment.low == 40.0 && payment.score == 60.0`: true,
		`phase == "payment" && payment.tier < 2`:                                                 false,
		`payment.host == "` + host + `"`:                                                         true,
		`payment.network == "eip155:31337" && payment.asset == "` + w.Token.Hex() + `"`:          true,
		`phase == "payment" && gt(payment.amount, "9999")`:                                       true,
		`phase == "payment" && gt(payment.amount, "10000")`:                                      false,
		`phase == "payment" && payment.by == "wallet" && payment.status == "rated"`:              true,
		`phase == "payment" && payment.payee == "" || phase == "call"`:                           false,
		`phase == "payment" && gt(payment.amount, "many")`:                                       true, // cannot be evaluated
	} {
		t.Run(when, func(t *testing.T) { // its engine ends with it
			o, before, runs := w.open(t, deny(when), buyer{}), w.paid(t), handler.count()
			task, run := o.ended(t, o.submit(t, input(url, when)))
			paid, denied := w.paid(t)-before, strings.Contains(run.Error, "watched") ||
				strings.Contains(run.Error, "not this one")
			if denies && (task.Status != repute.TaskFailed || paid != 0 || handler.count() != runs ||
				!denied && !strings.Contains(when, "many")) ||
				!denies && (task.Status != repute.TaskCompleted || paid != 10_000) {
				t.Errorf("task %s, %d units: %s", task.Status, paid, run.Error)
			}
		})
	}
}

// TestPaymentApproval: a rule leaves a payment to a person; the run waits, and pays once after the approval.
func TestPaymentApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, _ := w.runtime(t)
	w.trusted("wallet", "40")
	o := w.open(t, fmt.Sprintf(payments, w.index)+
		"rules:\n  - {id: look, when: 'phase == \"payment\"', effect: require_approval, reason: looked at}\n",
		shows{ask: true})
	task := o.submit(t, input(url, "a"))
	var waits []rundb.Decision
	o.until(t, "the run waits", func() bool {
		var err error
		waits, err = rundb.Awaited(t.Context(), o.db, task.Run)
		return err == nil && len(waits) == 1
	})
	if !strings.HasPrefix(waits[0].Subject, "payment ") || w.paid(t) != 0 {
		t.Fatalf("%+v: %d units", waits, w.paid(t))
	}
	ok(t, o.client.Approve(t.Context(), task.Run, waits[0].Subject, true, "ann", "fine"))
	task, run := o.ended(t, task)
	if q := o.quotes(t, run); task.Status != repute.TaskCompleted || w.paid(t) != 10_000 || len(q) != 1 ||
		q[0].Verdict != quote.Asks {
		t.Errorf("task %s, %d units, %+v: %s", task.Status, w.paid(t), q, run.Error)
	}
}

// TestTaskLowersCap: a task lowers what may be paid for it, and cannot raise it.
func TestTaskLowersCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, _ := w.runtime(t)
	w.trusted("wallet", "40")
	o := w.open(t, fmt.Sprintf(payments, w.index), buyer{})
	for _, c := range []struct {
		most  string
		units int64
		why   string
	}{{"0.015", 10_000, "of at most 0.015 were paid by task"}, {"0", 0, "at most 0 are paid"}, {"0.02", 20_000, ""},
		{"0.3", 0, "maxPaymentUsd is 0.3, at most 0.25 is allowed"}} {
		before := w.paid(t)
		task, _, err := o.client.Submit(t.Context(), standard.Request{Coordinator: "buyer", Goal: "buy", By: "test",
			Input: input(url, c.most, "second"), Terms: standard.Terms{Budget: policy.Bounds{PaymentUSD: c.most}}})
		ok(t, err)
		task, run := o.ended(t, task)
		if why := run.Error + string(run.Reasons); w.paid(t)-before != c.units ||
			(task.Status == repute.TaskCompleted) != (c.why == "") ||
			!strings.Contains(why, c.why) {
			t.Errorf("%s: %d units, task %s: %s", c.most, w.paid(t)-before, task.Status, why)
		}
	}
	for _, most := range []string{"1e3", "-1", "0.0000001", "a"} {
		_, _, err := o.client.Submit(t.Context(), standard.Request{Coordinator: "buyer", Goal: "buy", By: "test",
			Input: input(url, "a"), Terms: standard.Terms{Budget: policy.Bounds{PaymentUSD: most}}})
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "maxPaymentUsd") {
			t.Errorf("%s: %v", most, err)
		}
	}
}
