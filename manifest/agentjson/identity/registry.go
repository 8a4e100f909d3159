package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"repute"
	"repute/internal/jsonwalk"
)

// maxRegistry is the size up to which a file of the registry is read.
// The registry's manifest has some hundred bytes per issuer, so that this is enough for ten thousand of them.
const maxRegistry = 8 << 20

// registryFiles are the files of the Open Agent Trust Registry. The operator who provides them vouches for RootKeys.
// The lists are signed by a root key, and the root keys are not signed: they are trusted as part of the operator's
// configuration.
type registryFiles struct {
	Manifest    []byte            // manifest.json
	Revocations []byte            // revocations.json
	RootKeys    []byte            // root-keys.json
	Proofs      map[string][]byte // proofs/{issuer}.proof by issuer; those that are missing prove nothing
}

// Registry has the issuers of a registry whose files were verified.
// It does not change after it was opened, and is safe for concurrent use.
type Registry struct {
	issuers map[string]issuer
	expires time.Time
}

// issuer is an entry of the registry.
type issuer struct {
	ID      string        `json:"issuer_id"`
	Website string        `json:"website"`
	Status  string        `json:"status"`
	Keys    []registryKey `json:"public_keys"`
	proven  bool          // a proof shows that the issuer has one of the keys
}

// registryKey is a key of an issuer, or a root key.
type registryKey struct {
	ID        string     `json:"kid"`
	Algorithm string     `json:"algorithm"`
	PublicKey string     `json:"public_key"`
	Status    string     `json:"status"`
	Expires   *time.Time `json:"expires_at"`
	// NotBefore and NotAfter are of root keys, Expires of the keys of issuers; nil is without a bound.
	NotBefore *time.Time `json:"not_before"`
	NotAfter  *time.Time `json:"not_after"`
	revoked   bool       // by the list of revocations
}

// key decodes the bytes of a key; nil for other algorithms.
func (k registryKey) key() ed25519.PublicKey {
	key, _, err := DecodeKey(k.PublicKey)
	if err != nil || k.Algorithm != "Ed25519" {
		return nil
	}
	return key
}

// signedFile is what files of the registry share.
type signedFile struct {
	Expires   time.Time `json:"expires_at"`
	Signature struct {
		Algorithm string `json:"algorithm"`
		KeyID     string `json:"kid"`
		Value     string `json:"value"`
	} `json:"signature"`
}

// openRegistry verifies the files of a registry: the signatures of both lists by a root key, and that neither has
// expired. repute.ErrInvalid names the file that is wrong.
//
// Both lists MUST be valid: a list of issuers without its revocations would accept a key that was stolen. The
// registry expires with the earlier of the two.
func openRegistry(files registryFiles, now time.Time) (*Registry, error) {
	var roots struct {
		Keys []registryKey `json:"keys"`
	}
	if err := decodeFile("root-keys.json", files.RootKeys, &roots); err != nil {
		return nil, err
	}
	var list struct {
		Entries []issuer `json:"entries"`
	}
	var revoked struct {
		Keys []struct {
			Issuer string `json:"issuer_id"`
			KeyID  string `json:"kid"`
		} `json:"revoked_keys"`
		Issuers []struct {
			Issuer string `json:"issuer_id"`
		} `json:"revoked_issuers"`
	}
	until, err := openFile("manifest.json", files.Manifest, &list, roots.Keys, now)
	if err != nil {
		return nil, err
	}
	other, err := openFile("revocations.json", files.Revocations, &revoked, roots.Keys, now)
	if err != nil {
		return nil, err
	}
	if other.Before(until) {
		until = other
	}
	r := &Registry{issuers: map[string]issuer{}, expires: until}
	for _, e := range list.Entries {
		if !IsIssuerID(e.ID) || r.issuers[e.ID].ID != "" {
			return nil, wrongFile("manifest.json", fmt.Errorf("the issuer %.40q is no id, or given twice", e.ID))
		}
		e.proven = e.isProven(files.Proofs[e.ID])
		r.issuers[e.ID] = e
	}
	for _, x := range revoked.Issuers {
		r.revoke(x.Issuer, "")
	}
	for _, x := range revoked.Keys {
		r.revoke(x.Issuer, x.KeyID)
	}
	return r, nil
}

