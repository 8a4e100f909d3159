package agentjson

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"repute/manifest/agentjson/identity"
)

// testNow is the time of the tests.
func testNow() time.Time { return time.Date(2026, 4, 30, 18, 30, 0, 0, time.UTC) }

// testKey makes a key from one byte.
func testKey(t testing.TB, seed byte) ed25519.PrivateKey {
	t.Helper()
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// signedManifest is a manifest of tier 3+ of an origin.
func signedManifest(t testing.TB, origin string, key ed25519.PrivateKey) []byte {
	t.Helper()
	doc := fmt.Sprintf(`{"version":"1.4","origin":%q,"payout_address":"0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
		"identity":{"did":%q,"public_key":%q},"intents":[{"name":"a","description":"A description."}],
		"commitments":{"schema_version":"1.0","entries":[`+aLatency+`]}}`,
		origin, identity.WebDID(origin), identity.EncodeKey(key.Public().(ed25519.PublicKey)))
	b, err := SignCommitments([]byte(doc), key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// didDocument is the document of an origin with a key.
func didDocument(t testing.TB, origin string, key ed25519.PrivateKey) []byte {
	t.Helper()
	b, err := identity.NewDIDDocument(origin, key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVerify(t *testing.T) {
	t.Parallel()
	key, other := testKey(t, 1), testKey(t, 2)
	good := string(signedManifest(t, "example.com", key))
	doc := didDocument(t, "example.com", key)
	zeroSignature := strings.Repeat("A", 86)
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	publicKey := identity.EncodeKey(key.Public().(ed25519.PublicKey))
	for name, c := range map[string]struct {
		manifest  string
		host      string
		did       []byte
		want      Tier
		signature SignatureState
		reason    string // in the reason for the identity
	}{
		"3+":           {good, "example.com", doc, TierSigned, SignatureBound, ""},
		"host unknown": {good, "", doc, TierNone, SignatureUnbound, "not served by its origin"},
		"another host": {good, "www.example.com", doc, TierNone, SignatureUnbound, "not served by its origin"},
		"no document":  {good, "example.com", nil, TierStructured, SignatureUnbound, "could not be fetched"},
		"document of another": {good, "example.com", didDocument(t, "example.org", key), TierStructured,
			SignatureUnbound, "of another DID"},
		"document, other key": {good, "example.com", didDocument(t, "example.com", other), TierStructured,
			SignatureUnbound, "another key"},
		"document is HTML": {good, "example.com", []byte("<html>"), TierStructured, SignatureUnbound, "no JSON"},
		"document is a loop": {good, "example.com",
			[]byte(`{"id":"did:web:example.com","controller":"did:web:example.com","verificationMethod":["did:web:example.com#a"],"alsoKnownAs":["did:web:example.com"]}`), TierStructured, SignatureUnbound, "another key"},
		"changed promise": {replace("500ms", "50ms"), "example.com", doc, TierIdentified, SignatureInvalid, ""},
		"changed origin": {strings.ReplaceAll(good, "example.com", "evil.example"), "evil.example", doc,
			TierStructured, SignatureUnbound, "of another DID"},
		"did of another origin": {strings.Replace(good, `"origin":"example.com"`, `"origin":"evil.example"`, 1),
			"evil.example", doc, TierStructured, SignatureUnbound, "not did:web of the origin"},
		"errors": {strings.Replace(good, "{", `{"origin":"example.com",`, 1), "example.com", doc,
			TierNone, SignatureUnbound, ""},
		"no key": {replace(`"public_key"`, `"x-key"`), "example.com", doc, TierStructured,
			SignatureInvalid, "no public_key"},
		"short key": {replace(publicKey, publicKey[:40]), "example.com", doc, TierStructured,
			SignatureInvalid, "30 bytes"},
		"placeholder": {replace(publicKey, "dGhpcyBpcyBhIHBsYWNlaG9sZGVyIHB1YmxpYyBrZXk"), "example.com", doc,
			TierStructured, SignatureInvalid, "placeholder"},
		"zero key": {replace(publicKey, strings.Repeat("A", 43)), "example.com", doc, TierStructured,
			SignatureInvalid, "placeholder"},
		"no did": {replace(`"did"`, `"x-did"`), "example.com", doc, TierStructured, SignatureUnbound,
			"no DID"},
		"did:web of a user": {replace(`"did:web:example.com"`, `"did:web:example.com:alice"`), "example.com", doc,
			TierStructured, SignatureUnbound, "not did:web of the origin"},
		"did:key": {replace(`"did:web:example.com"`,
			`"`+identity.DIDKey(key.Public().(ed25519.PublicKey))+`"`), "example.com", doc, TierStructured,
			SignatureUnbound, "names no origin"},
		"did:key of another": {replace(`"did:web:example.com"`,
			`"`+identity.DIDKey(other.Public().(ed25519.PublicKey))+`"`), "example.com", doc, TierStructured,
			SignatureUnbound, "not did:web"},
		"not signed": {replace(`"signature"`, `"x-signature"`), "example.com", doc, TierIdentified,
			SignatureNone, ""},
		"zero signature": {replace(signatureOf(t, good), zeroSignature), "example.com", doc, TierIdentified,
			SignatureInvalid, ""},
		"repeated in entries": {replace(`"verifiable":true`, `"verifiable":true,"verifiable":true`), "example.com",
			doc, TierNone, SignatureInvalid, ""},
		"big integer": {replace(`"verifiable":true`, `"verifiable":true,"x-n":9007199254740993`),
			"example.com", doc, TierIdentified, SignatureInvalid, ""},
		"half a surrogate": {replace(`500ms`, `500ms\ud800`), "example.com", doc, TierIdentified,
			SignatureInvalid, ""},
	} {
		m, problems := Parse([]byte(c.manifest), Options{Host: c.host})
		v := Verify(m, problems, Evidence{Host: c.host, DIDDocument: c.did, Now: testNow()})
		if v.Verified != c.want || v.Signature != c.signature || !strings.Contains(v.IdentityReason, c.reason) {
			t.Errorf("%s: %s, signature %s (%s), identity %q; want %s, %s, %q", name, v.Verified, v.Signature,
				v.SignatureReason,
				v.IdentityReason, c.want, c.signature, c.reason)
		}
		if v.Verified > v.Declared || v.Signature == SignatureUnbound &&
			!strings.HasPrefix(v.SignatureReason, "signature valid, identity unbound") {
			t.Errorf("%s: %+v", name, v)
		}
		if name == "3+" && (v.KeyForm != identity.FormMultikey || v.KeyID != "did:web:example.com#key-1" || !v.Served) {
			t.Errorf("%+v", v)
		}
	}
}

// signatureOf returns the signature in a manifest.
func signatureOf(t *testing.T, doc string) string {
	t.Helper()
	m, _ := Parse([]byte(doc), Options{})
	if m.Commitments == nil || m.Commitments.Signature == "" {
		t.Fatal("not signed")
	}
	return m.Commitments.Signature
}

// A block of identity and commitments that was copied to another origin has a valid signature and proves nothing there,
// whatever the copying origin publishes beside it.
func TestCopiedBlock(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	copied := strings.Replace(string(signedManifest(t, "example.com", key)), `"origin":"example.com"`,
		`"origin":"evil.example"`, 1)
	for _, did := range []string{"did:web:example.com", "did:web:evil.example"} {
		doc := strings.Replace(copied, "did:web:example.com", did, 1)
		for _, evidence := range [][]byte{nil, didDocument(t, "example.com", key),
			didDocument(t, "evil.example", testKey(t, 2))} {
			m, problems := Parse([]byte(doc), Options{Host: "evil.example"})
			v := Verify(m, problems, Evidence{Host: "evil.example", DIDDocument: evidence, Now: testNow()})
			if v.Signature != SignatureUnbound || v.Verified != TierStructured {
				t.Errorf("%s: %+v", did, v)
			}
		}
	}
}

func TestFetches(t *testing.T) {
	t.Parallel()
	const did = "https://example.com/.well-known/did.json"
	const trust = "https://example.com/.well-known/agent-trust.json"
	for members, want := range map[string][]string{
		``: nil,
		`,"identity":{"did":"did:web:example.com"}`:                                          {did},
		`,"identity":{"did":"did:web:EXAMPLE.com","oatr_issuer_id":"ab"}`:                    {did, trust},
		`,"identity":{"did":"did:web:other.example","public_key":"a"}`:                       nil,
		`,"identity":{"did":"did:web:example.com:alice"}`:                                    nil,
		`,"identity":{"did":"did:web:169.254.169.254"}`:                                      nil,
		`,"identity":{"oatr_issuer_id":"ab","public_key":"k"}`:                               nil,
		`,"identity":{"did":"did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw"}`:     nil,
		`,"identity":{"did":"did:web:example.com%3A8443","oatr_issuer_id":"Capital Letter"}`: {trust},
	} {
		m, _ := Parse(base(members), Options{})
		var got []string
		for _, f := range Fetches(m) {
			got = append(got, f.URL)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", members, got, want)
		}
	}
}

// The issuer of a manifest counts only where the registry has it at the manifest's origin, and the origin served it.
func TestIssuer(t *testing.T) {
	t.Parallel()
	root, key := testKey(t, 8), testKey(t, 9)
	publicKey := identity.EncodeKey(key.Public().(ed25519.PublicKey))
	sign := func(members string) []byte {
		signature, err := identity.SignJSON([]byte("{"+members+"}"), root)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, `{%s,"signature":{"algorithm":"Ed25519","kid":"r","value":%q}}`, members, signature)
	}
	registry, err := identity.ReadRegistry(fstest.MapFS{
		"manifest.json": {Data: sign(fmt.Sprintf(`"expires_at":"2026-05-01T00:00:00Z","entries":[{"issuer_id":"example","website":"https://example.com",`+
			`"status":"active","public_keys":[{"kid":"k","algorithm":"Ed25519","public_key":%q,"status":"active"}]}]`,
			publicKey))},
		"revocations.json": {Data: sign(`"expires_at":"2026-05-01T00:00:00Z","revoked_keys":[],"revoked_issuers":[]`)},
		"root-keys.json": {Data: fmt.Appendf(nil,
			`{"keys":[{"kid":"r","algorithm":"Ed25519","public_key":%q,"status":"active"}]}`,
			identity.EncodeKey(root.Public().(ed25519.PublicKey)))},
	}, testNow())
	if err != nil {
		t.Fatal(err)
	}
	m, problems := Parse(base(`,"identity":{"oatr_issuer_id":"example","public_key":"`+publicKey+`"}`), Options{})
	for name, c := range map[string]struct {
		e    Evidence
		want string
	}{
		"verified":     {Evidence{Host: "example.com", Registry: registry}, ""},
		"no registry":  {Evidence{Host: "example.com"}, "no registry is configured"},
		"another host": {Evidence{Host: "evil.example", Registry: registry}, "not served by its origin"},
	} {
		c.e.Now = testNow()
		v := Verify(m, problems, c.e)
		if v.Issuer == nil || v.Issuer.Verified != (c.want == "") || !strings.Contains(v.Issuer.Reason, c.want) {
			t.Errorf("%s: %+v", name, v.Issuer)
		}
	}
	if v := Verify(Manifest{}, nil, Evidence{}); v.Issuer != nil || v.Verified != TierNone {
		t.Errorf("%+v", v)
	}
}

func TestTierString(t *testing.T) {
	t.Parallel()
	for tier, want := range map[Tier]string{TierNone: "none", TierMinimal: "1", TierStructured: "2",
		TierIdentified: "3", TierSigned: "3+"} {
		if text, err := tier.MarshalText(); err != nil || string(text) != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}
