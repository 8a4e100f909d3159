package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator/control/agentlog"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/standard"
)

// erc8004Type is the type member of a registration file.
const erc8004Type = "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"

// registrationDoc is agent-registration.json: the form of ERC-8004, with OpenFi's names added where
// they differ.
type registrationDoc struct {
	Type          string         `json:"type"`
	Name          string         `json:"name"`
	Description   string         `json:"description"`
	Services      []serviceDoc   `json:"services"`
	X402          bool           `json:"x402Support"`
	Active        bool           `json:"active"`
	Registrations []identityLine `json:"registrations"`
	Trust         []string       `json:"supportedTrust"`
}

// serviceDoc has name and endpoint for ERC-8004, kind and url for OpenFi.
type serviceDoc struct {
	Name        string `json:"name"`
	Endpoint    string `json:"endpoint"`
	Kind        string `json:"kind,omitempty"`
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
}

// identityLine is an entry of registrations. chainId is repeated for clients that do not parse the registry.
type identityLine struct {
	AgentID  json.Number `json:"agentId"`
	Registry string      `json:"agentRegistry"`
	ChainID  uint64      `json:"chainId"`
}

// registrationOf returns the registration file of an agent; own is the public URL of this service, or empty. Equal
// inputs give equal bytes, since the hash of the file may be on the chain.
func registrationOf(m repute.Module, f standard.Manifest, own string) registrationDoc {
	d := registrationDoc{Type: erc8004Type, Name: cmp.Or(f.Name, m.Slug), Description: f.Description,
		Services: []serviceDoc{}, Active: true,
		Registrations: []identityLine{}, Trust: []string{"reputation", "validation"}}
	for _, kind := range slices.Sorted(maps.Keys(f.Endpoints)) { // in order, so that the file has the same bytes each time
		s := serviceDoc{Name: kind, Endpoint: f.Endpoints[kind], URL: f.Endpoints[kind]}
		switch kind {
		case "mcp", "a2a", "oasf":
			s.Name, s.Kind = map[string]string{"mcp": "MCP", "a2a": "A2A", "oasf": "OASF"}[kind], kind
		case "web":
			s.Kind = kind
		case "api":
			s.Name, s.Kind = "openfi-api", "openfi-api"
		}
		if s.Endpoint != "" {
			d.Services = append(d.Services, s)
		}
	}
	if own != "" && f.Endpoints["api"] == "" {
		at := own + rest.Prefix + "/agents/" + m.Slug
		d.Services = append(d.Services, serviceDoc{Name: "openfi-api", Endpoint: at, Kind: "openfi-api", URL: at,
			Description: "where the agent is given work"})
	}
	if m.Agent != nil {
		d.Registrations = append(d.Registrations,
			identityLine{json.Number(m.Agent.TokenID.String()), registryOf(*m.Agent),
				m.Agent.ChainID})
		if common.IsHexAddress(f.OperatorWallet) { // verification requires this address as the agent's wallet on the chain
			at := fmt.Sprintf("eip155:%d:%s", m.Agent.ChainID, common.HexToAddress(f.OperatorWallet))
			d.Services = append(d.Services, serviceDoc{Name: "agentWallet", Endpoint: at, URL: at})
		}
	}
	return d
}

// registryOf returns the registry part of an agent's id, without the token.
func registryOf(id repute.AgentID) string {
	full, token := id.String(), ":"+id.TokenID.String()
	return full[:len(full)-len(token)]
}

// capabilityOf returns agent.json: the agent's own manifest, completed with the limits that apply
// where it names none, and with the identity under which it is registered.
func capabilityOf(m repute.Module, f standard.Manifest) standard.Manifest {
	most := f.Budget()
	f.ComputeConstraints = standard.ComputeConstraints{MaxSteps: &most.Steps, MaxToolCalls: &most.ToolCalls,
		MaxRuntimeMS: &most.RuntimeMS, MaxOnchainWrites: &most.OnchainWrites}
	f.Safety.MaxOnchainWritesPerRun = &most.OnchainWrites
	f.Schema, f.Name, f.Slug = standard.ManifestSchema, cmp.Or(f.Name, m.Slug), m.Slug
	f.Version = cmp.Or(f.Version, "0.0.0")
	f.Capabilities, f.TaskCategories = rest.OrEmpty(f.Capabilities), rest.OrEmpty(f.TaskCategories)
	if f.Tools == nil {
		f.Tools = []standard.ManifestTool{}
	}
	if m.Agent != nil {
		var tx string
		if f.ERC8004 != nil {
			tx = f.ERC8004.RegistrationTxHash
		}
		f.ERC8004 = &standard.ManifestIdentity{AgentRegistry: m.Agent.Registry.Hex(),
			AgentID: json.Number(m.Agent.TokenID.String()), ChainID: m.Agent.ChainID, RegistrationTxHash: tx}
	}
	return f
}

