package policy

import (
	"cmp"
	"fmt"
	"net/url"

	"repute"
)

// Payments are what agents may pay for answers by x402, as a policy states it. Amounts are US
// dollars; known stablecoins count one dollar each. Caps of different range apply together, and the lowest one that is
// reached refuses.
type Payments struct {
	// Index is the base URL of the index that is asked which agent an account belongs to, and for the agent's score.
	Index string `yaml:"index"`
	// MinScore is compared with the lower bound of the payee's score, -100 to 100; nil: 20.
	MinScore *float64 `yaml:"minScore"`
	// AllowUnknown also pays accounts of no known agent, and agents that nobody has rated.
	AllowUnknown bool `yaml:"allowUnknown"`
	// MaxCall bounds one answer, MaxTask all answers of a task with the runs below it and every
	// attempt. Empty: 0.05 and 0.25.
	MaxCall string `yaml:"maxCall"`
	MaxTask string `yaml:"maxTask"`
	// MaxHost bounds what one host is paid in 24 hours, MaxDay what all are, by every payer on the
	// database. Empty: 1 and 5.
	MaxHost string `yaml:"maxHost"`
	MaxDay  string `yaml:"maxDay"`
}

// Spending are the payments of a policy, checked. The zero value allows none. The caps are in millionths of a dollar,
// and a cap of 0 allows nothing, unlike a limit on language models.
type Spending struct {
	Index                             string
	MinScore                          float64
	AllowUnknown                      bool
	MaxCall, MaxTask, MaxHost, MaxDay repute.Micros
}

// defaultMinScore is the score that a payee needs where the policy does not say.
const defaultMinScore = 20

// Allowed reports whether anything may be paid.
func (s Spending) Allowed() bool { return s.Index != "" }

// Spending is what agents may pay for answers.
func (p *Policy) Spending() Spending { return p.spend }

// SpendingOf is what the agents of a task may pay for answers: its bounds lower the caps, and never raise them.
// A bound that cannot be read allows nothing.
func (p *Policy) SpendingOf(b Bounds) Spending {
	s := p.spend
	if b.PaymentUSD == "" {
		return s
	}
	most, err := repute.ParseDollars("maxPaymentUsd", b.PaymentUSD)
	if err != nil {
		most = 0
	}
	s.MaxTask = min(s.MaxTask, most)
	s.MaxCall = min(s.MaxCall, s.MaxTask)
	return s
}

// spending checks the payments of a policy. repute.ErrInvalid names the field. Nil payments are the zero Spending.
// MaxCall may be above MaxTask: then MaxTask decides.
func (f *Payments) spending() (s Spending, err error) {
	if f == nil {
		return s, nil
	}
	s = Spending{Index: f.Index, MinScore: defaultMinScore, AllowUnknown: f.AllowUnknown}
	if u, err := url.Parse(f.Index); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Spending{}, repute.Invalid("payments.index", fmt.Sprintf("%.100q is no URL", f.Index),
			"the base URL of an index, e.g. http://127.0.0.1:8080")
	}
	if f.MinScore != nil {
		s.MinScore = *f.MinScore
	}
	if !(s.MinScore >= -100 && s.MinScore <= 100) {
		return Spending{}, repute.Invalid("payments.minScore", fmt.Sprintf("%g is out of range", s.MinScore),
			"-100 to 100")
	}
	for _, c := range []struct {
		field, text, usual string
		into               *repute.Micros
	}{{"payments.maxCall", f.MaxCall, "0.05", &s.MaxCall}, {"payments.maxTask", f.MaxTask, "0.25", &s.MaxTask},
		{"payments.maxHost", f.MaxHost, "1", &s.MaxHost}, {"payments.maxDay", f.MaxDay, "5", &s.MaxDay}} {
		if *c.into, err = repute.ParseDollars(c.field, cmp.Or(c.text, c.usual)); err != nil {
			return Spending{}, err
		}
	}
	return s, nil
}
