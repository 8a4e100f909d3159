package agentjson

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/manifest/agentjson/identity"
)

// What is signed here verifies, everything but the signature stays as written, and signing again changes nothing.
func TestSignCommitments(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	publicKey := identity.EncodeKey(key.Public().(ed25519.PublicKey))
	rapid.Check(t, func(t *rapid.T) {
		blank := rapid.SampledFrom([]string{"", " ", "\n    "}).Draw(t, "blank")
		constraint := rapid.StringMatching(`[a-z<>&é€😀 ]{1,20}`).Draw(t, "constraint")
		members := []string{`"schema_version": "1.0"`,
			fmt.Sprintf(`"entries":%s[{"type":"a","constraint":%q,"x-n":%d}]`, blank, constraint,
				rapid.IntRange(0, 1<<50).Draw(t, "number"))}
		if rapid.Bool().Draw(t, "swapped") {
			members[0], members[1] = members[1], members[0]
		}
		if rapid.Bool().Draw(t, "signed") {
			members = append(members, `"signature" : "old"`)
		}
		doc := fmt.Sprintf(`{"version":"1.4","origin":"example.com","payout_address":"a","identity":{"did":"did:web:example.com","public_key":%q},
  "commitments":{%s%s%s}, "x-after": [1]}`, publicKey, blank, strings.Join(members, ","+blank), blank)
		signed, err := SignCommitments([]byte(doc), key)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		m, problems := Parse(signed, Options{Profile: Strict, Host: "example.com"})
		if repute.HasErrors(problems) {
			t.Fatalf("%s: %+v", signed, problems)
		}
		did, err := identity.NewDIDDocument("example.com", key.Public().(ed25519.PublicKey))
		if err != nil {
			t.Fatal(err)
		}
		if v := Verify(m, problems, Evidence{Host: "example.com", DIDDocument: did,
			Now: testNow()}); v.Verified != TierSigned {
			t.Fatalf("%s: %+v", signed, v)
		}
		again, err := SignCommitments(signed, key)
		if err != nil || string(again) != string(signed) {
			t.Fatalf("%s\n%s\n%v", signed, again, err)
		}
		if !strings.HasSuffix(string(signed), `, "x-after": [1]}`) {
			t.Fatalf("%s", signed)
		}
	})
}

func TestSignCommitmentsRefuses(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	publicKey := `"identity":{"public_key":"` + identity.EncodeKey(key.Public().(ed25519.PublicKey)) + `"}`
	for name, c := range map[string]struct{ members, want string }{
		"no commitments": {publicKey, "commitments: are missing"},
		"no key":         {entries(aLatency), "identity.public_key: is missing"},
		"another key":    {`"identity":{` + aKeyOf32 + `},` + entries(aLatency), "another key"},
		"big integer": {publicKey + `,` + entries(`{"type":"a","constraint":"b","x-n":9007199254740993}`),
			"beyond 2^53"},
		"repeated": {publicKey + `,` + entries(`{"type":"a","type":"a","constraint":"b"}`), "repeated"},
		"errors":   {publicKey + `,` + entries(`{"constraint":"b"}`), "manifest /commitments/entries/0/type"},
	} {
		_, err := SignCommitments(base(","+c.members), key)
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	withMark := append([]byte("\xef\xbb\xbf"), base(","+publicKey+","+entries(aLatency))...)
	if signed, err := SignCommitments(withMark, key); err != nil || signed[0] != '{' {
		t.Errorf("a byte order mark: %v", err)
	}
}
