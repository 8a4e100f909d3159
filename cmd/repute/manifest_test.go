package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/files"
	"repute/internal/freeport"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/manifest"
)

const goodRegistration = `{"type":"` + manifest.TypeRegistration +
	`","name":"Ann","description":"d","image":"https://a.example/i.png",
	"services":[{"name":"MCP","endpoint":"https://a.example/mcp"}],"registrations":[{"agentId":1,"agentRegistry":"%s"}]}`

// check runs manifest check with a text on standard input.
func check(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	p := &cli.Program{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &said}
	root := root(p)
	root.SetArgs(append([]string{"manifest", "check", "--data-dir", filepath.Join(t.TempDir(), "none")}, args...))
	return exitCode(t.Context(), root.ExecuteContext(t.Context()), &said), out.String(), said.String()
}

func TestManifestCheck(t *testing.T) {
	t.Parallel()
	good := fmt.Sprintf(goodRegistration, "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"good file":      {"", []string{file("good.json", good)}, 0, "0 errors, 0 warnings, 0 infos"},
		"standard input": {good, []string{"-"}, 0, "kind    registration"},
		"data URI":       {"", []string{"data:application/json," + good}, 0, "name    Ann"},
		"inline":         {"", []string{good}, 0, "name    Ann"},
		"warnings": {`{"name":"x","services":[{"kind":"a","url":"https://a.example"}]}`, []string{"-"}, 0,
			"WA521 /services/0/kind (line 1, column 26)  read as \"name\"\n        use the standard's spelling"},
		"HTML":  {"<html>", []string{"-"}, 1, "EA501 (document)"},
		"empty": {"", []string{"-"}, 1, "EA001"},
		"card": {`{"name":"x","url":"https://x.example","capabilities":{},"skills":[]}`, []string{"-"}, 0,
			"kind    card"},
		"card as agent": {`{"name":"x","capabilities":{},"skills":[]}`, []string{"-", "--kind", "registration"}, 1,
			"EA505"},
		"capability": {`{"schema":"https://openfi.dev/schemas/agent/v1","name":"Kim"}`, []string{"-"}, 1,
			"name    Kim"},
		"log":             {`{"schema":"https://openfi.dev/schemas/agent-log/v1","agent":{"slug":"a","name":"A","version":"1"},"runs":[]}`, []string{"-"}, 0, "kind    log"},
		"log with a run":  {`{"schema":"https://openfi.dev/schemas/agent-log/v1","agent":{"slug":"a","name":"A","version":"1"},"runs":[{}]}`, []string{"-"}, 1, "SC002 /runs/0"},
		"log as kind":     {`<html>`, []string{"-", "--kind", "log"}, 1, "SC001"},
		"feedback":        {`{"clientAddress":"x","value":"y"}`, []string{"-"}, 0, "WF556 /value"},
		"agent as rating": {good, []string{"-", "--kind", "feedback"}, 1, "EF529"},
		"validation":      {`{"requestHash":"0x"}`, []string{"-"}, 0, "nothing to check"},
		"agent.json": {`{"version":"1.3","origin":"a.example","payout_address":"0x71C7656EC7ab88b098defB751B7401B5f6d8976F"}`,
			[]string{"-"}, 0, "tier    declared 1, verified none"},
		"agent.json, line and column": {"{\"version\":\"1.3\",\n  \"origin\":\"https://a.example\",\"payout_address\":\"p\"}",
			[]string{"-"}, 1, "EJ606 /origin (line 2, column 3)"},
		"agent.json for readers": {`{"version":"1.3","origin":"a.example","payout_address":"p","own":1}`,
			[]string{"-"}, 0, "WJ603 /own"},
		"agent.json for publishers": {`{"version":"1.3","origin":"a.example","payout_address":"p","own":1}`,
			[]string{"-", "--strict"}, 1, "EJ603 /own"},
		"another agent.json": {`{"awp_version":"0.2"}`, []string{"-", "--kind", "agent-json"}, 1,
			"Agent Web Protocol"},
		"private domain":      {"", []string{"metadata.internal"}, 2, "blocked_host"},
		"registry is missing": {"", []string{"https://127.0.0.1/agent.json", "--oatr", dir}, 2, "blocked_"},
		"wrong kind":          {good, []string{"-", "--kind", "vcard"}, 2, "kind: "},
		"too large": {strings.Repeat(" ", 1<<20) + good, []string{"-"}, 2,
			"standard input has more than 1048576 bytes"},
		"no such file":     {"", []string{"missing.json"}, 2, "there is no file"},
		"directory":        {"", []string{dir}, 2, "is a directory"},
		"plain http":       {"", []string{"http://a.example/a.json"}, 2, "serve the file over https"},
		"a word":           {"", []string{"word"}, 2, "no file, URL, CID or agent"},
		"nothing":          {"", []string{""}, 2, "no file, URL, CID or agent"},
		"no argument":      {"", nil, 2, "accepts 1 arg"},
		"private address":  {"", []string{"https://127.0.0.1/a.json"}, 2, "--allow-host host:port"},
		"metadata service": {"", []string{"http://169.254.169.254/latest"}, 2, ""},
		"other scheme":     {"", []string{"ar://abc"}, 2, "https, ipfs and data: URLs"},
		"bad CID":          {"", []string{"ipfs://nope"}, 2, "bad_cid"},
		"agent":            {"", []string{"1:22"}, 2, "no database"},
		"terminal escapes": {`{"name":"\u001b[31m\u202e","services":[]}`, []string{"-"}, 0, "name    \ufffd[31m\ufffd"},
	} {
		code, out, said := check(t, c.stdin, c.args...)
		if code != c.code || !strings.Contains(out+said, c.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", name, code, c.code, c.want, out, said)
		}
		if strings.ContainsAny(out+said, "\x1b\u202e") {
			t.Errorf("%s: control characters in %q", name, out+said)
		}
	}
}

