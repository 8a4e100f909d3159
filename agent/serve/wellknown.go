package serve

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"repute/agent"
	"repute/internal/httpapi"
)

// specVersion is the version of the Agent Runtime Specification that is served.
const specVersion = "1.0.0"

// problemBody is the body of a router's problem.
func problemBody(err error) error {
	var p *agent.Problem
	if !errors.As(err, &p) {
		return err
	}
	b := httpapi.NewError(p.Status, p.Code, http.StatusText(p.Status), p.Message)
	b.Hint, b.Retry = p.Hint, p.Retry
	return b
}

// object is JSON.
type object map[string]any

// registration answers the registration file: that of ERC-8004 with the members of the specification
// (appendix A) in one object.
func (s *surface) registration(c echo.Context) error {
	id, p, base := s.router.ID(), &s.o.Profile, s.base(c.Request())
	prices, tiers := object{}, []string{}
	for _, one := range s.router.Services() {
		d := one.Definition()
		if one.Price != nil {
			prices[d.Name] = one.Price.Amount + " " + one.Price.Currency
		}
		if tier := fmt.Sprintf("tier%d", d.TrustTier); !slices.Contains(tiers, tier) {
			tiers = append(tiers, tier)
		}
	}
	out := object{
		"type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
		"name": p.Name, "description": p.Description, "version": s.router.Version(), "specVersion": specVersion,
		"services": []object{{"name": "web", "endpoint": base},
			{"name": "A2A", "endpoint": base + "/.well-known/agent-card.json", "version": a2aVersion}},
		"registrations": []object{{"agentId": id.TokenID.Dec(),
			"agentRegistry": fmt.Sprintf("eip155:%d:%s", id.ChainID, id.Registry.Hex())}},
		"supportedTrust": orEmpty(p.SupportedTrust), "active": true, "x402Support": len(prices) > 0,
		"agentId": id.TokenID.Dec(), "endpoints": object{"http": base}, "capabilities": s.names(), "trustTiers": tiers,
		"payment": object{"x402Enabled": len(prices) > 0, "pricing": prices},
	}
	if n, ok := number(id.TokenID.Uint64(), id.TokenID.IsUint64()); ok {
		out["registrations"].([]object)[0]["agentId"] = n
	}
	if p.Image != "" {
		out["image"] = p.Image
	}
	if p.PolicyURI != "" {
		out["policy"] = object{"uri": p.PolicyURI}
	}
	if owners := s.owners(); len(owners) > 0 {
		out["owner"] = owners[0]
	}
	return c.JSON(http.StatusOK, out)
}

// number returns an id that JSON numbers hold exactly.
func number(n uint64, fits bool) (uint64, bool) { return n, fits && n < 1<<53 }

func (s *surface) owners() (out []string) {
	if s.o.Owners == nil {
		return nil
	}
	for _, a := range s.o.Owners() {
		out = append(out, a.Hex())
	}
	return out
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// a2aVersion is the version of A2A that the card has.
const a2aVersion = "0.3.0"

// card answers the agent card.
func (s *surface) card(c echo.Context) error {
	base, skills := s.base(c.Request()), []object{}
	for _, one := range s.router.Services() {
		d := one.Definition()
		skills = append(skills, object{"id": d.Name, "name": d.Name, "description": d.Description,
			"tags": []string{"erc-8004"}, "inputModes": []string{jsonType}, "outputModes": []string{jsonType}})
	}
	return c.JSON(http.StatusOK, object{"protocolVersion": a2aVersion, "name": s.o.Profile.Name,
		"description": s.o.Profile.Description, "url": base, "preferredTransport": "HTTP+JSON",
		"version": s.router.Version(), "capabilities": object{"streaming": false, "pushNotifications": false},
		"defaultInputModes": []string{jsonType}, "defaultOutputModes": []string{jsonType}, "skills": skills})
}
