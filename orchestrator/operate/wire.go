package operate

import (
	"time"

	"repute/contracts"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// How are the parameters with which an action is requested.
type How struct {
	DryRun bool // nothing is stored or sent
	// By is the name of the API key or of the surface, and part of the stored idempotency key.
	By string // name of the caller; stored with the action
	// Key is the idempotency key, at most 80 characters; empty: each request is a new action.
	Key string
	// Approve approves the action if the policy leaves it to a person.
	// It approves nothing that the policy denies, and nothing that another decision asks for later
	// (recorded.approval).
	Approve bool
}

// Status is the progress of an action.
type Status string

// Statuses of acts.
const (
	Simulated Status = "simulated" // a dry run without objection
	Refused   Status = "refused"   // by the policy, or because it would fail
	Pending   Status = "pending"   // stored and not finished: Run continues it
	Confirmed Status = "confirmed" // all transactions are on the chain
	Failed    Status = "failed"    // it ended early
)

// Act is an operator action in answers. A dry run has no id.
// Created and Ended are times of the database; Created is nil in a dry run and Ended until the act has ended.
type Act struct {
	ID           string        `json:"id,omitempty"`
	Kind         string        `json:"kind" enum:"policy,call,transfer,identity,wallet,feedback"`
	DryRun       bool          `json:"dryRun"`
	Status       Status        `json:"status" enum:"simulated,refused,pending,confirmed,failed"`
	ChainID      uint64        `json:"chainId"`
	Domain       string        `json:"domain" doc:"trust or execution"`
	AgentSlug    string        `json:"agentSlug,omitempty"`
	AgentID      string        `json:"agentId,omitempty" doc:"that was registered, eip155:chain:registry:id"`
	AskedBy      string        `json:"askedBy,omitempty"`
	Policy       Decision      `json:"policy"`
	Transactions []Transaction `json:"transactions" doc:"in their order"`
	Error        string        `json:"error,omitempty"`
	Created      *time.Time    `json:"createdAt,omitempty"`
	Ended        *time.Time    `json:"endedAt,omitempty"`
}

// Decision is the policy's decision about an action.
// Approved is the caller who approved, and empty where nobody had to.
type Decision struct {
	Effect   policy.Effect   `json:"effect" enum:"allow,deny,require_approval"`
	Reasons  []policy.Reason `json:"reasons"`
	Approved string          `json:"approvedBy,omitempty"`
	Policy   string          `json:"policy" doc:"sha256 of the policy's bytes"`
}

// Transaction is a transaction of an action: its simulation and, once it is signed, its result.
type Transaction struct {
	Purpose string `json:"purpose"`
	To      string `json:"to"`
	// Calls are absent if they depend on earlier transactions.
	Calls []contracts.Call `json:"calls,omitempty" doc:"what the contract is told, decoded, and the calls inside of it"`
	// Simulation is absent if it depends on earlier transactions.
	Simulation *transaction.Simulation `json:"simulation,omitempty"`
	From       string                  `json:"from,omitempty"`
	Status     string                  `json:"status,omitempty" enum:"signed,broadcast,mined,confirmed,reverted,failed"`
	Hash       string                  `json:"hash,omitempty" doc:"the form that was mined, or the newest one"`
	Block      uint64                  `json:"block,omitempty"`
	BlockHash  string                  `json:"blockHash,omitempty"`
	GasUsed    uint64                  `json:"gasUsed,omitempty"`
	FeeWei     string                  `json:"feeWei,omitempty"`
}

// TreasuryCall requests a call, or a payment in native coin, by the treasury for an agent.
type TreasuryCall struct {
	AgentSlug string `json:"agentSlug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64" doc:"for which it is done"`
	Target    string `json:"target" pattern:"^0x[0-9a-fA-F]{40}$"`
	Value     string `json:"value,omitempty" pattern:"^[0-9]{1,78}$" doc:"wei"`
	Data      string `json:"data,omitempty" pattern:"^0x([0-9a-fA-F]{2})*$"`
	RunID     string `json:"runId,omitempty" doc:"that it belongs to; absent: the act's own id"`
	TaskID    string `json:"taskId,omitempty" doc:"that it belongs to"`
	Purpose   string `json:"purpose,omitempty" doc:"for people"`
}

// Transfer requests a transfer of tokens by the treasury for an agent.
type Transfer struct {
	AgentSlug string `json:"agentSlug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64" doc:"for which it is done"`
	Token     string `json:"token" pattern:"^0x[0-9a-fA-F]{40}$"`
	To        string `json:"to" pattern:"^0x[0-9a-fA-F]{40}$"`
	Amount    string `json:"amount" pattern:"^[0-9]{1,78}$" doc:"in the token's smallest unit"`
	RunID     string `json:"runId,omitempty" doc:"that it belongs to; absent: the act's own id"`
	TaskID    string `json:"taskId,omitempty" doc:"that it belongs to"`
	Purpose   string `json:"purpose,omitempty" doc:"for people"`
}

// PolicyChange are the changed fields of an agent's policy. Absent fields keep their values.
// A list has only the entries that change: entries of the chain that it does not name stay.
type PolicyChange struct {
	AgentSlug             string         `json:"agentSlug,omitempty" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64" doc:"whose policy it is"`
	Active                *bool          `json:"active,omitempty" doc:"whether the treasury acts for the agent"`
	Operator              string         `json:"operator,omitempty" pattern:"^0x[0-9a-fA-F]{40}$" doc:"who executes; another one ends all relayers"`
	NativePerTxCapWei     string         `json:"nativePerTxCapWei,omitempty" pattern:"^[0-9]{1,78}$" doc:"that one transaction may move"`
	NativeWindowCapWei    string         `json:"nativeWindowCapWei,omitempty" pattern:"^[0-9]{1,78}$" doc:"that may move in any period of a window's length"`
	WindowDurationSeconds *uint64        `json:"windowDurationSeconds,omitempty" minimum:"1" doc:"length of a window"`
	Calls                 []CallAllowed  `json:"calls,omitempty" doc:"what may be called"`
	Relayers              []Relayer      `json:"relayers,omitempty" doc:"who may execute in place of the operator"`
	Tokens                []TokenAllowed `json:"tokens,omitempty" doc:"what may be moved"`
}

// CallAllowed allows or removes a pair of contract and selector.
type CallAllowed struct {
	Target   string `json:"target" pattern:"^0x[0-9a-fA-F]{40}$"`
	Selector string `json:"selector" doc:"of a function; 0x00000000: a payment without data" pattern:"^0x[0-9a-fA-F]{8}$"`
	Allowed  bool   `json:"allowed"`
	// Function is stored with the pair, for all agents, until another change names another
	// function.
	Function string `json:"function,omitempty" maxLength:"2048" doc:"the function with the names of its arguments, by which calls are decoded for whoever approves and for rules: swap(uint256 amountIn, address to). It must have the selector"`
}

// Relayer allows or removes an address that may execute in place of an agent's operator.
type Relayer struct {
	Address string `json:"address" pattern:"^0x[0-9a-fA-F]{40}$"`
	Allowed bool   `json:"allowed"`
}

// TokenAllowed sets what an agent may transfer of a token.
type TokenAllowed struct {
	Token     string `json:"token" pattern:"^0x[0-9a-fA-F]{40}$"`
	Allowed   bool   `json:"allowed"`
	PerTxCap  string `json:"perTxCap,omitempty" pattern:"^[0-9]{1,78}$"`
	WindowCap string `json:"windowCap,omitempty" pattern:"^[0-9]{1,78}$"`
}

// Identity requests the registration of an agent, or the update of its registration.
type Identity struct {
	Slug           string `json:"slug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64"`
	OwnerWallet    string `json:"ownerWallet,omitempty" pattern:"^0x[0-9a-fA-F]{40}$" doc:"absent: of the agent's configured key; no other can sign"`
	OperatorWallet string `json:"operatorWallet,omitempty" pattern:"^0x[0-9a-fA-F]{40}$" doc:"agentWallet, whose key is configured; absent: the owner's"`
	AgentURI       string `json:"agentURI,omitempty" doc:"of the registration file; absent: this service's own"`
}

// AgentWallet requests that an agent gets another wallet.
type AgentWallet struct {
	Slug           string `json:"slug,omitempty" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64"`
	OperatorWallet string `json:"operatorWallet" pattern:"^0x[0-9a-fA-F]{40}$"`
	Deadline       uint64 `json:"deadline,omitempty" doc:"of the signature, seconds since 1970"`
	Signature      string `json:"signature,omitempty" pattern:"^0x([0-9a-fA-F]{2})*$" doc:"of the wallet over EIP-712 AgentWalletSet; absent: made here, where its key is configured"`
}

// FeedbackRequest requests feedback on the trust chain.
type FeedbackRequest struct {
	AgentID       string `json:"agentId" doc:"token id, chain:id or eip155:chain:registry:id"`
	FromAddress   string `json:"fromAddress" pattern:"^0x[0-9a-fA-F]{40}$" doc:"of a configured agent's key"`
	Value         string `json:"value" pattern:"^-?[0-9]{1,39}$" doc:"a signed number of 128 bits"`
	ValueDecimals uint8  `json:"valueDecimals,omitempty" maximum:"18"`
	Tag1          string `json:"tag1,omitempty"`
	Tag2          string `json:"tag2,omitempty"`
	Endpoint      string `json:"endpoint,omitempty"`
	FeedbackURI   string `json:"feedbackURI,omitempty"`
	FeedbackHash  string `json:"feedbackHash,omitempty" pattern:"^0x[0-9a-fA-F]{64}$" doc:"keccak256 of the file"`
}

// TreasuryStatus is the state of a treasury at one block.
// PendingOwner is empty unless a transfer of ownership waits for its acceptance. Addresses have the mixed-case form
// of EIP-55.
type TreasuryStatus struct {
	ChainID      uint64    `json:"chainId"`
	Address      string    `json:"address"`
	Balance      string    `json:"balance" doc:"wei"`
	Owner        string    `json:"owner"`
	PendingOwner string    `json:"pendingOwner,omitempty"`
	Paused       bool      `json:"paused"`
	Operator     string    `json:"operator,omitempty" doc:"the address that this service executes with"`
	Block        uint64    `json:"block"`
	BlockHash    string    `json:"blockHash"`
	BlockTime    time.Time `json:"blockTime"`
}

// TreasuryPolicy is an agent's policy in the treasury at one block.
type TreasuryPolicy struct {
	ChainID               uint64 `json:"chainId"`
	Address               string `json:"address" doc:"of the treasury"`
	AgentSlug             string `json:"agentSlug"`
	AgentKey              string `json:"agentKey" doc:"keccak256 of the slug"`
	Active                bool   `json:"active"`
	Operator              string `json:"operator"`
	NativePerTxCapWei     string `json:"nativePerTxCapWei"`
	NativeWindowCapWei    string `json:"nativeWindowCapWei"`
	WindowDurationSeconds uint64 `json:"windowDurationSeconds"`
	NativeWindowStart     uint64 `json:"nativeWindowStart" doc:"time of the oldest payment that counts, seconds since 1970; 0: none does"`
	NativeWindowSpentWei  string `json:"nativeWindowSpentWei" doc:"that counts against the window's cap now"`
	NativeLeftWei         string `json:"nativeLeftWei" doc:"that may be moved now, whatever the treasury holds"`
	Block                 uint64 `json:"block"`
	BlockHash             string `json:"blockHash"`
}
