package engine

import (
	"runtime"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/identity"
	"repute/trust/rows"
)

// passShare is how many agents a worker of a pass takes at a time.
const passShare = 16

// passWorker scores agents of a pass. It MUST be used by one goroutine at a time.
type passWorker struct {
	*scoreRun
	plain *rows.PlainReader
	// identity is that of agents without a document, but for the wallet.
	identity trust.Identity
	score    scoredb.AgentScore // memory of stays
}

// newPassWorkers returns a worker for each processor.
func newPassWorkers(k *keeper, b *Basis) (out []*passWorker) {
	for range runtime.GOMAXPROCS(0) {
		out = append(out, &passWorker{scoreRun: newScoreRun(k, b),
			plain:    k.rows.Plain(b.Run.Block, b.Params, b.Weights, b.Scales),
			identity: *identity.Of(repute.AgentID{}, common.Address{}, trustdb.Identity{})})
	}
	return out
}

// mayStay reports whether stays may be called for an agent: its scores in effect are known, nothing but age changed
// since them, and its evidence is ratings in memory alone.
func (e *epoch) mayStay(a *scoredb.StaleAgent) bool {
	token := a.TokenID
	return a.Final && a.Remembered() && !e.exact && !e.unlike[token] && !e.large[token] && !e.penalizing[token] &&
		(e.documented != nil && !e.documented[token] || !e.basis.Params.ChecksIdentity())
}

// stays reports whether both scores of an agent stay as they are, and the agent brings no penalty. It is judge without
// the memory that a stored score takes: most scores stay. It may return false for scores that stay.
func (e *epoch) stays(by *passWorker, a *scoredb.StaleAgent) bool {
	evidence := by.plain.Evidence(a.TokenID)
	if evidence == nil {
		return false
	}
	run := &e.basis.Run
	if len(e.penalized) > 0 && e.penalized[e.basis.Weights.Graph().Identity(evidence.Owner)] {
		return false
	}
	evidence.Validations = run.Validations
	if e.basis.Params.ChecksIdentity() {
		by.identity.Wallet = evidence.Wallet
		evidence.Identity = &by.identity
	}
	if by.scratch == nil {
		by.scratch = &trust.Result{}
	}
	own := by.scratch
	by.scorer.ScoreInto(own, *evidence)
	if own.IsSurelyBad(e.basis.Params) {
		return false
	}
	s := &by.score
	s.Score = numbersOf(own)
	_, s.Evidence = by.cached.manifestOf(evidence)
	s.Block = evidence.Block
	out := scoredb.ScoredAgent{StaleAgent: *a, Current: s, Last: s}
	out.Facts = by.cached.factsOf(own)
	out.Shown = out.Facts
	return e.kept.Stays(&out)
}
