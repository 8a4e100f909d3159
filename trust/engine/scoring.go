package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/replay"
)

// claimFor is how long a claim of stale agents lasts. Work that finishes after its claim
// expired is discarded.
const claimFor = time.Minute

// maxRows bounds the ratings that are in memory at once, unless one agent has more.
const maxRows = 50_000

// reason is why agents are stale. Each has its own loop, so that agents of a new event do
// not wait for the work of an epoch.
type reason int

const (
	byEvent reason = iota
	byRun
	reasons
)

// scoreSome claims stale agents, scores them and stores what came of it.
func (k *keeper) scoreSome(ctx context.Context, why reason, most int) (n int, err error) {
	b := k.basis.Load()
	if b == nil {
		return 0, nil
	}
	stale, err := trustdb.ClaimStale(ctx, k.db, k.chain, b.run.Run, why == byEvent, most, claimFor)
	if err != nil || len(stale) == 0 {
		return 0, err
	}
	s := k.scorer(b, why)
	for rest := stale; len(rest) > 0; {
		group := head(rest)
		rest = rest[len(group):]
		started := time.Now()
		err := s.score(ctx, group)
		// a manifest that was kept before was pruned: nobody waits for the end of the claim
		if errors.Is(err, repute.ErrGone) {
			k.forget()
			err = s.score(ctx, group)
		}
		if err != nil {
			return n, err
		}
		n += len(group)
		k.metrics.scored(k.chain, len(group), time.Since(started))
	}
	return n, nil
}

// scorer returns the scoring by a basis for one of the loops.
func (k *keeper) scorer(b *basis, why reason) *scoreRun {
	s := k.scorers[why]
	if s == nil || s.basis != b {
		s = &scoreRun{k.Engine, b, trust.NewScorer(b.weights, b.params)}
		k.scorers[why] = s
	}
	return s
}

// head is the longest run of agents that may be in memory together.
func head(agents []trustdb.StaleAgent) []trustdb.StaleAgent {
	rows := int64(0)
	for i, a := range agents {
		if rows += a.Rows; rows > maxRows && i > 0 {
			return agents[:i]
		}
	}
	return agents
}

// scoreRun scores agents on one basis.
type scoreRun struct {
	*Engine
	basis  *basis
	scorer *trust.Scorer
}

// score computes and stores the scores of claimed agents, provisional and final ones.
func (s *scoreRun) score(ctx context.Context, stale []trustdb.StaleAgent) error {
	w, err := s.load(ctx, stale)
	if err != nil {
		return err
	}
	out := make([]trustdb.ScoredAgent, len(stale))
	for i := range stale {
		if out[i], err = s.judge(ctx, w, i); err != nil {
			return err
		}
	}
	if err := s.keep(ctx, w.manifests(out)...); err != nil {
		return err
	}
	run := s.basis.run
	return trustdb.SaveScores(ctx, s.db, run.ChainID, run.Run, out, s.who())
}

// who are the identities of the run.
func (s *scoreRun) who() trustdb.Identities {
	return trustdb.Identities{Members: s.basis.weights.Graph().Members, Known: s.basis.knownAgents,
		Params: s.basis.run.Params}
}

// work is the evidence about a batch of agents.
type work struct {
	agents    []trustdb.StaleAgent
	now, last []*subject // by the index of the agent; nil where there is nothing to score
	mu        sync.Mutex
	bodies    map[common.Hash][]byte // of manifests
}

// subject is an agent's evidence as of a block.
type subject struct {
	trust.Evidence
	judged bool
}

