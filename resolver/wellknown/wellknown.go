// Package wellknown fetches what a host publishes about itself at well-known places: its agent.json, the DID document
// of its did:web, and its registry file. Such documents speak for the host that serves them, so they are read over
// https alone and from the host itself: no redirect leaves it. Requests pass the guard of package resolver.
//
// Manifest is for anybody who asks about one host. A crawler, which comes unasked, asks Robots first.
package wellknown

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"repute/internal/httprule"
	"repute/resolver"
)

// Limits of documents, in bytes.
const (
	maxManifest = 512 << 10 // agent.json
	maxOther    = 256 << 10 // did.json, agent-trust.json
)

// ManifestPaths are where a manifest is, in the order asked. The second is asked only where the first does not exist.
func ManifestPaths() []string { return []string{"/.well-known/agent.json", "/agent.json"} }

// Fetcher fetches well-known documents. It is safe for concurrent use.
type Fetcher struct{ client *resolver.Client }

// New returns a fetcher that sends its requests by a client.
func New(client *resolver.Client) *Fetcher { return &Fetcher{client: client} }

// Known is a manifest that was fetched before.
type Known struct {
	URL string // Found.URL
	resolver.Validators
}

// Found is a manifest that a host serves.
type Found struct {
	resolver.Document
	URL string // of the two places the one that answered
	// Host is the name that the manifest's origin must equal. It has its port where that is not 443, and then equals
	// no origin.
	Host string
}

// Manifest fetches the manifest of a host: agent.json below /.well-known, or in the root where the former is a 404. A
// host is a name, with a port for development. The error is a *resolver.Error.
func (f *Fetcher) Manifest(ctx context.Context, host string, known Known) (Found, error) {
	base, err := origin(host)
	if err != nil {
		return Found{}, err
	}
	for _, path := range ManifestPaths() {
		found := Found{URL: base + path, Host: resolver.HostOf(base)}
		var validators resolver.Validators
		if known.URL == found.URL {
			validators = known.Validators
		}
		found.Document, err = f.client.FetchWithin(ctx, found.URL, validators,
			resolver.Limits{MaxBytes: maxManifest, SameOrigin: true})
		if err == nil {
			return found, nil
		}
		if !isMissing(err) {
			return Found{}, err
		}
	}
	return Found{}, err
}

// At fetches the manifest at a URL, which need not be one of the well-known places.
func (f *Fetcher) At(ctx context.Context, target string, known Known) (Found, error) {
	found := Found{URL: target, Host: resolver.HostOf(target)}
	var validators resolver.Validators
	if known.URL == target {
		validators = known.Validators
	}
	var err error
	found.Document, err = f.client.FetchWithin(ctx, target, validators,
		resolver.Limits{MaxBytes: maxManifest, SameOrigin: true})
	return found, err
}

// Document fetches another document that a host publishes about itself, such as its DID document.
func (f *Fetcher) Document(ctx context.Context, target string) ([]byte, error) {
	doc, err := f.client.FetchWithin(ctx, target, resolver.Validators{},
		resolver.Limits{MaxBytes: maxOther, SameOrigin: true})
	return doc.Bytes, err
}

// Head asks a URL of a host for its header alone, and returns the status of its answer. No redirect is followed. The
// error is a *resolver.Error.
func (f *Fetcher) Head(ctx context.Context, target string) (status int, err error) {
	return f.client.Head(ctx, target)
}

// isMissing reports whether a host answered that a document does not exist. A 410 says that there is none at all.
func isMissing(err error) bool {
	var e *resolver.Error
	return errors.As(err, &e) && e.Reason == resolver.ReasonNotFound && e.Status == 404
}

// origin returns the https origin of a host.
func origin(host string) (string, error) {
	refused := func(err error) error { return &resolver.Error{Reason: resolver.ReasonBadURL, Err: err} }
	if host == "" || strings.ContainsAny(host, "/?#@\\ \t\r\n") {
		return "", refused(fmt.Errorf("%.80q is no host", host))
	}
	u, err := url.Parse("https://" + httprule.Host(host))
	if err != nil || u.Hostname() == "" {
		return "", refused(fmt.Errorf("%.80q is no host", host))
	}
	return "https://" + strings.TrimSuffix(u.Host, ":443"), nil
}
