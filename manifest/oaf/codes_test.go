package oaf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"repute"
	"repute/manifest/oaf/problem"
)

// locked is a directory in which one file cannot be opened.
type locked struct {
	fstest.MapFS
	name string
}

// Open implements fs.FS.
func (l locked) Open(name string) (fs.File, error) {
	if name == l.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.MapFS.Open(name)
}

// judged is a way to get problems from a bad input.
type judged func(t *testing.T, profile problem.Profile) []problem.Problem

// loaded judges a directory.
func loaded(files fs.FS) judged {
	return func(_ *testing.T, profile problem.Profile) []problem.Problem {
		_, problems := Load(files, ".", profile)
		return problems
	}
}

// of judges a directory of paths and texts.
func of(files ...string) judged { return loaded(dir(files...)) }

// in judges a directory below the root of paths and texts.
func in(name string, files ...string) judged {
	return func(_ *testing.T, profile problem.Profile) []problem.Problem {
		_, problems := Load(dir(files...), name, profile)
		return problems
	}
}

// having judges an AGENTS.md with lines that replace or follow the usual ones.
func having(lines ...string) judged { return of("AGENTS.md", manifestOf(lines...)) }

// next judges an AGENTS.md without problems with other files.
func next(files ...string) judged {
	return of(append([]string{"AGENTS.md", manifestOf()}, files...)...)
}

// zipped judges an archive.
func zipped(entries ...entry) judged {
	return func(t *testing.T, profile problem.Profile) []problem.Problem {
		_, problems := LoadZip(archive(t, entries...), profile)
		return problems
	}
}

// packaged judges an archive with an agent without problems and a PACKAGE.yaml.
func packaged(text string) judged {
	return zipped(entry{name: "helper/AGENTS.md", text: manifestOf()}, entry{name: PackageName, text: text})
}

// asking judges an agent with a server that has the tool a; nil is a server that does not answer.
func asking(tools []string, selected ...SelectedTool) judged {
	return func(t *testing.T, profile problem.Profile) []problem.Problem {
		from := lister{}
		if tools != nil {
			from["s"] = tools
		}
		a := &Agent{Servers: []Server{{Dir: "mcp-configs/s", Name: "s",
			Selection: Selection{Present: true, Tools: selected}}}}
		return CheckTools(t.Context(), a, from, profile)
	}
}

// skillOf judges a directory skills/x with a SKILL.md of these lines in its frontmatter.
func skillOf(lines string) judged {
	return next("skills/x/SKILL.md", "---\n"+lines+"\n---\n\nDo it.\n")
}

// server judges mcp-configs/s/config.yaml.
func server(text string) judged {
	return next("mcp-configs/s/config.yaml", text, "mcp-configs/s/ActiveMCP.json", `{"excludedTools":["x"]}`)
}

// chained judges an agent with n agents below it that each name the next one.
func chained(n int) judged {
	files := fstest.MapFS{}
	for i := range n + 1 {
		files[fmt.Sprintf("a%d/AGENTS.md", i)] = &fstest.MapFile{Data: []byte(manifestOf(fmt.Sprint("agentKey: a", i),
			fmt.Sprint("slug: acme/a", i), fmt.Sprintf("agents: [{agent: a%d}]", i+1)))}
	}
	return func(_ *testing.T, profile problem.Profile) []problem.Problem {
		_, problems := Load(files, "a0", profile)
		return problems
	}
}

