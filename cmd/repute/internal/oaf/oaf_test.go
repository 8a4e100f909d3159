package oaf_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
	"repute/cmd/repute/internal/oaf"
)

// TestMain lets the test's binary be an MCP server on standard input and output.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_SERVER") == "" {
		os.Exit(m.Run())
	}
	_ = filesServer().Run(context.Background(), &sdk.StdioTransport{}) // until the client ends it
}

// filesServer is an MCP server with the tool read_file.
func filesServer() *sdk.Server {
	mcp := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
	sdk.AddTool(mcp, &sdk.Tool{Name: "read_file"},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{}, nil, nil
		})
	return mcp
}

// reader writes an agent with the configuration of an MCP server, and returns its directory.
func reader(t *testing.T, config string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "reader")
	must(t, "new", dir, "--vendor", "acme")
	files := filepath.Join(dir, "mcp-configs", "files")
	if err := errors.Join(os.MkdirAll(files, 0o755),
		os.WriteFile(filepath.Join(files, "ActiveMCP.json"),
			[]byte(`{"vendor":"acme","server":"files","version":"1.0.0",
			"selectedTools":[{"name":"read_file","enabled":true},
			{"name":"move_file","enabled":true}]}`), 0o600),
		os.WriteFile(filepath.Join(files, "config.yaml"), []byte(config), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

const team = "../../../../manifest/oaf/testdata/team/"

func run(args ...string) (string, error) {
	var out clitest.Output
	err := clitest.Run(context.Background(), &out, func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{oaf.Command(p)}
	}, append([]string{"oaf"}, args...)...)
	return out.String(), err
}

// must runs a command that succeeds.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(args...)
	if err != nil {
		t.Fatalf("oaf %v: %v\n%s", args, err, out)
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCheckExitCodes(t *testing.T) {
	broken := t.TempDir()
	archive := filepath.Join(t.TempDir(), "a.oaf")
	if err := errors.Join(os.WriteFile(filepath.Join(broken, "AGENTS.md"), []byte("# Rules\n"), 0o600),
		os.WriteFile(archive, []byte("PK\x03\x04"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args []string
		code int
		text string
	}{
		{"good", []string{team + "reviewer", "--strict"}, 0, "0 errors, 0 warnings, 0 infos"},
		{"warnings", []string{team + "coordinator"}, 0, "WO770"},
		{"strict", []string{team + "coordinator", "--strict"}, 1, "EO770"},
		{"broken", []string{broken}, 1, "EO720 AGENTS.md:1"},
		{"absent", []string{filepath.Join(broken, "none")}, 2, ""},
		{"no archive", []string{filepath.Join(broken, "AGENTS.md")}, 2, ""},
		{"broken archive", []string{archive}, 1, "EO706 a.oaf"},
		{"no agent", []string{t.TempDir()}, 1, "EO700 00"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := run(append([]string{"check"}, tc.args...)...)
			var exit cli.ExitError
			if errors.As(err, &exit); exit.Code != tc.code || (err == nil) != (tc.code == 0) ||
				!strings.Contains(out, tc.text) {
				t.Errorf("code %d, %v, want %d:\n%s", exit.Code, err, tc.code, out)
			}
		})
	}
}

func TestCheckAsJSON(t *testing.T) {
	out, err := run("check", team+"coordinator", "--strict", "--json")
	if err == nil {
		t.Fatal("no exit code")
	}
	var report oaf.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Agents) != 1 || report.Agents[0].Agents[0] != "north/reviewer" || report.Errors == 0 {
		t.Errorf("report %+v", report)
	}
	for _, p := range report.Problems {
		if p.Code == "" || p.File == "" || p.Hint == "" {
			t.Errorf("problem %+v", p)
		}
	}
}

// MCP servers are asked only when they shall be, and only those that may be reached.
func TestCheckAsksServers(t *testing.T) {
	asked := false
	mcp := filesServer()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcp }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = true
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	dir := reader(t, "connection:\n  type: http\n  url: "+web.URL+"\n")
	if out, _ := run("check", dir); strings.Contains(out, "WO772") || asked {
		t.Errorf("a server was asked unasked: %s", out)
	}
	host := strings.TrimPrefix(web.URL, "http://")
	if out, _ := run("check", dir, "--ask-servers"); !strings.Contains(out, "IO773") ||
		!strings.Contains(out, "--allow-host "+host) || asked {
		t.Errorf("a private address was asked: %s", out)
	}
	out, _ := run("check", dir, "--ask-servers", "--allow-host", host)
	if !strings.Contains(out, `"move_file"`) || strings.Contains(out, `"read_file"`) ||
		!strings.Contains(out, "WO772") || !asked {
		t.Errorf("a tool that the server lacks: %s", out)
	}
}

// A program of an untrusted directory is started only where the caller says so. The tool that it lacks has its line.
func TestCheckAsksPrograms(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "started")
	script := filepath.Join(t.TempDir(), "server")
	text := "#!/bin/sh\ntouch " + mark + "\nMCP_SERVER=1 exec " + self + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // a program is executable
		t.Fatal(err)
	}
	dir := reader(t, "connection:\n  type: stdio\n  command: "+script+"\n")
	if out, _ := run("check", dir, "--ask-servers"); !strings.Contains(out, "IO773") ||
		!strings.Contains(out, "add --programs") {
		t.Errorf("a program that may not be started: %s", out)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program of the directory was started unasked")
	}
	out, err := run("check", dir, "--ask-servers", "--programs")
	if err != nil || !strings.Contains(out, "WO772 mcp-configs/files/ActiveMCP.json:3") ||
		strings.Contains(out, `"read_file"`) {
		t.Errorf("%v: %s", err, out)
	}
	var exit cli.ExitError
	if out, err := run("check", dir, "--ask-servers", "--programs", "--strict"); !errors.As(err, &exit) ||
		exit.Code != 1 {
		t.Errorf("a publisher's server lacks a tool: %v: %s", err, out)
	}
}

