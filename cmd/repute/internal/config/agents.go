package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/agents"
	"repute/orchestrator/safety"
)

// checkAgents refuses built-in agents that there are none of, and identities that cannot be
// meant.
func (c *Config) checkAgents() error {
	for name, id := range c.Orchestrator.Agents {
		field := "orchestrator.agents." + name
		if !slices.Contains(agents.Names(), name) {
			return repute.Invalid(field, "is no agent that repute comes with", fmt.Sprintf("one of %v", agents.Names()))
		}
		if _, err := c.Identity(field, id); err != nil {
			return err
		}
	}
	return nil
}

// Identity reads an agent's onchain identity; nil for none.
func (c *Config) Identity(field, text string) (*repute.AgentID, error) {
	if text == "" {
		return nil, nil
	}
	ref, err := repute.ParseAgentRef(text)
	chain := cmp.Or(ref.ChainID, c.DefaultChain)
	if err != nil || chain == 0 {
		return nil, repute.Invalid(field, fmt.Sprintf("%.80q is no id of an agent", text),
			"chain:id, or empty for an agent without identity")
	}
	id := repute.AgentID{ChainID: chain, TokenID: ref.TokenID}
	if ref.Registry != nil {
		id.Registry = *ref.Registry
		return &id, nil
	}
	for _, known := range c.resolved() {
		if known.ID == chain {
			id.Registry = known.Identity
		}
	}
	if known, ok := preset(fmt.Sprint(chain)); ok && (id.Registry == common.Address{}) {
		id.Registry = known.Identity
	}
	if (id.Registry == common.Address{}) {
		return nil, repute.Invalid(field, fmt.Sprintf("is on chain %d, which is not configured", chain),
			"eip155:chain:registry:id, or an entry of chains")
	}
	return &id, nil
}

// AgentOptions say what built-in agents know of the chains.
func (c *Config) AgentOptions(registries []safety.Registries) (o agents.Options, err error) {
	list, err := c.Wallets()
	if err != nil {
		return o, err
	}
	o.Sources = c.Orchestrator.Sources
	for _, r := range registries {
		known := agents.Chain{ID: r.ChainID, Identity: r.Identity, Reputation: r.Reputation, Validations: r.Validations}
		for _, w := range list {
			if w.ChainID == r.ChainID {
				known.Treasury = w.Treasury
			}
		}
		o.Chains = append(o.Chains, known)
	}
	return o, nil
}

// Registrar is the slug of the registrar where this program runs it. An agent elsewhere
// that has the name is no part of the program.
func (c *Config) Registrar() string {
	if _, runs := c.Orchestrator.Agents[agents.Registrar]; runs {
		return agents.Registrar
	}
	return ""
}
