// Package work has the shapes of tasks, runs and treasuries in GraphQL. The orchestrator fills them in, and package
// graph shows them, so that neither knows the other: graph.Work and graph.Treasurer are the interfaces between them.
//
// Fields have the names of the fields of schema.graphql, which describes them; a comment here says only what that does
// not. Amounts in wei are whole numbers of any size, and amounts in dollars are decimals. Texts are those of callers,
// agents and models, and are hostile.
package work

import "repute/api/wire"

// Filter selects a page of tasks or of runs.
type Filter struct {
	// Status is their status; empty for all.
	Status string
	// Agent is the slug of the agent that plans the task or works on the run; empty for all.
	Agent string
	// Awaiting selects those about which a person must decide.
	Awaiting bool
	// First is the size of the page.
	First int
	// After is the cursor of the page before; empty for the newest ones.
	After string
}

// Page is a page of a list.
type Page[N any] struct {
	Nodes []N
	// Next is the cursor of the next page; empty at the end.
	Next string
}

// Task is a task that somebody gave.
type Task struct {
	ID, RunID                          wire.ID
	Goal, Coordinator, Status, AskedBy string
	Awaiting                           bool
	Error                              *string
	ValueAtRisk                        *wire.BigInt
	Tags                               []string
	Created, Updated                   wire.Time
}

// RunLine is a run in a list.
type RunLine struct {
	ID, TaskID, RootID  wire.ID
	Parent              *wire.ID
	Step                *string
	Agent, Goal, Status string
	Awaiting            bool
	Attempt             int32
	// Phase is the last phase that was recorded; nil before the first.
	Phase          *string
	Error          *string
	Created        wire.Time
	Started, Ended *wire.Time
}

// AgentRun is a run of an agent with its newest call, payments, trust decision and verification score.
type AgentRun struct {
	RunLine
	// LastCall is the newest call; nil before the first.
	LastCall *Receipt
	// PaidUsd is the x402 payments that the run signed, in US dollars.
	PaidUsd wire.Decimal
	// Trust is the effect of the newest decision of the trust gate in the current attempt; nil before the first.
	Trust *string
	// Verified is the agent's score of its own work in the current attempt, from 0 to 1; nil before.
	Verified *float64
}

// Run is a run with what is stored about it.
type Run struct {
	RunLine
	Limits Amounts
	// Used is what the run and all runs below it used; nil for a run that another one started.
	Used    *Amounts
	Reasons []Reason
	// Cancel is why the run shall be canceled.
	Cancel       *string
	Phases       []Phase
	Steps        []Step
	Verification *Verification
	Summary      *Summary
	// Trust is the decision of the trust gate in the current attempt.
	Trust     *Trust
	Decisions []Decision
	Chain     DecisionChain
	Approvals []Approval
	Awaited   []Awaited
	// Receipts are the first ones; MoreReceipts reports whether there are others.
	Receipts     []Receipt
	MoreReceipts bool
	Events       []TreasuryEvent
	// Runs are all runs of the task, the root first.
	Runs []RunLine
}

// Amounts are the limits of a run, or what it used of them.
type Amounts struct {
	Steps, ToolCalls, Writes, RuntimeMs wire.Long
	// GasWei, Tokens and CostUsd are nil where they have no limit.
	GasWei  *wire.BigInt
	Tokens  *wire.Long
	CostUsd *wire.Decimal
}

// Reason is a limit, threshold or rule that applies.
type Reason struct {
	ID, Effect, Text string
	// Have and Need say what is missing; nil for rules.
	Have, Need *string
}

// Phase is the record of a phase.
type Phase struct {
	Phase, Status  string
	Attempt        int32
	Error          *string
	Started, Ended wire.Time
}

// Step is a step of the run with its outcome.
type Step struct {
	ID, Status string
	// Description and Agent are those of the plan; nil for a step that the present plan does not have.
	Description, Agent *string
	DependsOn          []string
	Error              *string
	// Result is the step's result as JSON, cut to a bound; nil without one.
	Result *string
}

// Verification is what came of checking what the run did.
type Verification struct {
	// Score is from 0 to 1.
	Score  float64
	Checks []Check
}

