package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/orchestrator"
	"repute/orchestrator/agents"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
)

// builtins returns the configured built-in agents.
func builtins(c *config.Config, h sender) (out []orchestrator.Module, err error) {
	o, err := c.AgentOptions(h.registries)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Orchestrator.Agents)) {
		self := agents.Self{}
		if self.ID, err = c.Identity("orchestrator.agents."+name, c.Orchestrator.Agents[name]); err != nil {
			return nil, err
		}
		if h.wallet != nil {
			if key, err := h.wallet.Identity(h.trust, name); err == nil { // without a key it sends no transaction
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

// tools returns the tools of agents by name.
func (h *sender) tools() map[string]orchestrator.Tool {
	if h.wallet == nil {
		return nil
	}
	return map[string]orchestrator.Tool{agents.ConsentTool: consentTool{h.wallet}}
}

// consentTool signs consents of wallets whose keys are configured, as far as the wallet permits it
// for a run.
type consentTool struct{ wallet *wallet.Wallet }

// consentTime is the validity of a consent; the registry allows five minutes by its own clock.
const consentTime = 4 * time.Minute

// Call implements orchestrator.Tool.
func (t consentTool) Call(ctx context.Context, by transaction.Origin, _ string,
	input json.RawMessage) (json.RawMessage, error) {
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
	signature, err := t.wallet.ConsentOfRun(ctx, by, wallet.Consent{ChainID: q.ChainID, Agent: agent, Wallet: to,
		Owner: owner, Deadline: uint64(until)})
	if err != nil {
		return nil, err
	}
	return json.Marshal(agents.Consent{Signature: hexutil.Encode(signature), Deadline: until})
}
