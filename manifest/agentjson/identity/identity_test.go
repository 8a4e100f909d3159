package identity

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"
	"pgregory.net/rapid"
)

// now is the time of the tests.
func now() time.Time { return time.Date(2026, 4, 30, 18, 30, 0, 0, time.UTC) }

// keyOf makes a key from one byte.
func keyOf(t testing.TB, seed byte) ed25519.PrivateKey {
	t.Helper()
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func TestPublicKeyBase58(t *testing.T) {
	t.Parallel()
	key := public(keyOf(t, 7))
	checkForm(t, `"publicKeyBase58":"`+base58.Encode(key)+`"`, key, FormBase58)
}

// Every key is found in every form in which it can be written, also where the text has a second reading.
func TestKeysOfAllForms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := ed25519.PublicKey(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		for text, want := range map[string]Form{
			encodeMultikey(key):                           FormMultikey,
			"z" + base58.Encode(key):                      FormBase58Raw,
			"z" + EncodeKey(key):                          FormProse,
			"u" + EncodeKey(append(multicodec(), key...)): FormMultikeyURL,
		} {
			found := Form("")
			for _, c := range multibase(text) {
				if c.Key.Equal(key) && found == "" {
					found = c.Form
				}
			}
			if found != want {
				t.Fatalf("%s: form %q, want %q", text, found, want)
			}
		}
		if len(encodeMultikey(key)) != 48 || !strings.HasPrefix(encodeMultikey(key), "z6Mk") {
			t.Fatal(encodeMultikey(key))
		}
	})
}

// Some texts in the prose form are base58 of other 32 bytes as well. Both readings are candidates, base58 first.
func TestAmbiguousKey(t *testing.T) {
	t.Parallel()
	for seed := range 20_000 {
		key := make(ed25519.PublicKey, 32)
		copy(key, fmt.Sprintf("%032d", seed*7919))
		for i := range key {
			key[i] ^= byte(seed >> (i % 8))
		}
		got := multibase("z" + EncodeKey(key))
		if len(got) != 2 {
			continue
		}
		if got[0].Form != FormBase58Raw || got[1].Form != FormProse || !got[1].Key.Equal(key) || got[0].Key.Equal(key) {
			t.Fatalf("%+v", got)
		}
		return
	}
	t.Error("no ambiguous key in 20,000")
}

