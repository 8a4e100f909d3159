package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/store"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
)

// epoch is one execution of the pass that scores all agents of a chain for a run. It works in batches, in the order of
// the agents' ids. Reading evidence, scoring and writing run concurrently, so that at most three batches are in memory.
type epoch struct {
	*scoreRun
	pass  scoredb.Pass
	lease store.Lease
	kept  *scoredb.Kept
	// effects are the scores in effect before the pass.
	effects *scoredb.Effects
	// unlike are the agents whose evidence is not that of rows.
	unlike map[repute.TokenID]bool
	// large are the large agents, and penalizing those that brought penalties.
	large, penalizing map[repute.TokenID]bool
	// workers compute scores concurrently, one for each processor.
	workers []*passWorker
	stayed  int // agents with Stays
}

// passAgents is the largest number of agents of a batch. maxRows also limits their ratings.
const passAgents = 2048

// passNumber identifies a pass.
type passNumber struct {
	run    uint64
	number int64
}

// pass scores all agents for the newest run, or continues a pass that another engine began. done reports whether it
// completed the pass. rescore calls it at each poll. A lease keeps other engines from scoring the same chain.
func (k *keeper) pass(ctx context.Context) (done bool, err error) {
	b := k.basis.Load()
	if b == nil {
		return false, nil
	}
	if _, err := scoredb.ReadPass(ctx, k.db, k.chain); errors.Is(err, repute.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	lease, err := k.db.Acquire(ctx, scoredb.PassLease(k.chain), k.owner, scoredb.PassLeaseTTL)
	if errors.Is(err, repute.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, k.db.Release(context.WithoutCancel(ctx), lease)) }()
	p, err := scoredb.ReadPass(ctx, k.db, k.chain) // another engine may have ended it
	if errors.Is(err, repute.ErrNotFound) || err == nil && p.Run != b.Run.Run {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if again := (passNumber{p.Run, p.Number}); p.Number > 1 && k.reread != again { // every agent may have changed
		err := k.renewing(ctx, lease, func(ctx context.Context) error {
			return k.rows.At(ctx, b.Run.Block, b.Validations, true)
		})
		if err != nil {
			return false, err
		}
		b.built.forget()
		k.reread = again
	}
	e := &epoch{scoreRun: k.scorer(b, byRun), pass: p, lease: lease, effects: k.effects}
	e.penalized = map[common.Address]bool{}
	defer func() { e.penalized, e.documented = nil, nil }()
	e.workers = newPassWorkers(k, b)
	started := time.Now()
	n, err := e.run(ctx)
	if err != nil {
		k.effects.Forget()
	}
	k.stayed += e.stayed
	k.metrics.scored(k.chain, n, time.Since(started))
	k.log.Info("scored all agents", "chain", k.chain, "run", p.Run, "agents", n,
		"seconds", time.Since(started).Seconds())
	return err == nil, err
}

// renewing runs work of any length, and renews the lease of a pass meanwhile. It returns when both ended; work ends
// when the lease is lost.
func (e *Engine) renewing(ctx context.Context, lease store.Lease, work func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	group.Go(func() error { defer close(done); return work(ctx) })
	group.Go(func() error {
		tick := time.NewTicker(e.renewal)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := e.db.Renew(ctx, lease, scoredb.PassLeaseTTL); err != nil {
					return err
				}
			case <-done:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return group.Wait()
}

// batch is a part of a pass. loadAll sets pass, work and last, and scoreAll sets the others.
type batch struct {
	pass scoredb.Pass // state of the pass before the batch
	work *work
	last bool // no agents follow
	out  []scoredb.ScoredAgent
	// manifests are the evidence manifests of the scores that are stored.
	manifests [][]byte
}

// run scores the remaining agents of the pass and returns how many it scored.
func (e *epoch) run(ctx context.Context) (n int, err error) {
	run := &e.basis.Run
	if err := e.effects.Begin(ctx, e.pass, run.Block.Number); err != nil {
		return 0, err
	}
	if e.kept, err = scoredb.ReadKept(ctx, e.effects, e.pass, run.Block.Number); err != nil {
		return 0, err
	}
	if e.documented, err = trustdb.Documented(ctx, e.db, run.ChainID); err != nil {
		return 0, err
	}
	if e.unlike, err = trustdb.UnlikeRun(ctx, e.db, run.ChainID, run.Block.Number, e.basis.Validations); err != nil {
		return 0, err
	}
	large, err := trustdb.LargeAgents(ctx, e.db, run.ChainID, e.basis.Validations)
	if err != nil {
		return 0, err
	}
	e.large = make(map[repute.TokenID]bool, len(large))
	for _, id := range large {
		e.large[id] = true
	}
	if e.penalized, e.penalizing, err = scoredb.Penalized(ctx, e.db, run.ChainID); err != nil {
		return 0, err
	}
	loaded, scored := make(chan batch), make(chan batch)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { defer close(loaded); return e.loadAll(ctx, loaded) })
	group.Go(func() error { defer close(scored); return e.scoreAll(ctx, loaded, scored) })
	group.Go(func() error {
		for b := range scored {
			if err := e.save(ctx, b); err != nil {
				return err
			}
			n += len(b.out)
		}
		return nil
	})
	return n, group.Wait()
}

// loadAll reads the evidence of all batches, one after the other, and sends them.
func (e *epoch) loadAll(ctx context.Context, to chan<- batch) error {
	p, after, limit := e.pass, (*repute.TokenID)(nil), e.batch
	if e.effects.IsWarm() {
		limit *= warmBatches
	}
	for {
		agents, last, err := e.effects.Next(ctx, p, after, limit)
		if err != nil {
			return err
		}
		b := batch{pass: p}
		if b.work, err = e.load(ctx, agents, true); err != nil {
			return err
		}
		b.last = last && len(b.work.agents) == len(agents)
		if !send(ctx, to, b) || b.last {
			return ctx.Err()
		}
		if n := len(b.work.agents); n > 0 {
			after = &b.work.agents[n-1].TokenID
			p.After = after.Dec()
		}
	}
}

// warmBatches is how many times more agents a batch has when few scores are read from the database, because each batch
// takes a transaction.
const warmBatches = 8

// load returns the evidence about the first agents of a batch, as many as maxRows allows to read from the database:
// from memory, or from the database where memory has not all of it. With look it leaves out the agents that may stay.
func (e *epoch) load(ctx context.Context, agents []scoredb.StaleAgent, look bool) (*work, error) {
	w := &work{agents: agents, now: make([]*subject, len(agents)), last: make([]*subject, len(agents)),
		found: make([]found, len(agents)), mayStay: make([]bool, len(agents))}
	var now, last []*subject
	var others []scoredb.StaleAgent
	var at []int // indices of others
	rows := int64(0)
	for i, a := range agents {
		if look && e.mayStay(&a) {
			w.mayStay[i] = true
			continue
		}
		one := e.remembered(a.TokenID)
		if one == nil {
			if rows += a.Rows; rows > maxRows && i > 0 {
				w.agents, w.now, w.last, w.found = agents[:i], w.now[:i], w.last[:i], w.found[:i]
				break
			}
			others, at = append(others, a), append(at, i)
			continue
		}
		w.now[i], now = one, append(now, one)
		if a.Final {
			again := *one
			w.last[i], last = &again, append(last, &again)
		}
	}
	if err := e.complete(ctx, now, false); err != nil {
		return nil, err
	}
	for i, s := range w.last { // the agents have the same URIs as of both blocks
		if s != nil {
			s.Validations, s.Identity = w.now[i].Validations, w.now[i].Identity
		}
	}
	if err := e.addRelated(ctx, last, true); err != nil || len(others) == 0 {
		return w, err
	}
	rest, err := e.scoreRun.load(ctx, others)
	if err != nil {
		return nil, err
	}
	for i, to := range at {
		w.now[to], w.last[to] = rest.now[i], rest.last[i]
	}
	return w, nil
}

// remembered returns the evidence about an agent that is in memory, nil when it is not.
func (e *epoch) remembered(token repute.TokenID) *subject {
	if e.unlike[token] {
		return nil
	}
	var account *large
	if e.large[token] {
		if account = e.basis.built.borrow(token); account == nil {
			account = e.accountInMemory(token)
		}
	}
	evidence, ok := e.inMemory(token)
	if !ok {
		if account != nil {
			e.basis.built.add(token, account)
		}
		return nil
	}
	out := &subject{Evidence: evidence, judged: true, remembered: true, built: account}
	if account != nil {
		out.account = account.account
	}
	return out
}

// send sends a batch and reports whether it was received before ctx ended.
func send(ctx context.Context, to chan<- batch, b batch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// scoreAll scores batches, marks the scores that need not be stored again, and encodes the others.
func (e *epoch) scoreAll(ctx context.Context, from <-chan batch, to chan<- batch) error {
	for b := range from {
		if err := e.scoreBatch(ctx, &b); err != nil {
			return err
		}
		err := e.kept.Mark(ctx, b.out)
		if err == nil {
			b.manifests, err = b.work.finish(b.out)
		}
		if err != nil {
			return err
		}
		if !send(ctx, to, b) {
			return ctx.Err()
		}
	}
	return nil
}

// scoreBatch scores the agents of a batch on all processors: first those that may stay or are loaded, then those that
// do not stay.
func (e *epoch) scoreBatch(ctx context.Context, b *batch) error {
	w := b.work
	b.out = make([]scoredb.ScoredAgent, len(w.agents))
	err := e.each(ctx, len(b.out), func(worker *passWorker, i int) (err error) {
		if w.mayStay[i] {
			b.out[i].StaleAgent = w.agents[i]
			b.out[i].Stays = e.stays(worker, &w.agents[i])
			return nil
		}
		b.out[i], err = e.judge(ctx, worker, w, i)
		return err
	})
	if err != nil {
		return err
	}
	var rest []int
	for i := range b.out {
		switch {
		case b.out[i].Stays:
			e.stayed++
		case w.mayStay[i]:
			rest = append(rest, i)
		}
	}
	for len(rest) > 0 && err == nil {
		rest, err = e.scoreRest(ctx, b, rest)
	}
	return err
}

// scoreRest loads and scores the first of some agents of a batch, and returns the others.
func (e *epoch) scoreRest(ctx context.Context, b *batch, at []int) (rest []int, err error) {
	agents := make([]scoredb.StaleAgent, len(at))
	for i, n := range at {
		agents[i] = b.work.agents[n]
	}
	part, err := e.load(ctx, agents, false)
	if err != nil {
		return nil, err
	}
	err = e.each(ctx, len(part.agents), func(worker *passWorker, i int) (err error) {
		b.out[at[i]], err = e.judge(ctx, worker, part, i)
		return err
	})
	for i, now := range part.now { // ratings that were read are not needed any more
		b.work.found[at[i]] = part.found[i]
		if now != nil {
			b.work.now[at[i]] = &subject{remembered: now.remembered, built: now.built}
		}
	}
	return at[len(part.agents):], err
}

// each calls use for the numbers from 0 to below n on all processors.
func (e *epoch) each(ctx context.Context, n int, use func(worker *passWorker, i int) error) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for _, worker := range e.workers {
		group.Go(func() error {
			for ctx.Err() == nil {
				first := int(next.Add(passShare)) - passShare
				if first >= n {
					return nil
				}
				for i := first; i < min(first+passShare, n); i++ {
					if err := use(worker, i); err != nil {
						return err
					}
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// judge is scoreRun.judge that drops the results of scores that stay as they are, which are most, and uses their memory
// again.
func (e *epoch) judge(ctx context.Context, worker *passWorker, w *work, i int) (scoredb.ScoredAgent, error) {
	spare := worker.scratch
	if spare == nil {
		spare = &trust.Result{}
	}
	worker.spare, worker.scratch = spare, nil
	out, err := worker.judge(ctx, w, i)
	worker.spare = nil
	if err != nil {
		return out, err
	}
	if !e.kept.Stays(&out) {
		worker.scorer.Keep()
		return out, nil
	}
	for _, one := range []*evaluated{w.found[i].last, w.found[i].now} {
		if one != nil {
			one.result = nil
		}
	}
	worker.scratch = spare
	return out, nil
}

// save stores a batch and advances the pass to its last agent.
func (e *epoch) save(ctx context.Context, b batch) error {
	if err := e.db.Renew(ctx, e.lease, scoredb.PassLeaseTTL); err != nil {
		return err
	}
	store := func() error {
		if err := e.keep(ctx, b.manifests...); err != nil {
			return err
		}
		_, err := scoredb.SavePass(ctx, e.db, e.lease, b.pass, b.out, b.last, e.who())
		return err
	}
	err := store()
	if errors.Is(err, repute.ErrGone) { // a manifest that this engine had stored was pruned
		e.forget()
		err = store()
	}
	if err != nil {
		return err
	}
	e.effects.Saved(b.out, func(i int) bool { return b.work.now[i] != nil && b.work.now[i].remembered }, b.last)
	for i, s := range b.work.now {
		if s != nil && s.built != nil {
			e.basis.built.add(b.work.agents[i].TokenID, s.built)
		}
	}
	return nil
}
