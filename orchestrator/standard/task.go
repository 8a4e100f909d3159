package standard

import (
	"encoding/json"
	"time"

	"repute/orchestrator/quote"
	"repute/orchestrator/transaction"
)

// Task is what a module is asked to do.
type Task struct {
	ID    string          `json:"id"`
	Goal  string          `json:"goal"`
	Input json.RawMessage `json:"input,omitempty"`
	Tags  []string        `json:"tags,omitempty"`
	// ValueAtRisk is in wei, decimal.
	ValueAtRisk string    `json:"valueAtRisk"`
	Created     time.Time `json:"createdAt"`
}

// Plan is a coordinator's way to do a task.
type Plan struct {
	Steps []Step `json:"steps"`
	// OnDemand are agents that a step of the coordinator's own may delegate to (Context.Delegate). Policies
	// see them among the agents of the plan.
	OnDemand []string `json:"onDemand,omitempty"`
	// Identities are the onchain identities that agents of the plan MUST have, by slug, in a form of
	// repute.ParseAgentRef: a chain or a registry that one leaves open may be any.
	Identities map[string]string `json:"identities,omitempty"`
}

// Step is one part of a plan.
type Step struct {
	ID          string          `json:"stepId"`
	Description string          `json:"description"`
	Agent       string          `json:"agentSlug"`
	DependsOn   []string        `json:"dependsOn"`
	Input       json.RawMessage `json:"input,omitempty"`
}

// DryRun is what an agent says Execute would do.
type DryRun struct {
	Warnings     []string `json:"warnings"`
	EstimatedGas uint64   `json:"estimatedGas"`
	// Calls are the transactions that Execute would send. The runtime simulates each, and
	// Execute can send no others: each with the bytes that are shown here, but for its
	// placeholders.
	Calls []transaction.Tx `json:"calls"`
	// Payments are the requests that Execute would pay for by x402. The runtime asks what each would cost and which
	// account it would pay; Execute is not bound to them.
	Payments []quote.Planned `json:"payments,omitempty"`
	// Violations are what the agent itself found against a policy. Any of them ends the run.
	Violations []string `json:"violations"`
}

// StepResult is what came of a step.
type StepResult struct {
	StepID string          `json:"stepId"`
	Status string          `json:"status"` // completed, failed or skipped
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Execution is what an agent says it did.
type Execution struct {
	Success    bool         `json:"success"`
	Steps      []StepResult `json:"steps"`
	ReceiptIDs []string     `json:"receiptIds"`
	Started    time.Time    `json:"startedAt"`
	Ended      time.Time    `json:"endedAt"`
}

// Check is one thing that was verified.
type Check struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Details string `json:"details,omitempty"`
}

// Verification is what came of checking an execution.
type Verification struct {
	Checks []Check `json:"checks"`
	Score  float64 `json:"score"` // 0 to 1
}

// Summary is what happened, for people.
type Summary struct {
	Text       string   `json:"text"`
	KeyActions []string `json:"keyActions"`
	Receipts   []string `json:"receipts"`
	Warnings   []string `json:"warnings"`
}
