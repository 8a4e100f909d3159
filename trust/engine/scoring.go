package engine

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/cache"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/rows"
)

// claimFor is how long a claim of stale agents lasts. Work that finishes after its claim expired is discarded.
const claimFor = time.Minute

// maxRows is how many ratings of a batch are in memory at once. A single agent with more is a batch of its own.
const maxRows = 50_000

// reason is the reason for which agents are stale. Each reason has its own loop, so that an agent with a new event does
// not wait until all agents of an epoch are scored.
type reason int

const (
	byEvent reason = iota // an event changed the agent's evidence
	byRun                 // a new run, or a changed penalty of a related agent
	reasons               // number of reasons
)

// scoreSome claims up to most stale agents, scores them, stores the scores and returns how many agents it scored.
func (k *keeper) scoreSome(ctx context.Context, why reason, most int) (n int, err error) {
	b := k.basis.Load()
	if b == nil {
		return 0, nil
	}
	s := k.scorer(b, why) // also without a stale agent: the scorer of an earlier run keeps its graph in memory
	stale, err := scoredb.ClaimStale(ctx, k.db, k.chain, b.Run.Run, why == byEvent, most, claimFor)
	if err != nil || len(stale) == 0 {
		return 0, err
	}
	for rest := stale; len(rest) > 0; {
		group := head(rest)
		rest = rest[len(group):]
		started := time.Now()
		err := s.score(ctx, group)
		// A manifest that this engine had stored was pruned, or a cached account was dropped: retry while the claim
		// lasts.
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

// scorer returns the scoreRun of a loop for a basis, and makes a new one for a new basis.
func (k *keeper) scorer(b *Basis, why reason) *scoreRun {
	s := k.scorers[why]
	if s == nil || s.basis != b {
		s = newScoreRun(k, b)
		if why == byEvent {
			s.large = newLarge()
		}
		k.scorers[why] = s
	}
	return s
}

// head returns the first agents of a list, as many as maxRows allows and at least one.
func head(agents []scoredb.StaleAgent) []scoredb.StaleAgent {
	rows := int64(0)
	for i, a := range agents {
		if rows += a.Rows; rows > maxRows && i > 0 {
			return agents[:i]
		}
	}
	return agents
}

// scoreRun scores agents with one basis. It MUST NOT be used by two goroutines at once.
type scoreRun struct {
	*Engine
	basis  *Basis
	rows   *rows.Store
	scorer *trust.Scorer
	large  *cache.Cache[repute.TokenID, *large] // nil for the loop of a run, which reads all ratings
	// penalized are the identities with penalties when a pass began, nil outside of passes. A penalty that is stored
	// later makes all agents of its identity stale.
	penalized map[common.Address]bool
	// documented are the agents with a document that was read when a pass began, nil outside of passes. A document that
	// is read later makes the agent stale.
	documented map[repute.TokenID]bool
	cached     evaluations
	// spare is a result whose memory the next score takes, and scratch one for later, nil for none: see epoch.judge.
	spare, scratch *trust.Result
	grown          int // how often ratings were added to a cached account, for tests
}

// newScoreRun returns a scoreRun without a cache of large agents.
func newScoreRun(k *keeper, b *Basis) *scoreRun {
	return &scoreRun{Engine: k.Engine, basis: b, rows: k.rows, scorer: trust.NewScorer(b.Weights, b.Params)}
}

// score computes and stores the scores of claimed agents, provisional and final ones.
func (s *scoreRun) score(ctx context.Context, stale []scoredb.StaleAgent) error {
	w, err := s.load(ctx, stale)
	if err != nil {
		return err
	}
	out := make([]scoredb.ScoredAgent, len(stale))
	for i := range stale {
		if out[i], err = s.judge(ctx, w, i); err != nil {
			return err
		}
	}
	manifests, err := w.finish(out)
	if err != nil {
		return err
	}
	if err := s.keep(ctx, manifests...); err != nil {
		return err
	}
	run := s.basis.Run
	return scoredb.SaveScores(ctx, s.db, run.ChainID, run.Run, out, s.who())
}

// who returns the functions by which scoredb finds the identities of the run.
func (s *scoreRun) who() scoredb.Identities {
	return scoredb.Identities{Members: s.basis.Weights.Graph().Members, Known: s.basis.known.Of,
		Params: s.basis.Run.Params}
}

// work is the evidence about a batch of agents, with the scores that judge computes.
type work struct {
	agents    []scoredb.StaleAgent
	now, last []*subject // provisional and final evidence by index in agents; nil when there is none
	found     []found    // by index in agents
	// mayStay are the agents of a pass without evidence here, because their scores are likely to stay: see epoch.stays.
	mayStay []bool
}

// found has the provisional (now) and the final (last) score of an agent, nil when it has none.
type found struct{ now, last *evaluated }

// subject is an agent's evidence as of a block.
type subject struct {
	trust.Evidence
	judged bool // the agent has, or had, ratings or answers of validation contracts
	// remembered says that the evidence is that in memory.
	remembered bool
	// account has the ratings of an agent with very many, instead of Rows; nil for other agents.
	account *trust.Account
	built   *large // of account, which a pass borrowed or made
}

// load reads the evidence about agents: as of the newest block, and as of the run's block for agents whose final score
// is due. When nothing happened to an agent since the run's block, both are read once.
func (s *scoreRun) load(ctx context.Context, stale []scoredb.StaleAgent) (*work, error) {
	ids, index := make([]repute.TokenID, len(stale)), make(map[repute.TokenID]int, len(stale))
	for i, a := range stale {
		ids[i], index[a.TokenID] = a.TokenID, i
	}
	w := &work{agents: stale, found: make([]found, len(stale))}
	now, err := s.newest(ctx, stale, ids)
	if err != nil {
		return nil, err
	}
	if w.now, err = s.evidence(ctx, now, index, false); err != nil {
		return nil, err
	}
	var changed []*trustdb.Subject
	var last []trustdb.Subject
	for i := range now {
		switch at := index[now[i].Agent.TokenID]; {
		case !stale[at].Final:
		case now[i].Updated.Number > s.basis.Run.Block.Number || w.now[at].account != nil:
			changed = append(changed, &now[i])
		default:
			last = append(last, now[i])
		}
	}
	return w, s.loadFinals(ctx, w, changed, last, index)
}

// loadFinals sets the final evidence of a batch: of last, which did not change since the run's block, and of changed,
// which are read as of that block.
func (s *scoreRun) loadFinals(ctx context.Context, w *work, changed []*trustdb.Subject, last []trustdb.Subject,
	index map[repute.TokenID]int) error {
	w.last = make([]*subject, len(w.agents))
	moved, err := s.finalsInMemory(ctx, w, changed, index)
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		then, err := trustdb.ReadSubjects(ctx, s.db, s.basis.Run.ChainID, moved, &s.basis.Run.Block.Number,
			s.basis.Validations)
		if err != nil {
			return err
		}
		last = append(last, then...)
	}
	read, err := s.evidence(ctx, last, index, true)
	for i, one := range read {
		if one != nil {
			w.last[i] = one
		}
	}
	return err
}

// evidence converts rows of agents to evidence, by the index of the agents. Final evidence is as of the run's block,
// other evidence as of the newest block with an event of the agent if that is newer.
func (s *scoreRun) evidence(ctx context.Context, subjects []trustdb.Subject, index map[repute.TokenID]int,
	final bool) ([]*subject, error) {
	out := make([]*subject, len(index))
	if len(subjects) == 0 {
		return out, nil
	}
	list := make([]*subject, len(subjects))
	for i := range subjects {
		from := &subjects[i]
		from.Block = s.basis.Run.Block
		if !final {
			from.Block = s.viewOf(from)
		}
		var err error
		list[i] = &subject{Evidence: rows.EvidenceOf(*from, s.basis.Weights, s.basis.Scales), judged: from.Judged}
		if !final {
			if list[i].account, err = s.accountOf(from, &list[i].Evidence); err != nil {
				return nil, err
			}
		}
		out[index[from.Agent.TokenID]] = list[i]
	}
	return out, s.complete(ctx, list, final)
}

// complete adds to evidence what does not follow from the agent's own events: the checks of its identity, and related
// agents.
func (s *scoreRun) complete(ctx context.Context, list []*subject, final bool) error {
	who, err := s.identities(ctx, list, final)
	if err != nil {
		return err
	}
	for _, e := range list {
		e.Validations, e.Identity = s.basis.Run.Validations, who[e.Agent.TokenID]
	}
	return s.addRelated(ctx, list, final)
}

// judge computes the provisional and the final score of the i-th agent of a batch. finish encodes their results.
func (s *scoreRun) judge(ctx context.Context, w *work, i int) (out scoredb.ScoredAgent, err error) {
	out.StaleAgent = w.agents[i]
	scored, f := out.Scored, &w.found[i]
	if f.last, err = s.evaluate(ctx, w.last[i], true, scored); err != nil {
		return out, err
	}
	if f.last != nil {
		out.Last, out.Facts = &f.last.AgentScore, f.last.facts
		scored = scored || f.last.Guarded
	}
	if f.last != nil && w.now[i].same(w.last[i]) {
		again := *f.last
		again.Final = false
		f.now = &again
	} else if f.now, err = s.evaluate(ctx, w.now[i], false, scored); err != nil {
		return out, err
	}
	if f.now != nil {
		out.Current, out.Shown, out.Exact = &f.now.AgentScore, f.now.facts, s.exact
	}
	return out, nil
}

// same reports whether the provisional evidence e gives the same score as the final evidence other: both are as of the
// run's block, with equal related agents and identity.
func (e *subject) same(other *subject) bool {
	return e != nil && e.Block == other.Block && reflect.DeepEqual(e.Related, other.Related) &&
		reflect.DeepEqual(e.Identity, other.Identity)
}

// evaluated is an agent's score before its result is encoded.
type evaluated struct {
	scoredb.AgentScore
	facts    common.Hash // result of factsOf
	manifest []byte      // encoded evidence manifest
	result   *trust.Result
}

// evaluate scores an agent. It returns nil for an agent without evidence, and for one without ratings that has no score
// yet (scored) and that no related agent limits.
func (s *scoreRun) evaluate(ctx context.Context, e *subject, final, scored bool) (*evaluated, error) {
	if e == nil || e.Block.Time.IsZero() || !e.judged && len(e.Related) == 0 && !scored {
		return nil, nil
	}
	one, err := s.one(ctx, e, final)
	if err != nil {
		return nil, err
	}
	one.Final, one.Plain = final, !e.judged && !one.Guarded
	return one, nil
}

// finish encodes the results of the scores that are stored, and returns their manifests without duplicates. Scores with
// SameLast or SameCurrent are already in the database. A provisional score that is the final one is encoded once.
func (w *work) finish(list []scoredb.ScoredAgent) (manifests [][]byte, err error) {
	named := map[common.Hash]bool{}
	encode := func(e *evaluated, stays bool) {
		if e == nil || stays {
			return
		}
		if e.Result == nil {
			var failed error
			e.Result, failed = json.Marshal(e.result)
			err = errors.Join(err, failed)
		}
		if !named[e.Evidence] {
			named[e.Evidence] = true
			manifests = append(manifests, e.manifest)
		}
	}
	for i := range list {
		last, now := w.found[i].last, w.found[i].now
		encode(last, list[i].SameLast)
		if last != nil && now != nil && now.result == last.result {
			now.Result = last.Result
		}
		encode(now, list[i].SameCurrent)
		for _, e := range []*evaluated{last, now} {
			if e != nil { // it takes more memory than its encoded form, which waits to be stored
				e.result, e.manifest = nil, nil
			}
		}
	}
	return manifests, err
}

// addRelated sets Evidence.Related: the related agent whose penalty limits an agent most.
func (s *scoreRun) addRelated(ctx context.Context, list []*subject, final bool) error {
	var behind []scoredb.Affiliation
	if s.basis.Params.Guard.FullShare == 0 || s.penalized != nil && len(s.penalized) == 0 {
		return nil
	}
	for _, e := range list {
		for _, identity := range e.AffiliatedIdentities() {
			if s.penalized != nil && !s.penalized[identity] {
				continue
			}
			behind = append(behind, scoredb.Affiliation{TokenID: e.Agent.TokenID, Identity: identity})
		}
	}
	if len(behind) == 0 {
		return nil
	}
	behind, err := s.affiliatedToPenalized(ctx, list, behind, final)
	if err != nil || len(behind) == 0 {
		return err
	}
	found, err := scoredb.WorstPenalties(ctx, s.db, s.basis.Run.ChainID, behind, final)
	if err != nil {
		return err
	}
	for _, e := range list {
		penalties := trust.Penalties{}
		penalties.Add(found[e.Agent.TokenID]...)
		e.Related = penalties.Related(&e.Evidence, s.basis.Params, s.basis.known.Of)
	}
	return nil
}

// one scores an agent and computes the penalties of its present and former owners.
func (s *scoreRun) one(ctx context.Context, e *subject, final bool) (*evaluated, error) {
	free := e.Evidence
	free.Related = nil
	own := s.spare
	if s.spare = nil; own != nil && e.account == nil {
		s.scorer.ScoreInto(own, free)
	} else {
		one := s.scoreOf(e, free)
		own = &one
	}
	if own.IsSurelyBad(s.basis.Params) {
		if err := s.addDomains(ctx, &free, final); err != nil {
			return nil, err
		}
	}
	manifest, named := s.cached.manifestOf(&e.Evidence)
	out := &evaluated{manifest: manifest, result: own}
	out.Penalties = s.scorer.Penalties(free, own)
	for i := range out.Penalties {
		out.Penalties[i].Score, out.Penalties[i].High = stepped(out.Penalties[i].Score), stepped(out.Penalties[i].High)
	}
	if len(e.Related) > 0 {
		limited := s.scoreOf(e, e.Evidence)
		out.result = &limited
	}
	out.Score = numbersOf(out.result)
	out.Score.Block, out.Score.Evidence, out.Scorer = e.Block, named, s.basis.Run.Scorer
	out.Guarded, out.facts = out.result.Guard != nil, s.cached.factsOf(out.result)
	return out, nil
}

// scoreOf returns the score of by, with the ratings of the subject's account when it has one.
func (s *scoreRun) scoreOf(e *subject, by trust.Evidence) trust.Result {
	if e.account != nil {
		return s.scorer.ScoreAccount(e.account, by)
	}
	return s.scorer.Score(by)
}

// penaltyStep is the step, in thousandths of a point, to which scores of penalties are rounded down. Related agents are
// scored again only when a rounded score changes: an identity may have many of them, and scores change slightly at each
// epoch because ratings age.
const penaltyStep trust.Points = 500

// stepped rounds a score down to a multiple of penaltyStep.
func stepped(p trust.Points) trust.Points {
	return p - (p%penaltyStep+penaltyStep)%penaltyStep
}

// StoredScore converts a result to a stored score. The caller sets time of the block, run, scorer and evidence.
func StoredScore(r *trust.Result) (s repute.Score, err error) {
	s = numbersOf(r)
	s.Result, err = json.Marshal(r)
	return s, err
}

// numbersOf returns StoredScore without the encoded result.
func numbersOf(r *trust.Result) repute.Score {
	return repute.Score{Agent: r.Agent, Block: repute.Block{Number: r.Block, Hash: r.BlockHash}, Params: r.Params,
		Tags:   r.TagTable,
		Status: r.Status, Score: r.Score, Low: r.Low, High: r.High, Mean: r.Mean,
		Confidence: r.Confidence.Round(1_000_000), Tier: r.Tier}
}
