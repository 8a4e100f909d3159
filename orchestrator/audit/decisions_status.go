package audit

import (
	"fmt"

	"repute"
	"repute/policy"
)

// status compares the status of a phase with the decision that its result holds, which is
// nil where it holds none, and with its error.
func (c *checker) status(key phaseKey, p *repute.RunPhase, d *repute.RunDecision) {
	if failed := p.Status == repute.PhaseFailed; failed != (p.Error != "") {
		c.runFault(key.run, "phase %s, attempt %d, is %s, and its error says otherwise", key.phase, key.attempt,
			p.Status)
		return
	}
	if p.Status == repute.PhaseWaiting && c.passed(key) {
		c.runFault(key.run, "phase %s, attempt %d, is waiting, and a later phase was done", key.phase, key.attempt)
		return
	}
	if key.phase != repute.PhaseTrust && key.phase != repute.PhasePolicy && key.phase != repute.PhaseExecute {
		return
	}
	if want := c.follows(p.Status, d); want != "" {
		c.runFault(key.run, "phase %s, attempt %d, is %s, and %s", key.phase, key.attempt, p.Status, want)
	}
}

// follows says why a status does not follow from a decision, and is empty where it does.
//
// Each case is a pair that cannot come about by the engine's own rules. A status that fits several decisions passes:
// the check finds rows that were changed by hand, and proves no decision right.
func (c *checker) follows(s repute.PhaseStatus, d *repute.RunDecision) string {
	if d == nil {
		return map[bool]string{true: "no decision rejected it"}[s == repute.PhaseRejected]
	}
	answered, approved := c.answer(d)
	switch {
	case d.Effect == string(policy.Deny) && s != repute.PhaseRejected:
		return fmt.Sprintf("decision %d denied it", d.Number)
	case d.Effect == string(policy.RequireApproval) && !answered && s != repute.PhaseWaiting:
		return fmt.Sprintf("decision %d left it to a person, who has not answered", d.Number)
	case d.Effect == string(policy.RequireApproval) && answered && !approved && s != repute.PhaseRejected &&
		s != repute.PhaseWaiting:
		return fmt.Sprintf("a person denied what decision %d asked for", d.Number)
	case s == repute.PhaseRejected && (d.Effect == string(policy.Allow) || approved):
		return fmt.Sprintf("decision %d does not reject it", d.Number)
	case d.Phase != repute.PhaseExecute && (s == repute.PhaseFailed || s == repute.PhaseWaiting &&
		d.Effect == string(policy.Allow)):
		return fmt.Sprintf("decision %d let it pass", d.Number)
	}
	return ""
}

// answer reports whether a person answered what a decision asked for, and approved of it.
func (c *checker) answer(d *repute.RunDecision) (answered, approved bool) {
	for _, a := range c.t.Approvals[d.Run] {
		if a.Attempt == d.Attempt && a.Subject == d.Subject {
			return true, a.Approved
		}
	}
	return false, false
}

// passed reports whether a later phase of the attempt has a record.
// Phases are compared by their numbers, which are in the order of a run.
func (c *checker) passed(key phaseKey) bool {
	for _, p := range c.t.Phases[key.run] {
		if p.Attempt == key.attempt && p.Phase > key.phase {
			return true
		}
	}
	return false
}

// runs compares the status of each run with the phases of its current attempt.
//
// Only the current attempt counts, as a retry begins with new phases. Record is the last phase, and its record is
// what ends a run.
func (c *checker) runs() {
	for id, r := range c.t.Runs {
		recorded, bad := false, false
		for _, p := range c.t.Phases[id] {
			if p.Attempt == r.Attempt {
				recorded = recorded || p.Phase == repute.PhaseRecord
				bad = bad || p.Phase != repute.PhaseRecord &&
					(p.Status == repute.PhaseFailed || p.Status == repute.PhaseRejected)
			}
		}
		switch completed := r.Status == repute.RunCompleted; {
		case recorded && !r.Status.Ended(), completed && !recorded:
			c.runFault(id, "its status is %s, and its phases say otherwise", r.Status)
		case recorded && completed && bad:
			c.runFault(id, "its status is completed, and one of its phases was not")
		case recorded && !completed && !bad:
			c.runFault(id, "its status is %s, and none of its phases failed or was rejected", r.Status)
		// a retry forgets the cancellation
		case r.Status == repute.RunCancelled && !r.Dropped && c.t.Runs[c.t.Head.Root].Cancel == "":
			c.runFault(id, "its status is cancelled, and nobody cancelled the task")
		}
	}
}

// runFault adds a fault that is of no single decision.
func (c *checker) runFault(run, format string, args ...any) {
	c.faults = append(c.faults, DecisionFault{Run: run, Why: fmt.Sprintf(format, args...)})
}
