package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
)

// specVersion is the version of the Agent Runtime Specification that is served.
const specVersion = "1.0.0"

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
	services, endpoints := s.services(base)
	out := object{
		"type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
		"name": p.Name, "description": p.Description, "version": s.router.Version(), "specVersion": specVersion,
		"services": services,
		"registrations": []object{{"agentId": id.TokenID.Dec(),
			"agentRegistry": fmt.Sprintf("eip155:%d:%s", id.ChainID, id.Registry.Hex())}},
		"supportedTrust": append([]string{}, p.SupportedTrust...), "active": true, "x402Support": len(prices) > 0,
		"agentId": id.TokenID.Dec(), "endpoints": endpoints, "capabilities": s.router.Names(), "trustTiers": tiers,
		"payment": object{"x402Enabled": len(prices) > 0, "pricing": prices},
	}
	if n := id.TokenID.Uint64(); id.TokenID.IsUint64() && n < 1<<53 { // JSON numbers hold it exactly
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

// services are the surfaces of the agent, as ERC-8004 and as the specification lists them.
func (s *surface) services(base string) (services []object, endpoints object) {
	services, endpoints = []object{{"name": "web", "endpoint": base}}, object{"http": base}
	for _, m := range s.o.Mounts {
		if m.Name == "" {
			continue
		}
		one := object{"name": m.Name, "endpoint": base + m.Endpoint}
		if m.Version != "" {
			one["version"] = m.Version
		}
		services, endpoints[strings.ToLower(m.Name)] = append(services, one), base+m.Endpoint
	}
	return services, endpoints
}

// owners are the owner and the wallet as the chain said last; none before.
func (s *surface) owners() (out []string) {
	if s.o.Owners == nil {
		return nil
	}
	for _, a := range s.o.Owners() {
		out = append(out, a.Hex())
	}
	return out
}

// published answers a document that does not change while the agent runs.
func published(c echo.Context, document json.RawMessage) error {
	if document == nil {
		return httpapi.NoRoute()
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
	return c.Blob(http.StatusOK, jsonType, document)
}

// card answers the agent card.
func (s *surface) card(c echo.Context) error {
	if s.o.Card == nil {
		return httpapi.NoRoute()
	}
	raw, err := s.o.Card(c.Request().Context(), s.base(c.Request()))
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, jsonType, raw)
}
