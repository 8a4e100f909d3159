package governance_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"repute"
	"repute/agent/governance"
)

// sample is the file of the Agent Runtime Specification, with its comments.
const sample = `{
  "version": "1.0",
  "agentId": 42,
  "rules": {
    "reputation": {
      "minClientReputation": 0, // Accept anyone
      "rejectBelowScore": -10,
      "degradeServiceBelowScore": 50
    },
    "payment": {
      "requirePaymentForAll": false,
      "freeTierRateLimit": 10, /* requests per hour */
      "refundPolicy": "none"
    },
    "validation": {
      "requireValidationAbove": "1 ETH",
      "validatorMinReputation": 80
    },
    "shutdown": {
      "autoShutdownOnLowReputation": true,
      "shutdownThreshold": -50,
      "autoRestartWhenFixed": false
    },
    "upgrade": {
      "autoUpgrade": false,
      "maintenanceWindow": "0 2 * * *", // 2 AM UTC
    },
  },
  "signature": "0x01ff"
}`

func parse(t testing.TB, text string) *governance.Policy {
	t.Helper()
	p, err := governance.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// withRules is a policy with the given content of rules.
func withRules(t testing.TB, rules string) *governance.Policy {
	t.Helper()
	return parse(t, `{"version":"1.0","agentId":"42","rules":{`+rules+`}}`)
}

func TestParseSample(t *testing.T) {
	t.Parallel()
	p := parse(t, sample)
	f := p.File()
	r := f.Rules
	if f.AgentID != "42" || *r.Reputation.RejectBelowScore != -10 || *r.Payment.FreeTierRateLimit != 10 ||
		r.Validation.RequireValidationAbove[0].Currency != "ETH" || !r.Shutdown.AutoShutdownOnLowReputation ||
		string(p.Signature()) != "\x01\xff" {
		t.Errorf("got %+v", f)
	}
	// Written by hand from RFC 8785: members sorted, no space, no signature.
	want := crypto.Keccak256Hash([]byte(`{"agentId":42,"rules":{"payment":{"freeTierRateLimit":10,"refundPolicy":"none",` +
		`"requirePaymentForAll":false},"reputation":{"degradeServiceBelowScore":50,"minClientReputation":0,` +
		`"rejectBelowScore":-10},"shutdown":{"autoRestartWhenFixed":false,"autoShutdownOnLowReputation":true,` +
		`"shutdownThreshold":-50},"upgrade":{"autoUpgrade":false,"maintenanceWindow":"0 2 * * *"},"validation":` +
		`{"requireValidationAbove":"1 ETH","validatorMinReputation":80}},"version":"1.0"}`))
	if p.Hash() != want {
		t.Errorf("hash %s, want %s", p.Hash(), want)
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct{ old, replace, want string }{
		{`"rejectBelowScore"`, `"rejectBelow"`, "policy/rules/reputation/rejectBelow: is no member"},
		{`"version": "1.0"`, `"version": "2.0"`, `version: "2.0" is not known`},
		{`"agentId": 42`, `"agentId": -1`, "policy/agentId:"},
		{`"agentId": 42`, `"agentId": 9007199254740993`, "write it as a string"},
		{`"agentId": 42`, `"agent": 42`, "policy/agent:"},
		{`"agentId": 42,`, ``, "agentId: missing"},
		{`-10`, `-101`, "rules.reputation.rejectBelowScore: is no score"},
		{`-10`, `"-10"`, "policy/rules/reputation/rejectBelowScore: is no number"},
		{`"requirePaymentForAll": false`, `"requirePaymentForAll": 0`,
			"policy/rules/payment/requirePaymentForAll: is no boolean"},
		{`"freeTierRateLimit": 10`, `"freeTierRateLimit": -1`, "rules.payment.freeTierRateLimit: out of range"},
		{`"none"`, `"maybe"`, `rules.payment.refundPolicy: "maybe" is not known`},
		{`"1 ETH"`, `"1ETH"`, "policy/rules/validation/requireValidationAbove: is no threshold"},
		{`"1 ETH"`, `"1e9 ETH"`, "is no threshold"},
		{`"1 ETH"`, `["1 ETH", "2 eth"]`, "eth has two thresholds"},
		{`"1 ETH"`, `1`, "is no threshold"},
		{`"shutdownThreshold": -50,`, ``, "rules.shutdown.shutdownThreshold: missing"},
		{`"0 2 * * *"`, `"0 2 * *"`, "rules.upgrade.maintenanceWindow: expected exactly 5 fields"},
		{`"0 2 * * *"`, `"TZ=0"`, "rules.upgrade.maintenanceWindow: is no schedule"},
		{`"0 2 * * *"`, `"@every 1h"`, "rules.upgrade.maintenanceWindow:"},
		{`"0 2 * * *"`, `"0 0 30 2 *"`, "rules.upgrade.maintenanceWindow: never happens"},
		{`"autoUpgrade": false`, `"maintenanceMinutes": 1441`, "rules.upgrade.maintenanceMinutes: out of range"},
		{`"maintenanceWindow": "0 2 * * *"`, `"maintenanceMinutes": 5`, "rules.upgrade.maintenanceWindow: missing"},
		{`"0x01ff"`, `"01ff"`, "signature: is no signature"},
		{`"0x01ff"`, `"0x"`, "signature: is no signature"},
		{`"0x01ff"`, `"0x1"`, "signature: is no signature"},
		{`"version": "1.0"`, `"version": "1.0", "version": "1.0"`, "policy"},
		{`"version": "1.0"`, `"version": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nests too deep"},
		{`"version": "1.0"`, `"version": ` + strings.Repeat("[", 10_000), "policy: too large"},
		{sample, `{`, "policy:"},
		{sample, ``, "policy:"},
		{sample, `null`, "version:"},
		{sample, `[]`, "policy:"},
		{`"upgrade"`, `"custom":[{"id":"a","when":"client.scor < 1.0","effect":"deny","reason":"r"}],"upgrade"`,
			"rules.custom[0].when:"},
		{`"upgrade"`, `"custom":[{"id":"a","when":"1","effect":"deny","reason":"r"}],"upgrade"`, "a condition: bool"},
		{`"upgrade"`, `"custom":[{"id":"a","when":"true","effect":"refuse","reason":"r"}],"upgrade"`,
			`rules.custom[0].effect: "refuse" is no effect`},
		{`"upgrade"`, `"custom":[{"id":"a","when":"true","effect":"deny","reason":""}],"upgrade"`,
			"rules.custom[0].reason:"},
		{`"upgrade"`,
			`"custom":[{"id":"a","when":"true","effect":"deny","reason":"r"},{"id":"a","when":"true","effect":"deny","reason":"r"}],"upgrade"`,
			"rules.custom[1].id:"},
	}
	for _, tt := range tests {
		text := strings.Replace(sample, tt.old, tt.replace, 1)
		if text == sample {
			t.Fatalf("%q is not in the sample", tt.old)
		}
		p, err := governance.Parse([]byte(text))
		if p != nil || !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: got %.400v; want %s", tt.replace, err, tt.want)
		}
	}
}

// A file with two mistakes names both.
func TestParseNamesAll(t *testing.T) {
	t.Parallel()
	_, err := governance.Parse([]byte(`{"version":"3","agentId":1,"rules":{"reputation":{"minClientReputation":101}}}`))
	for _, want := range []string{"version:", "minClientReputation:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in %v", want, err)
		}
	}
}

// Layout, comments, the order of members and the signature do not change the hash; a rule does.
func TestHashIgnoresLayout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n\t", "// why\n", "/* why */"})
		groups := []string{`"reputation":{"minClientReputation":5.0}`, `"shutdown":{"autoRestartWhenFixed":true}`,
			`"payment":{"freeTierRateLimit":7,"refundPolicy":"onFailure"}`}
		members := []string{`"version":"1.0"`, `"agentId":"7"`}
		if rapid.Bool().Draw(t, "signed") {
			members = append(members, `"signature":"0x`+
				rapid.StringMatching(`([0-9a-f]{2}){1,65}`).Draw(t, "signature")+`"`)
		}
		write := func(least string) string {
			shuffled := strings.Join(rapid.Permutation(groups).Draw(t, "groups"),
				space.Draw(t, "a")+","+space.Draw(t, "b"))
			all := append([]string{`"rules":{` + strings.Replace(shuffled, "5.0", least, 1) + `}`}, members...)
			return space.Draw(t, "c") + "{" +
				strings.Join(rapid.Permutation(all).Draw(t, "members"), ","+space.Draw(t, "d")) +
				space.Draw(t, "e") + "}" + space.Draw(t, "f")
		}
		hash := func(text string) string {
			p, err := governance.Parse([]byte(text))
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			return p.Hash().Hex()
		}
		a, b, c := hash(write("5.0")), hash(write("5")), hash(write("6"))
		if a != b {
			t.Fatal("the same policy has two hashes")
		}
		if a == c {
			t.Fatal("another threshold has the same hash")
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add(`{"version":"1.0","agentId":"7","rules":{"custom":[{"id":"a","when":"hour < 6 && lt(request.minor, \"5\")","effect":"degrade","reason":"r"}]}}`)
	f.Add(`{"version":"1.0","agentId":1,"rules":{"upgrade":{"maintenanceWindow":"*/5 1-2 * JAN MON#1","maintenanceMinutes":5}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := governance.Parse([]byte(text))
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := governance.Parse([]byte("// comment\n" + text + "\n"))
		if err != nil || again.Hash() != p.Hash() {
			t.Fatalf("a comment changes the hash, or %v", err)
		}
		state := p.Mode(governance.Own{Score: known(0, noon)}, noon)
		d := p.Decide(t.Context(), &governance.Request{}, state, noon)
		if len(d.Reasons) == 0 && d.Effect != governance.Allow {
			t.Fatalf("%s without a reason", d.Effect)
		}
	})
}
