package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
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
	s := k.scorers[why]
	if s == nil || s.basis != b {
		s = &scoreRun{k.Engine, b, trust.NewScorer(b.weights, b.params)}
		k.scorers[why] = s
	}
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

// score computes and stores the scores of a batch of agents, provisional and final ones.
func (s *scoreRun) score(ctx context.Context, stale []trustdb.StaleAgent) error {
	ids, scored := make([]repute.TokenID, len(stale)), map[repute.TokenID]bool{}
	for i, a := range stale {
		ids[i], scored[a.TokenID] = a.TokenID, a.Scored
	}
	now, err := trustdb.ReadSubjects(ctx, s.db, s.basis.run.ChainID, ids, nil, s.basis.validations)
	if err != nil {
		return err
	}
	last, err := s.finals(ctx, stale, now, scored)
	if err != nil {
		return err
	}
	for id, l := range last {
		scored[id] = scored[id] || l.Guarded
	}
	current, err := s.evaluate(ctx, now, false, scored)
	if err != nil {
		return err
	}
	out := make([]trustdb.ScoredAgent, len(stale))
	for i, a := range stale {
		out[i] = trustdb.ScoredAgent{StaleAgent: a}
		if c := current[a.TokenID]; c != nil {
			out[i].Current, out[i].Shown, out[i].Exact = &c.AgentScore, c.facts, s.exact
		}
		if l := last[a.TokenID]; a.Final && l != nil {
			out[i].Last, out[i].Facts = &l.AgentScore, l.facts
		}
	}
	run := s.basis.run
	who := trustdb.Identities{Members: s.basis.weights.Graph().Members, Known: s.basis.knownAgents, Params: run.Params}
	return trustdb.SaveScores(ctx, s.db, run.ChainID, run.Run, out, who)
}

// finals are the scores as of the run's block, of those agents that one is due of. Where
// nothing happened since, the evidence is the newest one.
func (s *scoreRun) finals(ctx context.Context, stale []trustdb.StaleAgent, now []trustdb.Subject,
	scored map[repute.TokenID]bool) (map[repute.TokenID]*evaluated, error) {
	due := map[repute.TokenID]bool{}
	for _, a := range stale {
		due[a.TokenID] = a.Final
	}
	var moved []repute.TokenID
	var still []trustdb.Subject
	for _, subject := range now {
		switch id := subject.Agent.TokenID; {
		case !due[id]:
		case subject.Updated.Number > s.basis.run.Block.Number:
			moved = append(moved, id)
		default:
			still = append(still, subject)
		}
	}
	if len(moved) > 0 {
		then, err := trustdb.ReadSubjects(ctx, s.db, s.basis.run.ChainID, moved, &s.basis.run.Block.Number,
			s.basis.validations)
		if err != nil {
			return nil, err
		}
		still = append(still, then...)
	}
	return s.evaluate(ctx, still, true, scored)
}

// evaluated is an agent's score with its facts and manifest.
type evaluated struct {
	trustdb.AgentScore
	facts    common.Hash
	manifest []byte // to be kept
}

// evaluate scores agents: final ones as of the run's block, others as of the newest block
// in which something happened to them, if that is newer. Those that nobody judged have a
// score when another agent limits them, or when they are scored already.
func (s *scoreRun) evaluate(ctx context.Context, subjects []trustdb.Subject, final bool,
	scored map[repute.TokenID]bool) (map[repute.TokenID]*evaluated, error) {
	who, err := s.identities(ctx, subjects, final)
	if err != nil {
		return nil, err
	}
	evidence := make([]trust.Evidence, len(subjects))
	for i := range subjects {
		subject := &subjects[i]
		subject.Block = s.basis.run.Block
		if !final && subject.Updated.Number > s.basis.run.Block.Number {
			subject.Block = subject.Updated
		}
		evidence[i] = EvidenceOf(*subject, s.basis.weights, s.basis.scales)
		evidence[i].Validations, evidence[i].Identity = s.basis.run.Validations, who[subject.Agent.TokenID]
	}
	if err := s.addRelated(ctx, evidence, final); err != nil {
		return nil, err
	}
	out := make(map[repute.TokenID]*evaluated, len(subjects))
	var manifests [][]byte
	for i := range evidence {
		e, judged := &evidence[i], subjects[i].Judged
		if e.Block.Time.IsZero() || !judged && len(e.Related) == 0 && !scored[e.Agent.TokenID] {
			continue // nothing dated, or nothing there
		}
		one, err := s.one(ctx, *e, final)
		if err != nil {
			return nil, err
		}
		one.Final, one.Plain = final, !judged && !one.Guarded
		out[e.Agent.TokenID] = one
		manifests = append(manifests, one.manifest)
	}
	return out, s.keep(ctx, manifests...)
}

// addRelated adds to agents the penalties of the identities behind them.
func (s *scoreRun) addRelated(ctx context.Context, list []trust.Evidence, final bool) error {
	var behind []trustdb.Affiliation
	if s.basis.params.Guard.FullShare == 0 {
		return nil
	}
	for i := range list {
		e := &list[i]
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
	for i := range list {
		e := &list[i]
		e.Related = penalties.Related(e, s.basis.params, s.basis.knownAgents)
	}
	return err
}

// one scores an agent and finds the penalties of its present and former owners.
func (s *scoreRun) one(ctx context.Context, e trust.Evidence, final bool) (*evaluated, error) {
	free := e
	free.Related = nil
	own := s.scorer.Score(free)
	if s.basis.params.IsSurelyBad(&own) {
		list := []trust.Evidence{free}
		if err := s.addDomains(ctx, list, final); err != nil {
			return nil, err
		}
		free = list[0]
	}
	out, result := &evaluated{manifest: replay.ManifestOf(&e).Encode()}, own
	out.Penalties = s.scorer.Penalties(free, &own)
	for i := range out.Penalties {
		out.Penalties[i].Score, out.Penalties[i].High = stepped(out.Penalties[i].Score), stepped(out.Penalties[i].High)
	}
	if len(e.Related) > 0 {
		result = s.scorer.Score(e)
	}
	var err error
	if out.Score, err = StoredScore(&result); err != nil {
		return nil, err
	}
	out.Score.Block, out.Evidence, out.Scorer = e.Block, replay.HashInput(out.manifest), s.basis.run.Scorer
	out.Guarded, out.facts = result.Guard != nil, factsOf(&result)
	return out, nil
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
