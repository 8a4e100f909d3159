package agents

import (
	"net/http"
	"slices"

	"repute/agent/a2aserver"
	"repute/agent/remoteserver"
	"repute/agent/serve"
	"repute/agent/toolserver"
)

// surface is the HTTP surface of an agent, with the others mounted on it. All have one limit of size.
func (b *builder) surface() (http.Handler, error) {
	a, router := b.config, b.out.router
	proxies, err := a.Limits.Prefixes()
	if err != nil {
		return nil, err
	}
	b.out.tools, err = toolserver.New(toolserver.Options{Router: router, Name: a.Profile.Name, MaxBody: a.Limits.MaxBody,
		Log: b.log})
	if err != nil {
		return nil, err
	}
	b.out.tasks = a2aserver.New(a2aserver.Options{Router: router, Name: a.Profile.Name,
		Description: a.Profile.Description, Image: a.Profile.Image, MaxBody: a.Limits.MaxBody, Log: b.log})
	orchestrators, err := remoteserver.New(remoteserver.Options{Router: router, Name: a.Profile.Name,
		Description: a.Profile.Description, MaxBody: a.Limits.MaxBody, Log: b.log})
	if err != nil {
		return nil, err
	}
	return serve.New(serve.Options{Router: router, Owners: b.out.upkeep.Owners, PublicReceipts: a.Receipts.Public,
		MaxBody: a.Limits.MaxBody, Rate: a.Limits.Rate, Burst: a.Limits.Burst, Proxies: proxies,
		Registry: b.registry, Log: b.log, Card: b.out.tasks.Card,
		Mounts: slices.Concat(b.out.tools.Mounts(), b.out.tasks.Mounts(), orchestrators.Mounts()),
		Profile: serve.Profile{Name: a.Profile.Name, Description: a.Profile.Description, Image: a.Profile.Image,
			URL: a.Profile.URL, PolicyURI: a.Policy.URI, SupportedTrust: a.Profile.SupportedTrust}})
}
