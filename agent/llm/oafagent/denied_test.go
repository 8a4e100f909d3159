package oafagent_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute/internal/modeltest"
	"repute/manifest/oaf"
)

// servedAs is the configuration of a server over HTTP with one tool, which writes.
func servedAs(t *testing.T, name, tool string) oaf.Server {
	t.Helper()
	srv := sdk.NewServer(&sdk.Implementation{Name: "one", Version: "1"}, nil)
	sdk.AddTool(srv, &sdk.Tool{Name: tool}, func(context.Context, *sdk.CallToolRequest,
		struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "called " + tool}}}, nil, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return srv }, nil))
	t.Cleanup(web.CloseClientConnections)
	return oaf.Server{Name: name, Connection: oaf.Connection{Type: oaf.TransportHTTP, URL: web.URL}}
}

// A denied tool is not offered, whatever characters and lengths its own name and that of its server have.
func TestDeniedNames(t *testing.T) {
	long := strings.Repeat("long-", 20) + "server"
	for name, c := range map[string]struct {
		vendor, server, tool, denied string
		offered                      bool
	}{
		"no entry":             {"", "srv", "admin.delete", "admin.read", true},
		"dot in the tool":      {"", "srv", "admin.delete", "admin.delete", false},
		"pattern with a dot":   {"", "srv", "admin.delete", "admin.*", false},
		"separator in server":  {"", "my__srv", "delete", "delete", false},
		"server itself":        {"", "my__srv", "delete", "my__srv", false},
		"slash in the server":  {"", "@org/files", "delete", "@org/files", false},
		"vendor of the server": {"org", "files", "delete", "@org/files", false},
		"long server":          {"", long, "delete", long, false},
		"tool of long server":  {"", long, "delete", "delete", false},
		"both names":           {"", long, "delete", long + "__delete", false},
		"name for the model":   {"", "srv", "admin.delete", "srv__admin_delete", false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := servedAs(t, c.server, c.tool)
			srv.Vendor = c.vendor
			def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{srv},
				Config: oaf.Config{Denied: []string{c.denied}}}
			s := modeltest.New(modeltest.Turn{Text: "end"})
			_, err := ask(t, s, def, nil)
			ok(t, err)
			if got := s.Seen()[0].Tools; (len(got) == 1) != c.offered {
				t.Errorf("tools %v", got)
			}
		})
	}
}
