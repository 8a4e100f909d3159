package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
)

const (
	// askedOrigins is how many origins of an agent's endpoints are asked for its runtime: what the error says.
	askedOrigins = 2
	// runtimePatience is how long one answer of a runtime may take, so that a slow origin leaves time for the next one.
	runtimePatience = 4 * time.Second
	// shownCapabilities is how many capabilities of a runtime are shown.
	shownCapabilities = 50
	// runtimeText bounds a text of a runtime, in bytes.
	runtimeText = 200
)

// Health is what a runtime says of itself.
type Health struct {
	URL, Status, Version string
	Accepting            bool
	Uptime               wire.Long
	Capabilities         []string
	Receipts             *[]Receipt
}

// Receipt is an execution that a runtime says that it was paid for.
type Receipt struct {
	ID, Settlement, Amount, Currency, Capability string
	At                                           wire.Time
}

// Fetch returns the bytes behind a URI, through the guard of documents. repute.ErrInvalid says why there are none.
type Fetch func(ctx context.Context, uri string) ([]byte, error)

// Ask asks the runtime of an agent for its health and receipts, at the first origins of its services.
// repute.ErrNotFound: none of them answers as its runtime.
func Ask(ctx context.Context, fetch Fetch, agent *wire.Agent) (*Health, error) {
	for _, origin := range originsOf(agent.Services) {
		switch h, err := fetch.runtimeAt(ctx, origin, agent.ID, string(agent.TokenID)); {
		case h != nil:
			return h, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !errors.Is(err, repute.ErrInvalid) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
	}
	return nil, &repute.MissingError{What: "runtime of this agent",
		Why: "answers at none of the endpoints of its document" +
			" that were asked: those at its first two addresses, A2A and MCP before others, the web and profiles last",
		Hint: "ask the agent's owner; a runtime of this program answers GET /health at its address"}
}

// runtimeAt asks an origin for the runtime of an agent; nil where something else answers. Health names a token alone,
// so the receipts tell whether it is the agent of this chain and registry: those of another one are not found. Any
// other failure leaves the health without receipts.
func (f Fetch) runtimeAt(ctx context.Context, origin string, id wire.ID, token string) (*Health, error) {
	h, err := f.health(ctx, origin, token)
	if h == nil || err != nil {
		return nil, err
	}
	h.Receipts, err = f.receipts(ctx, origin, id)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	}
	return h, nil
}

// rankOf orders services by how likely a runtime answers at them: those that speak a protocol of agents, then others,
// then the web and profiles.
func rankOf(s wire.AgentService) int {
	switch strings.ToLower(s.Name) {
	case "a2a", "mcp":
		return 0
	case "web", "website", "email", "twitter", "x", "farcaster", "telegram", "discord", "github", "ens", "did":
		return 2
	}
	return 1
}

// originsOf returns the first few origins of endpoints, the likeliest first.
func originsOf(services []wire.AgentService) (origins []string) {
	services = slices.Clone(services)
	slices.SortStableFunc(services, func(a, b wire.AgentService) int { return rankOf(a) - rankOf(b) })
	for _, s := range services {
		u, err := url.Parse(s.Endpoint)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			continue
		}
		if origin := u.Scheme + "://" + u.Host; !slices.Contains(origins, origin) && len(origins) < askedOrigins {
			origins = append(origins, origin)
		}
	}
	return origins
}

// health asks an origin for the health of the runtime of a token; nil where something else answers.
func (f Fetch) health(ctx context.Context, origin, token string) (*Health, error) {
	raw, err := f.soon(ctx, origin+"/health")
	if err != nil {
		return nil, err
	}
	var said struct {
		Status, AgentID, Version string
		Uptime                   int64
		Capabilities             []string
		AcceptingRequests        bool
	}
	if json.Unmarshal(raw, &said) != nil || said.Status == "" || said.AgentID != token {
		return nil, nil
	}
	return &Health{URL: origin, Status: brief(said.Status), Version: brief(said.Version),
		Accepting:    said.AcceptingRequests,
		Uptime:       wire.Long(max(said.Uptime, 0)),
		Capabilities: wire.Each(said.Capabilities[:min(len(said.Capabilities), shownCapabilities)], brief)}, nil
}

// soon is f within runtimePatience.
func (f Fetch) soon(ctx context.Context, uri string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	return f(ctx, uri)
}

// receipts asks an origin for the newest receipts of an agent; nil where it answers something else.
func (f Fetch) receipts(ctx context.Context, origin string, id wire.ID) (*[]Receipt, error) {
	raw, err := f.soon(ctx, origin+"/agents/"+string(id)+"/receipts?limit=20")
	if err != nil {
		return nil, err
	}
	var said []struct {
		ReceiptID, Settlement, Amount, Currency, Capability string
		Timestamp                                           int64
	}
	if json.Unmarshal(raw, &said) != nil {
		return nil, nil
	}
	out := []Receipt{}
	for _, r := range said[:min(len(said), ShownPaid)] {
		out = append(out, Receipt{ID: brief(r.ReceiptID), Settlement: brief(r.Settlement), Amount: brief(r.Amount),
			Currency: brief(r.Currency), Capability: brief(r.Capability),
			At: *wire.EncodeTime(time.Unix(min(max(r.Timestamp, 1), 1<<37), 0))})
	}
	return &out, nil
}

// brief bounds a text of a runtime.
func brief(text string) string { return httpapi.Cut(httpapi.Clean(text), runtimeText) }