func TestAgentFromNewToUnpack(t *testing.T) {
	dir := t.TempDir()
	agent := filepath.Join(dir, "my-helper")
	must(t, "new", agent, "--vendor", "acme", "--template", "full")
	must(t, "check", agent, "--strict")
	if out, err := run("new", agent, "--vendor", "acme"); err == nil {
		t.Errorf("an existing agent was replaced: %s", out)
	}
	if err := os.Remove(filepath.Join(agent, "LICENSE")); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "generate", agent); !strings.Contains(out, "LICENSE") || strings.Contains(out, "README.md") {
		t.Errorf("generated %s", out)
	}
	before := read(t, filepath.Join(agent, "AGENTS.md"))
	must(t, "version", agent, "1.1.0")
	if text := read(t, filepath.Join(agent, "README.md")); !strings.Contains(text, "| version | 1.1.0 |") {
		t.Errorf("README.md of the old version: %s", text)
	}
	if read(t, filepath.Join(agent, "versions/v1.0.0/AGENTS.md")) != before {
		t.Error("the old version is another text")
	}
	if after := read(t, filepath.Join(agent, "AGENTS.md")); after != strings.Replace(before, `"1.0.0"`, `"1.1.0"`, 1) {
		t.Errorf("the new version is\n%s", after)
	}
	packed := filepath.Join(dir, "a.oaf")
	must(t, "pack", agent, "--output", packed)
	must(t, "check", packed, "--strict")
	must(t, "unpack", packed, filepath.Join(dir, "out"))
	if read(t, filepath.Join(dir, "out/my-helper/AGENTS.md")) != read(t, filepath.Join(agent, "AGENTS.md")) {
		t.Error("the unpacked agent is another one")
	}
}

// A README.md that somebody edited is theirs: it is left, and the output says so.
func TestEditedFilesAreLeft(t *testing.T) {
	agent := filepath.Join(t.TempDir(), "my-helper")
	must(t, "new", agent, "--vendor", "acme")
	name := filepath.Join(agent, "README.md")
	edited := strings.Replace(read(t, name), "My Helper", "Mine", 1)
	if err := os.WriteFile(name, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"generate", agent}, {"version", agent, "1.1.0"}} {
		if out := must(t, args...); !strings.Contains(out, "README.md is left as it is") || read(t, name) != edited {
			t.Errorf("%q: %s", args, out)
		}
	}
}

