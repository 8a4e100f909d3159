package api

import (
	"context"

	"repute/api/answers"
	"repute/api/wire"
)

// manifestInput names a domain.
type manifestInput struct {
	answers.Request
	answers.ManifestPath
}

// mountManifests adds the operations on manifests of domains.
func (a *API) mountManifests() {
	get(a, "/manifests", "list-manifests", "Lists the agent.json manifests of domains, ordered by domain",
		byFilter((*answers.ManifestsQuery).Filter, a.Manifests))
	get(a, "/manifests/{domain}", "get-manifest",
		"Returns a domain's agent.json manifest: what it says, what is proven, how its intents are paid, and its agents",
		a.getManifest)
	get(a, "/intents", "search-intents", "Searches what services offer in their agent.json manifests",
		byFilter((*answers.IntentsQuery).Filter, a.Intents))
}

// getManifest serves GET /manifests/{domain}.
func (a *API) getManifest(ctx context.Context, in *manifestInput) (*output[wire.ManifestAnswer], error) {
	m, err := a.Manifest(ctx, in.Domain)
	if err != nil {
		return nil, err
	}
	return ok(*m), nil
}
