package subgraph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"repute"
)

// TestLargeServices: fields of the services of files cost what they are long, not what else the services have.
func TestLargeServices(t *testing.T) {
	t.Parallel()
	const agents = 40
	l := newLedger(t)
	long := map[string]json.RawMessage{"long": json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)}
	for n := range uint64(agents) {
		uri := fmt.Sprintf("https://agent.example/%d", n)
		l.registration(uri, &repute.Registration{Name: "a", Services: []repute.Service{
			{Name: "MCP", Endpoint: "https://mcp.example/" + fmt.Sprint(n), Tools: []string{"add", "sub"}, Extra: long},
			{Name: "oasf", Endpoint: strings.Repeat("é", 20_000), Skills: []string{"math"}}}})
		l.add(mint(n, addr(1), uri)...)
	}
	l.read()
	type file struct {
		McpEndpoint, A2aEndpoint, OasfEndpoint *string
		McpTools, OasfSkills, A2aSkills        []string
		HasOASF                                bool
	}
	got := answered[struct {
		Agents []struct{ RegistrationFile file }
	}](t, serve(t, l.db).ask(`{ agents(first: 100, orderBy: createdAt)
		{ registrationFile { mcpEndpoint a2aEndpoint oasfEndpoint mcpTools oasfSkills a2aSkills hasOASF } } }`, nil)).Agents
	if len(got) != agents {
		t.Fatalf("%d agents", len(got))
	}
	for n, a := range got {
		f := a.RegistrationFile
		if f.McpEndpoint == nil || *f.McpEndpoint != fmt.Sprintf("https://mcp.example/%d", n) || f.A2aEndpoint != nil ||
			f.OasfEndpoint == nil || *f.OasfEndpoint != strings.Repeat("é", 16_384) || len(f.McpTools) != 2 ||
			len(f.OasfSkills) != 1 || f.A2aSkills == nil || len(f.A2aSkills) != 0 || !f.HasOASF {
			t.Fatalf("agent %d: %.500v", n, f)
		}
	}
}
