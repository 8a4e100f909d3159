package stats

import (
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/searchdb"
)

// Facet is a value and how many of the agents found have it.
type Facet struct {
	Value string    `json:"value" doc:"in lower case"`
	Count wire.Long `json:"count"`
}

// Facets are what agents offer, counted: of each the thirty most frequent values.
type Facets struct {
	Total          wire.Total  `json:"total" doc:"agents counted one by one, near-identical ones too; where it says gte, only so many were counted below, too"`
	Services       []Facet     `json:"services"`
	Skills         []Facet     `json:"skills"`
	Domains        []Facet     `json:"domains"`
	SupportedTrust []Facet     `json:"supportedTrust"`
	Chains         []Facet     `json:"chains" doc:"by chain id"`
	Status         []Facet     `json:"status" doc:"by state of the document"`
	X402           []Facet     `json:"x402" doc:"true or false, of those that say either"`
	Active         []Facet     `json:"active" doc:"true or false, of those that say either"`
	Match          *string     `json:"match" enum:"all,most,near" doc:"as in the list; null without q, and when no agent matches"`
	AsOf           []wire.AsOf `json:"asOf" doc:"one per chain asked"`
}

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b Facets) Steady() any { b.AsOf = wire.Each(b.AsOf, wire.SteadyAsOf); return b }

// EncodeFacets writes what the agents found offer, counted.
func EncodeFacets(f searchdb.Facets) Facets {
	list := func(in []searchdb.Facet) []Facet {
		return wire.Each(in, func(f searchdb.Facet) Facet { return Facet{httpapi.Clean(f.Value), wire.Long(f.Count)} })
	}
	return Facets{
		Total: wire.EncodeTotal(f.Total), Services: list(f.Services), Skills: list(f.Skills), Domains: list(f.Domains),
		SupportedTrust: list(f.Trust), Chains: list(f.Chains), Status: list(f.Status),
		X402: list(f.X402), Active: list(f.Active), Match: wire.OrNull(string(f.Match)),
		AsOf: wire.Each(f.AsOf, wire.EncodeAsOf),
	}
}
