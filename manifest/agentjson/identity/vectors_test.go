package identity

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crypto/sha256"
)

// vectors decodes a file of test vectors, which are not part of this repository.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	b, err := os.ReadFile(filepath.Join(dir, "agentjson/vectors", name))
	if err != nil {
		t.Skipf("test data absent: %v", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

type signatureCase struct {
	Name      string
	Entries   json.RawMessage
	Canonical string `json:"canonical_utf8"`
	SHA256    string `json:"canonical_sha256"`
	Signature string
	PublicKey string `json:"public_key"`
	Valid     bool
}

// Every decided vector is decided so, canonical forms are the vectors' bytes, and signing gives the vectors'
// signatures.
func TestSignatureVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Seed      string `json:"seed_hex"`
		PublicKey string `json:"public_key"`
		Cases     []signatureCase
		Defined   []signatureCase `json:"implementation_defined"`
	}
	vectors(t, "commitments-signature.json", &file)
	seed, err := hex.DecodeString(file.Seed)
	if err != nil || len(file.Cases) != 17 || len(file.Defined) != 2 {
		t.Fatalf("%d cases, %d more, %v", len(file.Cases), len(file.Defined), err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	if EncodeKey(private.Public().(ed25519.PublicKey)) != file.PublicKey {
		t.Fatal("another key")
	}
	for _, c := range append(file.Cases, file.Defined...) {
		// Padding is accepted, the standard alphabet is not.
		want := c.Valid || strings.Contains(c.Name, "padding")
		text := file.PublicKey
		if c.PublicKey != "" {
			text = c.PublicKey
		}
		key, _, err := DecodeKey(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := VerifyJSON(c.Entries, c.Signature, key); (err == nil) != want {
			t.Errorf("%s: %v, valid %v", c.Name, err, want)
		}
		if c.Canonical == "" {
			continue
		}
		canonical, err := Canonical(c.Entries)
		if sum := sha256.Sum256(canonical); err != nil || string(canonical) != c.Canonical ||
			hex.EncodeToString(sum[:]) != c.SHA256 {
			t.Errorf("%s: %s, %v, want %s", c.Name, canonical, err, c.Canonical)
		}
		if got, err := SignJSON(c.Entries, private); err != nil || got != c.Signature {
			t.Errorf("%s: signed %s, %v", c.Name, got, err)
		}
	}
}

// Every form of the key is read, and its form is told. The DID document that has it proves the manifest's key.
func TestKeyVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		PublicKey string `json:"public_key_base64url"`
		Forms     []struct {
			Form  string
			Value json.RawMessage
		}
	}
	vectors(t, "public-key-encodings.json", &file)
	key, _, err := DecodeKey(file.PublicKey)
	if err != nil || len(file.Forms) != 6 {
		t.Fatalf("%d forms, %v", len(file.Forms), err)
	}
	want := []Form{FormMultikey, FormBase58Raw, FormProse, FormMultikeyURL, FormJWK, FormDIDKey}
	for i, form := range file.Forms {
		if want[i] == FormDIDKey {
			var did string
			if json.Unmarshal(form.Value, &did) != nil {
				t.Fatal(form.Form)
			}
			if got, err := ParseDIDKey(did); err != nil || !got.Equal(key) || DIDKey(key) != did {
				t.Errorf("%s: %v", form.Form, err)
			}
			continue
		}
		member := "publicKeyMultibase"
		if want[i] == FormJWK {
			member = "publicKeyJwk"
		}
		checkForm(t, `"`+member+`":`+string(form.Value), key, want[i])
	}
}

// checkForm reads a DID document with one method and looks for a key.
func checkForm(t *testing.T, member string, key ed25519.PublicKey, want Form) {
	t.Helper()
	doc, err := ParseDID([]byte(`{"id":"did:web:a.example","verificationMethod":[{"id":"did:web:a.example#k",` +
		member + `}]}`))
	if err != nil {
		t.Fatalf("%s: %v", member, err)
	}
	method, form, ok := doc.Find(key, now())
	if !ok || form != want || method.ID != "did:web:a.example#k" {
		t.Errorf("%s: form %q, %v, want %q", member, form, ok, want)
	}
}
