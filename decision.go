package repute

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// DecisionKind is the kind of a decision about a run.
type DecisionKind string

// Kinds of decisions.
const (
	DecisionTrust    DecisionKind = "trust"    // of the trust gate, in phase trust and again before execute
	DecisionPolicy   DecisionKind = "policy"   // of limits and rules, before the work
	DecisionCall     DecisionKind = "call"     // of the rules about one transaction
	DecisionValue    DecisionKind = "value"    // of the trust gate, for all that a task moves
	DecisionStanding DecisionKind = "standing" // of the trust gate, between execute and a signature
	DecisionRefused  DecisionKind = "refused"  // a rule of the runtime or a limit refused a transaction
	DecisionApproval DecisionKind = "approval" // a person's answer
)

// OfGate reports whether decisions of the kind are verdicts of the trust gate.
func (k DecisionKind) OfGate() bool {
	return k == DecisionTrust || k == DecisionValue || k == DecisionStanding
}

// RunDecision is one link of the chain of decisions about a task. All runs of the task
// share one chain, in the order in which the decisions were stored.
type RunDecision struct {
	Task, Root, Run string
	Number          int64 // from 1 on, without gaps
	Attempt         int   // of the run
	Phase           Phase // in which it was decided
	Kind            DecisionKind
	// Subject names the question, e.g. trust, policy, or the key of a call.
	Subject string
	Effect  string // allow, deny or require_approval
	Reasons json.RawMessage
	Policy  common.Hash // sha256 of the policy's bytes
	// Input is the complete basis of the decision: the trust decision with its evidence, the
	// policy's view of a transaction, or the person who answered.
	Input json.RawMessage
	At    time.Time
	// Previous is the Hash of the decision before, zero for the first one.
	Previous common.Hash
	Hash     common.Hash // the stored hash; it MUST equal Sum
}

// decisionRecord is the canonical form of a decision: its fields in this order.
type decisionRecord struct {
	Record   string          `json:"record"`
	Task     string          `json:"taskId"`
	Root     string          `json:"rootRunId"`
	Run      string          `json:"runId"`
	Number   int64           `json:"number"`
	Attempt  int             `json:"attempt"`
	Phase    string          `json:"phase"`
	Kind     DecisionKind    `json:"kind"`
	Subject  string          `json:"subject"`
	Effect   string          `json:"effect"`
	Reasons  json.RawMessage `json:"reasons"`
	Policy   common.Hash     `json:"policy"`
	Input    json.RawMessage `json:"input"`
	At       string          `json:"at"`
	Previous common.Hash     `json:"previous"`
}

// Record returns the canonical form of a decision: JSON without spaces. It fails if Reasons or
// Input are no JSON.
func (d *RunDecision) Record() ([]byte, error) {
	return json.Marshal(decisionRecord{"repute decision/1", d.Task, d.Root, d.Run, d.Number, d.Attempt,
		d.Phase.String(),
		d.Kind, d.Subject, d.Effect,
		d.Reasons, d.Policy, d.Input, d.At.UTC().Format(time.RFC3339Nano), d.Previous})
}

// Sum returns the sha256 of the Record, which Hash must equal.
func (d *RunDecision) Sum() (common.Hash, error) {
	record, err := d.Record()
	return sha256.Sum256(record), err
}

// DecisionsHead is the newest link of a task's chain of decisions. It is what gets signed.
type DecisionsHead struct {
	Task, Root string
	Count      int64
	Hash       common.Hash // hash of the last decision, zero for none
}

// SealedHead is a DecisionsHead with its signature, if there is one.
type SealedHead struct {
	DecisionsHead
	Signer    common.Address // the claimed signer
	Signature []byte         // r, s, v; empty: the chain is not signed
}