// Check is one check of a verification.
type Check struct {
	Name    string
	Passed  bool
	Details *string
}

// Summary is the agent's own summary of the run.
type Summary struct {
	Text                           string
	KeyActions, Receipts, Warnings []string
}

// Trust is a decision of the trust gate.
type Trust struct {
	// AgentID is nil for an agent without identity on the chain.
	AgentID                      *wire.ID
	Effect, Status               string
	Score, Low, High, Confidence float64
	Tier                         int32
	ValueAtRisk                  wire.BigInt
	Policy                       wire.Hash
	Reasons                      []Reason
	At                           wire.Time
}

// Decision is a decision of a policy, a rule of the runtime or a person.
type Decision struct {
	Number                       wire.Long
	Phase, Kind, Subject, Effect string
	Attempt                      int32
	Reasons                      []Reason
	Policy, Hash                 wire.Hash
	At                           wire.Time
}

// DecisionChain is the end of the chain of all decisions about the run's task.
type DecisionChain struct {
	Count  wire.Long
	Head   wire.Hash
	Signer *wire.Address
}

// Approval is the answer of a person.
type Approval struct {
	Subject  string
	Approved bool
	By       string
	Reason   *string
	At       wire.Time
}

// Awaited is a decision that the run leaves to a person.
type Awaited struct {
	Subject string
	Reasons []Reason
	// Shown is nil where the answer is not about a transaction.
	Shown *Shown
}

// Shown is a transaction that a person must approve. An answer holds for exactly this transaction.
type Shown struct {
	ChainID         wire.Long
	Target          wire.Address
	Payee           *string
	ValueWei        wire.BigInt
	Purpose         string
	Calls           []string
	Amounts         []string
	Effects         []string
	Events          []string
	EventsOmitted   wire.Long
	Names           []Name
	AgentStatus     string
	AgentScore, Low float64
	AgentTier       int32
}

// Name says who an address is.
type Name struct {
	Address string
	Names   []string
}

// Receipt is the runtime's record of a call.
type Receipt struct {
	ID   wire.ID
	Step *string
	Kind string
	// Ref is a tool, a URL, a contract, the hash of a transaction or a run.
	Ref, Summary string
	ChainID      *wire.Long
	Domain       *string
	// Done is false for a call of which no end was recorded.
	Done    bool
	Error   *string
	Started wire.Time
	Ended   *wire.Time
}

// TreasuryEvent is an event that a treasury emitted.
type TreasuryEvent struct {
	ChainID     wire.Long
	Treasury    wire.Address
	Kind        string
	Transaction wire.Hash
	Block       wire.Long
	BlockTime   *wire.Time
	Finality    string
	// Fields are those of the event, as JSON.
	Fields string
}

// Treasury is the treasury that the orchestrator spends from, at the newest block.
type Treasury struct {
	ChainID      wire.Long
	Address      wire.Address
	BalanceWei   wire.BigInt
	Owner        wire.Address
	PendingOwner *wire.Address
	Operator     *wire.Address
	Paused       bool
	Block        wire.Long
	BlockTime    wire.Time
	Agents       []Cap
	Events       []TreasuryEvent
}

// Cap is what the treasury lets an agent spend.
type Cap struct {
	Agent         string
	Active        bool
	Operator      wire.Address
	PerTxCapWei   wire.BigInt
	WindowCapWei  wire.BigInt
	WindowSeconds wire.Long
	// WindowStart is the time of the oldest payment that counts against the window; nil where none does.
	WindowStart    *wire.Time
	WindowSpentWei wire.BigInt
	// LeftWei is what may be moved now, whatever the treasury holds.
	LeftWei wire.BigInt
}

// PurchaseTotals is what agents paid by x402, as the caps of payments count it.
type PurchaseTotals struct {
	DayUsd  wire.Decimal // in the last 24 hours
	WeekUsd wire.Decimal // in the last seven days
	Count   wire.Long    // payments of the last seven days
	// Agents are those that paid most in the last seven days, the highest sum first.
	Agents []AgentPurchases
}

// AgentPurchases is what an agent paid by x402.
type AgentPurchases struct {
	Agent           string // slug; empty for payments without an agent
	DayUsd, WeekUsd wire.Decimal
	Count           wire.Long
}