// yields has for each code an input that gives it, with the place: file, line, and JSON pointer.
func yields() map[string]struct {
	from judged
	at   string
} {
	type row = struct {
		from judged
		at   string
	}
	const http = "connection: {type: http, url: \"http://a\"}\n"
	many := make([]string, 600)
	for i := range many {
		many[i] = fmt.Sprintf("x%d: 1", i)
	}
	link := fstest.MapFS{"AGENTS.md": {Data: []byte(manifestOf())},
		"link": {Data: []byte("AGENTS.md"), Mode: fs.ModeSymlink}}
	closed := locked{fstest.MapFS{"AGENTS.md": {Data: []byte(manifestOf())}, "docs/a.md": {Data: []byte("x")}},
		"docs/a.md"}
	return map[string]row{
		problem.CodeNoManifest: {of("README.md", "x"), ":0 "},
		problem.CodeUnreadable: {loaded(closed), "docs/a.md:0 "},
		problem.CodeFileTooLarge: {of("AGENTS.md", manifestOf(), "skills/x/SKILL.md", strings.Repeat("x", 1<<20+1)),
			"skills/x/SKILL.md:0 "},
		problem.CodeTooManyFiles: {next(strings.Repeat("d/", 20)+"x", "x"), strings.Repeat("d/", 16) + "d:0 "},
		problem.CodePath:         {having("skills: [{name: ../x, source: local}]"), "AGENTS.md:11 /skills/0"},
		problem.CodeSymlink:      {loaded(link), "link:0 "},
		problem.CodeArchive: {func(_ *testing.T, profile problem.Profile) []problem.Problem {
			_, problems := LoadZip([]byte("PK"), profile)
			return problems
		}, ":0 "},
		problem.CodeBomb:          {zipped(entry{name: "a/zeros", text: strings.Repeat("\x00", 8<<20)}), "a/zeros:0 "},
		problem.CodePackage:       {zipped(entry{name: "helper/AGENTS.md", text: manifestOf()}), "PACKAGE.yaml:0 "},
		problem.CodePackageOther:  {packaged("name: tools\nagents: [{slug: acme/helper}]\n"), "PACKAGE.yaml:1 /format"},
		problem.CodeDuplicateFile: {zipped(entry{name: "a/x"}, entry{name: "a/X"}), "a/X:0 "},
		problem.CodePackageAgent:  {packaged("format: oaf-package\nagents: [{slug: acme/gone}]\n"), "PACKAGE.yaml:0 "},
		problem.CodeMore:          {having(many...), ":0 "},

		problem.CodeNoFrontmatter: {of("AGENTS.md", "# Rules\n"), "AGENTS.md:1 "},
		problem.CodeLongHead:      {having("x: " + strings.Repeat("y", 65<<10)), "AGENTS.md:1 "},
		problem.CodeYAML:          {having("config:\n\ttemperature: 1"), "AGENTS.md:12 "},
		problem.CodeDuplicate: {having("x-a: 1", "config:\n  max_tokens: 1\n  max_tokens: 2"),
			"AGENTS.md:14 /config/max_tokens"},
		problem.CodeAlias:     {having(bomb()), "AGENTS.md:2 "},
		problem.CodeNotObject: {of("AGENTS.md", "---\n- a\n---\n\nx\n"), "AGENTS.md:2 "},
		problem.CodeBOM:       {of("AGENTS.md", "\xef\xbb\xbf"+manifestOf()), "AGENTS.md:1 "},
		problem.CodeCRLF:      {of("AGENTS.md", strings.ReplaceAll(manifestOf(), "\n", "\r\n")), "AGENTS.md:1 "},
		problem.CodeEncoding:  {of("AGENTS.md", manifestOf()+"\xff"), "AGENTS.md:1 "},
		problem.CodeType:      {having("author: {a: b}"), "AGENTS.md:8 /author"},
		problem.CodeMember:    {having("colour: red"), "AGENTS.md:11 /colour"},
		problem.CodeUnquoted:  {having("version: 1.10"), "AGENTS.md:5 /version"},
		problem.CodeJSON: {next("mcp-configs/s/ActiveMCP.json", "{\n \"a\": }"),
			"mcp-configs/s/ActiveMCP.json:2 "},
		problem.CodeRestriction: {having("config:\n  tools:\n    denied: [{name: Bash}]"),
			"AGENTS.md:13 /config/tools/denied"},
		problem.CodeReserved: {having("author: @acme"), "AGENTS.md:8 /author"},

		problem.CodeComment: {having("description: Answers what #1 of the list asks about all of its members, today."),
			"AGENTS.md:7 /description"},

		problem.CodeMissing: {having("-license"), "AGENTS.md:2 /license"},
		problem.CodeMissingPrompt: {of("AGENTS.md", "---\nname: r\ndescription: d\n---\n\nYou review code.\n"),
			"AGENTS.md:2 /vendorKey"},
		problem.CodeKebab:       {having("vendorKey: Acme Inc", "slug: acme/helper"), "AGENTS.md:3 /vendorKey"},
		problem.CodeSemver:      {having("version: \"1.0\""), "AGENTS.md:5 /version"},
		problem.CodeSlug:        {having("slug: helper"), "AGENTS.md:6 /slug"},
		problem.CodeSlugOther:   {having("slug: acme/other"), "AGENTS.md:6 /slug"},
		problem.CodeDescription: {having("description: " + strings.Repeat("é", 501)), "AGENTS.md:7 /description"},
		problem.CodeName:        {having("name: " + strings.Repeat("é", 101)), "AGENTS.md:2 /name"},
		problem.CodeSPDX:        {having("license: Mine"), "AGENTS.md:9 /license"},
		problem.CodeLicenseFile: {next("LICENSE", "Apache License\nVersion 2.0\n"), "LICENSE:0 "},
		problem.CodeNoHeading: {of("AGENTS.md", strings.Replace(manifestOf(), "## Tasks", "```\n## Tasks\n```", 1)),
			"AGENTS.md:0 "},
		problem.CodeNoBody:    {of("AGENTS.md", strings.Replace(manifestOf(), body, "", 1)), "AGENTS.md:0 "},
		problem.CodeBareEntry: {having("entrypoint: structured"), "AGENTS.md:11 /entrypoint"},
		problem.CodeEntry: {having("orchestration:\n  fallback: nobody"),
			"AGENTS.md:12 /orchestration/fallback"},
		problem.CodeEnum: {having("weblets: [{weblet: v}, {weblet: w, launch: never}]"),
			"AGENTS.md:11 /weblets/1/launch"},
		problem.CodeRange: {having("config: {max_tokens: -1}"), "AGENTS.md:11 /config/max_tokens"},
		problem.CodeConstraint: {having("packs: [{vendor: a, pack: b, version: latest}]"),
			"AGENTS.md:11 /packs/0/version"},

		problem.CodeNoName: {having("packs: [{pack: a}, {vendor: b}]", "orchestration: {triggers: [{event: a}]}"),
			"AGENTS.md:11 /packs/1/pack"},

		problem.CodeSkillAbsent:     {having("skills:\n  - {name: x, source: local}"), "AGENTS.md:12 /skills/0"},
		problem.CodeSkillUndeclared: {skillOf("name: x\ndescription: Does it."), "skills/x:0 "},
		problem.CodeConfigAbsent: {having("mcpServers: [{server: x, required: true}]"),
			"AGENTS.md:11 /mcpServers/0"},
		problem.CodeConfigOptional: {having("mcpServers: [{server: x}]"), "AGENTS.md:11 /mcpServers/0"},
		problem.CodeServerUnlisted: {server(http), "mcp-configs/s:0 "},
		problem.CodeAgentAbsent:    {having("agents:\n  - agent: x\n    required: true"), "AGENTS.md:12 /agents/0"},
		problem.CodeAgentOptional:  {having("agents: [{agent: x}]"), "AGENTS.md:11 /agents/0"},
		problem.CodeCycle: {in("a", "a/AGENTS.md", manifestOf("agentKey: a", "slug: acme/a", "agents: [{agent: b}]"),
			"b/AGENTS.md", manifestOf("agentKey: b", "slug: acme/b", "agents: [{agent: a}]")),
			"../b/AGENTS.md:11 /agents/0"},
		problem.CodeConflict: {having("packs: [{pack: b, version: 1.0.0}, {pack: b, version: 2.0.0}]"),
			"AGENTS.md:11 /packs/1/version"},
		problem.CodeSelf: {having("agents: [{vendor: acme, agent: helper}]"), "AGENTS.md:11 /agents/0"},
		problem.CodeDenied: {of("AGENTS.md", manifestOf("config: {tools: {denied: [bash]}}"), "skills/x/SKILL.md",
			"---\nname: x\ndescription: d\nallowed-tools: Bash(git:*)\n---\n\nDo it.\n"),
			"skills/x/SKILL.md:4 /allowed-tools"},
		problem.CodeToolRequired: {asking([]string{"a"}, SelectedTool{Name: "b", Enabled: true, Required: true,
			at: problem.Place{File: "mcp-configs/s/ActiveMCP.json", Line: 3}}), "mcp-configs/s/ActiveMCP.json:3 "},
		problem.CodeToolUnknown: {asking([]string{"a"}, SelectedTool{Name: "b*", Enabled: true,
			at: problem.Place{File: "mcp-configs/s/ActiveMCP.json", Path: "/selectedTools/0", Line: 4}}),
			"mcp-configs/s/ActiveMCP.json:4 /selectedTools/0"},
		problem.CodeNotAsked: {asking(nil, SelectedTool{Name: "a", Enabled: true}), "mcp-configs/s:0 "},
		problem.CodeExcluded: {next("mcp-configs/s/ActiveMCP.json",
			`{"selectedTools":[{"name":"a"}],"excludedTools":["a"]}`),
			"mcp-configs/s/ActiveMCP.json:1 /selectedTools/0"},
		problem.CodeTooDeep:  {chained(12), "../a7/AGENTS.md:11 /agents/0"},
		problem.CodeToolName: {having("tools: [Read, Bsah]"), "AGENTS.md:11 /tools"},
		problem.CodeDeniedName: {having("config: {tools: {denied: [Bash, files__read]}}"),
			"AGENTS.md:11 /config/tools/denied"},
		problem.CodeDirectory: {in("other", "other/AGENTS.md", manifestOf()), "AGENTS.md:4 /agentKey"},
		problem.CodeAgentOther: {in("helper", "helper/AGENTS.md", manifestOf("agents: [{agent: x}]"), "x/AGENTS.md",
			manifestOf("agentKey: y", "slug: acme/y")), "AGENTS.md:11 /agents/0"},

		problem.CodeNoSkillFile:      {next("skills/x/notes.txt", "y"), "skills/x:0 "},
		problem.CodeSkillPlain:       {next("skills/x/SKILL.md", "Do it.\n"), "skills/x/SKILL.md:1 "},
		problem.CodeSkillName:        {skillOf("name: X\ndescription: d"), "skills/x/SKILL.md:2 /name"},
		problem.CodeSkillDirectory:   {skillOf("name: y\ndescription: d"), "skills/x/SKILL.md:2 /name"},
		problem.CodeSkillDescription: {skillOf("name: x"), "skills/x/SKILL.md:2 /description"},
		problem.CodeSkillLong: {skillOf("name: x\ndescription: " + strings.Repeat("é", 1025)),
			"skills/x/SKILL.md:3 /description"},
		problem.CodeSkillMember: {skillOf("name: x\ndescription: d\nversion: 1"), "skills/x/SKILL.md:4 /version"},
		problem.CodeSkillFlow: {skillOf("name: x\ndescription: d\nmetadata: {a: b}"),
			"skills/x/SKILL.md:4 /metadata"},
		problem.CodeSkillTools: {skillOf("name: x\ndescription: d\nallowed-tools: [Bash]"),
			"skills/x/SKILL.md:4 /allowed-tools"},
		problem.CodeSkillCompat: {skillOf("name: x\ndescription: d\ncompatibility: " + strings.Repeat("x", 501)),
			"skills/x/SKILL.md:4 /compatibility"},
		problem.CodeSkillSize: {next("skills/x/SKILL.md",
			"---\nname: x\ndescription: d\n---\n"+strings.Repeat("x\n", 500)),
			"skills/x/SKILL.md:0 "},

		problem.CodeNoConnection: {server("server: s\n"), "mcp-configs/s/config.yaml:1 /connection"},
		problem.CodeNoAddress: {server("server: s\nconnection: {type: stdio}\n"),
			"mcp-configs/s/config.yaml:2 /connection/command"},
		problem.CodeSecret: {server(http + "auth: {type: bearer, token: abc}\n"),
			"mcp-configs/s/config.yaml:2 /auth/token"},
		problem.CodeServerFile: {next("mcp-configs/s.yaml", http), "mcp-configs/s.yaml:0 "},
		problem.CodeDialect: {server(http + "rate_limiting: {requests_per_second: 1}\n"),
			"mcp-configs/s/config.yaml:2 /rate_limiting"},
		problem.CodeBraces: {server(http + "permissions: {deny_paths: [\"*.{pem,key}\"]}\n"),
			"mcp-configs/s/config.yaml:2 /permissions/deny_paths"},
		problem.CodeNoConfig:     {next("mcp-configs/s/ActiveMCP.json", "{}"), "mcp-configs/s:0 "},
		problem.CodeNoSelection:  {next("mcp-configs/s/config.yaml", http), "mcp-configs/s:0 "},
		problem.CodeVersionName:  {next("versions/1.0.0/AGENTS.md", manifestOf()), "versions/1.0.0:0 "},
		problem.CodeVersionOther: {next("versions/v0.1.0/AGENTS.md", manifestOf()), "versions/v0.1.0/AGENTS.md:0 "},
	}
}

