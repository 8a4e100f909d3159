package graph

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
)

const (
	// askedOrigins is how many origins of an agent's endpoints are asked for its runtime.
	askedOrigins = 2
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
		h, err := q.health(ctx, origin, string(agent.TokenID))
		if err != nil || h == nil {
			if err != nil && !errors.Is(err, repute.ErrInvalid) { // it may answer later
				return nil, err
			}
			continue
		}
		h.Receipts, err = q.runtimeReceipts(ctx, origin, string(agent.TokenID))
		return h, err
	}
	return nil, &repute.MissingError{What: "runtime of this agent", Why: "answers at none of the endpoints of its document",
		Hint: "ask the agent's owner; a runtime of this program answers GET /health at its address"}
}

// originsOf returns the first few origins of endpoints.
func originsOf(services []wire.AgentService) (origins []string) {
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
	raw, err := q.fetch(ctx, origin+"/health")
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

// runtimeReceipts asks an origin for the newest receipts of a token; nil where there are none to be read.
func (q *queryResolver) runtimeReceipts(ctx context.Context, origin, token string) (*[]runtimeReceipt, error) {
	raw, err := q.fetch(ctx, origin+"/agents/"+token+"/receipts?limit=20")
	if errors.Is(err, repute.ErrInvalid) {
		return nil, nil
	}
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
func brief(text string) string {
	text = httpapi.Clean(text)
	if len(text) <= runtimeText {
		return text
	}
	cut := runtimeText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.TrimSpace(text[:cut]) + "…"
}