// ReadRegistry reads the files of a registry from its directory, and verifies them.
//
// Missing proofs are no error. An error other than repute.ErrInvalid means that a proof is listed and cannot be read.
func ReadRegistry(dir fs.FS, now time.Time) (*Registry, error) {
	files := registryFiles{Proofs: map[string][]byte{}}
	for name, into := range map[string]*[]byte{"manifest.json": &files.Manifest, "revocations.json": &files.Revocations,
		"root-keys.json": &files.RootKeys} {
		b, err := readFile(dir, name)
		if err != nil {
			return nil, repute.Invalid("registry "+name, err.Error(),
				"a directory with manifest.json, revocations.json and root-keys.json")
		}
		*into = b
	}
	proofs, err := fs.Glob(dir, "proofs/*.proof")
	if err != nil {
		return nil, fmt.Errorf("list proofs: %w", err)
	}
	for _, name := range proofs {
		b, err := readFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read a proof: %w", err)
		}
		files.Proofs[strings.TrimSuffix(path.Base(name), ".proof")] = b
	}
	return openRegistry(files, now)
}

// readFile reads at most one byte more than a file of the registry may have.
// A file of exactly one byte more is refused by decodeFile, which names the limit.
func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRegistry+1))
}

// revoke marks a key of an issuer, or all of it for no key.
// An issuer that is not in the list needs no revocation. Revocations only ever take away.
func (r *Registry) revoke(id, keyID string) {
	e, ok := r.issuers[id]
	if !ok {
		return
	}
	if keyID == "" {
		e.Status = "revoked"
	}
	for i := range e.Keys {
		e.Keys[i].revoked = e.Keys[i].revoked || keyID == "" || e.Keys[i].ID == keyID
	}
	r.issuers[id] = e
}

// wrongFile returns the error for a file that cannot be used.
func wrongFile(name string, err error) error {
	return repute.Invalid("registry "+name, err.Error(), "fetch the registry's files again")
}

// decodeFile decodes a file of the registry.
func decodeFile(name string, b []byte, into any) error {
	if err := plainJSON(b, maxRegistry); err != nil {
		return wrongFile(name, err)
	}
	if err := jsonv2.Unmarshal(b, into); err != nil {
		return wrongFile(name, errors.New("has a member of the wrong type"))
	}
	return nil
}

// openFile decodes a signed file, verifies it and returns when it expires.
//
// The file is decoded before it is verified, because its signature names the key. Nothing of what was decoded may be
// used when it returns an error.
func openFile(name string, b []byte, into any, roots []registryKey, now time.Time) (time.Time, error) {
	var signed signedFile
	if err := decodeFile(name, b, &signed); err != nil {
		return time.Time{}, err
	}
	if err := decodeFile(name, b, into); err != nil {
		return time.Time{}, err
	}
	if now.After(signed.Expires) {
		return time.Time{}, wrongFile(name, fmt.Errorf("expired at %s", signed.Expires.Format(time.RFC3339)))
	}
	if err := signed.verify(b, roots, now); err != nil {
		return time.Time{}, wrongFile(name, err)
	}
	return signed.Expires, nil
}

// verify checks the signature over the canonical form of a file without its member signature.
// The first root key of the name decides: a second one of the same id is not tried.
func (s signedFile) verify(b []byte, roots []registryKey, now time.Time) error {
	for _, root := range roots {
		if root.ID != s.Signature.KeyID {
			continue
		}
		switch {
		case root.Status != "active" || s.Signature.Algorithm != "Ed25519":
			return errors.New("is signed by a key that is not active")
		case root.NotBefore != nil && now.Before(*root.NotBefore) || root.NotAfter != nil && now.After(*root.NotAfter):
			return errors.New("is signed by a key that is not valid now")
		case root.key() == nil:
			return errors.New("is signed by a root key that is no Ed25519 key")
		}
		return VerifyJSON(withoutSignature(b), s.Signature.Value, root.key())
	}
	return fmt.Errorf("is signed by the key %.40q, which is no root key", s.Signature.KeyID)
}

// withoutSignature returns a JSON object without its member signature. The text MUST be a valid object.
// It keeps the text of all other members, because decoding and encoding could change a number.
func withoutSignature(b []byte) []byte {
	var out bytes.Buffer
	c := jsonwalk.NewCursor(b)
	for c.Next() {
		if c.Name() == "signature" {
			continue
		}
		out.WriteByte(',')
		name, err := json.Marshal(c.Name())
		if err != nil {
			return nil
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(c.Value)
	}
	rest := out.Bytes()
	if len(rest) > 0 {
		rest = rest[1:]
	}
	return []byte("{" + string(rest) + "}")
}

// isProven reports whether a proof shows that the issuer has the private key of one of its active keys.
// The message names the issuer, so that the proof of one issuer cannot be used for another.
func (e issuer) isProven(proof []byte) bool {
	message := "oatr-proof-v1:" + e.ID
	said, signature, ok := parseProof(proof)
	sig, _, err := DecodeSignature(signature)
	if !ok || said != message || err != nil {
		return false
	}
	for _, k := range e.Keys {
		if key := k.key(); key != nil && k.Status == "active" && verify(key, []byte(message), sig) == nil {
			return true
		}
	}
	return false
}

// parseProof reads a proof of the ownership of a key.
func parseProof(b []byte) (message, signature string, ok bool) {
	const begin, end = "-----BEGIN OATR KEY OWNERSHIP PROOF-----", "-----END OATR KEY OWNERSHIP PROOF-----"
	_, rest, found := strings.Cut(string(b), begin)
	body, _, complete := strings.Cut(rest, end)
	if !found || !complete || len(body) > 4<<10 {
		return "", "", false
	}
	for line := range strings.SplitSeq(body, "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "Canonical-Message":
			message = strings.TrimSpace(value)
		case "Signature":
			signature = strings.TrimSpace(value)
		}
	}
	return message, signature, message != "" && signature != ""
}