// load reads the evidence about agents: as of the newest state, and as of the run's block for those
// that a final score is due of. Where nothing happened since, both are the same events.
func (s *scoreRun) load(ctx context.Context, stale []trustdb.StaleAgent) (*work, error) {
	ids, index := make([]repute.TokenID, len(stale)), make(map[repute.TokenID]int, len(stale))
	for i, a := range stale {
		ids[i], index[a.TokenID] = a.TokenID, i
	}
	w := &work{agents: stale, bodies: map[common.Hash][]byte{}}
	now, err := trustdb.ReadSubjects(ctx, s.db, s.basis.run.ChainID, ids, nil, s.basis.validations)
	if err != nil {
		return nil, err
	}
	if w.now, err = s.evidence(ctx, now, index, false); err != nil {
		return nil, err
	}
	var moved []repute.TokenID
	var last []trustdb.Subject
	for _, subject := range now {
		switch id := subject.Agent.TokenID; {
		case !stale[index[id]].Final:
		case subject.Updated.Number > s.basis.run.Block.Number:
			moved = append(moved, id)
		default:
			last = append(last, subject)
		}
	}
	if len(moved) > 0 {
		then, err := trustdb.ReadSubjects(ctx, s.db, s.basis.run.ChainID, moved, &s.basis.run.Block.Number,
			s.basis.validations)
		if err != nil {
			return nil, err
		}
		last = append(last, then...)
	}
	w.last, err = s.evidence(ctx, last, index, true)
	return w, err
}

// evidence converts what was read about agents: final evidence is as of the run's block, other
// evidence as of the newest block in which something happened to the agent, if that is newer.
func (s *scoreRun) evidence(ctx context.Context, subjects []trustdb.Subject, index map[repute.TokenID]int,
	final bool) ([]*subject, error) {
	out := make([]*subject, len(index))
	if len(subjects) == 0 {
		return out, nil
	}
	who, err := s.identities(ctx, subjects, final)
	if err != nil {
		return nil, err
	}
	list := make([]*subject, len(subjects))
	for i := range subjects {
		from := &subjects[i]
		from.Block = s.basis.run.Block
		if !final && from.Updated.Number > s.basis.run.Block.Number {
			from.Block = from.Updated
		}
		list[i] = &subject{EvidenceOf(*from, s.basis.weights, s.basis.scales), from.Judged}
		list[i].Validations, list[i].Identity = s.basis.run.Validations, who[from.Agent.TokenID]
		out[index[from.Agent.TokenID]] = list[i]
	}
	return out, s.addRelated(ctx, list, final)
}

// judge computes the scores of an agent, provisional and final ones.
func (s *scoreRun) judge(ctx context.Context, w *work, i int) (out trustdb.ScoredAgent, err error) {
	out.StaleAgent = w.agents[i]
	scored := out.Scored
	last, err := s.evaluate(ctx, w, w.last[i], true, scored)
	if err != nil {
		return out, err
	}
	if last != nil {
		out.Last, out.Facts = &last.AgentScore, last.facts
		scored = scored || last.Guarded
	}
	now, err := s.evaluate(ctx, w, w.now[i], false, scored)
	if now != nil {
		out.Current, out.Shown, out.Exact = &now.AgentScore, now.facts, s.exact
	}
	return out, err
}

// evaluated is an agent's score with its facts.
type evaluated struct {
	trustdb.AgentScore
	facts common.Hash
}

// evaluate scores an agent. One that nobody judged has a score when another agent limits it, or
// when it is scored already.
func (s *scoreRun) evaluate(ctx context.Context, w *work, e *subject, final, scored bool) (*evaluated, error) {
	if e == nil || e.Block.Time.IsZero() || !e.judged && len(e.Related) == 0 && !scored {
		return nil, nil // nothing dated, or nothing there
	}
	one, body, err := s.one(ctx, e.Evidence, final)
	if err != nil {
		return nil, err
	}
	one.Final, one.Plain = final, !e.judged && !one.Guarded
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies[one.Evidence] = body
	return one, nil
}

// manifests are those of the scores that are to be stored.
func (w *work) manifests(list []trustdb.ScoredAgent) (out [][]byte) {
	named := map[common.Hash]bool{}
	name := func(s *trustdb.AgentScore, stays bool) {
		if s != nil && !stays && !named[s.Evidence] {
			named[s.Evidence] = true
			out = append(out, w.bodies[s.Evidence])
		}
	}
	for i := range list {
		name(list[i].Current, list[i].SameCurrent)
		name(list[i].Last, list[i].SameLast)
	}
	return out
}

