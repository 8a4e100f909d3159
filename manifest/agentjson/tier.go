package agentjson

import (
	"crypto/ed25519"
	"strings"
	"time"

	"repute"
	"repute/manifest/agentjson/identity"
)

// Tier says how much a manifest offers. Each includes those before it.
type Tier int

// Tiers.
const (
	TierNone       Tier = iota // nothing is proven: the manifest has errors, or its host is not its origin
	TierMinimal                // 1: an origin and an address
	TierStructured             // 2: with intents
	TierIdentified             // 3: with the publisher's identity
	TierSigned                 // 3+: with signed commitments
)

// String returns "none", "1", "2", "3" or "3+".
func (t Tier) String() string {
	switch t {
	case TierMinimal:
		return "1"
	case TierStructured:
		return "2"
	case TierIdentified:
		return "3"
	case TierSigned:
		return "3+"
	}
	return "none"
}

// MarshalText implements encoding.TextMarshaler.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Declared returns the tier that a manifest claims. Nothing of it is proven.
func Declared(m Manifest) Tier {
	identified := m.Identity != nil && (m.Identity.DID != "" || m.Identity.PublicKey != "")
	switch {
	case identified && m.Commitments != nil && m.Commitments.Signature != "":
		return TierSigned
	case identified:
		return TierIdentified
	case len(m.Intents) > 0:
		return TierStructured
	}
	return TierMinimal
}

// Purpose is what a document is fetched for.
type Purpose string

// Purposes of documents.
const (
	ForDID    Purpose = "did"         // Evidence.DIDDocument
	ForIssuer Purpose = "agent-trust" // Evidence.AgentTrust
)

// Add keeps a document that was fetched for a purpose.
func (e *Evidence) Add(purpose Purpose, body []byte) {
	switch purpose {
	case ForDID:
		e.DIDDocument = body
	case ForIssuer:
		e.AgentTrust = body
	}
}

// Fetch is a document that Verify needs.
type Fetch struct {
	Purpose Purpose
	URL     string
}

// Fetches returns the documents that Verify needs for a manifest. All are of the manifest's origin, and no answer makes
// further ones necessary.
func Fetches(m Manifest) []Fetch {
	var out []Fetch
	id := m.Identity
	if id == nil || m.Origin == "" {
		return nil
	}
	if identity.IsWebDID(id.DID, m.Origin) {
		if url, err := identity.URL(identity.WebDID(m.Origin)); err == nil {
			out = append(out, Fetch{ForDID, url})
		}
	}
	if id.IssuerID != "" && id.PublicKey == "" {
		out = append(out, Fetch{ForIssuer, "https://" + m.Origin + "/.well-known/agent-trust.json"})
	}
	return out
}

// Evidence is what is known beside the manifest.
// The zero value proves nothing, and Verify takes it: nothing is served, and every reason says what was missing.
type Evidence struct {
	Host        string             // served the manifest over https; "" where nobody knows
	DIDDocument []byte             // of the did:web of the origin, nil if it was not fetched
	AgentTrust  []byte             // the origin's agent-trust.json, nil if it was not fetched
	Registry    *identity.Registry // of issuers, nil if none is configured
	Now         time.Time
}

// SignatureState is what became of the signature over the commitments.
type SignatureState string

// States of signatures.
const (
	SignatureNone    SignatureState = "none"    // the commitments are not signed
	SignatureInvalid SignatureState = "invalid" // or nobody can verify it
	// SignatureUnbound is a valid signature of a key that is not proven to be the origin's: anybody can copy it from
	// another manifest, with identity and commitments.
	SignatureUnbound SignatureState = "unbound"
	SignatureBound   SignatureState = "bound" // the origin made the commitments
)

// Verdict is what is proven of a manifest.
// Reasons are texts for people, and empty where there is nothing to explain.
type Verdict struct {
	Declared Tier
	Verified Tier
	Served   bool // the host that served the manifest is its origin

	Identified     bool          // the DID document of the origin has the manifest's key
	IdentityReason string        // why not
	KeyForm        identity.Form // how the document writes the key
	KeyID          string        // the id of its verification method

	Signature       SignatureState
	SignatureReason string // why it is invalid or unbound

	Issuer *identity.IssuerResult // nil where the manifest names none
}

