package files

import (
	"strings"
	"testing"

	"repute"
	"repute/manifest/agentjson"
)

func TestIsDomain(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]bool{
		"agent.example": true, "shop.agent.example": true, "bücher.example": true, "agent.json": false,
		"missing.yaml": false,
		"word":         false, "8453:22": false, "1.2": false, "https://a.example": false, "a.example/x": false,
		"a.example:8443": false,
		"10.0.0.1":       false, "": false, "x.": false,
	} {
		if got := isDomain(what); got != want {
			t.Errorf("%q: %v", what, got)
		}
	}
}

func TestIsManifestURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uri  string
		kind repute.DocumentKind
		want bool
	}{
		{"https://a.example/.well-known/agent.json", kindAuto, true},
		{"https://a.example/x.json", kindAuto, false},
		{"https://a.example/x.json", agentjson.Document, true},
		{"http://a.example/agent.json", kindAuto, false},
		{"https://a.example/agent.json", "card", false},
		{"ipfs://cid/agent.json", kindAuto, false},
	} {
		if got := (judging{kind: c.kind}).isManifestURL(c.uri); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// The report of a manifest that no host served shows how it is paid, and verifies nothing.
func TestJudgeManifest(t *testing.T) {
	t.Parallel()
	report := judge("a",
		[]byte(`{"version":"1.3","origin":"a.example","payout_address":"P","payments":{"x402":{"network":"base","asset":"USDC"}},
		"intents":[{"name":"a","description":"A description.","price":{"amount":0.10,"currency":"USDC"}}]}`), judging{kind: kindAuto})
	if report.Kind != agentjson.Document || report.Errors != 0 || report.Manifest == nil ||
		report.Manifest.Verified != agentjson.TierNone || report.Manifest.Declared != agentjson.TierStructured {
		t.Fatalf("%+v", report)
	}
	var out strings.Builder
	if err := report.write(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "pay     a by x402 base USDC: 0.1 USDC to P") {
		t.Error(text)
	}
	if in := report.Manifest.Intents; len(in) != 1 || *in[0].Terms.Ways[0].Recipient != "P" ||
		in[0].Terms.Price.Amount != "0.1" {
		t.Errorf("not as the API writes intents: %+v", in)
	}
	if other := judge("a", []byte(`{"awp_version":"1"}`), judging{kind: agentjson.Document}); other.Manifest != nil ||
		other.Errors != 1 {
		t.Errorf("%+v", other)
	}
}
