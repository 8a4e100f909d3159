package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/journal"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/store/chaindb"
	"repute/store/query"
	"repute/store/rundb"
)

// TaskAgent is an agent that can be given work.
type TaskAgent struct {
	Slug         string    `json:"slug"`
	Name         string    `json:"name"`
	Version      string    `json:"version"`
	Description  string    `json:"description"`
	Kind         string    `json:"kind" enum:"local,remote" doc:"local: a part of the program"`
	URL          string    `json:"url,omitempty" doc:"of a remote agent"`
	AgentID      string    `json:"agentId,omitempty" doc:"onchain identity, eip155:chain:registry:id"`
	Proof        *Proven   `json:"proof,omitempty" doc:"how it was shown that the program speaks for the identity; absent: it was not"`
	DryRun       bool      `json:"dryRun"`
	Capabilities []string  `json:"capabilities"`
	Categories   []string  `json:"taskCategories"`
	Added        time.Time `json:"addedAt"`
}

// Proven describes the proof that a program acts for its identity. The trust gate checks again
// whether it still holds.
type Proven struct {
	Kind   repute.ProofKind `json:"kind" enum:"domain,signature,key"`
	Host   string           `json:"host,omitempty" doc:"of kind domain: it and the agent's file name each other"`
	Signer string           `json:"signer,omitempty" doc:"of the other kinds: the agent's wallet or owner"`
	At     time.Time        `json:"at"`
}

// TaskAgentList lists all agents by slug.
type TaskAgentList struct {
	Agents []TaskAgent `json:"agents"`
}

// AgentRegistration is the request to register an agent that runs on a server of its own.
type AgentRegistration struct {
	Slug    string `json:"slug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64" doc:"as the agent itself says"`
	URL     string `json:"url" pattern:"^https?://[^/?@#\\s]+(/[^?@#\\s]*)?$" maxLength:"2048" doc:"where it speaks the protocol of agents, without query and password"`
	AgentID string `json:"agentId,omitempty" doc:"its onchain identity: eip155:chain:registry:id or chain:id"`
	// Proof is not needed in development, nor where the URL's domain proves the identity.
	Proof *IdentityProof `json:"proof,omitempty" doc:"that the program speaks for the identity; not needed where the URL is of a domain that the agent's file names and that names the agent"`
}

// Removed is the answer to the removal of an agent.
type Removed struct {
	Slug string `json:"slug"`
}

// listAgents serves GET /v1/agents.
func (c *Control) listAgents(ctx context.Context, _ *struct{}) (*rest.Answer[TaskAgentList], error) {
	list, err := c.Agents(ctx)
	return rest.Say(&TaskAgentList{list}), err
}

