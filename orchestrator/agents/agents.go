package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/standard"
)

// Names of the agents, and their slugs where no other is given.
const (
	Coordinator = "coordinator"
	Registrar   = "registrar"
	Reporter    = "reporter"
	Validator   = "validator"
	Payer       = "payer"
)

// Names lists the agents.
func Names() []string { return []string{Coordinator, Registrar, Reporter, Validator, Payer} }

// Chain has the addresses of a chain's contracts.
type Chain struct {
	ID                   uint64
	Identity, Reputation common.Address
	Validations          []common.Address
	Treasury             common.Address // zero: none
}

// Self identifies an agent.
type Self struct {
	Slug string // empty: the agent's name
	// ID is its onchain identity; nil for none.
	ID *repute.AgentID
	// Wallet is the account that sends its registry writes, Owner the owner of the identity; both
	// may be zero.
	Wallet, Owner common.Address
}

// Options configure the agents. They are given for all agents at once; each takes what it needs.
type Options struct {
	Chains []Chain
	// Team maps the name of a job (register, describe, wallet, report, validate, pay) to the agent that does it. A
	// missing job is done by its default agent.
	Team map[string]string
	// Sources are URLs below which the validator fetches the evidence of a request. The author of a
	// request writes both the URL and the claim, so that an answer of any other URL proves nothing.
	Sources []string
}

// New returns an agent by its name. repute.ErrInvalid: there is none, or one of the sources is not
// usable.
func New(name string, self Self, o Options) (Agent, error) {
	from, err := readSources(o.Sources)
	if err != nil {
		return Agent{}, err
	}
	chains := places{}
	for _, c := range o.Chains {
		chains[c.ID] = c
	}
	if self.Slug == "" {
		self.Slug = name
	}
	switch name {
	case Coordinator:
		return Agent{newCoordinator(self, o.Team)}, nil
	case Registrar:
		return Agent{&specialist[Identity, Registered]{self.info(registrarSheet()), &registrar{self, chains}}}, nil
	case Reporter:
		return Agent{&specialist[Report, Reported]{self.info(reporterSheet()), &reporter{self, chains}}}, nil
	case Validator:
		return Agent{&specialist[Validation, Validated]{self.info(validatorSheet()),
			&validator{self, chains, from}}}, nil
	case Payer:
		return Agent{&specialist[Payment, Paid]{self.info(payerSheet()), &payer{self, chains}}}, nil
	}
	return Agent{}, repute.Invalid("agent", fmt.Sprintf("%.80q is none that repute comes with", name),
		strings.Join(Names(), ", "))
}

// sheet is the part of an agent's manifest that does not depend on its identity.
type sheet struct {
	name, does   string
	capabilities []string
	tools        []standard.ManifestTool
	categories   []string
	calls        int64 // tool calls of one run, 50 when 0
	writes       int64 // transactions of one run
}

const version = "1.0.0"

// info adds an agent's identity to its sheet. The bounds in the manifest are promises to those who delegate: the
// engine enforces them in every run, beside the budget of the task.
func (s Self) info(of sheet) standard.Info {
	m := standard.Manifest{Schema: standard.ManifestSchema, Name: of.name, Slug: s.Slug, Version: version,
		Description:  of.does,
		Capabilities: of.capabilities, Tools: slices.Concat([]standard.ManifestTool{}, of.tools),
		TaskCategories: of.categories,
		ComputeConstraints: standard.ComputeConstraints{MaxSteps: new(int64(10)), MaxToolCalls: new(max(of.calls, 50)),
			MaxRuntimeMS: new(int64(300_000)), MaxOnchainWrites: &of.writes},
		Safety: standard.Safety{RequiresDryRun: true, RequiresVerification: true, MaxOnchainWritesPerRun: &of.writes}}
	if s.ID != nil {
		m.ERC8004 = &standard.ManifestIdentity{AgentRegistry: s.ID.Registry.Hex(),
			AgentID: json.Number(s.ID.TokenID.Dec()), ChainID: s.ID.ChainID}
	}
	for _, w := range []struct {
		to *string
		of common.Address
	}{{&m.OwnerWallet, s.Owner}, {&m.OperatorWallet, s.Wallet}} {
		if w.of != (common.Address{}) {
			*w.to = w.of.Hex()
		}
	}
	return standard.Info{Slug: s.Slug, DisplayName: of.name, Version: version,
		IdentityMode: standard.IdentityMode, Manifest: m}
}

// owns reports whether an identity is the agent's own.
func (s Self) owns(id repute.AgentID) bool { return s.ID != nil && *s.ID == id }

// places are the known chains, by id.
type places map[uint64]Chain

// at returns a chain; id 0 is the only one. With several chains 0 is refused, since a guess could pay on the wrong
// one.
func (p places) at(id uint64) (Chain, error) {
	if id == 0 && len(p) == 1 {
		for _, c := range p {
			return c, nil
		}
	}
	c, ok := p[id]
	if !ok {
		return c, repute.Invalid("chainId", fmt.Sprintf("%d is not known to the agent", id),
			"a chain that the orchestrator has a wallet on")
	}
	return c, nil
}

// agent reads the id of an agent: eip155:chain:registry:id or chain:id.
func (p places) agent(field, text string) (id repute.AgentID, c Chain, err error) {
	ref, err := repute.ParseAgentRef(text)
	if err != nil {
		return id, c, repute.Invalid(field, fmt.Sprintf("%.80q is no id of an agent", text),
			"chain:id or eip155:chain:registry:id")
	}
	if c, err = p.at(ref.ChainID); err != nil {
		return id, c, err
	}
	if ref.Registry != nil && *ref.Registry != c.Identity {
		return id, c, repute.Invalid(field, "is of a registry that the agent does not know", c.Identity.Hex())
	}
	return repute.AgentID{ChainID: c.ID, Registry: c.Identity, TokenID: ref.TokenID}, c, nil
}