// declared are the codes in the source of package problem.
func declared(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile("problem/codes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"([EWI]O\d{3})"`).FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	return out
}

// Every code has an input that gives it, at the place that is at fault, in both profiles. A new code needs a row.
func TestEveryCodeIsGiven(t *testing.T) {
	t.Parallel()
	rows := yields()
	codes := declared(t)
	if len(codes) < 70 || len(rows) != len(codes) {
		t.Errorf("%d codes, %d rows", len(codes), len(rows))
	}
	for _, code := range codes {
		row, ok := rows[code]
		if !ok {
			t.Errorf("no input gives %s", code)
			continue
		}
		problems := row.from(t, problem.Lenient)
		var got []string
		for _, p := range problems {
			if p.Code == code {
				got = append(got, fmt.Sprintf("%s:%d %s", p.File, p.Line, p.Path))
			}
		}
		if !slices.Contains(got, row.at) {
			t.Errorf("%s: at %q, want %q, among %d problems: %.600v", code, got, row.at, len(problems), problems)
		}
		strict := row.from(t, problem.Strict)
		if !slices.ContainsFunc(strict, func(p problem.Problem) bool { return p.Code[1:] == code[1:] }) {
			t.Errorf("%s: not given in the strict profile: %.600v", code, strict)
		}
	}
}

// A publisher sees every problem that a reader sees, and each as bad or worse; every problem has words, a fix and a
// place.
func TestStrictIsStricter(t *testing.T) {
	t.Parallel()
	for code, row := range yields() {
		lenient, strict := row.from(t, problem.Lenient), row.from(t, problem.Strict)
		_, refused := repute.FirstError(lenient)
		if _, bad := repute.FirstError(strict); refused && !bad || len(lenient) != len(strict) {
			t.Errorf("%s: %d problems, strict %d", code, len(lenient), len(strict))
		}
		for _, p := range append(lenient, strict...) {
			if p.Message == "" || problem.Hint(p.Code) == "" || p.Line < 0 || strings.Contains(p.Message, "%!") {
				t.Errorf("%s: %+v", code, p)
			}
		}
	}
}

// Hundreds of warnings do not hide that a required field is missing.
func TestUnknownMembersHideNoError(t *testing.T) {
	t.Parallel()
	lines := []string{"-version"}
	for i := range 600 {
		lines = append(lines, fmt.Sprintf("x%d: 1", i))
	}
	_, problems := Load(dir("AGENTS.md", manifestOf(lines...)), ".", problem.Lenient)
	if p, bad := repute.FirstError(problems); !bad || p.Code != problem.CodeMissing {
		t.Errorf("the missing version is hidden by %d problems: %+v", len(problems), p)
	}
}

// A directory that cannot be listed is one problem, and no agent.
func TestUnreadableDirectory(t *testing.T) {
	t.Parallel()
	a, problems := Load(failing{}, ".", problem.Lenient)
	if a != nil || !slices.Contains(codes(problems), problem.CodeUnreadable) {
		t.Errorf("%v, %v", a, problems)
	}
	for _, dir := range []string{"..", "/", "a/../b", ""} {
		if a, problems := Load(failing{}, dir, problem.Lenient); a != nil ||
			!slices.Equal(codes(problems), []string{problem.CodePath}) {
			t.Errorf("%q: %v", dir, problems)
		}
	}
}

// failing is a file system without anything that works.
type failing struct{}

// Open implements fs.FS.
func (failing) Open(string) (fs.File, error) { return nil, errors.New("the disk is broken") }
