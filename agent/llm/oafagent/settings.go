package oafagent

import (
	"encoding/json"
	"fmt"
	"strings"

	"repute"
	"repute/agent/llm"
	"repute/internal/strictjson"
	"repute/manifest/oaf"
)

// harness is the name of this runtime's section of harnessConfig.
const harness = "repute"

// Settings are the section "repute" of harnessConfig.
type Settings struct {
	AgentID    json.RawMessage `json:"agentId"` // token id, as a number or a text of digits
	Chain      uint64          `json:"chain"`
	Registry   string          `json:"registry"` // address of the identity registry; that of the chain
	MaxTokens  int64           `json:"maxTokens"`
	MaxCostUSD json.RawMessage `json:"maxCostUsd"` // dollars, as a number or a text
	MaxTurns   int             `json:"maxTurns"`
	// ReadOnlyTools are tools of MCP servers that change nothing, by the names that config.tools takes. Their calls
	// need no confirmation. A server's readOnlyHint does not have this effect.
	ReadOnlyTools []string `json:"readOnlyTools"`
	// IdempotentTools are tools of MCP servers that have no further effect when a call is repeated.
	IdempotentTools []string `json:"idempotentTools"`
}

// SettingsOf reads the section of an agent. repute.ErrInvalid names the member that is wrong.
func SettingsOf(def *oaf.Agent) (s Settings, err error) {
	raw, ok := def.Harness[harness]
	if !ok {
		return s, nil
	}
	document := strictjson.Document{Name: "harnessConfig.repute", Unknown: "is not known",
		Hint: "agentId, chain, registry, maxTokens, maxCostUsd, maxTurns, readOnlyTools, idempotentTools"}
	if err := document.Decode(raw, &s); err != nil {
		return s, err
	}
	if s.MaxTokens < 0 {
		return s, repute.Invalid("harnessConfig.repute.maxTokens", "is negative",
			"a positive number, or 0 for no limit")
	}
	if s.MaxTurns < 0 {
		return s, repute.Invalid("harnessConfig.repute.maxTurns", "is negative", "a positive number, or 0 for no limit")
	}
	if _, err = s.Budget(); err != nil {
		return s, err
	}
	_, err = identity("harnessConfig.repute", s.AgentID, s.Chain, s.Registry)
	return s, err
}

// Budget is what a run of the agent may use by its own file.
func (s *Settings) Budget() (b llm.Budget, err error) {
	b.Tokens = s.MaxTokens
	if text := strings.Trim(string(s.MaxCostUSD), `"`); text != "" && text != "null" {
		b.Cost, err = repute.ParseDollars("harnessConfig.repute.maxCostUsd", text)
	}
	return b, err
}

// Identity is the agent's onchain identity as repute.ParseAgentRef reads it: the token id with the chain and the
// registry that the file names; empty for none.
func (s *Settings) Identity() string {
	text, err := identity("", s.AgentID, s.Chain, s.Registry)
	if err != nil {
		return "" // not reached: SettingsOf refuses such settings
	}
	return text
}

// IdentityOf is the onchain identity that an entry of agents names by agentId, chain and registry, in the form of
// Settings.Identity; empty for none. repute.ErrInvalid names the member that is wrong.
func IdentityOf(ref oaf.AgentRef) (string, error) {
	field := fmt.Sprintf("agents.%.80s", ref.ID())
	var chain uint64
	var registry string
	if raw := ref.Extra["chain"]; raw != nil && json.Unmarshal([]byte(strings.Trim(string(raw), `"`)), &chain) != nil {
		return "", repute.Invalid(field+".chain", fmt.Sprintf("%.40s is no id of a chain", raw),
			"a number, such as 8453")
	}
	if raw := ref.Extra["registry"]; raw != nil && json.Unmarshal(raw, &registry) != nil {
		return "", repute.Invalid(field+".registry", "is no text", "an address")
	}
	return identity(field, ref.Extra["agentId"], chain, registry)
}

// identity returns a token id with its chain and registry, where they are given.
func identity(field string, token json.RawMessage, chain uint64, registry string) (string, error) {
	text := strings.Trim(string(token), `"`)
	switch {
	case text == "" || text == "null":
		if chain != 0 || registry != "" {
			return "", repute.Invalid(field+".agentId", "is missing, but chain or registry is set",
				"set agentId, or remove chain and registry")
		}
		return "", nil
	case registry != "" && chain == 0:
		return "", repute.Invalid(field+".chain", "is missing, but registry is set", "set the id of its chain")
	case registry != "":
		text = fmt.Sprintf("eip155:%d:%s:%s", chain, registry, text)
	case chain != 0:
		text = fmt.Sprintf("%d:%s", chain, text)
	}
	if _, err := repute.ParseAgentRef(text); err != nil {
		return "", repute.Invalid(field+".agentId", fmt.Sprintf("%.120q is no id of an agent: %v", text, err),
			"agentId in digits, chain as a number, registry as an address")
	}
	return text, nil
}
