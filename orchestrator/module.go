package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/policy"
)

// IdentityMode is the only mode there is (OpenFi agent standard, the agent interface).
const IdentityMode = "erc8004-required"

// Info are the fields of a module.
type Info struct {
	Slug         string // unique, kebab-case
	DisplayName  string
	Version      string // semver
	IdentityMode string // IdentityMode
	Manifest     Manifest
}

// Module is an agent that the orchestrator can run (OpenFi agent standard, the agent
// interface). Its methods may be called again after a crash: what it did through the
// Context is not done twice. A method that panics, hangs or ignores the end of ctx fails
// its phase and nothing else. A module that can simulate implements DryRunner too.
type Module interface {
	Info() Info
	// CanHandle tells whether the agent takes the task, before anything is planned. An error
	// beside false is why not: whoever gave the task reads it.
	CanHandle(ctx context.Context, task Task) (bool, error)
	Plan(ctx context.Context, task Task, c *Context) (Plan, error)
	Execute(ctx context.Context, task Task, plan Plan, c *Context) (Execution, error)
	Verify(ctx context.Context, task Task, done Execution, c *Context) (Verification, error)
	Summarize(ctx context.Context, task Task, done Execution, checked Verification, c *Context) (Summary, error)
}

// DryRunner is a Module that can say what Execute would do.
type DryRunner interface {
	DryRun(ctx context.Context, task Task, plan Plan, c *Context) (DryRun, error)
}

// Manifest is an agent's capability manifest, agent.json.
type Manifest struct {
	Schema             string             `json:"schema"`
	Name               string             `json:"name"`
	Slug               string             `json:"slug"`
	Version            string             `json:"version"`
	Description        string             `json:"description"`
	OwnerWallet        string             `json:"ownerWallet,omitempty"`
	OperatorWallet     string             `json:"operatorWallet,omitempty"`
	ERC8004            *ManifestIdentity  `json:"erc8004,omitempty"`
	Capabilities       []string           `json:"capabilities"`
	Tools              []ManifestTool     `json:"tools"`
	ComputeConstraints ComputeConstraints `json:"computeConstraints"`
	TaskCategories     []string           `json:"taskCategories"`
	Safety             Safety             `json:"safety"`
	Endpoints          map[string]string  `json:"endpoints,omitempty"`
}

// ManifestSchema is the schema that a capability manifest names.
const ManifestSchema = "https://openfi.dev/schemas/agent/v1"

// ManifestIdentity is where an agent is registered.
type ManifestIdentity struct {
	AgentRegistry string `json:"agentRegistry"`
	// AgentID is the token id: written as a number, read as a number or a string of its
	// digits. It is empty where the agent names none.
	AgentID            json.Number `json:"agentId,omitempty"`
	ChainID            uint64      `json:"chainId,omitempty"`
	RegistrationTxHash string      `json:"registrationTxHash,omitempty"`
}

// identity is where the agent says it is registered; nil where it names no chain.
func (m *Manifest) identity() (*repute.AgentID, error) {
	e := m.ERC8004
	if e == nil || e.ChainID == 0 {
		return nil, nil
	}
	registry, err := repute.ParseAddress("manifest.erc8004.agentRegistry", e.AgentRegistry)
	if err != nil {
		return nil, err
	}
	token, err := repute.ParseTokenID(e.AgentID.String())
	if err != nil {
		return nil, repute.Invalid("manifest.erc8004.agentId", fmt.Sprintf("%.80q is no id", e.AgentID), "decimal digits")
	}
	return &repute.AgentID{ChainID: e.ChainID, Registry: registry, TokenID: token}, nil
}

// ManifestTool is a tool that an agent uses.
type ManifestTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ComputeConstraints bound every run of an agent. What is absent (nil) is OpenFi's default;
// 0 allows none.
type ComputeConstraints struct {
	MaxSteps         *int64 `json:"maxSteps,omitempty"`
	MaxToolCalls     *int64 `json:"maxToolCalls,omitempty"`
	MaxRuntimeMS     *int64 `json:"maxRuntimeMs,omitempty"`
	MaxOnchainWrites *int64 `json:"maxOnchainWrites,omitempty"`
}

// Safety says what an agent promises, and the runtime demands.
type Safety struct {
	RequiresDryRun       bool `json:"requiresDryRun"`
	RequiresVerification bool `json:"requiresVerification"`
	// MaxOnchainWritesPerRun bounds transactions beside the compute constraints. Nil: they
	// alone do.
	MaxOnchainWritesPerRun *int64 `json:"maxOnchainWritesPerRun,omitempty"`
}

// bounds are what the manifest states of its runs.
func (m *Manifest) bounds() policy.Bounds {
	c := m.ComputeConstraints
	return policy.Bounds{Steps: c.MaxSteps, ToolCalls: c.MaxToolCalls, RuntimeMS: c.MaxRuntimeMS,
		OnchainWrites: c.MaxOnchainWrites}
}

// Budget is what the manifest allows each run of the agent.
func (m *Manifest) Budget() policy.Budget {
	b := m.bounds().Or(policy.DefaultBudget())
	if most := m.Safety.MaxOnchainWritesPerRun; most != nil {
		b.OnchainWrites = min(b.OnchainWrites, *most)
	}
	return b
}

