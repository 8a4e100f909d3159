package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/agent/llm/oafagent"
	"repute/cmd/repute/internal/config"
	format "repute/manifest/oaf"
	"repute/orchestrator"
	"repute/orchestrator/agents"
	"repute/orchestrator/oaf"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/store"
)

// builtins returns the configured built-in agents. Each caller makes modules of its own: the engine runs them, and the
// routes show their manifests.
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

// formatted returns the configured agents of the Open Agent Format. close ends their programs. closeAll is never nil,
// and MUST be called where an error is returned too: agents before the wrong one may have started programs.
func formatted(ctx context.Context, c *config.Config, h sender, db *store.DB,
	log *slog.Logger) (out []orchestrator.Module,
	closeAll func(), err error) {
	var running []*oafagent.Agent
	closeAll = func() {
		for _, a := range running {
			a.Close()
		}
	}
	file, err := c.OAF()
	if err != nil {
		return nil, closeAll, err
	}
	granted, err := grants(file.Agents)
	if err != nil {
		return nil, closeAll, err
	}
	common := oafagent.Options{Models: &file.Models, Getenv: os.Getenv, Client: c.Outside(oafagent.MaxCallTime),
		Rates: &oafagent.Rates{}, DB: db, Log: log}
	for _, g := range granted {
		o := common
		o.Env, o.Programs = g.entry.Env, g.entry.Programs
		a, err := oafagent.New(ctx, g.def, o)
		if err != nil {
			return nil, closeAll, g.failed(err)
		}
		running = append(running, a)
		m, err := formattedModule(c, h, a)
		if err != nil {
			return nil, closeAll, fmt.Errorf("agent %.80s: %w", g.def.ID(), err)
		}
		for _, note := range a.Notes() {
			log.Warn("a part of an agent's file has no effect", "agent", g.def.ID(), "note", note)
		}
		out = append(out, m)
	}
	return out, closeAll, nil
}

// grant is an agent with what the operator gives it.
type grant struct {
	def   *format.Agent
	entry config.OAFAgent
}

// failed names the agent of an error, and says how it can be given what it needs.
func (g *grant) failed(err error) error {
	if g.entry.Dir == "" {
		return fmt.Errorf("agent %.80s, which another agent names: %w: give it an entry of its own in orchestrator.oaf",
			g.def.ID(), err)
	}
	return fmt.Errorf("agent %.80s: %w", g.def.ID(), err)
}

// grants returns the agents of entries, and after them their local sub-agents. A sub-agent gets nothing of what its
// coordinator has: programs and variables are given to it by an entry of its own.
func grants(entries []config.OAFAgent) (out []grant, err error) {
	at := map[string]int{} // entry by slug
	for i, entry := range entries {
		def, err := oafagent.Read(entry.Dir)
		if err != nil {
			return nil, err
		}
		slug := oaf.Slug(def.ID())
		if before, twice := at[slug]; twice {
			return nil, repute.Invalid(fmt.Sprintf("orchestrator.oaf.agents.%d.dir", i),
				fmt.Sprintf("has the agent %.80s, which entry %d has, too", slug, before),
				"one directory for each agent")
		}
		at[slug] = i
		out = append(out, grant{def, entry})
	}
	for _, g := range out {
		for _, sub := range g.def.Graph() {
			slug := oaf.Slug(sub.ID())
			if _, known := at[slug]; !known {
				at[slug] = len(out)
				out = append(out, grant{def: sub})
			}
		}
	}
	return out, nil
}

// formattedModule is the module of an agent with the identity that its own file names.
func formattedModule(c *config.Config, h sender, a *oafagent.Agent) (*oaf.Module, error) {
	s := a.Settings()
	id, err := c.Identity("harnessConfig.repute", s.Identity())
	if err != nil {
		return nil, err
	}
	signer := ""
	if h.wallet != nil {
		if key, err := h.wallet.Identity(h.trust,
			oaf.Slug(a.Definition().ID())); err == nil { // without a key it proves no identity
			signer = key.Hex()
		}
	}
	return oaf.New(a, id, signer)
}

// tools returns the tools of agents by name. Without a wallet there is none, and a run that asks for one fails with
// that.
func (h *sender) tools() map[string]orchestrator.Tool {
	if h.wallet == nil {
		return nil
	}
	return map[string]orchestrator.Tool{agents.ConsentTool: consentTool{h.wallet}}
}

// consentTool signs consents of wallets whose keys are configured, as far as the wallet permits it for a run. The
// wallet decides by the origin of the call whether the run may have a consent; this type only translates.
type consentTool struct{ wallet *wallet.Wallet }

// consentTime is the validity of a consent; the registry allows five minutes by its own clock. The minute between is
// for clocks that differ and for the transaction to be mined.
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
