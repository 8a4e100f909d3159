package identity

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"repute/internal/jsonwalk"
)

// maxDIDDocument is the size up to which a DID document is read.
// It is for agent-trust.json as well, which is of the same kind: a small document of the origin.
const maxDIDDocument = 256 << 10

// maxMethods bounds the keys of a DID document.
// Each method costs a few readings of its key, and each search a comparison with them.
const maxMethods = 256

// WebDID returns the did:web of a host.
func WebDID(host string) string { return "did:web:" + strings.ToLower(host) }

// IsWebDID reports whether a DID is the did:web of a host. DIDs with a port or a path are of other documents than the
// host's own: on hosts of many users anybody may publish those.
// Letter case does not matter, as in DNS.
func IsWebDID(did, host string) bool {
	id, ok := strings.CutPrefix(did, "did:web:")
	return ok && host != "" && strings.EqualFold(id, host)
}

// URL returns where the document of a did:web is.
//
// The method's specification writes a port as %3A, and a path with colons. The URL is built of what was checked and
// never of the raw text, so that it cannot lead to another host or leave its directory.
func URL(did string) (string, error) {
	id, ok := strings.CutPrefix(did, "did:web:")
	if !ok || id == "" || len(did) > 1<<10 {
		return "", errors.New("is no did:web")
	}
	parts := strings.Split(id, ":")
	host, err := url.PathUnescape(parts[0])
	if err != nil {
		return "", errors.New("has a wrong escape sequence")
	}
	u, err := url.Parse("https://" + host)
	if err != nil || u.Hostname() == "" || u.Host != host || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return "", errors.New("names no host")
	}
	segments := []string{".well-known"}
	if len(parts) > 1 {
		segments = parts[1:]
	}
	for _, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\?#") {
			return "", fmt.Errorf("has the path segment %.40q", segment)
		}
	}
	return "https://" + host + "/" + strings.Join(segments, "/") + "/did.json", nil
}

// DIDDocument is what a DID document says of keys. Nothing that it refers to is followed.
// The ID is as written, and compared by the caller: a document of another DID says nothing.
type DIDDocument struct {
	ID      string
	Methods []Method
}

// Method is a verification method with an Ed25519 key.
type Method struct {
	ID         string
	Controller string
	Candidates []Candidate // readings of the key, the likelier one first
	Ended      time.Time   // when it was revoked or expires; zero for never
}

// wireMethod is a verification method as written.
// The member type is not read: publishers write several for one kind of key, and the form of the key tells what it
// is.
type wireMethod struct {
	ID         string `json:"id"`
	Controller string `json:"controller"`
	Multibase  string `json:"publicKeyMultibase"`
	Base58     string `json:"publicKeyBase58"`
	JWK        *struct {
		KeyType string `json:"kty"`
		Curve   string `json:"crv"`
		X       string `json:"x"`
	} `json:"publicKeyJwk"`
	Revoked string `json:"revoked"`
	Expires string `json:"expires"`
}

// ParseDID reads a DID document. A document that readers may read differently, because a member is repeated, is none.
//
// The errors continue a sentence that begins with "the DID document". A method that cannot be read is left out, as
// documents of other software have methods of many kinds.
func ParseDID(b []byte) (DIDDocument, error) {
	if err := plainJSON(b, maxDIDDocument); err != nil {
		return DIDDocument{}, err
	}
	var wire struct {
		ID              string           `json:"id"`
		Methods         []jsontext.Value `json:"verificationMethod"`
		Assertion       []jsontext.Value `json:"assertionMethod"`
		Authentications []jsontext.Value `json:"authentication"`
	}
	if err := jsonv2.Unmarshal(b, &wire); err != nil {
		return DIDDocument{}, errors.New("is no DID document: a member has the wrong type")
	}
	if !strings.HasPrefix(wire.ID, "did:") {
		return DIDDocument{}, errors.New("has no id")
	}
	doc := DIDDocument{ID: wire.ID}
	// The relations list methods by their id or contain them. Ids are not looked up: each method is listed already.
	for _, list := range [][]jsontext.Value{wire.Methods, wire.Assertion, wire.Authentications} {
		for _, raw := range list {
			if m, ok := parseMethod(raw); ok && len(doc.Methods) < maxMethods {
				doc.Methods = append(doc.Methods, m)
			}
		}
	}
	return doc, nil
}

