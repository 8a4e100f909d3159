package trust

import (
	"cmp"
	"slices"

	"repute/trust/rating"
)

// Account has the sorted records of one agent's ratings, so that later ratings can be added without reading and sorting
// the earlier ones again. The trust engine keeps accounts of agents with very many ratings. An Account MUST NOT be used
// by two goroutines at once.
type Account struct {
	l       *accountBuilder
	account account
	crowd   crowd
	newest  int64  // time of the newest row, Unix seconds
	block   uint64 // block of the newest row
	// open says that rows were left out because their time is unknown or in the future, so that a later view may
	// include them. Continues is then false.
	open bool
}

// NewAccount returns an account with the rows of e, for the scorer's weights and parameters.
func (s *Scorer) NewAccount(e *Evidence) *Account {
	a := &Account{l: newAccountBuilder(s.w, s.p)}
	a.account = a.l.build(e)
	if e.Packing != nil {
		a.l.keepRaters(e)
	}
	for i := range e.Packed {
		at := int64(e.Packed[i].Time)
		a.newest, a.block = max(a.newest, at), max(a.block, uint64(e.Packed[i].Block))
		a.open = a.open || at == 0 || at > e.Block.Time.Unix()
	}
	a.note()
	a.divide()
	return a
}

// divide moves the crowd out of the statements and records of a new account.
func (a *Account) divide() {
	a.l.statements = a.l.gather(&a.crowd, a.l.statements, 0)
	if a.crowd.size == 0 {
		return
	}
	a.l.statements = slices.Clone(a.l.statements) // the memory of all of them is not needed any more
	a.l.records, a.l.nodes, a.l.weights = nil, nil, nil
	a.account.records = make([]rating.Record, len(a.l.statements))
	for i := range a.l.statements {
		a.account.records[i] = a.l.record(i)
	}
	a.setCrowd()
}

// setCrowd lets the scorer see the crowd.
func (a *Account) setCrowd() { a.account.crowd, a.account.crowded = a.crowd.groups, a.crowd.size }

// IsOpen reports whether rows were left out because of their time, so that Continues never holds.
func (a *Account) IsOpen() bool { return a.open }

// Continues reports whether the rows of e may be added: all of them are in later blocks than the rows of the account,
// and no row is newer than the view of e. ScoreAccount then returns the same as Score of all rows. The owner, the
// wallet, the addresses that they approved and Since of e MUST be equal to those of the first evidence.
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
	l, old, last := a.l, len(a.l.statements), a.l.count
	l.rows = append(l.rows[:0], e.Rows...)
	slices.SortFunc(l.rows, inChain)
	for i := range l.rows {
		if reason := l.addRow(e, i); reason != "" {
			l.excluded = append(l.excluded, Excluded{i, reason})
		}
	}
	added := slices.Clone(l.statements[old:])
	slices.SortStableFunc(added, (statement).compare)
	added = l.gather(&a.crowd, added, last)
	l.statements = append(l.statements[:old], added...)
	first := l.insert(old, added)
	a.account.excluded += len(l.excluded)
	a.account.records = slices.Grow(a.account.records[:first], len(l.statements)-first)[:len(l.statements)]
	for i := first; i < len(l.statements); i++ {
		a.account.records[i] = l.record(i)
	}
	a.setCrowd()
	a.note()
}

// Remove removes ratings that were revoked, and reports whether the account then is that of the others. When it is not,
// because a rater has other ratings or counts together with others, the account MUST NOT be used any more. No other
// rating in the block of a removed one may have the same value, tags and content. e is evidence that continues the
// account.
func (a *Account) Remove(e *Evidence, gone []rating.Row) bool {
	for i := range gone {
		if !a.remove(e, &gone[i]) {
			return false
		}
	}
	if len(gone) > 0 {
		a.setCrowd()
	}
	return true
}