// Verify compares a manifest with evidence. Problems are those of Parse: a manifest with errors proves nothing.
//
// Served and the errors of the manifest are looked at last for the tier but bound everything: without them Verified
// is TierNone, while the reasons still say what else was wrong.
func Verify(m Manifest, problems []repute.Problem, e Evidence) Verdict {
	v := Verdict{Declared: Declared(m), Served: SameHost(m.Origin, e.Host), Signature: SignatureNone}
	key, keyReason := publicKey(m.Identity)
	v.identify(m, key, keyReason, e)
	usable := v.Served && !repute.HasErrors(problems)
	v.signature(m, key, keyReason, usable)
	v.Issuer = checkIssuer(m, e)
	if !usable {
		return v
	}
	switch {
	case v.Signature == SignatureBound:
		v.Verified = TierSigned
	case v.Identified:
		v.Verified = TierIdentified
	case len(m.Intents) > 0:
		v.Verified = TierStructured
	default:
		v.Verified = TierMinimal
	}
	return v
}

// publicKey returns the manifest's key, or why it has none that can prove anything.
func publicKey(id *Identity) (key ed25519.PublicKey, reason string) {
	if id == nil || id.PublicKey == "" {
		return nil, "the manifest has no public_key"
	}
	key, _, err := identity.DecodeKey(id.PublicKey)
	switch {
	case err != nil:
		return nil, "public_key " + err.Error()
	case identity.IsPlaceholder(key):
		return nil, "public_key is a placeholder"
	}
	return key, ""
}

// identify looks for the manifest's key in the DID document of its origin.
//
// The order of the reasons is that of what a publisher mends first. The document counts only where the manifest was
// served by its origin: any host may copy a manifest whose DID document has the key.
func (v *Verdict) identify(m Manifest, key ed25519.PublicKey, keyReason string, e Evidence) {
	var did string
	if m.Identity != nil {
		did = m.Identity.DID
	}
	own, err := identity.ParseDIDKey(did)
	switch {
	case did == "":
		v.IdentityReason = "the manifest has no DID"
	case err == nil && key != nil && own.Equal(key):
		v.KeyForm = identity.FormDIDKey
		v.IdentityReason = "did:key is the manifest's key, and names no origin"
	case !identity.IsWebDID(did, m.Origin):
		v.IdentityReason = "the DID is not did:web of the origin"
	case key == nil:
		v.IdentityReason = keyReason
	case !v.Served:
		v.IdentityReason = "the manifest was not served by its origin"
	case e.DIDDocument == nil:
		v.IdentityReason = "the DID document could not be fetched"
	default:
		v.IdentityReason = v.findKey(did, key, e)
		v.Identified = v.IdentityReason == ""
	}
}

// findKey looks for a key in a DID document and says why it does not count; "" if it does.
func (v *Verdict) findKey(did string, key ed25519.PublicKey, e Evidence) string {
	doc, err := identity.ParseDID(e.DIDDocument)
	if err != nil {
		return "the DID document " + err.Error()
	}
	if !strings.EqualFold(doc.ID, did) {
		return "the DID document is of another DID"
	}
	method, form, ok := doc.Find(key, e.Now)
	if !ok {
		return "the DID document has another key, or this one has ended"
	}
	v.KeyForm, v.KeyID = form, method.ID
	return ""
}

// signature verifies the signature over the commitments. It is bound where the key is proven to be the origin's.
func (v *Verdict) signature(m Manifest, key ed25519.PublicKey, keyReason string, usable bool) {
	if m.Commitments == nil || m.Commitments.Signature == "" {
		return
	}
	v.Signature = SignatureInvalid
	if key == nil {
		v.SignatureReason = keyReason
		return
	}
	if err := identity.VerifyJSON(m.Commitments.Raw, m.Commitments.Signature, key); err != nil {
		v.SignatureReason = err.Error()
		return
	}
	switch {
	case !v.Identified:
		v.Signature, v.SignatureReason = SignatureUnbound, "signature valid, identity unbound: "+v.IdentityReason
	case !usable:
		v.Signature, v.SignatureReason = SignatureUnbound, "signature valid, identity unbound: the manifest has errors"
	default:
		v.Signature = SignatureBound
	}
}

// checkIssuer asks the registry for the issuer that a manifest names.
//
// A registry vouches for an issuer at its website, so that nothing is said of a manifest which another host has
// served.
func checkIssuer(m Manifest, e Evidence) *identity.IssuerResult {
	id := m.Identity
	switch {
	case id == nil || id.IssuerID == "":
		return nil
	case e.Registry == nil:
		return &identity.IssuerResult{Reason: "no registry is configured"}
	case !SameHost(m.Origin, e.Host):
		return &identity.IssuerResult{Reason: "the manifest was not served by its origin"}
	}
	result := e.Registry.Check(id.IssuerID, m.Origin, id.PublicKey, e.AgentTrust, e.Now)
	return &result
}
