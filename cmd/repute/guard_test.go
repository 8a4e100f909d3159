package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"repute/internal/freeport"
	"repute/internal/pgtest"
)

// A name that a stranger's DNS moved to this machine opens no route of the server; a page of
// another site sends nothing that changes or shows something private.
func TestGuardInFrontOfEveryRoute(t *testing.T) {
	config := configure(t, small(t), pgtest.New(t))
	f, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(f,
		"\nallowed_hosts: [name.example, \"https://app.example\"]\norchestrator: {tokens: {ann: 0123456789abcdef}, public_url: \"https://own.example\"}\n")
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	address := freeport.Address(t)
	_, out := child(t, "serve", "--config", config, "--roles", "indexer,api,orchestrator", "--listen", address)
	eventually(t, "http://"+address+"/agents", 200, "items", out)
	send := func(method, path, host string, header ...string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		r.SetBasicAuth("anybody", "0123456789abcdef")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	for _, route := range []string{"GET /agents", "GET /healthz", "GET /metrics", "POST /graphql", "POST /mcp",
		"GET /admin/jobs", "POST /admin/jobs/api/jobs/cancel",
		"GET /v1/agents", "GET /v1/tasks", "POST /v1/tasks", "GET /v1/runs/a/events", "GET /.well-known/agent.json",
		"GET /nothing"} {
		method, path, _ := strings.Cut(route, " ")
		if code, body := send(method, path, "evil.example"); code != 403 || !strings.Contains(body, "allowed_hosts") {
			t.Errorf("%s by another name: %d %s", route, code, body)
		}
		for _, host := range []string{address, "name.example", "own.example:443"} {
			if code, body := send(method, path, host); strings.Contains(body, "allowed_hosts") {
				t.Errorf("%s by %s: %d %s", route, host, code, body)
			}
		}
		refused := strings.Contains(route, "/v1/") && !strings.HasSuffix(route, "GET /v1/agents") ||
			method == http.MethodPost && path != "/graphql" || strings.Contains(path, "/admin")
		if code, body := send(method, path, address, "Origin", "https://evil.example", "Sec-Fetch-Site",
			"cross-site"); (code == 403 && strings.Contains(body, "scheme://host")) != refused {
			t.Errorf("%s by a stranger's page: %d %s", route, code, body)
		}
		if code, body := send(method, path, address, "Origin", "https://app.example", "Sec-Fetch-Site",
			"cross-site"); strings.Contains(body, "scheme://host") {
			t.Errorf("%s by a page that is listed: %d %s", route, code, body)
		}
	}
}

// A page of a browser cannot reach an agent that agent run serves, built in or not. Programs can.
func TestGuardInFrontOfAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, needs string
		flags       []string
	}{{"reporter", "", nil}, {"gopher", "go", []string{}}, {"snake", "python3", []string{"--remote"}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			what, address := c.name, freeport.Address(t)
			if c.needs != "" {
				if _, err := exec.LookPath(c.needs); err != nil {
					t.Skip(err)
				}
				what = filepath.Join(t.TempDir(), c.name)
				mustRun(t, append([]string{"agent", "new", what}, c.flags...)...)
			}
			serveAgent(t, "agent", "run", what, "--address", address, "--no-register")
			eventually(t, "http://"+address+"/info", 200, "repute-agent/1", &bytes.Buffer{})
			const question = `{"protocol":"repute-agent/1","task":{"id":"t","goal":"g","input":{"text":"a b"}}}`
			for _, path := range []string{"/info", "/can-handle"} {
				for _, s := range []struct {
					host, name, value string
					want              int
				}{{address, "Accept", "*/*", 200}, {"localhost", "Accept", "*/*", 200},
					{"evil.example", "Accept", "*/*", 403},
					{"evil.example:80", "Accept", "*/*", 403},
					{address, "Sec-Fetch-Site", "cross-site", 403}} {
					method, body := http.MethodPost, question
					if path == "/info" {
						method, body = http.MethodGet, ""
					}
					r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path,
						strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					r.Host = s.host
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set(s.name, s.value)
					res, err := http.DefaultClient.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					text, _ := io.ReadAll(res.Body)
					res.Body.Close()
					if res.StatusCode != s.want {
						t.Errorf("%s %s by %s with %s: %d %s", method, path, s.host, s.name, res.StatusCode, text)
					}
				}
			}
		})
	}
}
