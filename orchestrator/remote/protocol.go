// Package remote makes agents in any language modules of the orchestrator. An agent is an HTTP server with one
// route per method of a module; docs/reference/agents.md and its OpenAPI document describe them.
//
// An agent reaches nothing through the runtime by itself: where a method needs a tool, a chain or a transaction it
// answers with the calls that it wants, the runtime makes them within budget and policy, and asks again with their
// outcomes. So an agent needs no state, and one that is asked again after a crash gets the outcomes that the
// journal has.
//
// Open asks an agent who it is, when it is registered. Stored makes the module of a registered agent without asking
// it, with the manifest as it was accepted. Both give an orchestrator.Module, which is an orchestrator.DryRunner
// too where the agent has a dry run.
//
// The answer of an agent is untrusted. An answer has at most 1 MiB, a method wants at most 16 calls at once and calls
// at most 32 times, and the outcomes of a method have at most 8 MiB, since each question carries them all. What a rule
// refuses is an outcome, from which the agent may go on. What ends the run (an approval that is awaited, a budget that
// is used up, a transaction or payment whose end is open) is never told to the agent: it would look like something that
// was not done.
package remote

import (
	_ "embed"
	"encoding/json"

	"repute/orchestrator/outbound"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// Protocol names the version that both sides speak.
const Protocol = "repute-agent/1"

//go:embed openapi.json
var openAPI string

// OpenAPI is the protocol's OpenAPI 3.1 document, as JSON.
func OpenAPI() []byte { return []byte(openAPI) }

// Methods of an agent, each at POST {url}/{method}; GET {url}/info answers Info.
const (
	methodInfo      = "info"
	methodCanHandle = "can-handle"
	methodPlan      = "plan"
	methodDryRun    = "dry-run"
	methodExecute   = "execute"
	methodVerify    = "verify"
	methodSummarize = "summarize"
)

// Info is what an agent says of itself.
type Info struct {
	Protocol     string            `json:"protocol"`
	Slug         string            `json:"slug"`
	DisplayName  string            `json:"displayName"`
	Version      string            `json:"version"`
	IdentityMode string            `json:"identityMode"`
	DryRun       bool              `json:"dryRun"` // it answers dry-run; without it the agent cannot send
	Manifest     standard.Manifest `json:"manifest"`
}

// Question is the body of every POST. What a method does not need is missing.
type Question struct {
	Protocol    string `json:"protocol"`
	RunID       string `json:"runId,omitempty"`
	TaskID      string `json:"taskId"`
	ParentRunID string `json:"parentRunId,omitempty"`
	// OperatorWallet is that of the agent's manifest, Services what orchestrator.Context says.
	OperatorWallet string                     `json:"operatorWallet,omitempty"`
	Services       map[string]any             `json:"services,omitempty"`
	Budget         *policy.Budget             `json:"budget,omitempty"`
	Threshold      *policy.Threshold          `json:"threshold,omitempty"`
	Task           standard.Task              `json:"task"`
	Plan           *standard.Plan             `json:"plan,omitempty"`
	Step           *standard.Step             `json:"step,omitempty"`   // execute: the step to do
	Inputs         map[string]json.RawMessage `json:"inputs,omitempty"` // results of the steps before, by id
	Execution      *standard.Execution        `json:"execution,omitempty"`
	Verification   *standard.Verification     `json:"verification,omitempty"`
	// Outcomes are those of all calls asked for so far, in order.
	Outcomes []Outcome `json:"outcomes"`
}

// Answer is either calls that must be made before the agent can go on, or its result, or
// why there is none.
type Answer struct {
	Calls  []Call          `json:"calls,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Reason says, beside the result false of can-handle, why the agent does not take the task.
	Reason string `json:"reason,omitempty"`
}

// Call is something that an agent wants the runtime to do. Kind says which field counts:
// tool, http, pay, intent, read, simulate or send.
type Call struct {
	Kind  string                `json:"kind"`
	Tool  string                `json:"tool,omitempty"`
	Input json.RawMessage       `json:"input,omitempty"` // of a tool
	HTTP  *outbound.HTTPRequest `json:"http,omitempty"`
	Pay   *outbound.PaidRequest `json:"pay,omitempty"` // a request that is paid for where the server demands it
	// Intent is an intent of a domain's agent.json that is acted on.
	Intent *outbound.IntentRequest `json:"intent,omitempty"`
	Read   *Read                   `json:"read,omitempty"`
	Tx     *transaction.Tx         `json:"tx,omitempty"` // to simulate or send
}

// Read is a call of a view function.
type Read struct {
	ChainID uint64 `json:"chainId"`
	To      string `json:"to"`   // address
	Data    string `json:"data"` // 0x and hex
}

// Outcome is what came of a call: a result or an error.
type Outcome struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// ReceiptID names the receipt of the call, for receiptIds and summaries; a transaction that
	// is refused has one too. Empty where nothing of the call is recorded.
	ReceiptID string `json:"receiptId,omitempty"`
}