// remove is Remove for one rating.
func (a *Account) remove(e *Evidence, row *rating.Row) bool {
	rec, who, reason := a.l.read(e, row)
	if reason != "" {
		a.account.excluded--
		return a.account.excluded >= 0
	}
	spoke := a.l.spoke(who)
	if spoke == nil || spoke.burst == 0 {
		return false
	}
	rec.Node = who.node
	if was, found := a.crowd.take(spoke.burst); found {
		a.l.forget(who)
		return isSame(was.Record, rec)
	}
	at, _ := slices.BinarySearchFunc(a.l.statements, spoke.burst, func(s statement, burst uint32) int {
		return cmp.Compare(s.burst, burst)
	})
	next := at + 1
	if next > len(a.l.statements) || !isSame(a.l.statements[at].Record, rec) ||
		next < len(a.l.statements) && a.l.statements[next].burst == spoke.burst {
		return false
	}
	a.l.forget(who)
	a.l.statements = slices.Delete(a.l.statements, at, next)
	a.account.records = slices.Delete(a.account.records, at, next) // the next record opens a burst anyway
	return true
}

// isSame reports whether records are equal, but for what they open.
func isSame(a, b rating.Record) bool {
	a.Opens = b.Opens
	return a == b
}

// note updates newest, block and open after rows were added, and frees memory that later rows do not need.
func (a *Account) note() {
	for i := range a.l.rows {
		a.newest, a.block = max(a.newest, a.l.rows[i].Time), max(a.block, a.l.rows[i].Block)
	}
	for _, x := range a.l.excluded {
		a.open = a.open || x.Reason == rating.ReasonFuture || x.Reason == rating.ReasonUndated
	}
	a.l.rows, a.l.excluded = nil, nil
	clear(a.l.bursts) // a burst is in one block, and later rows are in later blocks
}

// insert merges added, which is sorted, into the sorted statements before index old, and returns the lowest index that
// changed, old when added is empty. A statement is inserted after equal ones. The slots from old on MUST be as many as
// added has.
func (l *accountBuilder) insert(old int, added []statement) (first int) {
	first = old
	to := len(l.statements)
	for n := len(added); n > 0; n-- {
		at, _ := slices.BinarySearchFunc(l.statements[:old], added[n-1], func(a, b statement) int {
			return cmp.Or(a.compare(b), -1) // after equal ones
		})
		copy(l.statements[at+n:to], l.statements[at:old])
		l.statements[at+n-1] = added[n-1]
		old, to, first = at, at+n-1, at
	}
	return first
}

// compare orders statements by burst, channel and rater.
func (s statement) compare(b statement) int {
	return cmp.Or(cmp.Compare(s.burst, b.burst), cmp.Compare(s.channel, b.channel), cmp.Compare(s.rater, b.rater))
}

// record returns the record of the i-th statement, with the groups that it opens after the statement before it.
func (l *accountBuilder) record(i int) rating.Record {
	s := &l.statements[i]
	if i == 0 {
		s.Opens = opensBurst | opensOpinion | opensMember
	} else {
		s.Opens = l.statements[i-1].until(s)
	}
	return s.Record
}

// ScoreAccount is Scorer.Score with the rows of an account instead of those of e.
func (s *Scorer) ScoreAccount(a *Account, e Evidence) (r Result) {
	s.evaluate(a.account, e.Block, e.Related)
	s.identity, s.lacking, s.isSpare = e.Identity, nil, false
	s.result(&r)
	r.Agent = e.Agent
	return r
}

// NeedsRows reports whether Penalties reads the rows of e: another identity than the owner's had
// the agent, or answers for a part of its ratings; or the owner is accountable for nothing, so that domains may bound
// its penalty.
func (s *Scorer) NeedsRows(e *Evidence) bool {
	if s.p.Guard.FullShare == 0 || e.isFirstOwners() {
		return false
	}
	held, alone := s.accountable(e)
	return !alone && len(held) > 0 || len(e.Tenures) > 0 && !e.isOwnerAmong(held, s.w.Graph())
}
