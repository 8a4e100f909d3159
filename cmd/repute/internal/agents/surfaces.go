package agents

import (
	"crypto/ed25519"
	"net/http"
	"os"
	"slices"

	"repute"
	"repute/agent/a2aserver"
	"repute/agent/publication"
	"repute/agent/remoteserver"
	"repute/agent/serve"
	"repute/agent/toolserver"
	"repute/manifest/agentjson/identity"
)

// surface is the HTTP surface of an agent, with the others mounted on it. All have one limit of size.
func (b *builder) surface() (http.Handler, error) {
	a, router := b.config, b.out.router
	proxies, err := a.Limits.Prefixes()
	if err != nil {
		return nil, err
	}
	b.out.tools, err = toolserver.New(toolserver.Options{Router: router, Name: a.Profile.Name,
		MaxBody: a.Limits.MaxBody,
		Log:     b.log})
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
	own, err := b.publication()
	if err != nil {
		return nil, err
	}
	return serve.New(serve.Options{Manifest: own.Manifest, DID: own.DID,
		Router: router, Owners: b.out.upkeep.Owners, PublicReceipts: a.Receipts.Public,
		MaxBody: a.Limits.MaxBody, Rate: a.Limits.Rate, Burst: a.Limits.Burst, Proxies: proxies,
		Registry: b.registry, Log: b.log, Card: b.out.tasks.Card,
		Mounts: slices.Concat(b.out.tools.Mounts(), b.out.tasks.Mounts(), orchestrators.Mounts()),
		Profile: serve.Profile{Name: a.Profile.Name, Description: a.Profile.Description, Image: a.Profile.Image,
			URL: a.Profile.URL, PolicyURI: a.Policy.URI, SupportedTrust: a.Profile.SupportedTrust}})
}

// publication makes the agent's own agent.json and DID document. The key of the manifest is an Ed25519 key of its own
// and not that of the account. Without it the manifest is not signed.
func (b *builder) publication() (publication.Documents, error) {
	a := b.config
	o := publication.Options{Domain: a.Manifest.Domain, URL: a.Profile.URL, Name: a.Profile.Name,
		Description: a.Profile.Description, PayTo: b.payTo, Services: b.out.router.Services()}
	for _, c := range a.Manifest.Commitments {
		o.Commitments = append(o.Commitments, publication.Commitment(c))
	}
	if name := a.Manifest.KeyEnv; name != "" {
		var err error
		if o.Key, err = manifestKey(name); err != nil {
			return publication.Documents{}, err
		}
	}
	out, err := publication.New(o)
	if err == nil && out.Manifest == nil {
		b.log.Info("no agent.json is served: neither manifest.domain nor profile.url names a public domain")
	}
	return out, err
}

// manifestKey reads the Ed25519 key of the manifest. The error does not repeat what the variable has.
func manifestKey(variable string) (ed25519.PrivateKey, error) {
	key, err := identity.ParsePrivateKey([]byte(os.Getenv(variable)))
	if err != nil {
		return nil, repute.Invalid("manifest.key_env", "the variable has no Ed25519 key",
			"PEM (PKCS #8), as repute manifest keygen writes it")
	}
	return key, nil
}
