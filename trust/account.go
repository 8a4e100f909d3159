package trust

import (
	"cmp"
	"slices"
)

// Account is the evidence of the ratings of one agent, kept so that a few later ratings need not be
// read and ordered together with all earlier ones. It is for one goroutine at a time.
type Account struct {
	l       *accountBuilder
	account account
	newest  int64 // time of the newest row, Unix seconds
	block   uint64
	// open says that rows were left out because of their time, which a later view may know better.
	open bool
}

// NewAccount returns the account of the rows of e, for the scorer's weights and parameters.
func (s *Scorer) NewAccount(e *Evidence) *Account {
	a := &Account{l: newAccountBuilder(s.w, s.p)}
	a.account = a.l.build(e)
	a.note()
	return a
}

// Len is the number of rows, also of those that do not count.
func (a *Account) Len() int { return len(a.account.records) + a.account.excluded }

// IsOpen reports whether Continues never does: rows were left out because of their time.
func (a *Account) IsOpen() bool { return a.open }

// Continues reports whether Add may add the rows of e and Score then gives what Score of all rows
// together would: they are in later blocks, and the view is not before any row. The owner, the
// wallet, the addresses that they named and Since MUST be those of the first evidence.
func (a *Account) Continues(e *Evidence) bool {
	for i := range e.Rows {
		if e.Rows[i].Block <= a.block || e.Rows[i].Time > e.Block.Time.Unix() {
			return false
		}
	}
	return !a.open && a.newest <= e.Block.Time.Unix()
}

// Add adds the rows of e, which MUST continue the account.
func (a *Account) Add(e *Evidence) {
	if len(e.Rows) == 0 {
		return
	}
	l, old := a.l, len(a.l.statements)
	l.rows = append(l.rows[:0], e.Rows...)
	slices.SortFunc(l.rows, inChain)
	for i := range l.rows {
		if reason := l.addRow(e, i); reason != "" {
			l.excluded = append(l.excluded, Excluded{i, reason})
		}
	}
	added := slices.Clone(l.statements[old:])
	slices.SortStableFunc(added, (statement).compare)
	first := l.insert(old, added)
	a.account.excluded += len(l.excluded)
	a.account.records = slices.Grow(a.account.records[:first], len(l.statements)-first)[:len(l.statements)]
	for i := first; i < len(l.statements); i++ {
		a.account.records[i] = l.record(i)
	}
	a.note()
}

// note remembers what the next rows are compared with, and gives up what they do not need.
func (a *Account) note() {
	for i := range a.l.rows {
		a.newest, a.block = max(a.newest, a.l.rows[i].Time), max(a.block, a.l.rows[i].Block)
	}
	for _, x := range a.l.excluded {
		a.open = a.open || x.Reason == ReasonFuture || x.Reason == ReasonUndated
	}
	a.l.rows, a.l.excluded = nil, nil
	clear(a.l.bursts) // no later row is in the block of an earlier one
}

// insert puts sorted statements among those before index old, behind equal ones, and returns the
// lowest index that changed. There is room for them behind old.
func (l *accountBuilder) insert(old int, added []statement) (first int) {
	to := len(l.statements)
	for n := len(added); n > 0; n-- {
		at, _ := slices.BinarySearchFunc(l.statements[:old], added[n-1], func(a, b statement) int {
			return cmp.Or(a.compare(b), -1) // behind equal ones
		})
		copy(l.statements[at+n:to], l.statements[at:old])
		l.statements[at+n-1] = added[n-1]
		old, to, first = at, at+n-1, at
	}
	return first
}

// compare orders statements as accounts have them.
func (s statement) compare(b statement) int {
	return cmp.Or(cmp.Compare(s.burst, b.burst), cmp.Compare(s.channel, b.channel), cmp.Compare(s.rater, b.rater))
}

// record is the record of a statement, by the one before it.
func (l *accountBuilder) record(i int) record {
	s := &l.statements[i]
	if i == 0 {
		s.opens = opensBurst | opensOpinion | opensMember
	} else {
		s.opens = l.statements[i-1].until(s)
	}
	return s.record
}

// ScoreAccount is Score with the rows of an account instead of those of e.
func (s *Scorer) ScoreAccount(a *Account, e Evidence) (r Result) {
	s.evaluate(a.account, e.Block, e.Related)
	s.identity, s.lacking = e.Identity, nil
	s.result(&r)
	r.Agent = e.Agent
	return r
}

// NeedsRows reports whether Penalties reads the rows of e: another identity than the owner's had
// the agent, or answers for a part of its ratings; or the owner is accountable for nothing, so that domains may bound
// its penalty.
func (s *Scorer) NeedsRows(e *Evidence) bool {
	if s.p.Guard.FullShare == 0 {
		return false
	}
	held, alone := s.tenuresByIdentity(e)
	return !alone && len(held) > 0 || len(e.Tenures) > 0 && !e.isOwnerAmong(held, s.w.Graph())
}
