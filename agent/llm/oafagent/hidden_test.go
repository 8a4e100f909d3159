package oafagent

import (
	"testing"

	"repute/manifest/oaf"
)

// What is no secret stays as it is in what a server returns, so that a model can use it: the directory of a file
// server.
func TestHiddenVariables(t *testing.T) {
	const long = "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"
	o := &Options{Programs: true, Env: []string{"V", "DB_PASSWORD"}}
	for name, c := range map[string]struct {
		server oaf.Server
		value  string
		hidden bool
	}{
		"a directory":          {stdio(map[string]string{"ROOT": "${V}"}), "/home/ann/src", false},
		"a form":               {stdio(map[string]string{"ROOT": "${V}"}), long, true},
		"a member's name":      {stdio(map[string]string{"API_TOKEN": "${V}"}), "hunter22", true},
		"a variable's name":    {stdio(map[string]string{"ROOT": "${DB_PASSWORD}"}), "hunter22", true},
		"a header":             {web("https://a.example", map[string]string{"X-Tenant": "${V}"}, ""), "tenant-a", true},
		"a token":              {web("https://a.example", nil, "${V}"), "tenant-a", true},
		"a member of a query":  {web("https://a.example/?t=${V}", nil, ""), "tenant-a", true},
		"a host":               {web("https://${V}/mcp", nil, ""), "a.example", false},
		"an address":           {web("${V}", nil, ""), "https://a.example/mcp", false},
		"an address and query": {web("${V}", nil, ""), "https://a.example/?t=tenant-a", true},
	} {
		o.Getenv = func(string) string { return c.value }
		s, err := newServer(&c.server, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := s.hidden.Replace(c.value); (got != c.value) != c.hidden {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// stdio is a server that is a program with an environment.
func stdio(env map[string]string) oaf.Server {
	return oaf.Server{Connection: oaf.Connection{Type: oaf.TransportStdio, Command: "sh", Env: env}}
}

// web is a server over HTTP.
func web(url string, headers map[string]string, token string) oaf.Server {
	return oaf.Server{Connection: oaf.Connection{Type: oaf.TransportHTTP, URL: url, Headers: headers},
		Auth: oaf.Auth{Type: "bearer", Token: token}}
}
