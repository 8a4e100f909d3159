package source

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// paidAt is when the readings of these tests are made.
var paidAt = repute.Block{Number: 5, Hash: common.Hash{5}, Time: time.Unix(1_800_000_000, 0)}

// pays is a payment of so many cents to a payee, some days before paidAt.
func pays(payee byte, cents int64, days int) Payment {
	return Payment{Rater: common.Address{9}, Payee: common.Address{payee}, Identity: common.Address{payee},
		Paid: repute.Micros(cents * 10_000), Time: paidAt.Time.AddDate(0, 0, -days), ChainID: 8453,
		Tx: common.Hash{payee, byte(days)}, LogIndex: uint64(cents)}
}

func TestSpent(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	s := p.Source("x402-spend")
	old := pays(3, 3000, 366)
	same, shared := pays(3, 3000, 10), pays(3, 3000, 10)
	same.Identity, shared.Payee = common.Address{2}, common.Address{2}
	for name, c := range map[string]struct {
		payments []Payment
		issued   int // days before paidAt, 0: there is no credential
		why      Why
	}{
		"one hundred dollars to three": {[]Payment{pays(1, 4000, 30), pays(2, 3000, 20), pays(3, 3000, 10)}, 10, ""},
		"in small parts": {append(slices.Repeat([]Payment{pays(1, 2000, 30), pays(2, 2000, 20)}, 2),
			pays(3, 2000, 10)), 10, ""},
		"99 dollars":                 {[]Payment{pays(1, 4000, 30), pays(2, 3000, 20), pays(3, 2900, 10)}, 0, ""},
		"two payees":                 {[]Payment{pays(1, 9000, 30), pays(2, 9000, 20)}, 0, ""},
		"most of it to one":          {[]Payment{pays(1, 99_000, 30), pays(2, 2900, 20), pays(3, 3000, 10)}, 0, ""},
		"one party at two addresses": {[]Payment{pays(1, 4000, 30), pays(2, 4000, 20), same}, 0, ""},
		"two parties at one address": {[]Payment{pays(1, 4000, 30), pays(2, 4000, 20), shared}, 0, ""},
		"older than a year":          {[]Payment{pays(1, 4000, 30), pays(2, 4000, 20), old}, 0, ""},
		"a year ago":                 {[]Payment{pays(1, 4000, 30), pays(2, 4000, 20), pays(3, 3000, 365)}, 20, ""},
		"later ones do not renew it": {[]Payment{pays(1, 4000, 30), pays(2, 3000, 20), pays(3, 3000, 10),
			pays(4, 9000, 1)}, 10, ""},
		"too recently": {[]Payment{pays(1, 4000, 30), pays(2, 3000, 20), pays(3, 3000, 6)}, 6,
			WhyMaturing},
		"in the future": {[]Payment{pays(1, 4000, 30), pays(2, 3000, 20), pays(3, 3000, -1)}, 0, ""},
	} {
		r := s.Spent(8453, paidAt, c.payments)
		slices.Reverse(c.payments)
		again := s.Spent(8453, paidAt, c.payments)
		if !slices.Equal(r.Credentials, again.Credentials) || r.Status != StatusOK {
			t.Errorf("%s: %+v in another order, %+v before", name, again, r)
		}
		held := p.Settle(nil, &r)
		if len(held) != min(c.issued, 1) {
			t.Errorf("%s: %d credentials", name, len(held))
			continue
		}
		if c.issued == 0 {
			continue
		}
		issued := uint64(paidAt.Time.AddDate(0, 0, -c.issued).Unix())
		if why := p.Counts(&held[0], r.Time); held[0].Issued != issued || why != c.why ||
			held[0].Rater != (common.Address{9}) {
			t.Errorf("%s: %+v, %q", name, held[0], why)
		}
	}
}

// A credential ends with the reading in which its payments do not complete the rule any more, and another payment makes
// another answer.
func TestSpentIsRevoked(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	s := p.Source("x402-spend")
	payments := []Payment{pays(1, 4000, 30), pays(2, 4000, 20), pays(3, 3000, 10)}
	first := s.Spent(8453, paidAt, payments)
	held := p.Settle(nil, &first)
	if raters := p.Raters(held, first.Time); len(raters) != 1 || raters[0].Weight != fixed.One/2 {
		t.Fatalf("weights %+v", raters)
	}
	payments[1].Paid--
	returned := s.Spent(8453, paidAt, payments)
	if got := p.Settle(held, &returned); len(got) != 1 || got[0].Answer == held[0].Answer {
		t.Errorf("after a part was returned %+v, before %+v", got, held)
	}
	returned = s.Spent(8453, paidAt, payments[1:])
	if got := p.Settle(held, &returned); len(got) != 0 {
		t.Errorf("%+v after a payment was returned", got)
	}
}

func TestBadPayments(t *testing.T) {
	t.Parallel()
	const rule = "payments: {usd: 100, payees: 3, most: 40, vouched: 0.25}"
	for instead, field := range map[string]string{
		"payments: {usd: 0, payees: 3, most: 40, vouched: 0.25}":                      "read.payments.usd",
		"payments: {usd: 100, most: 40, vouched: 0.25}":                               "read.payments.payees",
		"payments: {usd: 100, payees: 3, most: 33, vouched: 0.25}":                    "read.payments.most",
		"payments: {usd: 100, payees: 3, most: 101, vouched: 0.25}":                   "read.payments.most",
		"payments: {usd: 100, payees: 3, most: 40}":                                   "read.payments.vouched",
		"payments: {usd: 100, payees: 3, most: 40, vouched: 2}":                       "read.payments.vouched",
		"payments: {usd: 100, payees: 3, most: 40, vouched: 0.25, coin: USDC}":        "read.payments.coin",
		rule + "\n      issued: time":                                                 "read",
		rule + "\n    homes: [{chain: 1, contracts: {}}]":                             "homes",
		rule + "\n      events: [{contract: a, event: E(), rater: a, means: issued}]": "read",
	} {
		_, err := Parse([]byte(strings.Replace(string(DefaultFile()), rule, instead, 1)))
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "."+field+":") {
			t.Errorf("%s: %v, want an error of %s", instead, err, field)
		}
	}
	for old, instead := range map[string]string{"ageDays: 365\n    keepDays: 0 #": "ageDays: 0\n    keepDays: 0 #",
		"keepDays: 0 # read": "keepDays: 2 # read"} {
		_, err := Parse([]byte(strings.Replace(string(DefaultFile()), old, instead, 1)))
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), strings.Split(instead, ":")[0]) {
			t.Errorf("%s: %v", instead, err)
		}
	}
}