// plainJSON refuses text that is too long, too deep, no JSON object, or has a repeated member.
// The order is that of cost: length and depth come before anything that descends.
func plainJSON(b []byte, limit int) error {
	switch {
	case len(b) > limit:
		return fmt.Errorf("has %d bytes, at most %d are read", len(b), limit)
	case jsonwalk.Scan(b).Depth > maxDepth:
		return fmt.Errorf("is nested deeper than %d levels", maxDepth)
	case !json.Valid(b):
		return errors.New("is no JSON")
	case jsonwalk.Type(b) != "an object":
		return errors.New("is no JSON object")
	}
	repeated := ""
	jsonwalk.Duplicates(b, func(pointer string) bool {
		repeated = pointer
		return false
	})
	if repeated != "" {
		return fmt.Errorf("repeats the member %.80q", repeated)
	}
	return nil
}

// parseMethod reads a verification method; false for a reference and for keys of other kinds.
func parseMethod(raw jsontext.Value) (Method, bool) {
	var wire wireMethod
	if jsonwalk.Type(raw) != "an object" || jsonv2.Unmarshal(raw, &wire) != nil {
		return Method{}, false
	}
	m := Method{ID: wire.ID, Controller: wire.Controller}
	m.Candidates = append(m.Candidates, multibase(wire.Multibase)...)
	if k := wire.JWK; k != nil && k.KeyType == "OKP" && k.Curve == "Ed25519" {
		if key, padded, err := DecodeKey(k.X); err == nil && !padded {
			m.Candidates = append(m.Candidates, Candidate{key, FormJWK})
		}
	}
	m.Candidates = append(m.Candidates, fromBase58(wire.Base58)...)
	m.Ended = ended(wire)
	return m, len(m.Candidates) > 0
}

// ended returns when a method stops being valid. A time that cannot be read counts as passed.
// A method that is both revoked and expiring ends at the earlier of both times.
func ended(wire wireMethod) time.Time {
	var first time.Time
	for _, text := range []string{wire.Revoked, wire.Expires} {
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			at = time.Unix(0, 0)
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// Find returns the valid method with a key, and the form in which it is written; false without. Of several forms the
// standard ones win, because methods list them first.
// A method whose controller is another DID is that one's and not the document's.
func (d DIDDocument) Find(key ed25519.PublicKey, now time.Time) (Method, Form, bool) {
	for _, m := range d.Methods {
		if !m.Ended.IsZero() && !now.Before(m.Ended) || m.Controller != "" && m.Controller != d.ID {
			continue
		}
		for _, c := range m.Candidates {
			if c.Key.Equal(key) {
				return m, c.Form, true
			}
		}
	}
	return Method{}, "", false
}

// NewDIDDocument returns the document of a host's did:web with one key, in the standard form.
// The caller serves it at URL of the DID. The method is listed under assertionMethod, by which verifiers find keys
// that sign statements.
func NewDIDDocument(host string, key ed25519.PublicKey) ([]byte, error) {
	did := WebDID(host)
	method := did + "#key-1"
	return json.MarshalIndent(struct {
		Context   []string         `json:"@context"`
		ID        string           `json:"id"`
		Methods   []map[string]any `json:"verificationMethod"`
		Assertion []string         `json:"assertionMethod"`
	}{
		[]string{"https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"}, did,
		[]map[string]any{{"id": method, "type": "Multikey", "controller": did,
			"publicKeyMultibase": encodeMultikey(key)}},
		[]string{method},
	}, "", "  ")
}
