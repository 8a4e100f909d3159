package standard

import (
	"encoding/json"
	"fmt"
	"regexp"

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

// Identity is where the agent says it is registered; nil where it names no chain.
func (m *Manifest) Identity() (*repute.AgentID, error) {
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
		return nil, repute.Invalid("manifest.erc8004.agentId", fmt.Sprintf("%.80q is no id", e.AgentID),
			"decimal digits")
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
