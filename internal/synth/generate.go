package synth

import (
	"context"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// generator writes a history: it draws what happens next, keeps the state that
// results and leaves the logs the contracts would leave.
type generator struct {
	spec Spec
	rng  *rand.Rand
	enc  *encoder
	out  *writer
	st   *state

	block  uint32 // being filled
	txs    []transaction
	logs   uint32 // in this block
	events int    // in all
	bundle bool   // operations share the transaction

	crowdSize, crowdSeen int    // reviewers of the crowded agent
	fans                 int    // clients of the heavy agent seen
	others               int    // ratings of the other agents
	ratedPairs           []pair // of those, one per rating: drawing from it prefers the busy
	uris                 uint64 // numbers new URIs
}

// generate writes the spec's whole history and returns its final state.
func generate(ctx context.Context, spec Spec, out *writer, e *encoder) (*state, error) {
	g := &generator{spec: spec, rng: rand.New(rand.NewPCG(spec.Seed, fullEvents)), enc: e, out: out, st: newState()}
	if err := g.skip(ctx, deployBlock); err != nil {
		return nil, err
	}
	g.deploy()
	if err := g.endBlock(); err != nil {
		return nil, err
	}
	body := g.base
	if spec.Shape == Busy {
		body = g.busy
	}
	if err := body(ctx); err != nil {
		return nil, err
	}
	return g.st, g.skip(ctx, headAbove)
}

// deploy leaves what three proxies do when they are created and upgraded.
func (g *generator) deploy() {
	for i, registry := range []common.Address{identityAddress, reputationAddress, validationAddress} {
		minimal, real := administrators+1, administrators+2+party(i)
		g.begin(registry)
		emit := func(e repute.Event) {
			l := g.enc.log(e)
			l.Address = registry
			g.emit(l)
		}
		emit(repute.Upgraded{Implementation: minimal.address()})
		emit(repute.OwnershipTransferred{New: administrators.address()})
		emit(repute.Initialized{Version: 1})
		g.begin(registry)
		emit(repute.Upgraded{Implementation: real.address()})
		emit(repute.Initialized{Version: 2})
	}
}

// busy registers some agents in one block and fills the others with feedback.
func (g *generator) busy(ctx context.Context) error {
	const agents, raters, perBlock = 100, 500, 10
	for range agents {
		g.register()
	}
	for n := 0; n < g.spec.Events; n++ {
		if n%perBlock == 0 {
			if err := g.nextBlock(ctx); err != nil {
				return err
			}
		}
		g.others++
		g.rateAs(uint32(g.rng.IntN(agents)), clients+party(g.rng.IntN(raters)), g.otherRating())
	}
	return g.endBlock()
}

// base draws operations until there are as many logs as asked for.
func (g *generator) base(ctx context.Context) error {
	plan := g.plan()
	for g.events < g.spec.Events {
		if err := g.skip(ctx, g.gap()); err != nil {
			return err
		}
		for size := g.blockSize(); g.logs < size && g.events < g.spec.Events; {
			g.step(plan)
		}
		if err := g.endBlock(); err != nil {
			return err
		}
	}
	return nil
}

const (
	filled     = 0.45 // of all blocks hold logs
	longGap    = 0.0005
	longBlocks = 300
)

// gap draws how many empty blocks come next.
func (g *generator) gap() int {
	if g.rng.Float64() < longGap {
		return longBlocks
	}
	n := 0
	for g.rng.Float64() > filled {
		n++
	}
	return n
}

// blockSize draws how many logs a block gets at least: mostly few, sometimes
// ten times as many.
func (g *generator) blockSize() uint32 {
	const mean = 5 / filled
	size := g.rng.ExpFloat64() * mean / 2
	if g.rng.IntN(10) == 0 {
		size *= 11
	}
	return uint32(min(size, 2000)) + 1
}

// operation is something that still has to happen left times.
type operation struct {
	left  int
	ready func() bool
	run   func()
}

// longest is the most logs one operation leaves outside of a bundle.
const longest = 8

// plan says what a history of the spec's size holds: at full size the published
// counts, where there are some.
func (g *generator) plan() []*operation {
	n := g.spec.scaled
	g.crowdSize = n(8_926, 20)
	agents, heavy, crowd := n(95_000, 60), uint32(n(25_975, 5)), uint32(n(40_000, 9))
	has := func(token uint32) func() bool { return func() bool { return uint32(len(g.st.agents)) > token } }
	some, rated := has(20), func() bool { return len(g.st.ratings) > 50 }
	return []*operation{
		{agents, has(0), g.register},
		{1, func() bool { return true }, g.register},
		{n(41_331, 100), has(heavy), func() { g.rateHeavy(heavy, 0) }},
		{n(242_741, 200), has(heavy), func() { g.rateHeavy(heavy, g.fan()) }},
		{n(12_306, 25), has(crowd), func() { g.rateCrowd(crowd) }},
		{n(155_468, 300), some, func() { g.rateOther(heavy, crowd) }},
		{n(25_000, 20), some, g.transfer},
		{n(22_000, 20), some, g.updateURI},
		{n(6_000, 10), some, g.setWallet},
		{n(8_000, 10), some, g.approve},
		{n(3_000, 10), some, g.approveAll},
		{n(82, 4), rated, g.revoke},
		{n(1_500, 10), rated, g.respond},
		{n(300, 10), some, g.requestValidation},
		{n(330, 10), func() bool { return len(g.st.requests) > 0 }, g.answerValidation},
		{n(20, 2), some, g.registerCallback},
		{n(25_000, 10), some, g.setMetadata},
	}
}

// step runs one operation, drawn by how many of each are left. When all have
// happened, metadata fills the rest.
func (g *generator) step(plan []*operation) {
	total := 0
	for _, o := range plan {
		if o.left > 0 && o.ready() {
			total += o.left
		}
	}
	if total == 0 || g.spec.Events-g.events < longest {
		g.setMetadata()
		return
	}
	draw := g.rng.IntN(total)
	for _, o := range plan {
		if o.left == 0 || !o.ready() {
			continue
		}
		if draw -= o.left; draw < 0 {
			g.repeat(o)
			return
		}
	}
}

// repeat runs an operation, sometimes up to forty times in one transaction.
func (g *generator) repeat(o *operation) {
	const most = 40
	n := 1
	if g.rng.IntN(50) == 0 && g.spec.Events-g.events > most*longest {
		n = min(o.left, 2+g.rng.IntN(most-1))
	}
	for i := range n {
		g.bundle = i > 0
		o.left--
		o.run()
	}
	g.bundle = false
}

// begin starts a transaction, except within a bundle.
func (g *generator) begin(to common.Address) {
	if !g.bundle {
		g.txs = append(g.txs, transaction{to: to})
	}
}

// here is where the next log will be.
func (g *generator) here() point { return point{g.block, g.logs} }

// emit adds a log to the current transaction.
func (g *generator) emit(l *types.Log) {
	tx := &g.txs[len(g.txs)-1]
	tx.logs = append(tx.logs, l)
	g.logs++
	g.events++
}

// about emits an event that concerns an agent, which must exist.
func (g *generator) about(token uint32, e repute.Event) {
	g.st.agents[token].Updated = g.here()
	g.emit(g.enc.log(e))
}

// endBlock writes the current block and begins the next.
func (g *generator) endBlock() error {
	g.st.endBlock(g.block)
	err := g.out.add(g.txs)
	g.txs, g.logs = g.txs[:0], 0
	g.block++
	return err
}

// nextBlock ends the block, and the generation when ctx has ended.
func (g *generator) nextBlock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return g.endBlock()
}

// skip adds n empty blocks.
func (g *generator) skip(ctx context.Context, n int) error {
	for range n {
		if err := g.nextBlock(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}
