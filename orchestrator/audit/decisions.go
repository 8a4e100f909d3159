package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/rundb"
)

// DecisionFault says what is wrong with one decision of a task, or with the end of its chain.
type DecisionFault struct {
	Number  int64               `json:"number" doc:"of the decision; 0: of no single one"`
	Run     string              `json:"runId"`
	Kind    repute.DecisionKind `json:"kind,omitempty"`
	Subject string              `json:"subject,omitempty"`
	Why     string              `json:"why"`
}

// CheckDecisions says what does not agree in all that was decided about a task: the hashes
// of the chain, the bodies of the policies, the results and statuses of phases and runs, the
// answers of people and the task's terms. It does not look at the signature, nor make trust decisions again.
//
// t MUST have been read in one snapshot of the database: a task that goes on meanwhile would show faults that are
// none. The faults of one check are in no order where they come from a map.
func CheckDecisions(t *rundb.DecidedTask) []DecisionFault {
	c := checker{t: t}
	c.chain()
	c.policies()
	c.phases()
	c.runs()
	c.approvals()
	return c.faults
}

// checker collects the faults of one task or of one page.
type checker struct {
	t      *rundb.DecidedTask
	faults []DecisionFault
}

// fault notes that a stored decision is not what its evidence gives.
func (c *checker) fault(d *repute.RunDecision, format string, args ...any) {
	c.faults = append(c.faults, DecisionFault{d.Number, d.Run, d.Kind, d.Subject, fmt.Sprintf(format, args...)})
}

// CheckLinks says which decisions of a page do not follow from their predecessor, nor from
// their own content. before is the decision before the page, nil for the first page; the last
// one is compared with the head when there is no later page.
func CheckLinks(head *repute.SealedHead, before *repute.RunDecision, page []repute.RunDecision,
	more bool) []DecisionFault {
	c := checker{t: &rundb.DecidedTask{Head: *head}}
	var last common.Hash
	var number int64
	if before != nil {
		last, number = before.Hash, before.Number
	}
	last, number = c.links(page, last, number)
	if !more {
		c.end(last, number)
	}
	return c.faults
}

// chain compares all decisions with their hashes and with each other, and the last one with
// the head.
func (c *checker) chain() {
	last, _ := c.links(c.t.Decisions, common.Hash{}, 0)
	c.end(last, int64(len(c.t.Decisions)))
}

// links compares each decision with its hash, its place and the one before. last and number
// are those of the decision before the list; those of the last one are returned.
//
// One fault is noted per decision beside that of its number: what follows from a wrong hash is not noted again. It
// goes on from the stored hash and number, so that one changed decision does not make all later ones faults.
func (c *checker) links(list []repute.RunDecision, last common.Hash, number int64) (common.Hash, int64) {
	head := &c.t.Head
	for i := range list {
		d := &list[i]
		if d.Number != number+1 {
			c.fault(d, "it comes after number %d: a decision was removed, added or moved", number)
		}
		sum, err := d.Sum()
		switch {
		case d.Root != head.Root || d.Task != head.Task:
			c.fault(d, "it is of run %s of task %s", d.Root, d.Task)
		case err != nil:
			c.fault(d, "it has no canonical form: %v", err)
		case sum != d.Hash:
			c.fault(d, "its hash is not that of its content")
		case d.Previous != last:
			c.fault(d, "it follows another decision than the one before")
		}
		last, number = d.Hash, d.Number
	}
	return last, number
}

// end compares the end of the chain with the head.
// A decision that was removed at the end leaves the links intact, and shows only here.
func (c *checker) end(last common.Hash, stored int64) {
	head := &c.t.Head
	if stored != head.Count {
		c.runFault(head.Root, "the run has %d decisions, and %d are stored", head.Count, stored)
	}
	if last != head.Hash {
		c.runFault(head.Root, "the head of the run is not the hash of its last decision")
	}
}

