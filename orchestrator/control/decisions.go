package control

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/orchestrator/audit"
	"repute/orchestrator/control/rest"
	"repute/store/rundb"
	"repute/trust/statement"
)

// DecisionsHead is the newest link of a task's chain of decisions.
type DecisionsHead struct {
	TaskID string      `json:"taskId"`
	Root   string      `json:"rootRunId"`
	Count  int64       `json:"decisions" doc:"how many there are"`
	Hash   common.Hash `json:"head" doc:"hash of the last one, zeros where there is none"`
	// Signer and Signature are absent if the head is not signed.
	Signer    *common.Address `json:"signer,omitempty" doc:"address of the statement key that signed"`
	Signature hexutil.Bytes   `json:"signature,omitempty" doc:"65 bytes, EIP-712: docs/reference/orchestrator.md, Decisions"`
}

// headOnWire converts the head of a chain of decisions into the form of the API.
func headOnWire(h *repute.SealedHead) DecisionsHead {
	out := DecisionsHead{TaskID: h.Task, Root: h.Root, Count: h.Count, Hash: h.Hash, Signature: h.Signature}
	if len(h.Signature) > 0 {
		out.Signer = &h.Signer
	}
	return out
}

// decisionOnWire converts a stored decision into the form of the API.
func decisionOnWire(d *repute.RunDecision) (PolicyDecision, error) {
	reasons, err := reasonsOf(d.Reasons)
	return PolicyDecision{Number: d.Number, Phase: d.Phase.String(), Kind: d.Kind, Subject: d.Subject,
		Attempt: d.Attempt, Effect: d.Effect, Reasons: reasons,
		Policy: d.Policy, At: d.At, Previous: d.Previous, Hash: d.Hash}, err
}

// LinkedDecision is a link of the chain, with all fields that its hash covers.
type LinkedDecision struct {
	Number   int64       `json:"number"`
	RunID    string      `json:"runId"`
	Previous common.Hash `json:"previous"`
	Hash     common.Hash `json:"hash" doc:"sha256 of record's bytes"`
	Record   string      `json:"record" doc:"the whole decision as JSON, byte for byte what the hash is of"`
}

// PolicyText is the text of a policy that made decisions.
type PolicyText struct {
	Hash common.Hash `json:"sha256"`
	Text string      `json:"text" doc:"byte for byte what the hash is of"`
}

// DecisionList is a page of the chain of decisions about a task.
type DecisionList struct {
	DecisionsHead
	List     []LinkedDecision `json:"chain" doc:"of all runs of the task, in order"`
	Policies []PolicyText     `json:"policies" doc:"those that the page names"`
	// Faults are empty where each decision of the page follows from the one before.
	Faults []audit.DecisionFault `json:"faults" doc:"decisions of the page that do not follow from the one before or from their content; on the last page also a head of another chain"`
	Next   string                `json:"nextCursor,omitempty"`
}

// listDecisions serves GET /v1/runs/{id}/decisions: the linked decisions of a run, with the
// policies that made them.
func (c *Control) listDecisions(ctx context.Context, in *runPageInput) (*rest.Answer[DecisionList], error) {
	size, after, err := in.page()
	if err != nil {
		return nil, err
	}
	if err := rest.Known("run", in.ID); err != nil {
		return nil, err
	}
	page, err := rundb.ReadDecisionPage(ctx, c.db, in.ID, after, size+1)
	if err != nil {
		return nil, err
	}
	out := DecisionList{DecisionsHead: headOnWire(&page.Head), List: []LinkedDecision{}, Policies: []PolicyText{}}
	list := page.List
	if len(list) > size {
		list = list[:size]
		out.Next = strconv.FormatInt(list[size-1].Number, 10)
	}
	out.Faults = rest.OrEmpty(audit.CheckLinks(&page.Head, page.Before, list, out.Next != ""))
	for i := range list {
		d := &list[i]
		record, err := d.Record()
		if err != nil {
			return nil, err
		}
		out.List = append(out.List, LinkedDecision{d.Number, d.Run, d.Previous, d.Hash, string(record)})
		if body, stored := page.Policies[d.Policy]; stored {
			out.Policies = append(out.Policies, PolicyText{d.Policy, string(body)})
			delete(page.Policies, d.Policy)
		}
	}
	return rest.Say(&out), nil
}

// GateCheck is the result of checking the decisions about a run's task: whether they are the stored
// ones, and whether the trust decisions follow from the stored evidence.
type GateCheck struct {
	RunID    string        `json:"runId"`
	Verified bool          `json:"verified" doc:"no fault, and every decision of the page is verified"`
	Head     DecisionsHead `json:"decisionsHead"`
	Signed   bool          `json:"signed" doc:"the head is signed with a key of this service"`
	// Note is empty where the head is signed.
	Note      string                `json:"note,omitempty" doc:"what the answer cannot tell because the head is not signed"`
	Faults    []audit.DecisionFault `json:"faults" doc:"which decisions are not as they were stored, and why"`
	Decisions []Checked             `json:"decisions" doc:"a page of the trust decisions of all runs of the task, in order, each made again"`
	// Next is empty on the last page.
	Next string `json:"nextCursor,omitempty" doc:"trust decisions follow that this answer did not make again: ask for them with cursor"`
}

