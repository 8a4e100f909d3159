package publication

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
)

// A new manifest has no error for publishers, and what is still to be given is a warning.
func TestDraft(t *testing.T) {
	t.Parallel()
	key := testKey(1).Public().(ed25519.PublicKey)
	b, err := (&Draft{Domain: "API.Bücher.example", DisplayName: "Books & <more>", PublicKey: key}).Write()
	if err != nil {
		t.Fatal(err)
	}
	m, problems := agentjson.Parse(b, agentjson.Options{Profile: agentjson.Strict, Host: "api.xn--bcher-kva.example"})
	if len(problems) != 1 || problems[0].Code != agentjson.CodeZeroAddress || problems[0].Path != "/payout_address" {
		t.Errorf("%+v in %s", problems, b)
	}
	if m.DisplayName != "Books & <more>" || agentjson.Declared(m) != agentjson.TierIdentified || m.Intents[0].URL == "" {
		t.Errorf("%s", b)
	}
	doc, err := identity.NewDIDDocument(m.Origin, key)
	if err != nil {
		t.Fatal(err)
	}
	v := agentjson.Verify(m, problems, agentjson.Evidence{Host: m.Origin, DIDDocument: doc, Now: time.Now()})
	if v.Verified != agentjson.TierIdentified {
		t.Errorf("%+v", v)
	}
	for _, domain := range []string{"", "localhost", "https://a.example", "a.example:1", "10.0.0.1", "a b.example"} {
		if _, err := (&Draft{Domain: domain}).Write(); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", domain, err)
		}
	}
	for payout, valid := range map[string]bool{"0x12": false, "shop.eth": false, "0x" + strings.Repeat("1", 40): true} {
		_, err := (&Draft{Domain: "a.example", PayoutAddress: payout}).Write()
		if valid && err != nil || !valid && (!errors.Is(err, repute.ErrInvalid) ||
			!strings.HasPrefix(err.Error(), "payout: ")) {
			t.Errorf("payout %q: %v", payout, err)
		}
	}
}
