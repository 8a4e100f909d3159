package scoredb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Effects remembers the agents of a pass and their scores in effect, so that the next pass of the same process need not
// read millions of unchanged rows. It has about a hundred bytes an agent. The first pass, and one after another process
// made a pass, reads everything.
//
// What is remembered about an agent holds as long as only passes of this process store its scores. SaveScores notes in
// trust_scores.touched that it stored one. Agents with events since, and those without ratings, are read again.
//
// Begin, Next and Saved belong to one pass; Next and Saved may be called by two goroutines.
type Effects struct {
	db    *store.DB
	pass  Pass
	block uint64
	names *names

	mu   sync.Mutex // of the entries of list, which Next reads while Saved replaces those of earlier agents
	list []effect   // in order of the agents' ids
	// complete says that list is that of a pass that ended, and warm that the pass in progress follows such a pass.
	complete, warm bool
	building       []effect // of a pass that reads everything
}

// effect is what is remembered about an agent.
type effect struct {
	token   repute.TokenID
	rows    uint32
	known   bool // current and final are what the database has
	current inEffect
	final   finalInEffect
}

// inEffect has the columns of a stored score that decide whether it is replaced, with numbers of names for hashes.
type inEffect struct {
	run, block                         uint64
	hash, evidence, facts              uint32
	score, low, high, mean, confidence int32
}

// finalInEffect has the same columns of a final score. Its run is 0 where there is none.
type finalInEffect struct {
	run              uint64
	facts            uint32
	score, low, high int32
}

// names numbers hashes, because most agents share theirs.
type names struct {
	mu   sync.RWMutex
	list []common.Hash
	of   map[common.Hash]uint32
}

// number returns the number of a hash.
func (n *names) number(h common.Hash) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	i, known := n.of[h]
	if !known {
		i = uint32(len(n.list))
		n.of[h], n.list = i, append(n.list, h)
	}
	return i
}

// is reports whether a number is that of a hash.
func (n *names) is(number uint32, h common.Hash) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.list[number] == h
}

// NewEffects returns an Effects that remembers nothing.
func NewEffects(db *store.DB) *Effects {
	f := &Effects{db: db}
	f.Forget()
	return f
}

// Forget forgets everything. It is called when a pass fails.
func (f *Effects) Forget() {
	f.names = &names{of: map[common.Hash]uint32{}}
	f.list, f.building, f.complete, f.warm = nil, nil, false, false
}

// IsWarm reports whether the pass that was begun reads only what changed.
func (f *Effects) IsWarm() bool { return f.warm }

// Begin begins a pass. block is the block of its run.
func (f *Effects) Begin(ctx context.Context, p Pass, block uint64) error {
	warm, err := f.follows(ctx, p)
	if err != nil {
		return err
	}
	if warm {
		err = f.refresh(ctx, p)
	}
	if err != nil {
		return store.Failed(fmt.Sprintf("scores in effect before run %d", p.Run), err)
	}
	if !warm {
		f.Forget()
	}
	f.pass, f.block, f.warm, f.complete = p, block, warm, false
	return nil
}

// follows reports whether a pass is the first one of the run after that of the last pass, which no other process
// repeated.
func (f *Effects) follows(ctx context.Context, p Pass) (bool, error) {
	if !f.complete || p.ChainID != f.pass.ChainID || p.Run != f.pass.Run+1 || p.Number != 1 || p.After != "-1" ||
		!p.Final {
		return false, nil
	}
	var passes int64
	err := f.db.Pool().QueryRow(ctx, "select coalesce(max(passes), 0) from trust_runs where (chain_id, run) = ($1, $2)",
		p.ChainID, int64(f.pass.Run)).Scan(&passes)
	return passes == f.pass.Number, store.Failed("passes of the last run", err)
}

// refresh marks the agents that must be read again, and adds new ones to list.
func (f *Effects) refresh(ctx context.Context, p Pass) error {
	rows, _ := f.db.Pool().Query(ctx, `
		select token_id from trust_scores where chain_id = $1 and touched >= $2 and touched > 0
		union select token_id from agents where chain_id = $1 and updated_block > $3`, p.ChainID, int64(f.pass.Run),
		int64(f.block))
	changed, err := column.CollectTokens(rows)
	if err != nil {
		return err
	}
	old := len(f.list)
	for token := range changed {
		if e := f.find(f.list[:old], token); e != nil {
			e.known = false
			continue
		}
		f.list = append(f.list, effect{token: token})
	}
	if len(f.list) > old {
		slices.SortFunc(f.list, func(a, b effect) int { return a.token.Cmp(&b.token) })
	}
	return nil
}

// find returns the effect of an agent in an ordered list, nil when there is none.
func (f *Effects) find(list []effect, token repute.TokenID) *effect {
	i, found := slices.BinarySearchFunc(list, token, func(e effect, t repute.TokenID) int { return e.token.Cmp(&t) })
	if !found {
		return nil
	}
	return &list[i]
}

