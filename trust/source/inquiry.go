package source

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Query is one contract call.
type Query struct {
	To   common.Address
	Data []byte
}

// Verdict is what is known of a rater after an answer.
type Verdict int

// Verdicts.
const (
	Open       Verdict = iota // another call is needed
	Holds                     // the rater has a credential
	Denied                    // the contracts say that it has none
	Unknown                   // the call failed in a way that says nothing
	Unreadable                // the answer is not of the declared type: the source cannot be read
)

// Inquiry asks one source about one rater: Next and Answer in turn until the verdict is not Open.
type Inquiry struct {
	Rater   common.Address
	Verdict Verdict
	source  *Source
	home    *Home
	step    int
	values  []common.Hash
	answers []byte
}

// Ask begins an inquiry at one of the source's homes. latest is what Tenure said of the rater where ByLogs holds, and
// zero otherwise. Without any call the logs have said that the rater has a credential.
func (s *Source) Ask(home *Home, rater common.Address, latest common.Hash) *Inquiry {
	q := &Inquiry{Rater: rater, source: s, home: home, values: []common.Hash{common.BytesToHash(rater[:])}}
	if s.ByLogs() && len(s.plan.steps) > 0 {
		q.values = append(q.values, latest)
	}
	if len(s.plan.steps) == 0 {
		q.Verdict = Holds
	}
	return q
}

// Next returns the call that is to be made while the verdict is Open.
func (q *Inquiry) Next() Query {
	s := &q.source.plan.steps[q.step]
	arguments := make([]common.Hash, len(s.arguments))
	for i, a := range s.arguments {
		arguments[i] = a.of(q.values)
	}
	return Query{q.home.Contracts[s.contract].Address, s.call.encode(arguments)}
}

func (a argument) of(values []common.Hash) common.Hash {
	if a.place < 0 {
		return a.literal
	}
	return values[a.place]
}

// Answer takes what the call returned, or with what data it was reverted. The error says what is wrong with an answer
// that is Unknown or Unreadable.
func (q *Inquiry) Answer(success bool, data []byte) error {
	s := &q.source.plan.steps[q.step]
	if !success {
		if len(data) >= 4 && slices.Contains(s.no, [4]byte(data)) {
			q.Verdict = Denied
			return nil
		}
		q.Verdict = Unknown
		return fmt.Errorf("%s of contract %s failed for %s with %#.40x", s.call.text, s.contract, q.Rater, data)
	}
	words, err := s.call.decode(data)
	if err != nil {
		q.Verdict = Unreadable
		return fmt.Errorf("%s of contract %s: %w", s.call.text, s.contract, err)
	}
	q.values, q.answers = append(q.values, words...), append(q.answers, data...)
	if !slices.ContainsFunc(s.holds, func(c condition) bool { return !c.met(q.values) }) {
		if q.step++; q.step == len(q.source.plan.steps) {
			q.Verdict = Holds
		}
		return nil
	}
	q.Verdict = Denied
	return nil
}

// met reports whether a condition holds.
func (c condition) met(values []common.Hash) bool {
	if c.atLeast != nil {
		return values[c.place].Big().Cmp(c.atLeast) >= 0
	}
	return slices.ContainsFunc(c.equals, func(a argument) bool { return a.of(values) == values[c.place] })
}

// Person returns the value that is equal for all addresses of the rater's person, of a verdict that is Holds.
func (q *Inquiry) Person() common.Hash { return q.values[max(0, q.source.plan.person)] }

// Credential returns what was found, of a verdict that is Holds, as read at a block of a time in seconds of the Unix
// era.
func (q *Inquiry) Credential(block uint64, hash common.Hash, time uint64) Credential {
	s := q.source
	c := Credential{Source: s.ID, Version: s.Version, Class: s.Class, Weight: s.Weight, Rater: q.Rater,
		Issued: time, Chain: q.home.Chain, Block: block, Hash: hash, Read: time,
		Answer: sha256.Sum256(q.answers)}
	at := func(place int) uint64 { return number(q.values[place][:]) }
	c.Subject = q.Person()
	if s.plan.issued > 0 {
		c.Issued = at(s.plan.issued)
	}
	if s.plan.expires > 0 {
		c.Expires = at(s.plan.expires)
	}
	if s.plan.revoked > 0 {
		c.Revoked = at(s.plan.revoked)
	}
	return c
}