// Agents returns all agents that can be given tasks, by slug, in the order of the database. They are not paged: an
// operator registers each, so that they are few.
func (c *Control) Agents(ctx context.Context) ([]TaskAgent, error) {
	list, err := rundb.Modules(ctx, c.db)
	out := []TaskAgent{}
	for _, m := range list {
		a, err := agentOnWire(m)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, err
}

// getAgent serves GET /v1/agents/{slug}.
func (c *Control) getAgent(ctx context.Context, in *rest.SlugInput) (*rest.Answer[TaskAgent], error) {
	m, err := c.module(ctx, in.Slug)
	if err != nil {
		return nil, err
	}
	a, err := agentOnWire(m)
	return rest.Say(&a), err
}

// manifestOf decodes the manifest that is stored with an agent.
func manifestOf(m repute.Module) (out standard.Manifest, err error) {
	if err := json.Unmarshal(m.Manifest, &out); err != nil {
		return out, fmt.Errorf("stored manifest of agent %s: %w", m.Slug, err)
	}
	return out, nil
}

// agentOnWire converts a stored agent into the form of the API.
func agentOnWire(m repute.Module) (TaskAgent, error) {
	f, err := manifestOf(m)
	a := TaskAgent{Slug: m.Slug, Name: f.Name, Version: f.Version, Description: f.Description, Kind: "local",
		URL:          m.URL,
		DryRun:       m.DryRun,
		Capabilities: rest.OrEmpty(f.Capabilities), Categories: rest.OrEmpty(f.TaskCategories), Added: m.Added}
	if m.URL != "" {
		a.Kind = "remote"
	}
	if m.Agent != nil {
		a.AgentID = m.Agent.String()
	}
	if p := m.Proof; p.Kind != "" {
		a.Proof = &Proven{Kind: p.Kind, Host: p.Host, At: p.At}
		if p.Signer != (common.Address{}) {
			a.Proof.Signer = p.Signer.Hex()
		}
	}
	return a, err
}

// registerAgent serves POST /v1/agents: 201 for an agent that is new, 200 for one that was known.
func (c *Control) registerAgent(ctx context.Context, _ string, _ *struct{},
	r AgentRegistration) (*rest.Answer[TaskAgent],
	error) {
	a, isNew, err := c.Register(ctx, r)
	out := rest.Say(&a)
	if isNew {
		out.Status, out.Location = http.StatusCreated, rest.Prefix+"/agents/"+a.Slug
	}
	return out, err
}

// Register registers an agent that runs on a server of its own, or reads the manifest of a registered one again.
// Another URL for a known slug is refused, so that a caller cannot take over the tasks of an agent by its name.
// repute.ErrInvalid names the wrong field; repute.ErrConflict means that the slug belongs to another agent.
func (c *Control) Register(ctx context.Context, r AgentRegistration) (a TaskAgent, isNew bool, err error) {
	if r.Slug == "" || r.URL == "" {
		return a, false, repute.Invalid("slug and url", "are missing", `{"slug": …, "url": …, "agentId": …}`)
	}
	if len(r.URL) > 2048 {
		return a, false, repute.Invalid("url", "is longer than 2048 bytes", "a shorter one")
	}
	known, err := rundb.Module(ctx, c.db, r.Slug)
	isNew = errors.Is(err, repute.ErrNotFound)
	switch {
	case err != nil && !isNew:
		return a, false, err
	case !isNew && known.URL == "":
		return a, false, repute.Conflict("agent %s is a part of the program: take another slug", r.Slug)
	case !isNew && known.URL != r.URL:
		return a, false, repute.Conflict("agent %s is registered at another URL: remove it first", r.Slug)
	}
	m, err := c.ask(ctx, r)
	if err != nil {
		return a, false, err
	}
	if err := rundb.SaveModule(ctx, c.db, m); err != nil {
		return a, false, err
	}
	if m, err = rundb.Module(ctx, c.db, m.Slug); err != nil {
		return a, false, err
	}
	a, err = agentOnWire(m)
	return a, isNew, err
}

// ask reads the manifest from the agent's server and checks it against the request. The proof is checked first,
// from what is indexed: nothing is sent to a server that did not prove anything, except in development.
func (c *Control) ask(ctx context.Context, r AgentRegistration) (m repute.Module, err error) {
	if m.Agent, err = c.identity(ctx, r.AgentID); err != nil {
		return m, err
	}
	if m.Agent != nil {
		// Development mode requires no proof, but a given one is stored.
		if m.Proof, err = c.proven(ctx, r, *m.Agent, time.Now().UTC()); err != nil &&
			!(c.o.Lenient && r.Proof == nil && errors.Is(err, repute.ErrInvalid)) {
			return m, err
		}
	}
	if c.o.Agents == nil {
		return m, repute.Invalid("url", "no agents elsewhere are taken here", "an agent of the program")
	}
	module, err := remote.Open(ctx, r.URL, remote.Options{Client: c.o.Agents})
	if errors.Is(err, repute.ErrUnavailable) {
		// The reason goes to the log only: it may reveal the operator's network to the caller.
		c.log.WarnContext(ctx, "an agent to be registered does not answer", "slug", r.Slug, "error", err)
		return m, repute.Invalid("url", "the agent does not answer there",
			"an address at which GET {url}/info answers JSON; orchestrator.agent_hosts must list one that is not public")
	}
	if err != nil {
		return m, err
	}
	info := module.Info()
	if info.Slug != r.Slug {
		return m, repute.Invalid("slug", fmt.Sprintf("the agent says that it is %.80q", info.Slug),
			"the slug that it has")
	}
	if err := sameIdentity(m.Agent, info.Manifest.ERC8004); err != nil {
		return m, err
	}
	_, m.DryRun = module.(orchestrator.DryRunner)
	m.Slug, m.URL, m.Manifest = info.Slug, r.URL, journal.JSON(info.Manifest)
	return m, nil
}

// identity resolves the identity of an indexed agent. It is nil when the request names none, which only a lenient
// orchestrator accepts. An agent that is not indexed yet is not found, since no gate could judge it.
func (c *Control) identity(ctx context.Context, text string) (*repute.AgentID, error) {
	if text == "" {
		if c.o.Lenient {
			return nil, nil
		}
		return nil, repute.Invalid("agentId", "is missing",
			"agents work under their onchain identity: eip155:chain:registry:id or chain:id")
	}
	ref, err := repute.ParseAgentRef(text)
	if err != nil {
		return nil, repute.Invalid("agentId", fmt.Sprintf("%.80q is no id of an agent", text),
			"eip155:chain:registry:id or chain:id")
	}
	id, err := chaindb.ResolveAgent(ctx, c.db, ref, c.o.DefaultChain)
	if err != nil {
		return nil, err
	}
	if _, _, err := query.Agent(ctx, c.db, id, repute.At{Finality: repute.Latest}); err != nil {
		return nil, err
	}
	return &id, nil
}

// sameIdentity refuses an identity that the agent's own manifest contradicts.
func sameIdentity(id *repute.AgentID, said *standard.ManifestIdentity) error {
	if said == nil || id == nil {
		return nil
	}
	if said.AgentID.String() != id.TokenID.String() || said.ChainID != 0 && said.ChainID != id.ChainID {
		return repute.Invalid("agentId", fmt.Sprintf("the agent's manifest says %d:%.80s", said.ChainID, said.AgentID),
			"the identity that it has")
	}
	return nil
}

// removeAgent serves DELETE /v1/agents/{slug}. Agents that are parts of the program stay.
func (c *Control) removeAgent(ctx context.Context, _ string, in *rest.SlugInput,
	_ rest.None) (*rest.Answer[Removed], error) {
	m, err := c.module(ctx, in.Slug)
	if err != nil {
		return nil, err
	}
	if m.URL == "" {
		return nil, repute.Conflict("agent %s is a part of the program and cannot be removed", m.Slug)
	}
	if err := rundb.RemoveModule(ctx, c.db, m.Slug); err != nil {
		return nil, err
	}
	return rest.Say(&Removed{m.Slug}), nil
}