// policies compares the stored policies with the hashes that decisions name.
// The body is hashed again: a policy that was exchanged in the database keeps its key.
func (c *checker) policies() {
	for i := range c.t.Decisions {
		d := &c.t.Decisions[i]
		body, stored := c.t.Policies[d.Policy]
		switch {
		case !stored:
			c.fault(d, "the policy with sha256 %s is not stored", d.Policy)
		case sha256.Sum256(body) != d.Policy:
			c.fault(d, "what is stored as the policy with sha256 %s has another sha256", d.Policy)
		}
	}
}

// phaseKey names the record of a phase.
type phaseKey struct {
	run     string
	attempt int
	phase   repute.Phase
}

// phases compares the results of phases with the decisions that were stored with them, and
// those with the task's terms.
//
// The last decision of a phase is the one that its record holds: a phase that waited for a person is judged again in
// the same attempt.
func (c *checker) phases() {
	last := map[phaseKey]*repute.RunDecision{}
	for i := range c.t.Decisions {
		d := &c.t.Decisions[i]
		if d.Kind == repute.DecisionTrust || d.Kind == repute.DecisionPolicy {
			last[phaseKey{d.Run, d.Attempt, d.Phase}] = d
		}
		if d.Kind == repute.DecisionTrust {
			c.terms(d)
		}
	}
	recorded := map[phaseKey]bool{}
	for run, list := range c.t.Phases {
		for i := range list {
			key := phaseKey{run, list[i].Attempt, list[i].Phase}
			recorded[key] = true
			c.phase(key, &list[i], last)
		}
	}
	for key, d := range last {
		if !recorded[key] {
			c.fault(d, "the record of phase %s, attempt %d, is gone", key.phase, key.attempt)
		}
	}
}

// phase compares one phase's result and status. What a later attempt took over from an
// earlier one was decided in that one.
func (c *checker) phase(key phaseKey, p *repute.RunPhase, last map[phaseKey]*repute.RunDecision) {
	said, err := decidedIn(p)
	own := last[key]
	d := own
	for at := key; d == nil && at.attempt > 1; {
		at.attempt--
		d = last[at]
	}
	judged := key.phase == repute.PhaseTrust || key.phase == repute.PhasePolicy || key.phase == repute.PhaseExecute
	// A phase that waited for a person may fail before it is judged again, and Execute at any time.
	failed := p.Status == repute.PhaseFailed && (own == nil || own.Effect == string(policy.RequireApproval) ||
		key.phase == repute.PhaseExecute)
	switch {
	case err != nil:
		c.runFault(key.run, "the result of phase %s, attempt %d, cannot be read", key.phase, key.attempt)
	case !judged, said == nil && (failed || key.phase == repute.PhaseExecute && own == nil):
		c.status(key, p, nil)
	case d == nil:
		c.runFault(key.run, "the result of phase %s, attempt %d, follows from no decision", key.phase, key.attempt)
	case said == nil || !said.of(d):
		c.fault(d, "the result of phase %s, attempt %d, says something else", key.phase, key.attempt)
	default:
		c.status(key, p, d)
	}
}

// decided is what the result of a phase says of the decision in it.
type decided struct {
	gateDecision json.RawMessage // of trust checks
	policy       string          // of rules, with the next two
	effect       string
	reasons      json.RawMessage
	byPolicy     bool
}

// decidedIn is what a phase's result says was decided; nil for nothing.
// An absent result is nil and no error. Execute holds a trust decision only where trust was checked again in it.
func decidedIn(p *repute.RunPhase) (*decided, error) {
	var r struct {
		Policy   string
		Decision *struct {
			Effect  string
			Reasons json.RawMessage
		}
		Regate json.RawMessage
	}
	switch {
	case p.Phase != repute.PhaseTrust && p.Phase != repute.PhasePolicy && p.Phase != repute.PhaseExecute,
		string(p.Result) == "null":
		return nil, nil
	case p.Phase == repute.PhaseTrust:
		return &decided{gateDecision: p.Result}, nil
	}
	if err := json.Unmarshal(p.Result, &r); err != nil {
		return nil, err
	}
	switch {
	case p.Phase == repute.PhaseExecute && len(r.Regate) > 0:
		return &decided{gateDecision: r.Regate}, nil
	case p.Phase == repute.PhasePolicy && r.Decision != nil:
		return &decided{policy: r.Policy, effect: r.Decision.Effect, reasons: r.Decision.Reasons, byPolicy: true}, nil
	}
	return nil, nil
}