func TestManifestCheckJSON(t *testing.T) {
	t.Parallel()
	code, out, _ := check(t, `{"name":"<script>","services":[]}`, "-", "--json")
	var r files.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, code, out)
	}
	if r.Kind != repute.RegistrationDocument || r.Name != "<script>" || r.Errors != 0 ||
		r.Warnings+r.Infos != len(r.Problems) || len(r.Problems) == 0 {
		t.Errorf("%+v", r)
	}
	for _, p := range r.Problems {
		if p.Hint == "" || p.Severity == "" {
			t.Errorf("%+v", p)
		}
	}
}

// A program that reads standard output learns that there was nothing to check.
func TestManifestCheckJSONOfNothing(t *testing.T) {
	t.Parallel()
	code, out, said := check(t, "", "missing.json", "--json")
	var r cli.Unread
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 2 || r.Source != "missing.json" ||
		!strings.Contains(r.Error, "there is no file") {
		t.Errorf("%v, exit code %d, %q\n%s", err, code, out, said)
	}
}

// A URL is read through the guard: a private host only when it is allowed.
func TestManifestCheckURL(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/agent.json" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, goodRegistration, "eip155:1:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432")
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	if code, out, said := check(t, "", server.URL+"/agent.json"); code != 2 {
		t.Errorf("exit code %d\n%s%s", code, out, said)
	}
	if code, out, said := check(t, "", server.URL+"/agent.json", "--allow-host", host); code != 0 ||
		!strings.Contains(out, "name    Ann") {
		t.Errorf("exit code %d\n%s%s", code, out, said)
	}
	if code, _, said := check(t, "", server.URL+"/other.json", "--allow-host", host); code != 2 ||
		!strings.Contains(said, "404") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// An agent's file comes from the index, with its link to the chain.
func TestManifestCheckAgent(t *testing.T) {
	c := rpctest.New(t, rpctest.Options{})
	registry := fmt.Sprintf("eip155:31337:%s", c.Identity)
	c.Mine(c.Register(0, rpctest.Account(1), ""),
		c.Register(1, rpctest.Account(2), "data:,"+fmt.Sprintf(goodRegistration, registry)),
		c.Register(2, rpctest.Account(2), "data:,"+fmt.Sprintf(goodRegistration, registry)))
	address := freeport.Address(t)
	config := configure(t, c, pgtest.New(t))
	_, out := child(t, "serve", "--config", config, "--roles", "indexer,documents,api", "--listen", address)
	for _, id := range []string{"1", "2"} {
		eventually(t, "http://"+address+"/agents/"+id, 200, `"status":"ok"`, out)
	}
	for _, c := range []struct {
		agent string
		code  int
		want  string
	}{
		{"1", 0, "linked: the file names this agent"},
		{"31337:1", 0, "name    Ann"},
		{registry + ":2", 0, "WA545 /registrations"},
		{"2", 0, "other: the file names other agents"},
		{"0", 2, "no URI"},
		{"9", 2, "is not indexed"},
		{"5:1", 2, "chain 5"},
	} {
		code, stdout, said := tool(t, "manifest", "check", c.agent, "--config", config)
		if code != c.code || !strings.Contains(stdout+said, c.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", c.agent, code, c.code, c.want, stdout, said)
		}
	}
}

// The commands that make a manifest, a key and a DID document make what check finds nothing wrong with.
func TestManifestPublish(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, doc := filepath.Join(dir, "key.pem"), filepath.Join(dir, "agent.json")
	manifest := func(args ...string) (code int, stdout, stderr string) {
		var out, said bytes.Buffer
		root := root(&cli.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said})
		root.SetArgs(append([]string{"manifest"}, args...))
		return exitCode(t.Context(), root.ExecuteContext(t.Context()), &said), out.String(), said.String()
	}
	code, keyOut, said := manifest("keygen", key)
	info, err := os.Stat(key)
	if code != 0 || err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(keyOut, "did:key:z6Mk") {
		t.Fatalf("exit code %d, %v: %s%s", code, err, keyOut, said)
	}
	if code, _, said := manifest("keygen", key); code != 2 || !strings.Contains(said, "no file has") {
		t.Errorf("a key was overwritten: exit code %d, %s", code, said)
	}
	if code, out, said := manifest("new", doc, "--domain", "shop.example", "--key", key, "--name", "Shop"); code != 0 ||
		!strings.Contains(out, "https://shop.example/.well-known/agent.json") {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	if code, out, _ := check(t, "", doc, "--strict"); code != 0 ||
		!strings.Contains(out, "declared 3, verified none") ||
		!strings.Contains(out, "WJ614 /payout_address (line 4, column 3)") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, _, said := manifest("sign", doc, "--key", key); code != 2 ||
		!strings.Contains(said, "commitments: are missing") {
		t.Errorf("exit code %d: %s", code, said)
	}
	b, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	withCommitments := strings.Replace(string(b), "{",
		`{"commitments":{"schema_version":"1.0","entries":[{"type":"a","constraint":"p99 < 1s"}]},`, 1)
	if err := os.WriteFile(doc, []byte(withCommitments), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, said := manifest("sign", doc, "--key", key); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	if code, out, _ := check(t, "", doc, "--strict"); code != 0 || !strings.Contains(out, "declared 3+") ||
		!strings.Contains(out, "signed  unbound signature valid, identity unbound") {
		t.Errorf("exit code %d: %s", code, out)
	}
	code, out, said := manifest("did", "--domain", "shop.example", "--key", key)
	if code != 0 || !strings.Contains(out, `"id": "did:web:shop.example"`) || !strings.Contains(out, "z6Mk") {
		t.Errorf("exit code %d: %s%s", code, out, said)
	}
	for _, args := range [][]string{{"did", "--domain", "localhost", "--key", key}, {"did", "--domain", "shop.example"},
		{"new", filepath.Join(dir, "b.json"), "--domain", "https://a"}, {"sign", doc, "--key", doc}} {
		if code, out, _ := manifest(args...); code != 2 {
			t.Errorf("%q: exit code %d: %s", args, code, out)
		}
	}
}
