package manifest

import (
	"fmt"
	"slices"
	"testing"

	"repute"
)

func TestDomains(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://Agents.Example/mcp":   "agents.example",
		"HTTPS://a.example:8443/x?y#z": "a.example",
		"https://a.example./":          "a.example",
		" https://a.example ":          "a.example",
		"https://bücher.example":       "xn--bcher-kva.example",
		"https://a-b.c.d.example":      "a-b.c.d.example",
		"http://a.example":             "a.example",
		"WSS://a.example":              "a.example",
		"ftp://a.example":              "",
		"https://user:pass@a.example":  "a.example",
		"https://user@a.example":       "a.example",
		"https://127.0.0.1":            "",
		"https://2130706433":           "",
		"https://0x7f.1":               "",
		"https://1.2.3":                "",
		"https://0x7f.0x1":             "",
		"https://[::1]/":               "",
		"https://localhost":            "",
		"https://a.localhost":          "",
		"https://db.internal":          "",
		"https://printer.local":        "",
		"https://a..example":           "",
		"https://a.exam ple":           "",
		"https://-":                    "",
		"https://":                     "",
		"a.example":                    "",
		"eip155:1:0x0":                 "",
		"https://a%00.example":         "",
		"https://a.example@b.example":  "b.example",
		"https://a.example/\u202e":     "a.example",
		"ipfs://bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy": "",
	} {
		got := Domains(repute.Registration{Services: []repute.Service{{Endpoint: endpoint}}})
		if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
			t.Errorf("%q gives %q, want %q", endpoint, got, want)
		}
	}
}

func TestDomainsAreFewAndDistinct(t *testing.T) {
	var reg repute.Registration
	for i := range 30 {
		reg.Services = append(reg.Services, repute.Service{Endpoint: fmt.Sprintf("https://a%d.example/x", i/2)})
	}
	got := Domains(reg)
	if len(got) != maxDomains || got[0] != "a0.example" || got[9] != "a9.example" {
		t.Errorf("domains %v", got)
	}
}

func TestLinks(t *testing.T) {
	const registry = "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"
	entry := func(id, registry string) string {
		return fmt.Sprintf(`{"agentId":%s,"agentRegistry":%q}`, id, registry)
	}
	self, err := repute.ParseAgentRef(registry + ":22")
	if err != nil {
		t.Fatal(err)
	}
	agent := repute.AgentID{ChainID: self.ChainID, Registry: *self.Registry, TokenID: self.TokenID}
	for list, want := range map[string]repute.LinkResult{
		``:                                   repute.LinkUnlinked,
		`null`:                               repute.LinkUnlinked,
		entry("22", registry):                repute.LinkLinked,
		entry(`"22"`, registry):              repute.LinkLinked,
		entry("23", registry):                repute.LinkOther,
		entry("null", registry):              repute.LinkUnlinked,
		entry("22", "eip155:1"):              repute.LinkUnlinked,
		entry("22", "eip155:2"+registry[8:]): repute.LinkOther,
		entry("23", registry) + "," + entry("22", registry):                repute.LinkLinked,
		entry("22", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"): repute.LinkLinked,
		// A wrong checksum is a typo for people and the same address for the chain.
		entry("22", "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539A432"): repute.LinkLinked,
	} {
		reg, _ := Parse([]byte(`{"registrations":[` + list + `]}`))
		if got := Links(reg, agent); got != want {
			t.Errorf("%s is %s, want %s", list, got, want)
		}
		if got := len(MatchRegistration(reg, agent)) == 1; got != (want == repute.LinkOther) {
			t.Errorf("%s: problem %v", list, got)
		}
	}
}
