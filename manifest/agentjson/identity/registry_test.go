package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"repute"
)

// registryOf makes the files of a registry, signed by a root key.
func registryOf(t *testing.T, root ed25519.PrivateKey, entries, revoked string) registryFiles {
	t.Helper()
	rootKeys := fmt.Sprintf(`{"keys":[{"kid":"root","algorithm":"Ed25519","public_key":%q,"status":"active",`+
		`"not_before":"2026-01-01T00:00:00Z","not_after":null}]}`, EncodeKey(public(root)))
	return registryFiles{
		Manifest: signFile(t, root, `"registry_id":"test","expires_at":"2026-05-01T00:00:00Z","entries":[`+
			entries+`]`),
		Revocations: signFile(t, root, `"expires_at":"2026-05-01T06:00:00Z",`+revoked),
		RootKeys:    []byte(rootKeys),
	}
}

// signFile signs the members of a file.
func signFile(t *testing.T, root ed25519.PrivateKey, members string) []byte {
	t.Helper()
	signature, err := SignJSON([]byte("{"+members+"}"), root)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "{\n  %s,\n  \"signature\": {\"algorithm\":\"Ed25519\",\"kid\":\"root\",\"value\":%q}\n}",
		members,
		signature)
}

const noRevocations = `"revoked_keys":[],"revoked_issuers":[]`

// entryOf is an issuer with one key.
func entryOf(key ed25519.PublicKey, id, website, status, keyStatus string) string {
	return fmt.Sprintf(`{"issuer_id":%q,"website":%q,"status":%q,"public_keys":[{"kid":"k1","algorithm":"Ed25519",`+
		`"public_key":%q,"status":%q,"expires_at":"2027-01-01T00:00:00Z"}]}`, id, website, status, EncodeKey(key),
		keyStatus)
}

func TestRegistryCheck(t *testing.T) {
	t.Parallel()
	root, issuerKey := keyOf(t, 20), keyOf(t, 21)
	key := public(issuerKey)
	files := registryOf(t, root, strings.Join([]string{
		entryOf(key, "good", "https://good.example", "active", "active"),
		entryOf(key, "suspended", "https://good.example", "suspended", "active"),
		entryOf(key, "old-key", "https://good.example", "active", "deprecated"),
		entryOf(key, "gone", "https://good.example", "active", "active"),
		entryOf(key, "lost-key", "https://good.example", "active", "active"),
		entryOf(key, "plain", "http://good.example", "active", "active"),
	}, ","),
		`"revoked_keys":[{"issuer_id":"lost-key","kid":"k1"}],"revoked_issuers":[{"issuer_id":"gone"},{"issuer_id":"x"}]`)
	message := []byte("oatr-proof-v1:good")
	files.Proofs = map[string][]byte{"good": fmt.Appendf(nil,
		"-----BEGIN OATR KEY OWNERSHIP PROOF-----\r\n\r\nCanonical-Message: %s\r\nSignature: %s\r\n-----END OATR KEY OWNERSHIP PROOF-----\r\n",
		message, base64.RawURLEncoding.EncodeToString(ed25519.Sign(issuerKey, message)))}
	r, err := openRegistry(files, now())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(key)
	for name, c := range map[string]struct {
		id, origin, key, trust string
		reason                 string // "" for verified
		at                     time.Time
	}{
		"key":         {id: "good", key: EncodeKey(key)},
		"key id":      {id: "good", key: "k1"},
		"fingerprint": {id: "good", key: base64.RawURLEncoding.EncodeToString(sum[:])},
		"short":       {id: "good", key: hex.EncodeToString(sum[:16])},
		"agent-trust": {id: "good",
			trust: `{"issuer_id":"good","public_key_fingerprint":"` + hex.EncodeToString(sum[:16]) + `"}`},
		"agent-trust of another": {id: "good", trust: `{"issuer_id":"b","public_key_fingerprint":"k1"}`,
			reason: "neither"},
		"no key":         {id: "good", reason: "neither"},
		"another key":    {id: "good", key: EncodeKey(public(root)), reason: "none of the issuer's"},
		"another origin": {id: "good", origin: "evil.example", key: "k1", reason: "website"},
		"a subdomain":    {id: "good", origin: "a.good.example", key: "k1", reason: "website"},
		"plain http":     {id: "plain", key: "k1", reason: "website"},
		"unknown":        {id: "nobody", key: "k1", reason: "does not know"},
		"suspended":      {id: "suspended", key: "k1", reason: "is suspended"},
		"deprecated key": {id: "old-key", key: "k1", reason: "revoked or deprecated"},
		"revoked issuer": {id: "gone", key: "k1", reason: "is revoked"},
		"revoked key":    {id: "lost-key", key: "k1", reason: "revoked or deprecated"},
		"files too old":  {id: "good", key: "k1", at: now().Add(24 * time.Hour), reason: "have expired"},
	} {
		origin, at := c.origin, c.at
		if origin == "" {
			origin = "good.example"
		}
		if at.IsZero() {
			at = now()
		}
		got := r.Check(c.id, origin, c.key, []byte(c.trust), at)
		if got.Verified != (c.reason == "") || !strings.Contains(got.Reason, c.reason) || got.Proven != got.Verified {
			t.Errorf("%s: %+v, want %q", name, got, c.reason)
		}
	}
	if r.expires != time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) {
		t.Error(r.expires)
	}
}