// IsIssuerID reports whether s has the form of an issuer's id: two or more of a to z, digits and inner hyphens.
func IsIssuerID(s string) bool {
	return len(s) >= 2 && s[0] != '-' && s[len(s)-1] != '-' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// IssuerResult is what the registry says of the issuer that a manifest names.
type IssuerResult struct {
	Verified bool
	Proven   bool   // and a proof shows that the issuer has its key
	KeyID    string // of the registry, of the key that matched
	Reason   string // why it is not verified
}

// Check reports whether the registry knows a manifest's issuer as the service at its origin with its key. The key is
// that of the manifest, or else the one that the origin's agent-trust.json names.
//
// The order of the reasons is from the registry to the key, so that the first reason is the one to mend. The key of
// agent-trust.json counts only where the manifest names none: a manifest with a key is judged by that key.
func (r *Registry) Check(issuerID, origin, publicKey string, agentTrust []byte, now time.Time) IssuerResult {
	e, known := r.issuers[issuerID]
	switch {
	case now.After(r.expires):
		return IssuerResult{Reason: "the registry's files have expired"}
	case !known:
		return IssuerResult{Reason: "the registry does not know the issuer"}
	case e.Status != "active":
		return IssuerResult{Reason: "the issuer is " + safeStatus(e.Status)}
	case !e.isAt(origin):
		return IssuerResult{Reason: "the issuer's website is not the origin"}
	}
	if publicKey == "" {
		publicKey = trustedKey(agentTrust, issuerID)
	}
	if publicKey == "" {
		return IssuerResult{Reason: "neither the manifest nor agent-trust.json names a key"}
	}
	for _, k := range e.Keys {
		if !k.matches(publicKey) {
			continue
		}
		switch {
		case k.revoked || k.Status != "active":
			return IssuerResult{KeyID: k.ID, Reason: "the issuer's key is revoked or deprecated"}
		case k.Expires != nil && now.After(*k.Expires):
			return IssuerResult{KeyID: k.ID, Reason: "the issuer's key has expired"}
		}
		return IssuerResult{Verified: true, Proven: e.proven, KeyID: k.ID}
	}
	return IssuerResult{Reason: "the key is none of the issuer's"}
}

// safeStatus returns the status of an issuer for a text.
func safeStatus(status string) string {
	if status == "suspended" || status == "revoked" {
		return status
	}
	return "not active"
}

// isAt reports whether an issuer's website is https and of exactly this host.
func (e issuer) isAt(origin string) bool {
	u, err := url.Parse(e.Website)
	return err == nil && u.Scheme == "https" && origin != "" && u.Port() == "" &&
		strings.EqualFold(u.Hostname(), origin)
}

// matches reports whether a text names the key: as its id, in base64url, or as its fingerprint, which is the SHA-256
// in base64url or the first half of it in hex.
// The names are all public: the comparison need not take constant time.
func (k registryKey) matches(text string) bool {
	key := k.key()
	if key == nil {
		return false
	}
	sum := sha256.Sum256(key)
	for _, name := range []string{k.ID, EncodeKey(key), base64.RawURLEncoding.EncodeToString(sum[:]),
		hex.EncodeToString(sum[:16])} {
		if text == name && name != "" {
			return true
		}
	}
	return false
}

// trustedKey returns the fingerprint that agent-trust.json gives for an issuer; "" without.
// The document is of the origin: the caller MUST have checked that the origin served the manifest as well.
func trustedKey(b []byte, issuerID string) string {
	var wire struct {
		Issuer      string `json:"issuer_id"`
		Fingerprint string `json:"public_key_fingerprint"`
	}
	if len(b) == 0 || plainJSON(b, maxDIDDocument) != nil || jsonv2.Unmarshal(b, &wire) != nil ||
		wire.Issuer != issuerID {
		return ""
	}
	return wire.Fingerprint
}
