package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// What an endpoint has to be depends on the service it is of.
func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ name, endpoint, want string }{
		{"MCP", "https://a.example/mcp", ""},
		{"mcp", "wss://a.example:8443/mcp", ""},
		{"A2A", "ipfs://bafy", ""},
		{"A2A", "data:application/json;base64,e30=", ""},
		{"OASF", "not a url", "WA535"},
		{"web", "a.example/x", "WA535"},
		{"web", "https:///x", "WA535"},
		{"MCP", "https://{host}/mcp", "WA535"},
		{"MCP", "npx my-server", "WA535"},
		{"OASF", "ftp://a.example/x", "WA536"},
		{"MCP", "javascript:alert(1)", "WA536"},
		{"other", " Java\\tScript:alert(1)", "WA536"},
		{"other", "file:///etc/passwd", "WA536"},
		{"other", "data:text/html,<script>", "WA536"},
		{"other", "data:image/svg+xml,<svg>", "WA536"},
		{"web", "http://a.example", "IA537"},
		{"other", "ws://a.example", "IA537"},
		{"MCP", "http://localhost/mcp", "WA538"},
		{"MCP", "https://10.0.0.1:8080/mcp", "WA538"},
		{"MCP", "https://[::1]/mcp", "WA538"},
		{"MCP", "https://agent.local/mcp", "WA538"},
		{"email", "a@b.example", ""},
		{"email", "mailto:a@b.example", ""},
		{"email", "nope", "WA539"},
		{"email", "A <a@b.example>", "WA539"},
		{"agentWallet", "eip155:1:0x742D35Cc6634C0532925A3B844bC9e7595f0bEB7", ""},
		{"agentWallet", "eip155:1:0x742d35Cc6634C0532925a3b844Bc9e7595f0bEb7", "WA593"},
		{"web", "https://agents.example/agents/{id}", ""},
		{"web", "https://agents.example/{{id}}", "WA549"},
		{"wallet", "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:7S3P4HxJpyyigGzodYwHtCxZyUQe9JiBMHyRWXArAaKv", ""},
		{"agentWallet", "0x123", "WA546"},
		{"agentWallet", "eip155:1:0x123", "WA546"},
		{"ENS", "ann.eth", ""},
		{"DID", "did:web:a.example", ""},
		{"twitter", "@ann", ""},
	} {
		doc := strings.Replace(standard, `"name": "MCP", "endpoint": "https://agents.example/mcp"`,
			fmt.Sprintf(`"name": "%s", "endpoint": "%s"`, c.name, c.endpoint), 1)
		var want []string
		if c.want != "" {
			want = []string{c.want + "/services/0/endpoint"}
		}
		if _, problems := Parse([]byte(doc)); !slices.Equal(codesOf(problems), want) {
			t.Errorf("%s %s: %v, want %v", c.name, c.endpoint, codesOf(problems), want)
		}
	}
}

func TestEndpointPathIsTheSpelling(t *testing.T) {
	_, problems := Parse([]byte(`{"services":[{"name":"web","url":"ftp://x"}, "javascript:x"]}`))
	got := codesOf(problems)
	if !slices.Contains(got, "WA536/services/0/url") || !slices.Contains(got, "WA536/services/1") {
		t.Errorf("%v", got)
	}
}

func TestImages(t *testing.T) {
	for image, want := range map[string][]string{
		"ipfs://bafy/i.png":         nil,
		"data:image/png;base64,AA=": nil,
		"http://a.example/i.png":    {"IA537/image"},
		"http://localhost/i.png":    {"WA538/image"},
		"javascript:alert(1)":       {"WA528/image"},
		"file:///etc/passwd":        {"WA528/image"},
		"data:text/html,<script>":   {"WA528/image"},
		"data:,x":                   {"WA528/image"},
		"i.png":                     {"WA528/image"},
	} {
		doc := strings.Replace(standard, "https://agents.example/i.png", image, 1)
		if _, problems := Parse([]byte(doc)); !slices.Equal(codesOf(problems), want) {
			t.Errorf("%s: %v, want %v", image, codesOf(problems), want)
		}
	}
}

func TestTrustModels(t *testing.T) {
	doc := strings.Replace(standard, `"tee-attestation"`, `"Crypto-Economic", "foo"`, 1)
	reg, problems := Parse([]byte(doc))
	if got := codesOf(problems); !slices.Equal(got, []string{"IA547/supportedTrust"}) || len(reg.SupportedTrust) != 3 {
		t.Errorf("%v, %v", got, reg.SupportedTrust)
	}
}

func TestMisspelledMembers(t *testing.T) {
	for member, near := range map[string]bool{
		"servicess": true, "serivces": true, "suportedTrust": true, "supported_trust": true, "X402SUPPORT": true,
		"registration": true, "descripton": true,
		"nam": false, "types": false, "tags1": false, "version": false, "external_url": false, "updatedAt": false,
		"owner": false, "": false,
	} {
		doc := strings.Replace(standard, `"tags"`, fmt.Sprintf(`%q: []`+"\n,"+`"tags"`, member), 1)
		var want []string
		if near {
			want = []string{"WA548/" + member}
		}
		if _, problems := Parse([]byte(doc)); !slices.Equal(codesOf(problems), want) {
			t.Errorf("%s: %v, want %v", member, codesOf(problems), want)
		}
	}
	// A short name counts where the right one is missing, and within services too.
	_, problems := Parse([]byte(`{"nmae":"x","services":[{"nane":"MCP","endpiont":"https://a.example"}]}`))
	for _, want := range []string{"WA548/nmae", "WA548/services/0/nane", "WA548/services/0/endpiont"} {
		if got := codesOf(problems); !slices.Contains(got, want) {
			t.Errorf("%v lacks %s", got, want)
		}
	}
}

// Text with more bytes a character is named as such, with a mark and without.
func TestWideText(t *testing.T) {
	units := utf16.Encode([]rune(`{"name":"é"}`))
	var little, big []byte
	for _, u := range units {
		little = append(little, byte(u), byte(u>>8))
		big = append(big, byte(u>>8), byte(u))
	}
	for name, doc := range map[string][]byte{
		"little": little, "big": big, "little marked": append([]byte("\xff\xfe"), little...),
		"big marked": append([]byte("\xfe\xff"), big...),
		"UTF-32":     []byte("{\x00\x00\x00\"\x00\x00\x00"),
	} {
		if _, problems := Parse(doc); !slices.Equal(codesOf(problems), []string{"EA591"}) {
			t.Errorf("%s: %v", name, codesOf(problems))
		}
	}
	for _, doc := range []string{"\x00", "\x00\x00\x00\x00", "\xff", "x\x00{", "{"} {
		if _, problems := Parse([]byte(doc)); !slices.Equal(codesOf(problems), []string{"EA500"}) {
			t.Errorf("%q: %v", doc, codesOf(problems))
		}
	}
}
