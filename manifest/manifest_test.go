package manifest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"repute"
)

func codesOf(problems []repute.Problem) []string {
	var codes []string
	for _, p := range problems {
		codes = append(codes, p.Code+p.Path)
	}
	slices.Sort(codes)
	return codes
}

const standard = `{
	"type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
	"name": "Ledger keeper",
	"description": "Keeps ledgers.",
	"image": "https://agents.example/i.png",
	"services": [
		{"name": "MCP", "endpoint": "https://agents.example/mcp", "version": "2025-06-18", "mcpTools": ["add"]},
		{"name": "OASF", "endpoint": "ipfs://x", "version": "0.8",
			"skills": ["natural_language_processing/summarization"], "domains": ["finance"]},
		{"name": "agentWallet", "endpoint": "eip155:1:0x742D35Cc6634C0532925A3B844bC9e7595f0bEB7"}
	],
	"x402Support": false,
	"active": true,
	"registrations": [{"agentId": 22, "agentRegistry": "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}],
	"supportedTrust": ["reputation", "tee-attestation"],
	"tags": ["x", 1]
}`

func TestParseStandard(t *testing.T) {
	reg, problems := Parse([]byte(standard))
	if len(problems) != 0 {
		t.Errorf("problems %v", problems)
	}
	yes, no := true, false
	id := *new(repute.TokenID).SetUint64(22)
	want := repute.Registration{
		Type: TypeRegistration, Name: "Ledger keeper", Description: "Keeps ledgers.",
		Image: "https://agents.example/i.png",
		Services: []repute.Service{
			{Name: "MCP", Endpoint: "https://agents.example/mcp", Version: "2025-06-18", Tools: []string{"add"}},
			{Name: "OASF", Endpoint: "ipfs://x", Version: "0.8",
				Skills: []string{"natural_language_processing/summarization"}, Domains: []string{"finance"}},
			{Name: "agentWallet", Endpoint: "eip155:1:0x742D35Cc6634C0532925A3B844bC9e7595f0bEB7"},
		},
		X402: &no, Active: &yes,
		Registrations: []repute.RegistrationLink{{TokenID: &id,
			Registry: "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}},
		SupportedTrust: []string{"reputation", "tee-attestation"},
		Extra:          raw("tags", `["x", 1]`),
	}
	if !reflect.DeepEqual(reg, want) {
		t.Errorf("got  %+v\nwant %+v", reg, want)
	}
}

// Each document is the standard one with one change; the table names exactly the
// problems that follow.
func TestParseProblems(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{`registration-v1`, `registration`, []string{"WA524/type"}},
		{`"name": "Ledger keeper",`, ``, []string{"WA525/name"}},
		{`"Ledger keeper"`, `null`, []string{"WA525/name"}},
		{`"Ledger keeper"`, `7`, []string{"WA520/name"}},
		{`"Keeps ledgers."`, `{"en":"x"}`, []string{"WA520/description", "WA526/description"}},
		{`"https://agents.example/i.png"`, `"/Users/me/i.png"`, []string{"WA528/image"}},
		{`"https://agents.example/i.png"`, `""`, []string{"IA527/image"}},
		{`"services"`, `"endpoints"`, []string{"WA031/endpoints"}},
		{`"services"`, `"endpoints": [], "services"`, []string{"WA522/endpoints"}},
		{`"x402Support"`, `"x402support"`, []string{"WA521/x402support"}},
		{`"x402Support": false`, `"x402Support": {"enabled": true}`, []string{"WA520/x402Support"}},
		{`"supportedTrust"`, `"supportedTrusts"`, []string{"WA521/supportedTrusts"}},
		{`"tee-attestation"`, `{"id": "tee-attestation"}`, []string{"WA520/supportedTrust/1"}},
		{`{"name": "agentWallet", "endpoint":`, `{"kind": "agentWallet", "url":`,
			[]string{"WA521/services/2/kind", "WA521/services/2/url"}},
		{`{"name": "agentWallet", "endpoint":`, `{"id": "agentWallet", "serviceEndpoint":`,
			[]string{"WA521/services/2/id", "WA521/services/2/serviceEndpoint"}},
		{`"name": "agentWallet", `, ``, []string{"WA532/services/2"}},
		{`"endpoint": "ipfs://x", `, ``, []string{"WA533/services/1"}},
		{`"version": "0.8"`, `"version": 8`, []string{"WA520/services/1/version"}},
		{`{"name": "OASF",`, `"https://a.example", {"name": "OASF",`, []string{"WA531/services/1"}},
		{`{"name": "OASF",`, `null, {"name": "OASF",`, []string{"WA520/services/1"}},
		{`"agentId": 22`, `"agentId": "22"`, []string{"IA540/registrations/0/agentId"}},
		{`"agentId": 22`, `"agentId": null`, []string{"WA541/registrations/0/agentId"}},
		{`"agentId": 22`, `"agentId": 1e3`, []string{"WA541/registrations/0/agentId"}},
		{`"agentId": 22`, `"agentId": -1`, []string{"WA541/registrations/0/agentId"}},
		{`"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`, `"eip155:1"`,
			[]string{"WA542/registrations/0/agentRegistry"}},
		{`"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`,
			`"erc8004:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`,
			[]string{"WA544/registrations/0/agentRegistry"}},
		{`"agentRegistry": "eip155:1:`, `"chainId": 1, "contract": "`, []string{"WA521/registrations/0/contract"}},
		{`"agentId": 22, "agentRegistry": "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`,
			`"agentId": "7vfCXTUXx5WJV5JADk17DUJ4ksgau7utNKj4b963voxs",` +
				`"agentRegistry": "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:8oo4dC4JvBLwy5tGgiH3WwK4B9PWxL9Z4XjA2jzkQMbQ"`, nil},
		{`"agentId": 22, "agentRegistry": "eip155:1:`, `"agentId": "0x1f", "agentRegistry": "starknet:SN_MAIN:`, nil},
		{`"agentId": 22, "agentRegistry": "eip155:1:`, `"agentId": "a b", "agentRegistry": "starknet:SN_MAIN:`,
			[]string{"WA541/registrations/0/agentId"}},
		{`"eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"`, `"so:x:y"`,
			[]string{"WA542/registrations/0/agentRegistry"}},
		{`eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432`, `eip155:1:0x8004a169FB4a3325136EB29fA0ceB6D2e539a432`,
			[]string{"WA593/registrations/0/agentRegistry"}},
		{`0x742D35Cc6634C0532925A3B844bC9e7595f0bEB7`, `0x742d35cC6634C0532925A3B844bC9e7595f0bEB7`,
			[]string{"WA593/services/2/endpoint"}},
		{`0x742D35Cc6634C0532925A3B844bC9e7595f0bEB7`, `0x8004A169FB4a3325136EB29fA0ceB6D2e539a432`,
			[]string{"WA549/services/2/endpoint"}},
		{`0x742D35Cc6634C0532925A3B844bC9e7595f0bEB7`, `0x0000000000000000000000000000000000000000`,
			[]string{"WA549/services/2/endpoint"}},
		{`"https://agents.example/i.png"`, `"ipfs://QmYourImageHash"`, []string{"WA549/image"}},
		{`"https://agents.example/i.png"`, `"ar://bNbA3TEQVL60xlgCcqdz4ZPHFZ711cZ3hmkpGttDt_U"`, nil},
		{`"https://agents.example/i.png"`,
			`"ipns://k51qzi5uqu5dlvj2baxnqndepeb86cbk3ng7n3i46uzyxzyqj2xjonzllnv0v8"`, nil},
		{`https://agents.example/mcp`, `https://api.example.com/mcp`, []string{"WA549/services/0/endpoint"}},
		{`https://agents.example/mcp`, `https://your-domain.io/mcp`, []string{"WA549/services/0/endpoint"}},
		{`https://agents.example/mcp`, `https://me:hunter2@agents.example/mcp`, []string{"WA592/services/0/endpoint"}},
		{`https://agents.example/mcp`, `https://agents.example/mcp?api_key=sk-12345678`,
			[]string{"WA592/services/0/endpoint"}},
		{`https://agents.example/mcp`, `https://agents.example/mcp?key=en`, nil},
		{`["natural_language_processing/summarization"]`, `"summarization, Text Completion"`,
			[]string{"WA520/services/1/skills"}},
		{`natural_language_processing/summarization`, `natural_language_processing/mind_reading`,
			[]string{"WA594/services/1/skills"}},
		{`"domains": ["finance"]`, `"domains": ["alchemy"]`, []string{"WA594/services/1/domains"}},
		{`"tags": ["x", 1]`, `"oasf_skills": ["question_answering"], "oasf_domains": "finance"`,
			[]string{"WA520/oasf_domains", "WA521/oasf_domains", "WA521/oasf_skills"}},
		{`"active": true`, `"active": true, "active": false`, []string{"WA510/active"}},
		{`["x", 1]`, `[{"a/b~":1,"a/b~":2}]`, []string{"WA510/tags/0/a~1b~0"}},
		{`Keeps`, `\ud83d Keeps`, []string{"WA511"}},
		{`Keeps`, `\ud83d\ude00 \\ud83d`, nil},
		{`Keeps`, `\u0000`, []string{"WA512"}},
		{`Keeps`, "\xff", []string{"WA513"}},
		{`Keeps`, strings.Repeat("é", maxText/2+1), []string{"WA515/description"}},
		{`https://agents.example/i.png`, "https://" + strings.Repeat("x", maxURL),
			[]string{"IA527/image", "WA515/image"}},
	} {
		doc := strings.Replace(standard, c.from, c.to, 1)
		if doc == standard {
			t.Fatalf("%q is not in the document", c.from)
		}
		if _, problems := Parse([]byte(doc)); !slices.Equal(codesOf(problems), c.want) {
			t.Errorf("%.60s → %.60s\n got %v\nwant %v", c.from, c.to, codesOf(problems), c.want)
		}
	}
}

func TestParseOtherDocuments(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for doc, want := range map[string]string{
		"":                                  CodeEmpty,
		" \n\t":                             CodeEmpty,
		"\ufeff":                            CodeEmpty,
		"<!doctype html><html></html>":      CodeHTML,
		"agent of the year":                 CodeNotJSON,
		`{"name":"x"`:                       CodeNotJSON,
		`{"name":"x"} trailing`:             CodeNotJSON,
		`{"name":NaN}`:                      CodeNotJSON,
		`{'name':'x'}`:                      CodeNotJSON,
		"\x1f\x8b\x08":                      CodeNotJSON,
		deep:                                CodeTooDeep,
		strings.Repeat("[", 1<<20):          CodeTooDeep,
		`[{"name":"x"}]`:                    CodeNotObject,
		`"text"`:                            CodeNotObject,
		`null`:                              CodeNotObject,
		`{"v":1,"iv":"a","ciphertext":"b"}`: CodeEncrypted,
		`{"name":"x","url":"https://x","skills":[{"id":"a"}],"capabilities":{}}`: CodeA2ACard,
		`{"detail":"Agent not found"}`:                                           CodeErrorBody,
		`{"message":"nope","code":404}`:                                          CodeErrorBody,
		`{"@context":"https://schema.org","name":"x"}`:                           CodeJSONLD,
		`{}`: CodeUnknown,
	} {
		_, problems := Parse([]byte(doc))
		i := slices.IndexFunc(problems, func(p repute.Problem) bool { return p.Severity == repute.SeverityError })
		if i < 0 || problems[i].Code != want || !repute.HasErrors(problems) {
			t.Errorf("%.40q: %v, want %s", doc, codesOf(problems), want)
		}
	}
}

// What marketplaces show of a token is read as a file that lacks what agents have.
func TestParseNFT(t *testing.T) {
	reg, problems := Parse([]byte(`{"name":"x","image":"https://y.example/i.png","attributes":[]}`))
	if reg.Name != "x" || repute.HasErrors(problems) || problems[0].Code != CodeNFT {
		t.Errorf("read %+v with %v", reg, codesOf(problems))
	}
}

// Skills count wherever they are written: as one text, and at the top of the file.
func TestParseOASF(t *testing.T) {
	for doc, want := range map[string][]string{
		`{"services":[{"name":"OASF","endpoint":"x","skills":"a,b"}]}`:                                {"a", "b"},
		`{"name":"n","oasf_skills":["a","b"],"services":[]}`:                                          {"a", "b"},
		`{"name":"n","oasf_skills":["b"],"services":[{"name":"oasf","endpoint":"x","skills":["a"]}]}`: {"a", "b"},
	} {
		if reg, _ := Parse([]byte(doc)); !slices.Equal(reg.Skills(), want) || len(reg.Services) != 1 {
			t.Errorf("%s: skills %q of %d services, want %q of 1", doc, reg.Skills(), len(reg.Services), want)
		}
	}
}

// A card that also carries a registration's members is a registration.
func TestParseMixedDocument(t *testing.T) {
	_, problems := Parse([]byte(`{"name":"x","skills":[],"capabilities":{},"registrations":[]}`))
	if repute.HasErrors(problems) {
		t.Errorf("problems %v", problems)
	}
}

func TestParseServiceShapes(t *testing.T) {
	for doc, want := range map[string][]repute.Service{
		`{"services":{"MCP":"https://m","A2A":{"endpoint":"https://a","version":"1"}}}`: {
			{Name: "MCP", Endpoint: "https://m"}, {Name: "A2A", Endpoint: "https://a", Version: "1"},
		},
		`{"services":["https://w","twitter"]}`: {{Endpoint: "https://w"}, {Name: "twitter"}},
		`{"services":"https://w"}`:             nil,
		`{"services":[{"type":"web","name":"n","uri":"https://w"}]}`: {{Name: "n", Endpoint: "https://w",
			Extra: raw("type", `"web"`)}},
		`{"services":[{"name":"A2A","endpoint":{"a":1},"a2aSkills":["s",{"id":"t"}]}]}`: {
			{Name: "A2A", Skills: []string{"s", "t"}, Extra: map[string]json.RawMessage{
				"endpoint": json.RawMessage(`{"a":1}`), "a2aSkills": json.RawMessage(`["s",{"id":"t"}]`),
			}},
		},
	} {
		if reg, _ := Parse([]byte(doc)); !reflect.DeepEqual(reg.Services, want) {
			t.Errorf("%s\n got %+v\nwant %+v", doc, reg.Services, want)
		}
	}
}

func TestParseLargeIDs(t *testing.T) {
	const most = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	reg, _ := Parse([]byte(`{"registrations":[{"agentId":` + most + `},{"agentId":` + most + `0}]}`))
	if id := reg.Registrations[0].TokenID; id == nil || id.Dec() != most {
		t.Errorf("largest id read as %v", id)
	}
	if id := reg.Registrations[1].TokenID; id != nil {
		t.Errorf("too large an id read as %s", id.Dec())
	}
}

func TestParseFlags(t *testing.T) {
	for value, want := range map[string]string{
		`true`: "true", `false`: "false", `null`: "nil", `"true"`: "true", `0`: "false", `"maybe"`: "nil", `{}`: "nil",
		`{"enabled":false}`: "false", `[]`: "nil",
	} {
		reg, _ := Parse([]byte(`{"services":[],"active":` + value + `}`))
		got := "nil"
		if reg.Active != nil {
			got = fmt.Sprint(*reg.Active)
		}
		if got != want {
			t.Errorf("%s read as %s, want %s", value, got, want)
		}
	}
}

func TestParseCaps(t *testing.T) {
	many := `{"services":[` + strings.Repeat(`{},`, 5000) + `{}],"registrations":[` + strings.Repeat(`1,`, 5000) + `1]}`
	reg, problems := Parse([]byte(many))
	if len(reg.Services) != maxServices || len(problems) != maxProblems+1 || problems[maxProblems].Code != CodeMore {
		t.Errorf("%d services, %d problems ending in %s", len(reg.Services), len(problems),
			problems[len(problems)-1].Code)
	}
}

func TestParseReplacesHostileText(t *testing.T) {
	reg, _ := Parse([]byte(`{"name":"a\u0000b\ud800c` + "\xff" + `","x402Support":true,"k\u0000":1}`))
	if reg.Name != "a\ufffdb\ufffdc\ufffd" {
		t.Errorf("name %q", reg.Name)
	}
	if _, ok := reg.Extra["k\ufffd"]; !ok {
		t.Errorf("extra %q", reg.Extra)
	}
}

// Unknown members are kept up to a bound of all together; what goes is reported.
func TestExtraIsBounded(t *testing.T) {
	big := `"` + strings.Repeat("x", 40<<10) + `"`
	reg, problems := Parse([]byte(`{"name":"n","a":` + big + `,"b":` + big +
		`,"c":1,"services":[{"name":"s","endpoint":"https://e.example","d":2}]}`))
	if len(reg.Extra["a"]) == 0 || reg.Extra["b"] != nil || string(reg.Extra["c"]) != "1" ||
		string(reg.Services[0].Extra["d"]) != "2" {
		t.Errorf("kept %d members", len(reg.Extra))
	}
	found := 0
	for _, p := range problems {
		if p.Code == CodeTooLong && p.Path == "/b" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("problems %+v", problems)
	}
}