// of reports whether a decision says the same.
// The input of a trust decision is compared as a whole, since its reasons and effect are within it.
func (s *decided) of(d *repute.RunDecision) bool {
	if s.byPolicy {
		return s.policy == fmt.Sprintf("%x", d.Policy) && s.effect == d.Effect && sameJSON(s.reasons, d.Reasons)
	}
	return sameJSON(s.gateDecision, d.Input)
}

// sameJSON compares texts of JSON but for spaces.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// terms compares a trust decision with what the task asked for, and with the decision that was stored with it.
// An absent value at risk counts as 0, which is how the gate reads it.
func (c *checker) terms(d *repute.RunDecision) {
	var terms standard.Terms
	var v trustgate.Decision
	if json.Unmarshal(c.t.Terms, &terms) != nil || json.Unmarshal(d.Input, &v) != nil {
		c.fault(d, "the trust decision or the task's terms cannot be read")
		return
	}
	asked := terms.Threshold
	asked.RequireIdentity = v.Threshold.RequireIdentity // outside of development it is always asked for
	switch {
	case terms.Threshold.RequireIdentity && !v.Threshold.RequireIdentity,
		!sameJSON(journal.JSON(asked), journal.JSON(v.Threshold)):
		c.fault(d, "the task asks for another threshold than the trust decision was made for")
	case v.Task.ID != c.t.Head.Task || v.Task.Value != cmp.Or(terms.ValueAtRisk, "0"):
		c.fault(d, "the trust decision was made for another task or another value at risk")
	}
}

// approvals compares the answers of people with those in the chain.
//
// Answers that match are taken out of given, so that what is left has no decision in the chain. Of two decisions
// about one answer the second is a fault.
func (c *checker) approvals() {
	type key struct {
		run     string
		attempt int
		subject string
	}
	given := map[key]rundb.GivenApproval{}
	for run, list := range c.t.Approvals {
		for _, a := range list {
			given[key{run, a.Attempt, a.Subject}] = a
		}
	}
	for i := range c.t.Decisions {
		d := &c.t.Decisions[i]
		if d.Kind != repute.DecisionApproval {
			continue
		}
		var in rundb.AnswerInput
		k := key{d.Run, d.Attempt, d.Subject}
		a, known := given[k]
		err := json.Unmarshal(d.Input, &in)
		if delete(given, k); !known || err != nil || a.Approved != in.Approved || a.By != in.By ||
			a.Reason != in.Reason {
			c.fault(d, "the stored answer is gone or says something else")
		}
	}
	for k := range given {
		c.faults = append(c.faults,
			DecisionFault{Run: k.run, Subject: k.subject, Why: "an answer is stored that nobody gave"})
	}
}

// GateDecisionOf is the trust decision that a decision of the trust gate was made of; false for other
// kinds. The error is of one that cannot be read, or that says something else than the
// decision does.
// The error is a repute.ErrConflict.
func GateDecisionOf(d *repute.RunDecision) (v trustgate.Decision, gate bool, err error) {
	if !d.Kind.OfGate() {
		return v, false, nil
	}
	if err := json.Unmarshal(d.Input, &v); err != nil {
		return v, true, repute.Conflict("the trust decision cannot be read: %v", err)
	}
	var reasons []policy.Reason
	if json.Unmarshal(d.Reasons, &reasons) != nil || string(v.Decision.Effect) != d.Effect || v.Policy != d.Policy ||
		!sameJSON(journal.JSON(reasons), journal.JSON(v.Decision.Reasons)) {
		return v, true, repute.Conflict("the decision says something else than its trust decision")
	}
	return v, true, nil
}
