package trustgate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/journal"
	"repute/policy"
	"repute/store"
	"repute/store/query"
	"repute/store/rundb"
	"repute/store/scoredb"
	"repute/trust"
	"repute/trust/explain"
	"repute/trust/fixed"
	"repute/trust/identity"
	"repute/trust/replay"
)

// Decision is the decision of the trust gate about an agent, with all its evidence, so that Verify
// can compute it again from the database.
type Decision struct {
	Agent policy.Agent `json:"agent"` // as the policy saw it
	Pin   Pin          `json:"pin"`
	Proof *Proof       `json:"proof,omitempty"` // absent if no proof is needed
	// Manifest is the sha256 of the agent's manifest when its run began, empty outside runs.
	Manifest  string           `json:"manifestSha256,omitempty"`
	OpenFi    json.RawMessage  `json:"openfi,omitempty"` // the snapshot of identity checks
	Gates     []trust.GateView `json:"gates"`            // the gates with their unmet conditions
	Task      policy.Task      `json:"task"`
	Threshold policy.Threshold `json:"threshold"` // the task's own
	// Demanded is the threshold that was applied: the task's own together with the policy's. It is
	// absent if the policy could not be evaluated.
	Demanded *policy.Threshold `json:"demanded,omitempty"`
	Policy   common.Hash       `json:"policy"` // sha256 of the policy's bytes
	Decision policy.Decision   `json:"decision"`
	At       time.Time         `json:"at"`
}

// Pin names the evidence of a decision.
type Pin struct {
	Agent string `json:"agent"` // eip155:chain:registry:id, empty without identity
	// Block is the block of the final score, which determines the rest of the pin; zero without a
	// score.
	Block     uint64      `json:"block"`
	BlockHash common.Hash `json:"blockHash"`
	Epoch     uint64      `json:"epoch"`
	Scorer    string      `json:"scorer"`
	Params    common.Hash `json:"params"`
	Tags      common.Hash `json:"tags"`
	Roots     common.Hash `json:"roots"`
	Links     common.Hash `json:"links"`
	// Sources and Credentials are absent where no source was asked.
	Sources     *common.Hash `json:"sources,omitempty"`
	Credentials *common.Hash `json:"credentials,omitempty"`
	// FileScales is absent where no file of feedback states a scale.
	FileScales *common.Hash `json:"fileScales,omitempty"`
	VerifiedTo uint64       `json:"verifiedTo,omitempty"` // block up to which all blocks were proven
	Evidence   common.Hash  `json:"evidence"`             // of the evidence manifest
	Result     common.Hash  `json:"result"`               // sha256 of the score's canonical bytes
}

// equal reports whether two pins name the same evidence.
func (p Pin) equal(q Pin) bool { return string(journal.JSON(p)) == string(journal.JSON(q)) }

// Gate decides about agents by indexed data.
type Gate struct {
	Db     *store.DB
	Policy func() *policy.Policy
	// lenient lets agents without identity pass where no threshold asks for one: for
	// development.
	Lenient bool
}

// Decide returns the decision about an agent and a task, and stores the policy's text, so that the
// decision can be verified later. Failures such as repute.ErrUnavailable are errors, never
// decisions.
func (g *Gate) Decide(ctx context.Context, m repute.Module, task policy.Task, own policy.Threshold) (v Decision,
	err error) {
	p := g.Policy()
	if v, err = Decide(ctx, g.Db, p, g.Lenient, m, task, own); err != nil {
		return v, err
	}
	_, err = scoredb.KeepInput(ctx, g.Db, p.Text())
	return v, err
}

// Decide returns the current decision about an agent and a task without storing anything. lenient
// lets agents without identity pass if no threshold demands one.
func Decide(ctx context.Context, db *store.DB, p *policy.Policy, lenient bool, m repute.Module, task policy.Task,
	own policy.Threshold) (v Decision, err error) {
	v = Decision{Agent: unknownAgent(m.Slug), Task: task, Threshold: own, Proof: ProofOf(m, !lenient && m.Agent != nil),
		Policy: p.Hash(), Gates: []trust.GateView{}, At: time.Now().UTC()}
	if !lenient {
		v.Threshold.RequireIdentity = true
	}
	if m.Agent != nil {
		if err := v.read(ctx, db, *m.Agent); err != nil {
			return v, err
		}
	}
	if demanded, err := p.Demands(task, v.Threshold); err == nil {
		v.Demanded = &demanded
	}
	v.Decision = p.Gate(task, v.Threshold, v.Agent)
	return v, nil
}

// unknownAgent is an agent without indexed data: its score may have any value.
func unknownAgent(slug string) policy.Agent {
	return policy.Agent{Slug: slug, Status: "unrated", Low: -100, High: 100, Validation: policy.ValidationDisabled}
}