func TestDecodeKey(t *testing.T) {
	t.Parallel()
	good := EncodeKey(public(keyOf(t, 1)))
	for name, c := range map[string]struct {
		text   string
		want   string // of the error
		padded bool
	}{
		"good":           {text: good},
		"padding":        {text: good + "=", padded: true},
		"wrong padding":  {text: good + "==", want: "wrong padding", padded: true},
		"34 bytes":       {text: EncodeKey(append(multicodec(), make([]byte, 32)...)), want: "34 bytes"},
		"31 bytes":       {text: EncodeKey(make([]byte, 31)), want: "31 bytes"},
		"empty":          {text: "", want: "0 bytes"},
		"standard":       {text: "+" + good[1:], want: "standard alphabet"},
		"line break":     {text: good[:20] + "\n" + good[20:], want: "line breaks"},
		"space":          {text: good[:42] + " ", want: "no base64url"},
		"stray bits":     {text: good[:42] + "_", want: "no base64url"},
		"multikey":       {text: encodeMultikey(public(keyOf(t, 1))), want: "36 bytes"},
		"very long":      {text: strings.Repeat("A", 1<<20), want: "are no key"},
		"hex":            {text: fmt.Sprintf("%x", public(keyOf(t, 1))), want: "48 bytes"},
		"another script": {text: strings.Repeat("А", 43), want: "no base64url"},
	} {
		key, padded, err := DecodeKey(c.text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if c.want == "" && (got != "" || len(key) != 32) || !strings.Contains(got, c.want) || padded != c.padded {
			t.Errorf("%s: %q, padded %v, want %q", name, got, padded, c.want)
		}
	}
}

// weakKey decodes a point of small order.
func weakKey(t *testing.T, i int) []byte {
	t.Helper()
	b, err := hex.DecodeString(weak()[i])
	if err != nil || len(b) != ed25519.PublicKeySize {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	return b
}

func TestIsPlaceholder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  []byte
		want bool
	}{
		"text":                    {[]byte("this is a placeholder public key"), true},
		"zero":                    {make([]byte, 32), true},
		"one byte":                {bytes.Repeat([]byte{0xaa}, 32), true},
		"one":                     {append([]byte{1}, make([]byte, 31)...), true},
		"one with the sign bit":   {append(append([]byte{1}, make([]byte, 30)...), 0x80), true},
		"minus one":               {append(append([]byte{0xec}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f), true},
		"the prime":               {append(append([]byte{0xed}, bytes.Repeat([]byte{0xff}, 30)...), 0xff), true},
		"order eight":             {weakKey(t, 2), true},
		"order eight, the other":  {weakKey(t, 3), true},
		"34 bytes":                {make([]byte, 34), true},
		"a key":                   {public(keyOf(t, 9)), false},
		"a key with another seed": {public(keyOf(t, 200)), false},
	} {
		if got := IsPlaceholder(c.key); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// For a key of small order there is a signature that crypto/ed25519 accepts for every message. Here it is none.
func TestWeakKeySignsNothing(t *testing.T) {
	t.Parallel()
	key := ed25519.PublicKey(weakKey(t, 1)) // the neutral point
	signature := append(bytes.Clone(key), make([]byte, 32)...)
	raw := []byte(`[{"type":"a","constraint":"b"}]`)
	message, err := Canonical(raw)
	if err != nil || !ed25519.Verify(key, message, signature) {
		t.Fatalf("the standard library refuses it as well: %v", err)
	}
	if err := VerifyJSON(raw, base64.RawURLEncoding.EncodeToString(signature), key); err == nil {
		t.Error("a signature of nobody is valid")
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[{"b":1,"a":[ ]}]`:                          `[{"a":[],"b":1}]`,
		`{"x":1e21,"y":1e-7,"z":-0,"f":4.50}`:        `{"f":4.5,"x":1e+21,"y":1e-7,"z":0}`,
		`["<&>\u2028\u2029 \u00e9\/"]`:               "[\"<&>\u2028\u2029 é/\"]",
		`{"\ud83d\ude00":1,"\ufb33":2,"a":"\u0000"}`: "{\"a\":\"\\u0000\",\"\U0001f600\":1,\"\ufb33\":2}",
		`9007199254740991`:                           `9007199254740991`,
		`{"a":1,"a":1}`:                              "repeated",
		`[{"a":{"b":1,"\u0062":1}}]`:                 "repeated",
		`["\ud800"]`:                                 "surrogate",
		"[\"\xff\"]":                                 "UTF-8",
		`[9007199254740993]`:                         "beyond 2^53",
		`[-9007199254740992]`:                        "beyond 2^53",
		`[1E400]`:                                    "out of range",
		`[1e-400]`:                                   "too small",
		`[] []`:                                      "no JSON",
		``:                                           "no JSON",
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000): "deeper",
		`["` + strings.Repeat("a", maxSigned) + `"]`:              "at most",
	} {
		got, err := Canonical([]byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.40s: %v, want %q", text, err, want)
			}
			continue
		}
		if string(got) != want {
			t.Errorf("%.40s: %s, want %s", text, got, want)
		}
	}
}

// Half a megabyte made to cost as much as it can is canonical within the time of a reader.
func TestCanonicalOfMany(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := 0; b.Len() < maxSigned-40; i++ {
		fmt.Fprintf(&b, `"\u%04x%x":1,`, 0x4000-i%0x2000, i)
	}
	text := "[{" + b.String() + `"z":0}]`
	first, err := Canonical([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Canonical(first)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("the canonical form has another one: %v", err)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for did, want := range map[string]string{
		"did:web:a.example":            "https://a.example/.well-known/did.json",
		"did:web:a.example%3A8443:x:y": "https://a.example:8443/x/y/did.json",
		"did:web:a.example:x":          "https://a.example/x/did.json",
		"did:web:":                     "",
		"did:web:a.example:..:x":       "",
		"did:web:a.example:%2e%2e":     "",
		"did:web:a.example:":           "",
		"did:web:u%40b.example":        "",
		"did:web:a.example%2Fx":        "",
		"did:web:a.example%3Fq":        "",
		"did:web:a.example%zz":         "",
		"did:key:z6Mk":                 "",
		"":                             "",
	} {
		if got, err := URL(did); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", did, got, err, want)
		}
	}
}

func TestIsWebDID(t *testing.T) {
	t.Parallel()
	for did, want := range map[string]bool{
		"did:web:a.example": true, "did:web:A.Example": true, "did:web:a.example:alice": false,
		"did:web:b.a.example":     false,
		"did:web:a.example%3A443": false, "did:web:": false, "did:key:a.example": false, "did:web:xample": false,
	} {
		if got := IsWebDID(did, "a.example"); got != want {
			t.Errorf("%s: %v", did, got)
		}
	}
	if IsWebDID("did:web:", "") {
		t.Error("no host has a DID")
	}
}

func TestParseDID(t *testing.T) {
	t.Parallel()
	key := public(keyOf(t, 3))
	multikey := `"publicKeyMultibase":"` + encodeMultikey(key) + `"`
	method := func(members string) string { return `"verificationMethod":[{"id":"#k",` + members + `}]` }
	for name, c := range map[string]struct {
		doc   string
		found bool
		err   string
	}{
		"plain":            {`{"id":"did:web:a",` + method(multikey) + `}`, true, ""},
		"embedded":         {`{"id":"did:web:a","assertionMethod":["#k",{"id":"#k",` + multikey + `}]}`, true, ""},
		"own controller":   {`{"id":"did:web:a",` + method(`"controller":"did:web:a",`+multikey) + `}`, true, ""},
		"other controller": {`{"id":"did:web:a",` + method(`"controller":"did:web:b",`+multikey) + `}`, false, ""},
		"revoked": {`{"id":"did:web:a",` + method(`"revoked":"2026-01-01T00:00:00Z",`+multikey) + `}`,
			false, ""},
		"expires later": {`{"id":"did:web:a",` + method(`"expires":"2027-01-01T00:00:00Z",`+multikey) + `}`,
			true, ""},
		"expires at no time":  {`{"id":"did:web:a",` + method(`"expires":"soon",`+multikey) + `}`, false, ""},
		"key agreement alone": {`{"id":"did:web:a","keyAgreement":[{"id":"#k",` + multikey + `}]}`, false, ""},
		"references in a loop": {`{"id":"did:web:a","alsoKnownAs":["did:web:a"],"controller":"did:web:b",` +
			`"verificationMethod":["#b"],"authentication":["#a"],"assertionMethod":["#b","did:web:b#a"]}`, false, ""},
		"other curve": {`{"id":"did:web:a",` +
			method(`"publicKeyJwk":{"kty":"OKP","crv":"X25519","x":"`+EncodeKey(key)+`"}`) + `}`, false, ""},
		"wrong types":  {`{"id":"did:web:a","verificationMethod":[1,null,[],{"publicKeyMultibase":7}]}`, false, ""},
		"repeated":     {`{"id":"did:web:a","id":"did:web:b"}`, false, "repeats the member"},
		"no id":        {`{"verificationMethod":[]}`, false, "no id"},
		"array":        {`[]`, false, "no JSON object"},
		"no JSON":      {`<html>`, false, "no JSON"},
		"id is a list": {`{"id":["did:web:a"]}`, false, "wrong type"},
		"deep":         {strings.Repeat("[", 100_000), false, "deeper"},
		"large":        {`{"id":"` + strings.Repeat("a", maxDIDDocument) + `"}`, false, "at most"},
		"capital ID":   {`{"ID":"did:web:a"}`, false, "no id"},
	} {
		doc, err := ParseDID([]byte(c.doc))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if _, _, ok := doc.Find(key, now()); ok != c.found {
			t.Errorf("%s: found %v", name, ok)
		}
	}
}

// A document that this package writes has the key in the standard form.
func TestNewDIDDocument(t *testing.T) {
	t.Parallel()
	key := public(keyOf(t, 4))
	b, err := NewDIDDocument("A.Example", key)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ParseDID(b)
	if err != nil || doc.ID != "did:web:a.example" {
		t.Fatalf("%+v, %v", doc, err)
	}
	if m, form, ok := doc.Find(key, now()); !ok || form != FormMultikey || m.ID != "did:web:a.example#key-1" {
		t.Errorf("%+v %s %v", m, form, ok)
	}
}

func TestPrivateKeyFile(t *testing.T) {
	t.Parallel()
	key := keyOf(t, 5)
	b, err := EncodePrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParsePrivateKey(b); err != nil || !got.Equal(key) {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"", "secret", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		strings.Replace(string(b), "PRIVATE", "PUBLIC", 2)} {
		if _, err := ParsePrivateKey([]byte(text)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// No text of a key, a DID or a document makes reading fail otherwise than by an error, and a key always has 32 bytes.
func FuzzDID(f *testing.F) {
	f.Add([]byte(`{"id":"did:web:a","verificationMethod":[{"id":"#k","publicKeyMultibase":"z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw"}]}`), "did:web:a%3A1:b", "z11qY")
	f.Add([]byte(`{"id":"did:web:a","assertionMethod":[{"publicKeyJwk":{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},"expires":"x"}]}`), "did:key:z6Mk", "u7QE")
	f.Fuzz(func(t *testing.T, b []byte, did, text string) {
		doc, err := ParseDID(b)
		if err == nil && !strings.HasPrefix(doc.ID, "did:") {
			t.Fatal(doc.ID)
		}
		for _, m := range doc.Methods {
			for _, c := range m.Candidates {
				if len(c.Key) != ed25519.PublicKeySize {
					t.Fatalf("a key of %d bytes", len(c.Key))
				}
				doc.Find(c.Key, now())
			}
		}
		if u, err := URL(did); err == nil && (!strings.HasPrefix(u, "https://") || !strings.HasSuffix(u, "/did.json")) {
			t.Fatal(u)
		}
		for _, c := range multibase(text) {
			if len(c.Key) != ed25519.PublicKeySize {
				t.Fatalf("a key of %d bytes", len(c.Key))
			}
		}
		key, _, err := DecodeKey(text)
		if (err == nil) != (len(key) == ed25519.PublicKeySize) {
			t.Fatal(err)
		}
		if VerifyJSON(b, text, key) == nil {
			t.Fatal("a made-up signature is valid")
		}
		_, _ = ParseDIDKey(did)
	})
}
