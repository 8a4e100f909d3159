package api

import (
	"context"

	"repute/api/answers"
	"repute/api/wire"
)

// Inputs of the operations on manifests.
type (
	manifestsInput struct{ answers.ManifestsQuery }
	manifestInput  struct {
		answers.Request
		answers.ManifestPath
	}
	intentsInput struct{ answers.IntentsQuery }
)

// mountManifests adds the operations on manifests of domains.
func (a *API) mountManifests() {
	get(a, "/manifests", "list-manifests", "Lists the agent.json manifests of domains, ordered by domain",
		a.listManifests)
	get(a, "/manifests/{domain}", "get-manifest",
		"Returns a domain's agent.json manifest: what it says, what is proven, how its intents are paid, and its agents",
		a.getManifest)
	get(a, "/intents", "search-intents", "Searches what services offer in their agent.json manifests", a.searchIntents)
}

// listManifests serves GET /manifests.
func (a *API) listManifests(ctx context.Context, in *manifestsInput) (*output[wire.ManifestList], error) {
	f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	list, err := a.Manifests(ctx, f)
	if err != nil {
		return nil, err
	}
	return ok(list), nil
}

// getManifest serves GET /manifests/{domain}.
func (a *API) getManifest(ctx context.Context, in *manifestInput) (*output[wire.ManifestAnswer], error) {
	m, err := a.Manifest(ctx, in.Domain)
	if err != nil {
		return nil, err
	}
	return ok(*m), nil
}

// searchIntents serves GET /intents.
func (a *API) searchIntents(ctx context.Context, in *intentsInput) (*output[wire.IntentList], error) {
	f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	list, err := a.Intents(ctx, f)
	if err != nil {
		return nil, err
	}
	return ok(list), nil
}