// read adds the indexed data of an agent: the final score and the identity checks.
func (v *Decision) read(ctx context.Context, db *store.DB, id repute.AgentID) error {
	snapshot, err := identity.OpenFi(ctx, db, id, repute.At{Finality: repute.Latest})
	if errors.Is(err, repute.ErrNotFound) {
		return nil // not registered, as far as is indexed
	}
	if err != nil {
		return fmt.Errorf("identity checks of agent %s: %w", id, err)
	}
	v.Agent.ID = id.String()
	v.Pin.Agent = id.String()
	v.addSnapshot(&snapshot)
	if err := v.Proof.Look(ctx, db, id); err != nil {
		return err
	}
	v.Agent.Unproven = v.Proof.Fault()
	score, _, err := query.ScoreOf(ctx, db, id, repute.At{Finality: repute.Finalized})
	if errors.Is(err, repute.ErrNotFound) {
		v.Agent.Low, v.Agent.High, v.Agent.Verified = points(score.Low), points(score.High), score.Verified
		return nil // no rating up to the last epoch
	}
	if errors.Is(err, repute.ErrInvalid) { // no block of the chain is final
		v.Agent.WhyUnrated = fmt.Sprintf("no block of chain %d is known to be final yet, and only final scores count",
			id.ChainID)
		return nil
	}
	if err != nil {
		return fmt.Errorf("score of agent %s: %w", id, err)
	}
	return v.addScore(&score)
}

// addSnapshot adds identity and validations from OpenFi's summary of the agent.
func (v *Decision) addSnapshot(s *identity.OpenFiSnapshot) {
	v.OpenFi = journal.JSON(s)
	v.Agent.IdentityExists, v.Agent.RegistrationResolves, v.Agent.AgentJSONResolves, v.Agent.OperatorMatches =
		s.IdentityExists, s.RegistrationResolves, s.AgentJSONResolves, s.OperatorMatches
	v.Agent.Validation = string(s.ValidationStatus)
	v.Agent.Trust01 = math.Round(float64(s.Overall)/float64(fixed.One)*1e6) / 1e6 // as precise as the stored snapshot
}

// addScore adds a stored score and pins the inputs that it was computed from, so that it can be
// replayed.
func (v *Decision) addScore(s *repute.Score) error {
	v.Pin = Pin{Agent: v.Pin.Agent, Block: s.Block.Number, BlockHash: s.Block.Hash, Epoch: s.Epoch, Scorer: s.Scorer,
		Params: s.Params,
		Tags:   s.Tags, Roots: s.Roots, Links: s.Links, Evidence: s.Evidence, Result: replay.HashInput(s.Result),
		Sources: orNil(s.Sources), Credentials: orNil(s.Credentials),
		FileScales: orNil(s.FileScales), VerifiedTo: s.VerifiedTo}
	var r struct {
		Gates []trust.GateView `json:"gates"`
	}
	if err := json.Unmarshal(s.Result, &r); err != nil {
		return fmt.Errorf("stored score: %w", err)
	}
	a := &v.Agent
	a.Status, a.Score, a.Low, a.High = string(s.Status), points(s.Score), points(s.Low), points(s.High)
	a.Verified = s.Verified
	a.Confidence, a.Tier, a.Gates = float64(s.Confidence)/1e6, int64(s.Tier), map[string]bool{}
	v.Gates = r.Gates
	for _, g := range r.Gates {
		a.Gates[g.ID] = g.Passed
	}
	return nil
}