// Next returns the next agents of the pass after p.After, which is the agent after, nil for none: up to limit, with
// their scores in effect for Kept.Mark. last says that no agents follow.
func (f *Effects) Next(ctx context.Context, p Pass, after *repute.TokenID, limit int) (list []StaleAgent, last bool,
	err error) {
	if !f.warm {
		list, err = passAgents(ctx, f.db, p, limit, f.names)
		return list, len(list) < limit, err
	}
	at := f.behind(after)
	for len(list) == 0 && at < len(f.list) { // what is remembered may be of no agent of this pass
		part := f.list[at:min(at+limit, len(f.list))]
		at += len(part)
		if list, err = f.next(ctx, p, part); err != nil {
			return nil, false, err
		}
	}
	return list, at == len(f.list), nil
}

// behind returns the place in list of the first agent behind one, 0 for nil.
func (f *Effects) behind(after *repute.TokenID) int {
	if after == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, _ := slices.BinarySearchFunc(f.list, *after, func(e effect, t repute.TokenID) int {
		return cmp.Or(e.token.Cmp(&t), -1)
	})
	return at
}

// next is Next for a part of list.
func (f *Effects) next(ctx context.Context, p Pass, part []effect) (list []StaleAgent, err error) {
	list, ask := f.remembered(p, part)
	if len(ask) > 0 {
		asked, err := f.read(ctx, p, ask)
		if err != nil {
			return nil, err
		}
		list = mergeAgents(list, asked)
	}
	return list, nil
}

// remembered returns the agents of a part of list that need not be read, and those that must be.
func (f *Effects) remembered(p Pass, part []effect) (list []StaleAgent, ask []repute.TokenID) {
	list = make([]StaleAgent, 0, len(part))
	currents, finals := make([]inEffect, len(part)), make([]finalInEffect, len(part))
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range part {
		e := &part[i]
		if !e.known {
			ask = append(ask, e.token)
			continue
		}
		currents[i], finals[i] = e.current, e.final
		list = append(list, StaleAgent{TokenID: e.token, Final: p.Final, Rows: int64(e.rows), Scored: true,
			current: &currents[i], final: &finals[i], inMemory: true})
	}
	return list, ask
}

// read reads agents as passAgents does.
func (f *Effects) read(ctx context.Context, p Pass, tokens []repute.TokenID) (list []StaleAgent, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = f.db.InTx(ctx, options, "agents of a pass", func(tx pgx.Tx) error {
		judged, err := judgedAgentsOf(ctx, tx, p, `token_id = any($2::numeric[])`, column.TokenArray(tokens))
		if err != nil {
			return err
		}
		scored, err := scoredAgentsOf(ctx, tx, p, f.names, `token_id = any($2::numeric[])`, column.TokenArray(tokens))
		list = mergeAgents(judged, scored)
		return err
	})
	return list, err
}

// Saved remembers the scores of a batch that SavePass stored. inMemory reports whether all ratings of an agent are in
// memory; it is not asked about agents that stay.
func (f *Effects) Saved(agents []ScoredAgent, inMemory func(i int) bool, last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range agents {
		a := &agents[i]
		if a.Stays && !a.deferred {
			continue
		}
		e := effect{token: a.TokenID, rows: uint32(min(a.Rows, 1<<32-1)), known: !a.deferred && inMemory(i)}
		e.known = e.known && f.current(&e, a) && f.final(&e, a)
		if !f.warm {
			f.building = append(f.building, e)
		} else if to := f.find(f.list, a.TokenID); to != nil {
			*to = e
		}
	}
	if !last {
		return
	}
	const mostNames = 1 << 21
	switch {
	case len(f.names.list) > mostNames: // hashes of former scores are not removed one by one
		f.Forget()
	case f.warm:
		f.complete = true
	case f.pass.After == "-1" && f.pass.Final:
		f.list, f.building, f.complete = f.building, nil, true
	}
}

// current sets the current score in effect after a batch, and reports whether it is known.
func (f *Effects) current(e *effect, a *ScoredAgent) bool {
	s := a.Current
	switch {
	case s == nil || s.Plain:
		return false
	case !a.wroteCurrent && a.current != nil:
		e.current = *a.current
		return true
	case !a.wroteCurrent:
		return false
	}
	e.current = inEffect{run: f.pass.Run, block: s.Block.Number, hash: f.names.number(s.Block.Hash),
		evidence: f.names.number(s.Evidence), facts: f.names.number(a.Shown), score: int32(s.Score.Score),
		low:  int32(s.Low),
		high: int32(s.High), mean: int32(s.Mean), confidence: int32(s.Confidence)}
	return true
}

// final sets the final score in effect after a batch, and reports whether it is known.
func (f *Effects) final(e *effect, a *ScoredAgent) bool {
	s := a.Last
	switch {
	case s == nil || s.Plain:
		return false
	case !a.wroteLast && a.final != nil:
		e.final = *a.final
		return a.final.run > 0
	case !a.wroteLast:
		return false
	}
	e.final = finalInEffect{run: f.pass.Run, facts: f.names.number(a.Facts), score: int32(s.Score.Score),
		low:  int32(s.Low),
		high: int32(s.High)}
	return true
}
