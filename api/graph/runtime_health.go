package graph

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

// runtimeHealth is what a runtime says of itself.
type runtimeHealth struct {
	URL, Status, Version string
	Accepting            bool
	Uptime               wire.Long
	Capabilities         []string
	Receipts             *[]runtimeReceipt
}

// runtimeReceipt is an execution that a runtime says that it was paid for.
type runtimeReceipt struct {
	ID, Settlement, Amount, Currency, Capability string
	At                                           wire.Time
}

// RuntimeHealth asks the runtime of an agent for its health and receipts, through the guard of documents and within the
// limit of the reads that a caller may cause.
func (q *queryResolver) RuntimeHealth(ctx context.Context, args struct{ Agent wire.ID }) (*runtimeHealth, error) {
	if err := charge(ctx, checkCost); err != nil {
		return nil, err
	}
	agents, err := q.AgentsByID(ctx, struct{ IDs []wire.ID }{[]wire.ID{args.Agent}})
	if err != nil {
		return nil, err
	}
	if agents[0] == nil {
		return nil, &repute.MissingError{What: "agent", Why: "is not indexed", Hint: "see /agents"}
	}
	agent := agents[0].Agent
	for _, origin := range originsOf(agent.Services) {
		switch h, err := q.runtimeAt(ctx, origin, agent.ID, string(agent.TokenID)); {
		case h != nil:
			return h, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && !errors.Is(err, repute.ErrInvalid) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}
	}
	return nil, &repute.MissingError{What: "runtime of this agent", Why: "answers at none of the endpoints of its document" +
		" that were asked: those at its first two addresses, A2A and MCP before others, the web and profiles last",
		Hint: "ask the agent's owner; a runtime of this program answers GET /health at its address"}
}

// runtimeAt asks an origin for the runtime of an agent; nil where something else answers. Health names a token alone, so
// the receipts tell whether it is the agent of this chain and registry: those of another one are not found. Any other
// failure leaves the health without receipts.
func (q *queryResolver) runtimeAt(ctx context.Context, origin string, id wire.ID, token string) (*runtimeHealth, error) {
	h, err := q.health(ctx, origin, token)
	if h == nil || err != nil {
		return nil, err
	}
	h.Receipts, err = q.runtimeReceipts(ctx, origin, id)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	}
	return h, nil
}

// rankOf orders services by how likely a runtime answers at them: those that speak a protocol of agents, then others, then
// the web and profiles.
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
func (q *queryResolver) health(ctx context.Context, origin, token string) (*runtimeHealth, error) {
	raw, err := q.fetchSoon(ctx, origin+"/health")
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
	return &runtimeHealth{URL: origin, Status: brief(said.Status), Version: brief(said.Version), Accepting: said.AcceptingRequests,
		Uptime:       wire.Long(max(said.Uptime, 0)),
		Capabilities: wire.Each(said.Capabilities[:min(len(said.Capabilities), shownCapabilities)], brief)}, nil
}

// fetchSoon is fetch within runtimePatience.
func (q *queryResolver) fetchSoon(ctx context.Context, uri string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, runtimePatience)
	defer cancel()
	return q.fetch(ctx, uri)
}

// runtimeReceipts asks an origin for the newest receipts of an agent; nil where it answers something else.
func (q *queryResolver) runtimeReceipts(ctx context.Context, origin string, id wire.ID) (*[]runtimeReceipt, error) {
	raw, err := q.fetchSoon(ctx, origin+"/agents/"+string(id)+"/receipts?limit=20")
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
	out := []runtimeReceipt{}
	for _, r := range said[:min(len(said), shownPaid)] {
		out = append(out, runtimeReceipt{ID: brief(r.ReceiptID), Settlement: brief(r.Settlement), Amount: brief(r.Amount),
			Currency: brief(r.Currency), Capability: brief(r.Capability), At: *wire.EncodeTime(time.Unix(min(max(r.Timestamp, 1), 1<<37), 0))})
	}
	return &out, nil
}

// brief bounds a text of a runtime.
func brief(text string) string { return httpapi.Cut(httpapi.Clean(text), runtimeText) }