// Files that are not signed by a root key, too old or ambiguous are refused as a whole.
func TestOpenRegistryRefuses(t *testing.T) {
	t.Parallel()
	root := keyOf(t, 20)
	entry := entryOf(public(keyOf(t, 21)), "good", "https://good.example", "active", "active")
	change := func(f func(*registryFiles)) registryFiles {
		files := registryOf(t, root, entry, noRevocations)
		f(&files)
		return files
	}
	replace := func(b []byte, old, new string) []byte { return []byte(strings.ReplaceAll(string(b), old, new)) }
	for name, c := range map[string]struct {
		files registryFiles
		at    time.Time
		want  string
	}{
		"as it should be":  {files: change(func(*registryFiles) {})},
		"other root":       {files: change(func(f *registryFiles) { f.RootKeys = registryOf(t, keyOf(t, 9), "", noRevocations).RootKeys }), want: "not that of the key"},
		"unknown root":     {files: change(func(f *registryFiles) { f.RootKeys = replace(f.RootKeys, `"root"`, `"r2"`) }), want: "no root key"},
		"retired root":     {files: change(func(f *registryFiles) { f.RootKeys = replace(f.RootKeys, `"active"`, `"retired"`) }), want: "not active"},
		"later root":       {files: change(func(f *registryFiles) { f.RootKeys = replace(f.RootKeys, "2026-01", "2026-12") }), want: "not valid now"},
		"short root":       {files: change(func(f *registryFiles) { f.RootKeys = replace(f.RootKeys, EncodeKey(public(root)), "AAAA") }), want: "no Ed25519 key"},
		"changed list":     {files: change(func(f *registryFiles) { f.Manifest = replace(f.Manifest, "good.example", "evil.example") }), want: "not that of the key"},
		"changed list two": {files: change(func(f *registryFiles) { f.Revocations = replace(f.Revocations, "T06", "T07") }), want: "not that of the key"},
		"swapped":          {files: change(func(f *registryFiles) { f.Manifest = nil }), want: "no JSON"},
		"no revocations":   {files: change(func(f *registryFiles) { f.Revocations = nil }), want: "revocations.json"},
		"repeated member": {files: change(func(f *registryFiles) {
			f.Manifest = replace(f.Manifest, `"registry_id"`, `"entries":[],"registry_id"`)
		}), want: "repeats"},
		"wrong type": {files: change(func(f *registryFiles) { f.RootKeys = []byte(`{"keys":7}`) }),
			want: "wrong type"},
		"issuer twice": {files: registryOf(t, root, entry+","+entry, noRevocations), want: "given twice"},
		"expired":      {files: change(func(*registryFiles) {}), at: now().Add(8 * time.Hour), want: "expired"},
	} {
		at := c.at
		if at.IsZero() {
			at = now()
		}
		_, err := openRegistry(c.files, at)
		if c.want == "" && err != nil || c.want != "" &&
			(!errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A proof of one issuer does not prove another, nor another key.
func TestProofs(t *testing.T) {
	t.Parallel()
	key := keyOf(t, 30)
	proof := func(message, said string) []byte {
		return fmt.Appendf(nil,
			"-----BEGIN OATR KEY OWNERSHIP PROOF-----\nCanonical-Message: %s\nSignature: %s\n-----END OATR KEY OWNERSHIP PROOF-----\n",
			said, base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(message))))
	}
	var e, other issuer
	if json.Unmarshal([]byte(entryOf(public(key), "abc", "", "active", "active")), &e) != nil ||
		json.Unmarshal([]byte(entryOf(public(keyOf(t, 31)), "abc", "", "active", "active")), &other) != nil {
		t.Fatal("no issuer")
	}
	good := proof("oatr-proof-v1:abc", "oatr-proof-v1:abc")
	if !e.isProven(good) || other.isProven(good) {
		t.Error("the proof is of the key of the issuer")
	}
	for _, wrong := range [][]byte{nil, []byte("x"), good[:60], proof("oatr-proof-v1:abd", "oatr-proof-v1:abd"),
		proof("oatr-proof-v1:abd", "oatr-proof-v1:abc"), proof("oatr-proof-v1:abc", "oatr-proof-v1:abd")} {
		if e.isProven(wrong) {
			t.Errorf("proven by %s", wrong)
		}
	}
}

// Files of a registry are untrusted bytes as well.
func FuzzRegistry(f *testing.F) {
	f.Add([]byte(`{"expires_at":"2027-01-01T00:00:00Z","entries":[],"signature":{"kid":"a","value":"b"}}`),
		[]byte(`{"keys":[{"kid":"a"}]}`), []byte("-----BEGIN"))
	f.Fuzz(func(t *testing.T, list, keys, proof []byte) {
		if _, err := openRegistry(registryFiles{Manifest: list, Revocations: list, RootKeys: keys}, now()); err == nil {
			t.Fatal("files that nobody signed are valid")
		}
		if (issuer{ID: "a"}).isProven(proof) {
			t.Fatal("proven")
		}
		trustedKey(list, "a")
	})
}

// A registry is read from its directory, and a file that is missing or too large is named.
func TestReadRegistry(t *testing.T) {
	t.Parallel()
	root, key := keyOf(t, 20), keyOf(t, 21)
	files := registryOf(t, root, entryOf(public(key), "good", "https://good.example", "active", "active"),
		noRevocations)
	message := "oatr-proof-v1:good"
	proof := fmt.Sprintf("-----BEGIN OATR KEY OWNERSHIP PROOF-----\nCanonical-Message: %s\nSignature: %s\n"+
		"-----END OATR KEY OWNERSHIP PROOF-----\n", message,
		base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(message))))
	dir := fstest.MapFS{"manifest.json": {Data: files.Manifest}, "revocations.json": {Data: files.Revocations},
		"root-keys.json": {Data: files.RootKeys}, "proofs/good.proof": {Data: []byte(proof)}, "README.md": {}}
	now := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	r, err := ReadRegistry(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Check("good", "good.example", EncodeKey(public(key)), nil, now); !got.Verified || !got.Proven {
		t.Errorf("%+v", got)
	}
	dir["manifest.json"] = &fstest.MapFile{Data: make([]byte, maxRegistry+1)}
	if _, err := ReadRegistry(dir, now); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("too large: %v", err)
	}
	delete(dir, "manifest.json")
	if _, err := ReadRegistry(dir, now); err == nil || !strings.Contains(err.Error(), "manifest.json") {
		t.Errorf("missing: %v", err)
	}
}