// sampleModule is the agent of the examples in the OpenAPI document.
func sampleModule() repute.Module { return repute.Module{Slug: "my-agent"} }

// mountFiles serves the three files of each agent, and those of the coordinator at the paths that OpenFi's clients
// read. They are built of the stored manifest at each request, and not cached: an agent may be registered again at
// any time.
func (c *Control) mountFiles() {
	for _, f := range []struct {
		name, id, summary string
		make              func(context.Context, echo.Context, repute.Module) (any, error)
		example           any
	}{
		{registrationFile, "registration",
			"Returns an agent's registration file as ERC-8004 defines it, with the names that OpenFi uses added",
			c.registrationFileOf, registrationOf(sampleModule(), standard.Manifest{}, "https://repute.example")},
		{manifestFile, "manifest", "Returns an agent's capability manifest", manifestFileOf,
			capabilityOf(sampleModule(), standard.Manifest{})},
		{logFile, "log", "Returns an agent's log: its runs, oldest first; entries are added and never changed",
			c.logFileOf,
			agentlog.File{Schema: agentlog.Schema,
				Agent: agentlog.Agent{Slug: "my-agent", Name: "My agent", Version: "1.0.0"},
				Runs:  []agentlog.Run{}}},
	} {
		serve := func(e echo.Context, slug string) error {
			ctx := e.Request().Context()
			m, err := c.module(ctx, slug)
			if err != nil {
				return err
			}
			doc, err := f.make(ctx, e, m)
			if err != nil {
				return err
			}
			e.Response().Header().Set("Cache-Control", "no-store")
			return e.JSON(http.StatusOK, doc)
		}
		paths := []string{f.name}
		if f.id != "registration" {
			paths = append(paths, f.id) // the names that tools use for the same files
		}
		params := []*huma.Param{httpapi.TextParam("slug", "path", "of the agent")}
		if f.name == logFile {
			params = append(params, httpapi.CountParam("limit", "query", 1, agentlog.MaxPage,
				"1 to 50, 20 when absent"),
				httpapi.TextParam("cursor", "query", "nextCursor of the page before"))
		}
		for _, path := range paths {
			c.server.Get(httpapi.Route{Path: rest.Prefix + "/agents/{slug}/" + path, Summary: f.summary, Params: params,
				ID: "get-agent-" + strings.Replace(path, ".", "-", 1), ContentType: "application/json",
				Example: f.example,
			}, httpapi.Strict(params, func(e echo.Context) error { return serve(e, e.Param("slug")) }))
		}
		if c.o.Coordinator != "" {
			c.server.Echo.GET("/.well-known/"+f.name,
				httpapi.Strict(params, func(e echo.Context) error { return serve(e, c.o.Coordinator) }))
		}
	}
}

// registrationFileOf returns the registration file of an agent.
func (c *Control) registrationFileOf(_ context.Context, _ echo.Context, m repute.Module) (any, error) {
	f, err := manifestOf(m)
	return registrationOf(m, f, c.o.PublicURL), err
}

// manifestFileOf returns the file agent.json of an agent.
func manifestFileOf(_ context.Context, _ echo.Context, m repute.Module) (any, error) {
	f, err := manifestOf(m)
	return capabilityOf(m, f), err
}

// logFileOf returns one page of the file agent_log.json of an agent.
func (c *Control) logFileOf(ctx context.Context, e echo.Context, m repute.Module) (any, error) {
	return c.agentLog(ctx, m, e.QueryParam("limit"), e.QueryParam("cursor"))
}

// agentLog returns a page of an agent's log.
func (c *Control) agentLog(ctx context.Context, m repute.Module, limit, cursor string) (agentlog.File, error) {
	f, err := manifestOf(m)
	if err != nil {
		return agentlog.File{}, err
	}
	return agentlog.Page(ctx, c.db, m, f, limit, cursor)
}