// orNil returns nil for the zero value, so that JSON leaves it out.
func orNil[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// hashOf is the opposite of orNil.
func hashOf(h *common.Hash) common.Hash {
	if h == nil {
		return common.Hash{}
	}
	return *h
}

// points converts thousandths of a point into points.
func points(p repute.Points) float64 { return float64(p) / 1000 }

// Verify computes a decision again: the score by replay of the stored evidence, the policy's view
// of the agent from that and the pinned identity checks, and the decision from the stored policy.
// The error says what differs or what was pruned. The identity checks are used as pinned, because
// files on the network change.
func Verify(ctx context.Context, db *store.DB, replay *explain.Reader, v Decision) error {
	again := Decision{Agent: unknownAgent(v.Agent.Slug), Pin: Pin{Agent: v.Pin.Agent}}
	again.Agent.ID = v.Pin.Agent
	if len(v.OpenFi) > 0 {
		var s identity.OpenFiSnapshot
		if err := json.Unmarshal(v.OpenFi, &s); err != nil {
			return repute.Conflict("the pinned identity checks cannot be read: %v", err)
		}
		again.addSnapshot(&s)
	}
	if v.Proof != nil && v.Pin.Agent != "" {
		again.Agent.Unproven = v.Proof.Fault()
	}
	// These values come from the run's parameters when the agent has no score, so that they cannot
	// be replayed.
	again.Agent.Low, again.Agent.High, again.Agent.WhyUnrated = v.Agent.Low, v.Agent.High, v.Agent.WhyUnrated
	again.Agent.Verified = v.Agent.Verified
	if v.Pin.Block != 0 {
		if err := again.remake(ctx, replay, v.Pin); err != nil {
			return err
		}
	}
	if string(journal.JSON(again.Agent)) != string(journal.JSON(v.Agent)) {
		return repute.Conflict("what the policy saw of agent %q does not follow from the pinned evidence", v.Agent.Slug)
	}
	text, err := scoredb.ReadInput(ctx, db, v.Policy)
	if err != nil {
		return fmt.Errorf("pinned policy: %w", err)
	}
	if sha256.Sum256(text) != v.Policy {
		return repute.Conflict("what is stored as the policy with sha256 %s has another sha256", v.Policy)
	}
	p, err := policy.Parse(text)
	if err != nil {
		return fmt.Errorf("pinned policy: %w", err)
	}
	if again := p.Gate(v.Task, v.Threshold, again.Agent); !sameDecision(again, v.Decision) {
		return repute.Conflict("the pinned policy decides %s now, not %s", again.Effect, v.Decision.Effect)
	}
	return nil
}

// remake adds the pinned score, made again.
func (v *Decision) remake(ctx context.Context, replay *explain.Reader, pin Pin) error {
	ref, err := repute.ParseAgentRef(pin.Agent)
	if err != nil || ref.Registry == nil {
		return fmt.Errorf("pinned agent %q: %w", pin.Agent, repute.ErrInvalid)
	}
	id := repute.AgentID{ChainID: ref.ChainID, Registry: *ref.Registry, TokenID: ref.TokenID}
	score, err := replay.ReplayPinned(ctx, query.ScorePin{Agent: id, Block: pin.Block, Params: pin.Params,
		Tags:  pin.Tags,
		Roots: pin.Roots, Links: pin.Links, Evidence: pin.Evidence, Outcome: pin.Result,
		Sources: hashOf(pin.Sources), Credentials: hashOf(pin.Credentials),
		FileScales: hashOf(pin.FileScales), VerifiedTo: pin.VerifiedTo})
	if errors.Is(err, repute.ErrNotFound) { // find out why the pinned score cannot be replayed
		score, err = replay.Replay(ctx, id, pin.Block)
	}
	if err != nil {
		return fmt.Errorf("replay of the pinned score: %w", err)
	}
	if err := v.addScore(&score); err != nil {
		return err
	}
	if !v.Pin.equal(pin) {
		return repute.Conflict("the replayed score of agent %s at block %d is another than the pinned one", pin.Agent,
			pin.Block)
	}
	return nil
}

// Same reports whether two decisions about one task have the same evidence, policy and result.
func (v *Decision) Same(w *Decision) bool {
	return v.Pin.equal(w.Pin) && string(journal.JSON(v.Proof)) == string(journal.JSON(w.Proof)) &&
		v.Policy == w.Policy &&
		sameDecision(v.Decision, w.Decision) && string(journal.JSON(v.Agent)) == string(journal.JSON(w.Agent))
}

// Subject returns the subject of the approval that a later decision needs. It is the subject of the
// earlier approval if no reason is new, even if the evidence changed.
func (v *Decision) Subject(later *Decision) string {
	var ids []string
	for _, r := range later.Decision.Reasons {
		if !slices.ContainsFunc(v.Decision.Reasons, func(known policy.Reason) bool {
			return known.ID == r.ID &&
				known.Effect == r.Effect
		}) {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return "trust"
	}
	return "trust before execute: " + strings.Join(ids, ", ")
}

// sameDecision compares effects and reasons without the texts of the reasons, which may change
// between versions.
func sameDecision(a, b policy.Decision) bool {
	return string(journal.JSON(wordless(a))) == string(journal.JSON(wordless(b)))
}

// wordless returns a decision without the texts of its reasons: texts may improve between
// versions, and a replay compares everything else.
func wordless(d policy.Decision) policy.Decision {
	d.Reasons = slices.Clone(d.Reasons)
	for i := range d.Reasons {
		d.Reasons[i].Text = ""
	}
	return d
}

// Stored returns the decision in the form in which decisions are stored.
func (v *Decision) Stored(p repute.Phase, kind repute.DecisionKind, subject string) rundb.Decision {
	return rundb.Decision{Phase: p, Kind: kind, Subject: subject, Effect: string(v.Decision.Effect),
		Reasons: journal.JSON(v.Decision.Reasons), Policy: v.Policy, Input: journal.JSON(v)}
}