// check refuses bounds that no run can have. The error is repute.ErrInvalid.
func (m *Manifest) check() error {
	safety := policy.Bounds{OnchainWrites: m.Safety.MaxOnchainWritesPerRun}
	if err := safety.Check(); err != nil {
		return fmt.Errorf("manifest.safety: %w", err)
	}
	if err := m.bounds().Check(); err != nil {
		return fmt.Errorf("manifest.computeConstraints: %w", err)
	}
	return nil
}

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
	Calls []Tx `json:"calls"`
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

// Tx is a transaction that an agent wants. Native coin and calls go to Target; where
// Token is set, Amount of it goes to Target instead and Value and Data are empty.
type Tx struct {
	// Key tells this transaction of a step from its others; the same key is never sent
	// twice. Empty: the transactions of a step in the order it asks for them.
	Key     string          `json:"key,omitempty"`
	ChainID uint64          `json:"chainId"`
	Target  common.Address  `json:"target"`
	Value   string          `json:"value,omitempty"` // wei, decimal
	Data    []byte          `json:"data,omitempty"`  // base64 in JSON
	Token   *common.Address `json:"token,omitempty"`
	Amount  string          `json:"amount,omitempty"` // of Token, decimal
	Purpose string          `json:"purpose"`
	// Payee is the id of the agent whose wallet Target is, eip155:chain:registry:id: the runtime
	// compares Target with the newest final wallet that is indexed. Empty: Target is an account
	// that is meant whoever owns it.
	Payee string `json:"payee,omitempty"`
	// Function is the text of the function that Data calls, with types: set(address who). Calls
	// of the dry run need it that have placeholders and call a function that is not known.
	Function string `json:"function,omitempty"`
	// Placeholders are values that the agent cannot know yet. Only calls of the dry run have
	// them.
	Placeholders []Placeholder `json:"placeholders,omitempty"`
}

// maxData bounds calldata, in bytes.
const maxData = 128 << 10

// check refuses what no chain could take. The error is repute.ErrInvalid.
func (t *Tx) check() error {
	for _, f := range []struct{ name, text string }{{"value", t.Value}, {"amount", t.Amount}} {
		if _, err := weiOf(f.text); err != nil {
			return repute.Invalid("tx."+f.name, err.Error(), "decimal digits of an unsigned 256-bit number")
		}
	}
	switch {
	case t.Target == common.Address{}:
		return repute.Invalid("tx.target", "is the zero address", "an address")
	case t.Token != nil && (len(t.Data) > 0 || t.Value != "" && t.Value != "0"):
		return repute.Invalid("tx.token", "comes with value or data", "one of both")
	case t.Token == nil && t.Amount != "":
		return repute.Invalid("tx.amount", "comes without a token", "tx.value for native coin")
	case len(t.Data) > maxData:
		return repute.Invalid("tx.data", fmt.Sprintf("has %d bytes", len(t.Data)), "at most 131072")
	case len(t.Purpose) > 256 || len(t.Key) > 128:
		return repute.Invalid("tx.purpose", "is too long", "at most 256 bytes, keys 128")
	}
	return t.checkPayee()
}

// selector is the function that a call names, empty for none.
func (t *Tx) selector() string {
	if len(t.Data) < 4 {
		return ""
	}
	return fmt.Sprintf("0x%x", t.Data[:4])
}

// digest names a transaction by all that it is: chain, target, value, data, token, amount and
// payee.
func (t *Tx) digest() string {
	var token common.Address
	if t.Token != nil {
		token = *t.Token
	}
	value, _ := weiOf(t.Value) // checked before
	amount, _ := weiOf(t.Amount)
	return digest(fmt.Append(nil, t.ChainID), t.Target[:], fmt.Append(nil, value), t.Data, token[:],
		fmt.Append(nil, amount), []byte(t.Payee))
}

// same reports whether two transactions are equal in all that is sent, and to whom.
func (t *Tx) same(s *Tx) bool { return t.digest() == s.digest() }

// weiOf reads an amount; empty is 0.
func weiOf(s string) (*big.Int, error) {
	if s == "" {
		return new(big.Int), nil
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return nil, fmt.Errorf("%.40q is no amount", s)
		}
	}
	v, ok := new(big.Int).SetString(s[:min(len(s), 80)], 10)
	if !ok || len(s) > 80 || v.BitLen() > 256 {
		return nil, fmt.Errorf("%.40q… is too large", s)
	}
	return v, nil
}

var slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// CheckInfo refuses a module that cannot be installed. The error is repute.ErrInvalid.
func CheckInfo(i Info, canDryRun bool) error {
	switch {
	case len(i.Slug) > 64 || !slugForm.MatchString(i.Slug):
		return repute.Invalid("slug", fmt.Sprintf("%.80q is no slug", i.Slug),
			"lower-case words joined by hyphens, at most 64 bytes")
	case i.IdentityMode != IdentityMode:
		return repute.Invalid("identityMode", fmt.Sprintf("%.40q is no mode", i.IdentityMode), IdentityMode)
	case i.Manifest.Slug != i.Slug:
		return repute.Invalid("manifest.slug", fmt.Sprintf("%.80q is not the slug", i.Manifest.Slug), i.Slug)
	case i.Manifest.Safety.RequiresDryRun && !canDryRun:
		return repute.Invalid("manifest.safety.requiresDryRun", "is demanded, but the agent has no dry run",
			"give the agent one")
	}
	return i.Manifest.check()
}
