package manifests

import (
	"crypto/ed25519"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"repute/manifest/agentjson/identity"
)

// signedFile is a file of the registry, signed by a root key, that expires in an hour.
func signedFile(t *testing.T, root ed25519.PrivateKey, members string) *fstest.MapFile {
	t.Helper()
	members += fmt.Sprintf(`,"expires_at":%q`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	signature, err := identity.SignJSON([]byte("{"+members+"}"), root)
	if err != nil {
		t.Fatal(err)
	}
	return &fstest.MapFile{Data: fmt.Appendf(nil, `{%s,"signature":{"algorithm":"Ed25519","kid":"root","value":%q}}`,
		members,
		signature)}
}

// registry has one issuer, which speaks for a domain with a key.
func registry(t *testing.T, domain string, key ed25519.PublicKey) fstest.MapFS {
	t.Helper()
	root := ed25519.NewKeyFromSeed([]byte(strings.Repeat("r", ed25519.SeedSize)))
	return fstest.MapFS{
		"root-keys.json": {Data: fmt.Appendf(nil,
			`{"keys":[{"kid":"root","algorithm":"Ed25519","public_key":%q,"status":"active"}]}`,
			identity.EncodeKey(root.Public().(ed25519.PublicKey)))},
		"manifest.json": signedFile(t, root,
			fmt.Sprintf(`"entries":[{"issuer_id":"shops","website":"https://%s","status":"active",`+
				`"public_keys":[{"kid":"k1","algorithm":"Ed25519","public_key":%q,"status":"active"}]}]`, domain,
				identity.EncodeKey(key))),
		"revocations.json": signedFile(t, root, `"revoked_keys":[],"revoked_issuers":[]`),
	}
}

// The crawl checks the issuer that a manifest names against the configured registry, and says why one is not verified.
func TestIssuers(t *testing.T) {
	t.Parallel()
	const own, other = "issuer.example.com", "borrower.example.com"
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize))).Public().(ed25519.PublicKey)
	client := site(t, "127.0.81.9", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != wellKnown {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, strings.Replace(priced(r.Host, payee), `"display_name"`,
			fmt.Sprintf(`"identity":{"oatr_issuer_id":"shops","public_key":%q},"display_name"`,
				identity.EncodeKey(key)), 1))
	}, own, other)
	for name, c := range map[string]struct {
		files         fs.FS
		own, borrowed string
	}{
		"configured": {registry(t, own, key), `"Verified": true`, "website is not the origin"},
		"none":       {nil, "no registry is configured", "no registry is configured"},
		"broken":     {fstest.MapFS{}, "no registry is configured", "no registry is configured"},
	} {
		db := openStore(t)
		o := quick()
		o.Issuers = c.files
		stop := crawl(t, db, client, o, own, other)
		for domain, want := range map[string]string{own: c.own, other: c.borrowed} {
			eventually(t, name+": judged "+domain, func() bool {
				m, _ := read(t, db, domain)
				return strings.Contains(string(m.Verdict), want)
			})
		}
		stop()
	}
}
