package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/agents"
	"repute/orchestrator/wallet"
)

// checkAgents refuses built-in agents that there are none of, and identities that cannot be
// meant.
func (c *config) checkAgents() error {
	for name, id := range c.Orchestrator.Agents {
		field := "orchestrator.agents." + name
		if !slices.Contains(agents.Names(), name) {
			return repute.Invalid(field, "is no agent that repute comes with", fmt.Sprintf("one of %v", agents.Names()))
		}
		if _, err := c.identity(field, id); err != nil {
			return err
		}
	}
	return nil
}

// identity reads an agent's onchain identity; nil for none.
func (c *config) identity(field, text string) (*repute.AgentID, error) {
	if text == "" {
		return nil, nil
	}
	ref, err := repute.ParseAgentRef(text)
	chain := cmp.Or(ref.ChainID, c.DefaultChain)
	if err != nil || chain == 0 {
		return nil, repute.Invalid(field, fmt.Sprintf("%.80q is no id of an agent", text), "chain:id, or empty for an agent without identity")
	}
	id := repute.AgentID{ChainID: chain, TokenID: ref.TokenID}
	if ref.Registry != nil {
		id.Registry = *ref.Registry
		return &id, nil
	}
	for _, cc := range c.Chains {
		if known, err := cc.resolve(); err == nil && known.ID == chain {
			id.Registry = known.Identity
		}
	}
	if known, ok := preset(fmt.Sprint(chain)); ok && (id.Registry == common.Address{}) {
		id.Registry = known.Identity
	}
	if (id.Registry == common.Address{}) {
		return nil, repute.Invalid(field, fmt.Sprintf("is on chain %d, which is not configured", chain), "eip155:chain:registry:id, or an entry of chains")
	}
	return &id, nil
}

// agentOptions say what built-in agents know of the chains.
func (c *config) agentOptions(registries []orchestrator.Registries) (o agents.Options, err error) {
	list, err := c.wallets()
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

// builtins are the agents that repute comes with, as configured.
func (c *config) builtins(h hands) (out []orchestrator.Module, err error) {
	o, err := c.agentOptions(h.registries)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Orchestrator.Agents)) {
		self := agents.Self{}
		if self.ID, err = c.identity("orchestrator.agents."+name, c.Orchestrator.Agents[name]); err != nil {
			return nil, err
		}
		if h.wallet != nil {
			if key, err := h.wallet.Identity(h.trust, name); err == nil { // without one it writes nothing
				self.Wallet = key
			}
		}
		a, err := agents.New(name, self, o)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// registrar is the slug of the registrar where this program runs it. An agent elsewhere
// that has the name is no part of the program.
func (c *config) registrar() string {
	if _, runs := c.Orchestrator.Agents[agents.Registrar]; runs {
		return agents.Registrar
	}
	return ""
}

// tools are what agents may use by name.
func (h *hands) tools() map[string]orchestrator.Tool {
	if h.wallet == nil {
		return nil
	}
	return map[string]orchestrator.Tool{agents.ConsentTool: consentTool{h.wallet}}
}

// consentTool has wallets whose keys are configured consent to serve an agent, as far as the
// wallet allows it to a run.
type consentTool struct{ wallet *wallet.Wallet }

// consentTime is how long a consent holds: the registry takes five minutes at most, by its
// own clock.
const consentTime = 4 * time.Minute

// Call implements orchestrator.Tool.
func (t consentTool) Call(ctx context.Context, by orchestrator.Origin, _ string, input json.RawMessage) (json.RawMessage, error) {
	var q agents.ConsentRequest
	if err := json.Unmarshal(input, &q); err != nil {
		return nil, repute.Invalid("input", err.Error(), "chainId, agentId, wallet, owner")
	}
	to, err := repute.ParseAddress("wallet", q.Wallet)
	if err != nil {
		return nil, err
	}
	owner, err := repute.ParseAddress("owner", q.Owner)
	if err != nil {
		return nil, err
	}
	agent, ok := new(big.Int).SetString(q.AgentID, 10)
	if !ok {
		return nil, repute.Invalid("agentId", fmt.Sprintf("%.80q is no id", q.AgentID), "decimal digits")
	}
	until := cmp.Or(q.Deadline, time.Now().Add(consentTime).Unix())
	signature, err := t.wallet.ConsentOfRun(ctx, by, wallet.Consent{ChainID: q.ChainID, Agent: agent, Wallet: to, Owner: owner, Deadline: uint64(until)})
	if err != nil {
		return nil, err
	}
	return json.Marshal(agents.Consent{Signature: hexutil.Encode(signature), Deadline: until})
}
