package source

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Query is one contract call: the contract, the calldata, and about how much gas the call takes.
type Query struct {
	To   common.Address
	Data []byte
	Gas  uint64
}

// Verdict is the state of an inquiry about a rater. The difference between Denied and Unknown decides whether a rater
// loses a credential at once or keeps it for KeepDays; Unreadable concerns all raters of the source.
type Verdict int

// Verdicts.
const (
	Open       Verdict = iota // another call is needed
	Holds                     // the rater has a credential
	Denied                    // the contracts say that it has none
	Unknown                   // the call failed, and the failure does not show whether the rater has one
	Unreadable                // the answer is not of the declared type: the source cannot be read
)

// Inquiry asks one source about one rater. The caller calls Next and Answer alternately while Verdict is Open. It is
// used by one goroutine. Many inquiries are open at the same time, so that the caller can put the next calls of all of
// them into one request.
type Inquiry struct {
	Rater   common.Address
	Verdict Verdict // set by Ask and Answer
	source  *Source
	home    *Home
	now     uint64        // time of the block of the calls, Unix seconds
	step    int           // index of the next call in plan.steps
	values  []common.Hash // plan.values, as far as they are known
	answers []byte        // all answers so far, one after the other
}

// Ask begins an inquiry at one of the source's homes. latest is the Subject of the rater's Tenure for a source with
// ByLogs, and zero for others. now is the time of the block at which the calls are made, in Unix seconds. For a source
// without calls the verdict is Holds at once: the caller MUST have found a Tenure of the rater in the logs. home MUST
// be one of s.
func (s *Source) Ask(home *Home, rater common.Address, latest common.Hash, now uint64) *Inquiry {
	q := &Inquiry{Rater: rater, source: s, home: home, now: now,
		values: []common.Hash{common.BytesToHash(rater[:]), reverseNode(rater, home.Chain)}}
	if s.ByLogs() && len(s.plan.steps) > 0 {
		q.values = append(q.values, latest)
	}
	if len(s.plan.steps) == 0 {
		q.Verdict = Holds
	}
	return q
}

// Next returns the next call. It MUST be called only while the verdict is Open. It changes nothing, so that a request
// that failed on its way can be repeated.
func (q *Inquiry) Next() Query {
	s := &q.source.plan.steps[q.step]
	arguments := make([]common.Hash, len(s.arguments))
	for i, a := range s.arguments {
		arguments[i] = a.of(q.values)
	}
	to := q.home.Contracts[s.contract].Address
	if s.contract == "" {
		to = common.BytesToAddress(q.values[s.at][:])
	}
	return Query{to, s.call.encode(arguments), s.gas}
}

// foreign reports whether a step names a contract by a value that is none of the declared contracts. The address comes
// from an answer and is the choice of the rater.
func (q *Inquiry) foreign(s *step) bool {
	return s.contract == "" && !slices.ContainsFunc(s.among, func(name string) bool {
		return q.home.Contracts[name].Address == common.BytesToAddress(q.values[s.at][:])
	})
}

// of returns the argument, which is one of these values or a literal.
func (a argument) of(values []common.Hash) common.Hash {
	if a.place < 0 {
		return a.literal
	}
	return values[a.place]
}

// Answer takes the data that the call of Next returned, or without success the data of its revert, and sets Verdict.
// The error is the reason of the verdicts Unknown and Unreadable, nil for others.
//
// A revert with a declared error is a clear no. Any other revert is Unknown, because a node without the state, a call
// without enough gas and a contract that is paused fail alike. Conditions are checked after every call, so that later
// calls of a rater without a credential are saved. The answers are kept for the hash of the credential.
func (q *Inquiry) Answer(success bool, data []byte) error {
	s := &q.source.plan.steps[q.step]
	if !success {
		if len(data) >= 4 && slices.Contains(s.no, [4]byte(data)) {
			q.Verdict = Denied
			return nil
		}
		q.Verdict = Unknown
		return fmt.Errorf("%s of contract %s failed for %s with %#.40x", s.call.text, s.label(), q.Rater, data)
	}
	words, err := s.call.decode(data)
	if errors.Is(err, errName) {
		q.Verdict = Denied
		return nil
	}
	if err != nil {
		q.Verdict = Unreadable
		return fmt.Errorf("%s of contract %s: %w", s.call.text, s.label(), err)
	}
	q.values, q.answers = append(q.values, words...), append(q.answers, data...)
	steps := q.source.plan.steps
	q.step++
	switch {
	case slices.ContainsFunc(s.holds, func(c condition) bool { return !c.met(q.values, q.now) }):
		q.Verdict = Denied
	case q.step == len(steps):
		q.Verdict = Holds
	case q.foreign(&steps[q.step]):
		q.Verdict = Denied
	}
	return nil
}

// met reports whether these values meet the condition at a time in Unix seconds. NotZero is atLeast 1.
func (c condition) met(values []common.Hash, now uint64) bool {
	switch {
	case c.atLeast != nil:
		return values[c.place].Big().Cmp(c.atLeast) >= 0
	case c.future:
		return number(values[c.place][:]) > now
	}
	return slices.ContainsFunc(c.equals, func(a argument) bool { return a.of(values) == values[c.place] })
}

// Person returns the value that is equal for all addresses of the rater's person; the rater's address where the source
// names none. The verdict MUST be Holds.
func (q *Inquiry) Person() common.Hash { return q.values[max(0, q.source.plan.person)] }

// Credential returns the credential that was found. The arguments are number, hash and time in Unix seconds of the
// block at which the calls were made. The verdict MUST be Holds. Issued is the time of the block where neither a value
// nor a log gives it; Settle then sets it to that of the first reading.
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