// addRelated adds to agents the penalties of the identities behind them.
func (s *scoreRun) addRelated(ctx context.Context, list []*subject, final bool) error {
	var behind []trustdb.Affiliation
	if s.basis.params.Guard.FullShare == 0 {
		return nil
	}
	for _, e := range list {
		for _, identity := range e.AffiliatedIdentities() {
			behind = append(behind, trustdb.Affiliation{TokenID: e.Agent.TokenID, Identity: identity})
		}
	}
	if len(behind) == 0 {
		return nil
	}
	if err := s.addAffiliatedDomains(ctx, list, behind, final); err != nil {
		return err
	}
	found, err := trustdb.WorstPenalties(ctx, s.db, s.basis.run.ChainID, behind, final)
	penalties := trust.Penalties{}
	penalties.Add(found...)
	for _, e := range list {
		e.Related = penalties.Related(&e.Evidence, s.basis.params, s.basis.knownAgents)
	}
	return err
}

// one scores an agent and finds the penalties of its present and former owners. It returns the
// manifest of its evidence too.
func (s *scoreRun) one(ctx context.Context, e trust.Evidence, final bool) (*evaluated, []byte, error) {
	free := e
	free.Related = nil
	own := s.scorer.Score(free)
	if s.basis.params.IsSurelyBad(&own) {
		if err := s.addDomains(ctx, &free, final); err != nil {
			return nil, nil, err
		}
	}
	manifest := replay.ManifestOf(&e).Encode()
	out, result := new(evaluated), own
	out.Penalties = s.scorer.Penalties(free, &own)
	for i := range out.Penalties {
		out.Penalties[i].Score, out.Penalties[i].High = stepped(out.Penalties[i].Score), stepped(out.Penalties[i].High)
	}
	if len(e.Related) > 0 {
		result = s.scorer.Score(e)
	}
	var err error
	if out.Score, err = StoredScore(&result); err != nil {
		return nil, nil, err
	}
	out.Score.Block, out.Evidence, out.Scorer = e.Block, replay.HashInput(manifest), s.basis.run.Scorer
	out.Guarded, out.facts = result.Guard != nil, factsOf(&result)
	return out, manifest, nil
}

// penaltyStep is how far a bad agent's score must move before related agents are scored
// again: an identity may have many of them, and all scores age at each epoch.
const penaltyStep trust.Points = 500

// stepped is the next step at or below a score.
func stepped(p trust.Points) trust.Points {
	if rest := p % penaltyStep; rest < 0 {
		return p - rest - penaltyStep
	} else {
		return p - rest
	}
}

// StoredScore is a result in the terms of stored scores. Block but for its number and
// hash, run, scorer and evidence are left to the caller.
func StoredScore(r *trust.Result) (repute.Score, error) {
	body, err := json.Marshal(r)
	return repute.Score{Agent: r.Agent, Block: repute.Block{Number: r.Block, Hash: r.BlockHash}, Params: r.Params,
		Tags:   r.TagTable,
		Status: r.Status, Score: r.Score, Low: r.Low, High: r.High, Mean: r.Mean,
		Confidence: r.Confidence.Round(1_000_000), Tier: r.Tier, Result: body}, err
}

// factsOf tells results apart by what age alone does not change.
func factsOf(r *trust.Result) common.Hash {
	passed := []string{}
	for _, g := range r.Gates {
		if g.Passed {
			passed = append(passed, g.ID)
		}
	}
	b, _ := json.Marshal(struct { // of strings and numbers: it cannot fail
		Status                             trust.Status
		Tier, Rows, Excluded, For, Against int
		Passed                             []string
		Guard                              *trust.GuardView
	}{r.Status, r.Tier, r.Rows, r.Excluded, r.PathsFor, r.PathsAgainst, passed, r.Guard})
	return sha256.Sum256(b)
}
