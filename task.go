package repute

import (
	"encoding/json"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Task is requested work. It runs only as far as the trust in its coordinator allows.
type Task struct {
	ID          string
	Goal        string
	Input       json.RawMessage // any JSON for the coordinator, null when there is none
	Coordinator string          // slug of the agent that plans it
	// Terms are budget, threshold, value at risk and tags, as the orchestrator's JSON.
	Terms json.RawMessage
	// Key is the idempotency key; empty: none. By is the name of the caller.
	Key, By string
	Status  TaskStatus
	Run     string // the run of the whole task
	// Awaiting is AwaitingApproval while a person must decide, Error the reason of a failed run;
	// otherwise they are empty.
	Awaiting, Error string
	Created         time.Time
	Updated         time.Time
}

// TaskStatus is the status of a task (OpenFi agent standard, statuses).
type TaskStatus string

// Statuses of tasks.
const (
	TaskPending   TaskStatus = "pending"
	TaskAssigned  TaskStatus = "assigned"
	TaskRunning   TaskStatus = "running"
	TaskCompleted TaskStatus = "completed"
	TaskFailed    TaskStatus = "failed"
	TaskCancelled TaskStatus = "cancelled"
	TaskRejected  TaskStatus = "rejected" // trust, policy or dry run refused it
)

// RunStatus is the status of a run (OpenFi agent standard, statuses).
type RunStatus string

// Statuses of runs.
const (
	RunPending   RunStatus = "pending"
	RunPlanning  RunStatus = "planning" // before Execute
	RunRunning   RunStatus = "running"
	RunCompleted RunStatus = "completed"
	RunFailed    RunStatus = "failed"
	RunCancelled RunStatus = "cancelled"
)

// Ended reports whether the status is final unless the run is retried.
func (s RunStatus) Ended() bool {
	return s == RunCompleted || s == RunFailed || s == RunCancelled
}

// AwaitingApproval is the value of Awaiting while a run waits for a person.
const AwaitingApproval = "awaiting_approval"

// Phase is a part of a run (OpenFi agent standard, lifecycle).
type Phase int

// The nine phases in their order.
const (
	PhaseDiscover Phase = 1 + iota
	PhasePlan
	PhaseTrust
	PhasePolicy
	PhaseDryRun
	PhaseExecute
	PhaseVerify
	PhaseSummarize
	PhaseRecord
)

// Phases returns all phases in order.
func Phases() []Phase {
	return []Phase{PhaseDiscover, PhasePlan, PhaseTrust, PhasePolicy, PhaseDryRun, PhaseExecute, PhaseVerify,
		PhaseSummarize, PhaseRecord}
}

// String returns the phase's name, which stored checkpoints use.
func (p Phase) String() string {
	if p < PhaseDiscover || p > PhaseRecord {
		return "none"
	}
	return [...]string{"discover", "plan", "trust", "policy", "dry_run", "execute", "verify", "summarize",
		"record"}[p-1]
}

// ParsePhase returns the phase of a name, or false.
func ParsePhase(name string) (Phase, bool) {
	for _, p := range Phases() {
		if p.String() == name {
			return p, true
		}
	}
	return 0, false
}

// PhaseStatus is the outcome of a phase.
type PhaseStatus string

// Statuses of phases.
const (
	PhaseOK       PhaseStatus = "ok"
	PhaseFailed   PhaseStatus = "failed"
	PhaseRejected PhaseStatus = "rejected" // trust, policy or dry run refused
	PhaseWaiting  PhaseStatus = "waiting"  // for a person
)

// RunPhase is the record of a phase.
type RunPhase struct {
	Phase   Phase
	Attempt int
	Status  PhaseStatus
	Result  json.RawMessage // result of the phase
	Error   string          // why it failed, for people
	Started time.Time
	Ended   time.Time
}

// Limits bound a run and all runs below it together.
type Limits struct {
	Steps, ToolCalls, Writes int
	Runtime                  time.Duration
	GasWei                   string // decimal, empty: no limit
	// Tokens and Cost bound what models read and write, and what that costs; 0: no limit.
	Tokens int64
	Cost   Micros
}

// Used is the part of the limits that a run and the runs below it have used.
type Used struct {
	Steps, ToolCalls, Writes int
	Runtime                  time.Duration
	GasWei                   string // decimal
	Tokens                   int64  // of models
	Cost                     Micros // of models
}

// Run is one execution of a task by an agent, or of a step of it by another agent.
type Run struct {
	ID, Task string
	// Root is the run of the whole task, Parent the run of which this is a step, ParentStep that
	// step; the latter two are empty in a root run.
	Root, Parent, ParentStep string
	Agent                    string // slug
	Goal                     string
	Input                    json.RawMessage
	Status                   RunStatus
	Awaiting                 string // AwaitingApproval or empty
	// Attempt counts from 1. A retry of a failed phase increments it.
	Attempt int
	Phase   Phase // the last one that was recorded, 0 for none
	Limits  Limits
	Used    Used            // of root runs; zero otherwise
	Reasons json.RawMessage // why it was refused: a list of reasons
	Error   string
	Cancel  string // why it shall be cancelled, empty: it shall not
	Created time.Time
	Started time.Time // zero before
	Ended   time.Time // zero before
}

// CallKind is the kind of a call that a run made.
type CallKind string

// Kinds of calls and other entries of a run's receipts.
const (
	CallTool         CallKind = "tool"
	CallModel        CallKind = "model" // a turn of a language model
	CallHTTP         CallKind = "http"
	CallChain        CallKind = "chain_read"
	CallTransaction  CallKind = "transaction"
	CallPayment      CallKind = "payment" // a request that was paid for, if the server demanded it
	CallSubRun       CallKind = "sub_run"
	CallDryRun       CallKind = "dry_run"
	CallVerification CallKind = "verification"
	CallRefused      CallKind = "refused" // a transaction that a rule refused: nothing of it was sent
)

// Receipt is the runtime's record of a call of an agent. Agents cannot write receipts.
type Receipt struct {
	ID      int64
	Run     string
	Step    string // empty outside steps
	Key     string // identifies the call when the step runs again
	Kind    CallKind
	Ref     string // tool, URL, contract or transaction hash, run id
	Summary string
	Chain   uint64 // 0: none
	Domain  string // trust or execution, or a host name
	// Done is false for a call whose end was not recorded.
	Done    bool
	Error   string
	Request json.RawMessage
	Result  json.RawMessage
	Started time.Time
	Ended   time.Time
}

// RunEvent is something that happened in a task's runs. Numbers of a root run's events
// have no gaps and only grow.
type RunEvent struct {
	Number int64
	Run    string
	Kind   string
	Data   json.RawMessage
	Time   time.Time
}

// Module is an agent that the orchestrator can run.
type Module struct {
	Slug     string
	URL      string   // of a remote agent; empty: part of the binary
	Agent    *AgentID // its onchain identity; nil: none
	DryRun   bool     // implements a dry run
	Manifest json.RawMessage
	Proof    ModuleProof // proof that the program acts for Agent
	Added    time.Time
}

// ProofKind is the kind of proof that a program acts for an identity.
type ProofKind string

// Kinds of proofs.
const (
	ProofDomain    ProofKind = "domain"    // it is served at a domain that names the agent and is named by it
	ProofSignature ProofKind = "signature" // the agent's wallet or owner signed
	ProofKey       ProofKind = "key"       // the program has a key of the agent's wallet or owner: part of the binary
)

// ModuleProof is the proof that the program of a module acts for its identity, at registration. The
// zero value: none. Readers MUST check whether it still holds.
type ModuleProof struct {
	Kind   ProofKind
	Host   string         // of ProofDomain
	Signer common.Address // of ProofSignature and ProofKey
	At     time.Time
}
