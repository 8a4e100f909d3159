package publication

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
)

// Commitment is a promise of the operator, which the manifest's key signs.
type Commitment struct {
	Type       string `json:"type"`
	Constraint string `json:"constraint"`
	Verifiable bool   `json:"verifiable"`
	Ref        string `json:"ref,omitempty"`
}

// Options are what an agent publishes.
type Options struct {
	// Domain serves the manifest. Empty: the host of URL, if it is a public domain without a port.
	Domain string
	// URL is where clients reach the agent; empty: the root of Domain.
	URL               string
	Name, Description string
	PayTo             common.Address
	Services          []*agent.Service
	// Key proves the domain's identity and signs the commitments; nil: the manifest has no identity.
	Key ed25519.PrivateKey
	// Commitments are published with a Key alone: unsigned ones are nobody's.
	Commitments []Commitment
}

// Documents are the files that an agent serves below /.well-known. They are nil where there is none.
type Documents struct {
	Manifest []byte // agent.json
	DID      []byte // did.json
}

// New makes the documents of an agent; none where no domain is known. repute.ErrInvalid names the member of the
// configuration that is wrong.
func New(o Options) (Documents, error) {
	base, err := o.base()
	if err != nil || o.Domain == "" {
		return Documents{}, err
	}
	doc := manifest{Version: version, Origin: o.Domain, PayoutAddress: o.PayTo.Hex(),
		DisplayName: agentText(o.Name, maxName), Description: agentText(o.Description, maxDescription),
		Payments: paymentsOf(o.Services, o.PayTo)}
	for _, s := range o.Services {
		doc.Intents = append(doc.Intents, intentOf(s, base))
	}
	if o.Key != nil {
		doc.Identity = &identityDoc{identity.WebDID(o.Domain), identity.EncodeKey(o.Key.Public().(ed25519.PublicKey))}
	}
	if len(o.Commitments) > 0 {
		doc.Commitments = &commitments{"1.0", o.Commitments}
	}
	return o.write(&doc)
}

// base completes the domain, and returns the path below which the agent's own paths are.
func (o *Options) base() (string, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "", repute.Invalid("profile.url", err.Error(), "a URL")
	}
	if o.Domain == "" && u.Scheme == "https" && u.Port() == "" && isPublic(u.Hostname()) {
		o.Domain = u.Hostname()
	}
	o.Domain = strings.ToLower(o.Domain)
	switch {
	case o.Domain == "" && o.Key != nil:
		return "", repute.Invalid("manifest.domain", "is missing, and profile.url names no public domain",
			"the domain that serves the manifest")
	case o.Key == nil && len(o.Commitments) > 0:
		return "", repute.Invalid("manifest.commitments", "nobody signs them", "manifest.key_env, or no commitments")
	case o.Domain != "" && !isPublic(o.Domain):
		return "", repute.Invalid("manifest.domain", fmt.Sprintf("%.80q is no public domain name", o.Domain),
			"the host that serves the manifest, without scheme, port and path")
	case o.Domain != "" && o.URL != "" && (!agentjson.SameHost(o.Domain, u.Host) || u.Scheme != "https"):
		return "", repute.Invalid("manifest.domain", fmt.Sprintf("%.80q does not serve profile.url", o.Domain),
			"the host of profile.url, which is https: a manifest speaks for its own host alone")
	}
	return strings.TrimRight(u.Path, "/"), nil
}

// isPublic reports whether a manifest can speak for a host.
func isPublic(host string) bool {
	_, ok := agentjson.PublicHost(host)
	return ok
}

// write encodes and signs a manifest, and judges it as readers will.
func (o *Options) write(doc *manifest) (out Documents, err error) {
	raw, err := doc.encode()
	if err != nil {
		return out, err
	}
	_, problems := agentjson.Parse(raw, agentjson.Options{Host: o.Domain, Profile: agentjson.Strict})
	if p, wrong := repute.FirstError(problems); wrong {
		return out, repute.Invalid("manifest", fmt.Sprintf("agent.json would be wrong at %s: %s", cmp.Or(p.Path, "/"),
			p.Message), agentjson.Hint(p.Code))
	}
	if o.Key == nil {
		return Documents{Manifest: raw}, nil
	}
	if len(o.Commitments) > 0 {
		if raw, err = agentjson.SignCommitments(raw, o.Key); err != nil {
			return out, err
		}
	}
	out.Manifest = raw
	out.DID, err = identity.NewDIDDocument(o.Domain, o.Key.Public().(ed25519.PublicKey))
	return out, err
}

// version is that of the specification that manifests are written by.
const version = "1.4"

// encode writes a manifest for people to read.
func (m *manifest) encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return out.Bytes(), nil
}

// manifest is the JSON of agent.json, with members in the order of the specification.
type manifest struct {
	Version       string       `json:"version"`
	Origin        string       `json:"origin"`
	PayoutAddress string       `json:"payout_address"`
	DisplayName   string       `json:"display_name,omitempty"`
	Description   string       `json:"description,omitempty"`
	Identity      *identityDoc `json:"identity,omitempty"`
	Intents       []intent     `json:"intents,omitempty"`
	Payments      *payments    `json:"payments,omitempty"`
	Commitments   *commitments `json:"commitments,omitempty"`
}

type identityDoc struct {
	DID       string `json:"did"`
	PublicKey string `json:"public_key"`
}

type commitments struct {
	SchemaVersion string       `json:"schema_version"`
	Entries       []Commitment `json:"entries"`
}