// Checked is one trust decision that was computed again.
type Checked struct {
	Number   int64               `json:"number" doc:"of the decision"`
	RunID    string              `json:"runId"`
	Kind     repute.DecisionKind `json:"kind" enum:"trust,value,standing"`
	Phase    string              `json:"phase" enum:"trust,execute"`
	Attempt  int                 `json:"attempt"`
	Verified bool                `json:"verified"`
	Differs  string              `json:"differs,omitempty"`
	Decision *GateDecision       `json:"decision"`
}

// verifyGate serves GET /v1/runs/{id}/gate:verify: stored trust decisions are computed again from
// their evidence.
func (c *Control) verifyGate(ctx context.Context, in *runPageInput) (*rest.Answer[GateCheck], error) {
	size, after, err := in.page()
	if err != nil {
		return nil, err
	}
	check, err := c.VerifyGate(ctx, in.ID, after, size)
	return rest.Say(&check), err
}

// VerifyGate checks all decisions about a run's task, and computes up to most of its trust
// decisions again, starting after the decision with number after. It returns repute.ErrNotFound if
// there is no such run or it has no decisions yet.
func (c *Control) VerifyGate(ctx context.Context, id string, after int64, most int) (out GateCheck, err error) {
	if err := rest.Known("run", id); err != nil {
		return out, err
	}
	if c.o.Replay == nil {
		return out, repute.Missing("replay of scores")
	}
	t, err := rundb.ReadDecidedTask(ctx, c.db, id)
	if err != nil {
		return out, err
	}
	out = GateCheck{RunID: id, Head: headOnWire(&t.Head), Faults: audit.CheckDecisions(&t), Decisions: []Checked{}}
	if len(t.Decisions) == 0 && t.Head.Count == 0 && len(out.Faults) == 0 {
		return out, &repute.MissingError{What: "trust decision of run " + id, Why: "is not there",
			Hint: "the run did not get to phase trust"}
	}
	var fault string
	if out.Signed, out.Note, fault = c.signed(&t, time.Now()); fault != "" {
		out.Faults = append(out.Faults, audit.DecisionFault{Run: t.Head.Root, Why: fault})
	}
	out.Faults = rest.OrEmpty(out.Faults)
	out.Verified = len(out.Faults) == 0
	return out, c.replay(ctx, &out, t.Decisions, after, most)
}

// replay adds a page of the decisions, each made again. The page ends before the next trust decision and not after
// the last one, so that decisions of other kinds at the end make no empty page.
func (c *Control) replay(ctx context.Context, out *GateCheck, list []repute.RunDecision, after int64, most int) error {
	for i := range list {
		d := &list[i]
		if d.Number <= after {
			continue
		}
		if n := len(out.Decisions); n == most && d.Kind.OfGate() {
			out.Next = strconv.FormatInt(out.Decisions[n-1].Number, 10)
			return nil
		}
		v, gate, err := c.again(ctx, d)
		if err != nil {
			return err
		}
		if gate {
			out.Verified = out.Verified && v.Verified
			out.Decisions = append(out.Decisions, v)
		}
	}
	return nil
}

// again computes a trust decision again; gate is false for a decision of another kind.
func (c *Control) again(ctx context.Context, d *repute.RunDecision) (out Checked, gate bool, err error) {
	v, gate, err := audit.GateDecisionOf(d)
	if !gate {
		return out, false, nil
	}
	out = Checked{Number: d.Number, RunID: d.Run, Kind: d.Kind, Phase: d.Phase.String(), Attempt: d.Attempt,
		Decision: gateDecisionOnWire(v)}
	if err != nil {
		out.Differs = err.Error()
		return out, true, nil
	}
	out.Verified, out.Differs, err = c.verify(ctx, v)
	return out, true, err
}

// signed reports whether one of the service's keys signed the head of a task's decisions. If none did, note
// explains the consequence, and fault is the error if a signature was required. The head is as old as its last
// decision, which says which of the keys was in use then.
func (c *Control) signed(t *rundb.DecidedTask, now time.Time) (signed bool, note, fault string) {
	at := now
	if n := len(t.Decisions); n > 0 {
		at = t.Decisions[n-1].At
	}
	inUse := slices.ContainsFunc(c.o.Keys, func(k statement.Key) bool { return !now.Before(k.From) })
	unsigned := "the chain is not signed: whoever can write the database can rewrite all of it"
	if len(t.Head.Signature) == 0 {
		if inUse {
			return false, unsigned,
				"the head is not signed although a key is configured: it is from before the key, a process without the key stored the last decision, or the signature was removed"
		}
		return false, unsigned, ""
	}
	switch err := statement.VerifyHead(t.Head, at, now, c.o.Keys); {
	case err == nil:
		return true, "", ""
	case len(c.o.Keys) == 0 && errors.Is(err, statement.ErrSigner):
		return false, "the head is signed by " + t.Head.Signer.Hex() +
			", and no key is configured to compare it with", ""
	default:
		return false, unsigned, "signature of the head: " + err.Error()
	}
}
