package source

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// Payments is the rule of a source that reads verified payments of raters: a rater has a credential while its payments
// of the last AgeDays to enough payees reach a sum. Only payees count for which roots vouch. Nobody can buy the
// credential from its own accounts alone: it takes several payees for which roots vouch.
type Payments struct {
	USD    fixed.Fixed `yaml:"usd" json:"usd"`       // sum that the payments reach, in US dollars
	Payees int         `yaml:"payees" json:"payees"` // distinct payees that share in it
	// Most is how many dollars to one payee count, so that a rater who owns one payee still pays others.
	Most fixed.Fixed `yaml:"most" json:"most"`
	// Vouched is the least weight that a payee has by roots alone, without any source.
	Vouched fixed.Fixed `yaml:"vouched" json:"vouched"`
}

// Bounds of what a rule for payments may ask for.
const (
	maxUSD    = 1_000_000
	maxPayees = 1000
)

// newPaymentPlan is the plan of a source that asks no contract. most times payees MUST reach usd, or no rater could
// complete the rule.
func newPaymentPlan(field string, m *Method) (*plan, error) {
	if m.EAS != nil || len(m.Calls)+len(m.Events) > 0 || m.Person+m.Issued+m.Expires+m.Revoked != "" || m.KeepFirst {
		return nil, repute.Invalid(field, "has other members beside payments", "payments alone")
	}
	r, field := m.Payments, field+".payments"
	for _, c := range []struct {
		member string
		ok     bool
		hint   string
	}{
		{"usd", r.USD > 0 && r.USD <= fixed.Int(maxUSD), fmt.Sprintf("above 0, at most %d", maxUSD)},
		{"payees", r.Payees > 0 && r.Payees <= maxPayees, fmt.Sprintf("1 to %d", maxPayees)},
		{"most", r.Most > 0 && r.Most <= r.USD && r.Most*fixed.Fixed(min(max(r.Payees, 1), maxPayees)) >= r.USD,
			"at least usd / payees, at most usd"},
		{"vouched", r.Vouched > 0 && r.Vouched <= fixed.One, "above 0, at most 1"},
	} {
		if !c.ok {
			return nil, repute.Invalid(field+"."+c.member, "is missing or out of range", c.hint)
		}
	}
	return &plan{person: -1, issued: -1, expires: -1, revoked: -1}, nil
}

// Payment is a verified payment of a rater that is known to the index. Payees are counted both by address and by
// identity: see completed.
type Payment struct {
	Rater common.Address
	// Payee is the address that was paid, and Identity stands for all addresses of the party that was paid.
	Payee, Identity common.Address
	Paid            repute.Micros // the part that was not returned
	Time            time.Time     // of the block of the transfer
	ChainID         uint64        // of the transfer
	Tx              common.Hash
	LogIndex        uint64
}

// Spent returns the reading of a source by payments, as of a block of a chain. All payments MUST be to payees that the
// rule accepts; older ones than AgeDays are left out. A credential is issued by the payment that completes the sum and
// the number of payees. The order in which payments are given does not matter. There are no Unknown raters, because the
// index has all payments that count.
func (s *Source) Spent(chain uint64, at repute.Block, payments []Payment) Reading {
	r := Reading{State: State{Source: s.ID, Chain: chain, Status: StatusOK, Block: at.Number, Hash: at.Hash,
		Time: unixSeconds(at.Time)}}
	sorted := slices.DeleteFunc(slices.Clone(payments), func(p Payment) bool {
		paid := unixSeconds(p.Time)
		return paid > r.Time || r.Time-paid > uint64(s.AgeDays)*day
	})
	slices.SortFunc(sorted, func(a, b Payment) int {
		return cmp.Or(a.Rater.Cmp(b.Rater), a.Time.Compare(b.Time), cmp.Compare(a.ChainID, b.ChainID), a.Tx.Cmp(b.Tx),
			cmp.Compare(a.LogIndex, b.LogIndex))
	})
	for rest := sorted; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(p Payment) bool { return p.Rater != rest[0].Rater })
		if n < 0 {
			n = len(rest)
		}
		if last := s.Read.Payments.completed(rest[:n]); last >= 0 {
			r.Credentials = append(r.Credentials, s.spent(&r.State, rest[:last+1]))
		}
		rest = rest[n:]
	}
	return r
}

// unixSeconds is a time in seconds of the Unix era, 0 for those before it.
func unixSeconds(t time.Time) uint64 { return uint64(max(0, t.Unix())) }

// completed returns the index of the payment of one rater that completes the rule, -1 where none does. Payments MUST be
// in the order of time. Of several addresses of one identity the payments are added before Most applies, and of one
// address that changed its identity neither counts twice: the smaller one of both numbers MUST reach Payees.
func (r *Payments) completed(payments []Payment) int {
	paid, addresses := map[common.Address]fixed.Fixed{}, map[common.Address]bool{}
	var sum fixed.Fixed
	for i, p := range payments {
		before := paid[p.Identity]
		now := min(r.Most, before+fixed.Ratio(int64(p.Paid), 1_000_000))
		paid[p.Identity], addresses[p.Payee] = now, true
		sum += now - before
		if sum >= r.USD && min(len(paid), len(addresses)) >= r.Payees {
			return i
		}
	}
	return -1
}

// spent is the credential of a rater whose payments, the last one of them, complete the rule. The hash of the answer is
// over these payments alone; a later payment that changes nothing does not change the credential.
func (s *Source) spent(at *State, payments []Payment) Credential {
	last := payments[len(payments)-1]
	answer := sha256.New()
	for _, p := range payments {
		fmt.Fprintln(answer, p.ChainID, p.Tx, p.LogIndex, p.Payee, p.Identity, int64(p.Paid), p.Time.Unix())
	}
	return Credential{Source: s.ID, Version: s.Version, Class: s.Class, Weight: s.Weight, Rater: last.Rater,
		Subject: common.BytesToHash(last.Rater[:]), Issued: unixSeconds(last.Time), Chain: at.Chain, Block: at.Block,
		Hash: at.Hash, Read: at.Time, Answer: common.BytesToHash(answer.Sum(nil))}
}