// An archive is unpacked into a directory of its own, or takes the places of the agents of its names as a whole: no
// agent is made of the files of two.
func TestUnpackNeverMixesAgents(t *testing.T) {
	dir := t.TempDir()
	agent, out := filepath.Join(dir, "helper"), filepath.Join(dir, "out")
	first, second := filepath.Join(dir, "1.oaf"), filepath.Join(dir, "2.oaf")
	must(t, "new", agent, "--vendor", "acme", "--template", "full")
	must(t, "pack", agent, "--output", first)
	must(t, "unpack", first, out)
	if err := errors.Join(os.RemoveAll(filepath.Join(agent, "skills")),
		os.RemoveAll(filepath.Join(agent, "examples"))); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(read(t, filepath.Join(agent, "AGENTS.md")), "source: local", "source: registry", 1)
	other := filepath.Join(out, "other.txt")
	if err := errors.Join(os.WriteFile(filepath.Join(agent, "AGENTS.md"), []byte(text), 0o600),
		os.WriteFile(other, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	must(t, "pack", agent, "--output", second)
	before := read(t, filepath.Join(out, "helper/AGENTS.md"))
	if text, err := run("unpack", second, out); !errors.Is(err, repute.ErrConflict) ||
		!strings.Contains(err.Error(), "--force") {
		t.Errorf("%v: %s", err, text)
	}
	if read(t, filepath.Join(out, "helper/AGENTS.md")) != before {
		t.Error("a refused archive was unpacked")
	}
	must(t, "unpack", second, out, "--force")
	if read(t, filepath.Join(out, "helper/AGENTS.md")) != text {
		t.Error("the agent was not replaced")
	}
	for name, stays := range map[string]bool{"helper/skills": false, "helper/examples": false,
		"helper/mcp-configs": true, "other.txt": true} {
		if _, err := os.Stat(filepath.Join(out, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, "check", filepath.Join(out, "helper"))
	if err := os.Mkdir(filepath.Join(out, "helper", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := run("unpack", second, out, "--force"); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a repository was replaced: %v", err)
	}
	website := "# Website\n\nRun make before you commit.\n"
	if err := errors.Join(os.Remove(filepath.Join(out, "helper", ".git")),
		os.WriteFile(filepath.Join(out, "helper", "AGENTS.md"), []byte(website), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := run("unpack", second, out, "--force"); !errors.Is(err, repute.ErrConflict) ||
		read(t, filepath.Join(out, "helper/AGENTS.md")) != website {
		t.Errorf("a directory with another AGENTS.md was replaced: %v", err)
	}
}

// An archive below the packed directory is never part of itself: packing again makes the same bytes.
func TestArchiveIsNotPacked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "helper")
	must(t, "new", dir, "--vendor", "acme")
	archive := filepath.Join(dir, "helper.oaf")
	if out := must(t, "pack", dir, "--output", archive); out != archive+"\n" {
		t.Errorf("pack says %q", out)
	}
	first := read(t, archive)
	must(t, "pack", dir, "--output", archive)
	if read(t, archive) != first {
		t.Error("the second archive differs")
	}
	if err := os.WriteFile(filepath.Join(dir, "license"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run("pack", dir, "--output", archive); !errors.Is(err, repute.ErrInvalid) ||
		read(t, archive) != first {
		t.Errorf("an archive that nobody could unpack: %v", err)
	}
}

// Every wrong use of a command has the exit code of invalid input, as in the other commands.
func TestWrongUse(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"new", dir}, {"pack", dir}, {"export", dir, "--output", dir},
		{"export", dir, "--to", "letta"},
		{"import", dir, "--output", dir}, {"import", dir, "--from", "letta"}, {"check", dir, "--programs"},
		{"check", dir, "--env", "A"},
		{"check", dir, "--allow-host", "a"}} {
		if out, err := run(args...); !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "(") {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}

// What is not carried and what is guessed is also JSON, in one form for export and import.
func TestCarriedAsJSON(t *testing.T) {
	dir := t.TempDir()
	out := must(t, "export", team+"coordinator", "--to", "letta", "--output", dir, "--json")
	var c oaf.Carried
	if err := json.Unmarshal([]byte(out), &c); err != nil || len(c.Files) != 1 ||
		!strings.HasSuffix(c.Files[0], "coordinator.af") ||
		!slices.ContainsFunc(c.Notes, func(n oaf.Note) bool {
			return n.Kind == "dropped" && n.Agent == "north/coordinator" && n.Field == "orchestration" && n.Reason != ""
		}) {
		t.Errorf("%v: %s", err, out)
	}
	file := filepath.Join(dir, "loop.af")
	if err := os.WriteFile(file,
		[]byte(`{"agents":[{"id":"agent-0","name":"Loop","metadata":null,"messages":[1]},{"id":"agent-1","name":"Loop"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out = must(t, "import", file, "--from", "letta", "--vendor", "acme", "--output", filepath.Join(dir, "a"), "--json")
	if err := json.Unmarshal([]byte(out), &c); err != nil ||
		!strings.Contains(strings.Join(c.Files, " "), "loop-2/AGENTS.md") ||
		!slices.ContainsFunc(c.Notes, func(n oaf.Note) bool { return n.Kind == "guessed" && n.Field == "agentKey" }) {
		t.Errorf("%v: %s", err, out)
	}
	text := must(t, "import", file, "--from", "letta", "--vendor", "acme", "--output", filepath.Join(dir, "b"))
	for _, want := range []string{"not carried: loop: messages: ", "guessed: loop: agentKey: "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if out, err := run("check", filepath.Join(dir, "none"), "--json"); err == nil ||
		!strings.Contains(out, `"error":`) {
		t.Errorf("%v: %s", err, out)
	}
}

// What cannot be done is refused with what to do instead, and writes nothing.
func TestRefusedCommands(t *testing.T) {
	dir := t.TempDir()
	broken, out, prompt := filepath.Join(dir, "broken"), filepath.Join(dir, "out"), filepath.Join(dir, "prompt")
	agent, twin := filepath.Join(dir, "a"), filepath.Join(dir, "b", "a")
	must(t, "new", agent, "--vendor", "acme")
	must(t, "new", twin, "--vendor", "other")
	archive := filepath.Join(dir, "bad.oaf")
	if err := errors.Join(os.MkdirAll(broken, 0o755), os.MkdirAll(prompt, 0o755), os.WriteFile(filepath.Join(prompt,
		"AGENTS.md"), []byte("---\nname: r\ndescription: d\n---\n\nYou review code.\n"), 0o600),
		os.WriteFile(filepath.Join(broken, "AGENTS.md"), []byte("# Rules\n"), 0o600),
		os.WriteFile(archive, []byte("PK"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		part string // of the error
	}{
		{[]string{"new", filepath.Join(dir, "Not Kebab"), "--vendor", "acme"}, "kebab"},
		{[]string{"new", out, "--vendor", "acme", "--template", "huge"}, "template"},
		{[]string{"generate", broken}, "oaf check"},
		{[]string{"version", agent, "0.9.0"}, "not after"},
		{[]string{"version", broken, "1.1.0"}, "oaf check"},
		{[]string{"pack", agent, twin, "--output", out}, "two agents"},
		{[]string{"pack", broken, "--output", out}, "oaf check"},
		{[]string{"unpack", archive, out}, "make it with"},
		{[]string{"unpack", filepath.Join(dir, "none"), out}, "archive"},
		{[]string{"export", agent, "--to", "emacs", "--output", out}, "claude-code"},
		{[]string{"export", agent, "--to", "goose", "--layout", "flat", "--output", out}, "layout"},
		{[]string{"export", broken, "--to", "goose", "--output", out}, "oaf check"},
		{[]string{"export", filepath.Join(agent, "AGENTS.md"), "--to", "goose", "--output", out},
			"the directory that it is in: " + agent},
		{[]string{"pack", prompt, "--output", out},
			"vendorKey: is missing in AGENTS.md (add a line such as vendorKey: acme)"},
		{[]string{"generate", prompt}, "vendorKey: is missing in AGENTS.md (add a line such as vendorKey: acme)"},
		{[]string{"pack", archive, "--output", out}, "is a file"},
		{[]string{"pack", agent, "--output", filepath.Join(dir, "none", "x.oaf")}, "none: no such file or directory ("},
		{[]string{"unpack", agent, out}, "is a directory (an archive of agents)"},
		{[]string{"import", archive, "--from", "claude-code", "--output", out},
			"is a file (the directory of a project"},
		{[]string{"import", agent, "--from", "letta", "--output", out}, "is a directory (an .af file of Letta)"},
		{[]string{"import", agent, "--from", "emacs", "--output", out}, "\"emacs\" is unknown (claude-code or letta)"},
		{[]string{"import", agent, "--from", "claude-code", "--output", out}, ".claude"},
		{[]string{"import", archive, "--from", "letta", "--output", out}, ".af"},
		{[]string{"import", filepath.Join(dir, "none"), "--from", "letta", "--output", out}, ".af"},
		{[]string{"unpack", filepath.Join(broken, "AGENTS.md"), out}, "is no archive (the directory that it is in"},
	} {
		text, err := run(c.args...)
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%q: %v, want %q: %s", c.args, err, c.part, text)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%q wrote something", c.args)
		}
	}
}

// Texts of an untrusted agent cannot drive the terminal.
func TestOutputIsVisible(t *testing.T) {
	dir := t.TempDir()
	text := "---\nname: \"\\e[31mred\"\nvendorKey: \"\\e]0;x\\a\"\nslug: \"\\e[2J/x\"\nlicense: \"\\e[1m\"\n\"\\e[5m\": 1\n---\n\nx\n"
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", dir}, {"check", dir, "--strict"},
		{"export", dir, "--to", "letta", "--output", filepath.Join(dir, "o")}} {
		if out, err := run(args...); strings.ContainsAny(out, "\x1b\a") ||
			err != nil && strings.ContainsAny(err.Error(), "\x1b\a") {
			t.Errorf("%q: %q, %v", args, out, err)
		}
	}
}
