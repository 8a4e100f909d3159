package oaf

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"repute"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// entry is one entry of an archive of a test.
type entry struct {
	name, text string
	mode       fs.FileMode
}

// archive makes a zip file of entries as they are, safe or not.
func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		out, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnsafeArchivesAreRefused(t *testing.T) {
	good := entry{name: "helper/AGENTS.md", text: manifestOf()}
	many := []entry{good}
	for i := range 9000 {
		many = append(many, entry{name: "helper/f" + strconv.Itoa(i)})
	}
	for _, tc := range []struct {
		name, code string
		b          []byte
	}{
		{"no archive", "EO706", []byte("PK")},
		{"slip", "EO704", archive(t, good, entry{name: "../../etc/passwd", text: "x"})},
		{"absolute", "EO704", archive(t, good, entry{name: "/etc/passwd", text: "x"})},
		{"backslash", "EO704", archive(t, good, entry{name: `..\x`, text: "x"})},
		{"drive", "EO704", archive(t, good, entry{name: "C:/x", text: "x"})},
		{"symbolic link", "EO705", archive(t, good,
			entry{name: "helper/link", text: "/etc/passwd", mode: fs.ModeSymlink})},
		{"device", "EO705", archive(t, good, entry{name: "helper/dev", mode: fs.ModeDevice})},
		{"two of a name", "EO710", archive(t, good, entry{name: "helper/agents.MD", text: "x"})},
		{"bomb", "EO707", archive(t, good, entry{name: "helper/zeros", text: strings.Repeat("\x00", 8<<20)})},
		{"many", "EO707", archive(t, many...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pack, problems := LoadZip(tc.b, problem.Lenient)
			if len(pack.Agents) > 0 || !slices.Equal(codes(problems), []string{tc.code}) {
				t.Errorf("%d agents, problems %v, want %s", len(pack.Agents), problems, tc.code)
			}
			if files, problems := Unpack(tc.b, problem.Lenient); files != nil ||
				!slices.Contains(codes(problems), tc.code) {
				t.Errorf("unpacked %d files, problems %v", len(files), problems)
			}
		})
	}
}

func TestPackageDialects(t *testing.T) {
	agent := entry{name: "package/helper/AGENTS.md", text: manifestOf()}
	for _, tc := range []struct{ name, text, codes, mode string }{
		{"format's own",
			"format: oaf-package\nformatVersion: \"1.0.0\"\nversion: \"1.0.0\"\n" +
				"agents:\n  - slug: acme/helper\n    version: \"1.0.0\"\n" +
				"contents: {mode: bundled}\n", "", ModeBundled},
		{"toolkit", "name: tools\nversion: \"1.0.0\"\nagents:\n  - slug: acme/helper\n    path: helper/\n",
			"IO709", ""},
		{"generated", "contents_mode: bundled\nagents:\n  - path: helper\n    vendorKey: acme\n    agentKey: helper\n",
			"IO709", ModeBundled},
		{"other version", "format: oaf-package\nagents: [{slug: acme/helper, version: \"2.0.0\"}]\n", "WO711", ""},
		{"absent agent", "format: oaf-package\nagents: [{slug: acme/helper}, {slug: acme/gone}]\n", "WO711", ""},
		{"referenced agent",
			"format: oaf-package\nagents: [{slug: acme/helper}, {slug: acme/gone}]\ncontents: {mode: referenced}\n", "",
			ModeReferenced},
		{"unlisted agent", "format: oaf-package\nagents: [{slug: acme/gone}]\ncontents: {mode: referenced}\n", "WO711",
			ModeReferenced},
		{"path outside", "format: oaf-package\nagents: [{slug: acme/helper, path: ../x}]\n", "EO704", ""},
		{"another format", "format: other\nagents: [acme/helper]\n", "WO708", ""},
		{"no YAML", "a: [", "EO722", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pack, problems := LoadZip(archive(t, agent, entry{name: "package/PACKAGE.yaml", text: tc.text}),
				problem.Lenient)
			if got := strings.Join(codes(problems), " "); got != tc.codes {
				t.Errorf("codes %q, want %q: %v", got, tc.codes, problems)
			}
			if len(pack.Agents) != 1 || pack.Agents[0].ID() != "acme/helper" || pack.Mode != tc.mode {
				t.Errorf("package %+v", pack)
			}
		})
	}
}

func TestPackThenUnpackIsTheSameDirectory(t *testing.T) {
	var agents []*Agent
	files := map[string][]tree.File{}
	for _, dir := range []string{"coordinator", "reviewer"} {
		a, _ := Load(os.DirFS("testdata/team"), dir, problem.Lenient)
		agents = append(agents, a)
		files[a.AgentKey] = tree.Read(os.DirFS("testdata/team"), dir, tree.NewBudget(), &problem.List{})
	}
	packed, err := Pack(agents, files)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Pack(agents, files)
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("a second archive differs: %v", err)
	}
	pack, problems := LoadZip(packed, problem.Strict)
	if _, bad := repute.FirstError(problems); len(pack.Agents) != 2 || pack.Agents[0].Agents[0].Local == nil {
		t.Errorf("%d agents, %v, %v", len(pack.Agents), bad, problems)
	}
	got, _ := Unpack(packed, problem.Strict)
	want := append(tree.Within("coordinator", files["coordinator"]), tree.Within("reviewer", files["reviewer"])...)
	got = slices.DeleteFunc(got, func(f tree.File) bool { return f.Path == PackageName })
	same := func(a, b tree.File) bool {
		return a.Path == b.Path && bytes.Equal(a.Data, b.Data) && a.Executable == b.Executable
	}
	if !slices.EqualFunc(got, want, same) {
		t.Error("the unpacked files differ")
	}
}

func TestTemplatesAreStrict(t *testing.T) {
	for _, kind := range []Template{TemplateMinimal, TemplateSubAgent, TemplateFull} {
		a, err := New(kind, "acme", "my-helper")
		if err != nil {
			t.Fatal(err)
		}
		written, err := a.Write()
		if err != nil {
			t.Fatal(err)
		}
		generated, _ := a.Generate()
		fsys, err := tree.FS(append(written, generated...))
		if err != nil {
			t.Fatal(err)
		}
		got, problems := Load(fsys, ".", problem.Strict)
		if p, bad := repute.FirstError(problems); bad || got == nil {
			t.Errorf("%s: %+v", kind, p)
		}
		if again, edited := got.Generate(); len(again) > 0 || len(edited) > 0 {
			t.Errorf("%s: %d files are generated again, %q were edited", kind, len(again), edited)
		}
	}
	if _, err := New("huge", "acme", "x"); err == nil {
		t.Error("an unknown template was taken")
	}
	if _, err := New(TemplateMinimal, "Acme Inc", "x"); err == nil {
		t.Error("a vendor that is not kebab-case was taken")
	}
}

func TestGenerateLeavesExistingFiles(t *testing.T) {
	a := team(t)
	first, _ := a.Generate()
	second, _ := team(t).Generate()
	if len(first) != 2 || string(first[0].Data) != string(second[0].Data) ||
		string(first[1].Data) != string(second[1].Data) {
		t.Fatalf("generated %d files, or others the second time", len(first))
	}
	if text := string(first[0].Data); !strings.Contains(text, "Apache-2.0") || !strings.Contains(text, "@north") {
		t.Errorf("LICENSE: %s", text)
	}
	for _, want := range []string{"# Change Coordinator", "north/coordinator", "- summarize: ", "- files",
		"- north/reviewer"} {
		if !strings.Contains(string(first[1].Data), want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
	a.Files = append(a.Files, tree.File{Path: "README.md", Data: []byte("mine")})
	if rest, edited := a.Generate(); len(rest) != 1 || rest[0].Path != "LICENSE" ||
		!slices.Equal(edited, []string{"README.md"}) {
		t.Errorf("generated %d files next to a README.md, edited %q", len(rest), edited)
	}
}

// What was generated follows the agent, until somebody edits it.
func TestGeneratedFilesFollowTheAgent(t *testing.T) {
	a := team(t)
	a.Files, _ = a.Generate()
	a.Description = "Another one."
	windows := slices.Clone(a.Files)
	windows[1].Data = bytes.ReplaceAll(windows[1].Data, []byte("\n"), []byte("\r\n"))
	for name, files := range map[string][]tree.File{"as written": a.Files, "with line ends of Windows": windows} {
		a.Files = files
		again, edited := a.Generate()
		if len(again) != 1 || len(edited) != 0 || !strings.Contains(string(again[0].Data), "Another one.") {
			t.Errorf("%s: generated %v, edited %q", name, again, edited)
		}
	}
	for name, change := range map[string]func(string) string{
		"a word":            func(s string) string { return strings.Replace(s, "Coordinates", "Leads", 1) },
		"a word at the end": func(s string) string { return s + "Mine.\n" },
		"the mark":          func(s string) string { return s[:strings.Index(s, "\n<!--")] },
	} {
		files := slices.Clone(windows)
		old, _ := team(t).Generate()
		files[1].Data = []byte(change(string(old[1].Data)))
		a.Files = files
		if again, edited := a.Generate(); len(again) != 0 || !slices.Equal(edited, []string{"README.md"}) {
			t.Errorf("%s: generated %v, edited %q", name, again, edited)
		}
	}
}

// A new version renews what names the version or the license, and nothing that was missing before.
func TestNextVersionRenewsGeneratedFiles(t *testing.T) {
	a := team(t)
	text, err := a.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if files, _, err := NextVersion(a, text, "1.2.0"); err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	a.Files, _ = a.Generate()
	files, edited, err := NextVersion(a, text, "1.2.0")
	if err != nil || len(files) != 3 || len(edited) != 0 ||
		!strings.Contains(string(files[2].Data), "| version | 1.2.0 |") {
		t.Errorf("%d files, edited %q, %v", len(files), edited, err)
	}
	a.Author, a.Versions = "@south", append(a.Versions, PastVersion{Version: a.Version, Text: text})
	again, edited := a.Generate()
	if len(again) != 2 || len(edited) != 0 || !strings.Contains(string(again[0].Data), "@south") {
		t.Errorf("generated %v, edited %q", again, edited)
	}
}

func TestNextVersionChangesNothingElse(t *testing.T) {
	text := []byte("---\r\n# comment\r\nname: x\r\nversion: 1.0.0 # now\r\ndescription: y\r\n---\r\nversion: 1.0.0\r\n")
	a, _ := ParseManifest(text, problem.Lenient)
	files, _, err := NextVersion(a, text, "1.1.0")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(string(text), "version: 1.0.0 # now", `version: "1.1.0"`, 1)
	if string(files[0].Data) != want || files[1].Path != "versions/v1.0.0/AGENTS.md" ||
		!bytes.Equal(files[1].Data, text) {
		t.Errorf("files %v", files)
	}
	for _, next := range []string{"1.0.0", "0.9.0", "2", "v2.0.0", "../x"} {
		if _, _, err := NextVersion(a, text, next); err == nil {
			t.Errorf("version %s was taken", next)
		}
	}
	a.Versions = []PastVersion{{Version: "1.0.0"}}
	if _, _, err := NextVersion(a, text, "1.1.0"); err == nil {
		t.Error("an existing version was replaced")
	}
}

func TestSelectionDialects(t *testing.T) {
	for _, tc := range []struct {
		name, text        string
		allows, forbids   []string
		codes, strategies string
	}{
		{"own", `{"selectedTools":[{"name":"a"},{"name":"b","enabled":false}],"excludedTools":["c"],` +
			`"contextStrategy":"subset"}`,
			[]string{"a"}, []string{"b", "c", "d"}, "", StrategySubset},
		{"all", `{"selectedTools":[{"name":"b","enabled":false}],"excludedTools":["c*"],"contextStrategy":"all"}`,
			[]string{"a", "d"}, []string{"b", "c", "cc"}, "", StrategyAll},
		{"other form",
			`{"name":"s","enabled_tools":["a","user.*"],"disabled_tools":["admin.*","user.rm"],"tool_config":{"a":1}}`,
			[]string{"a", "user.add"}, []string{"admin.x", "user.rm", "b"}, "IO804", StrategySubset},
		{"only excluded", `{"excludedTools":["c"]}`, []string{"a"}, []string{"c"}, "", StrategyAll},
		{"empty selection", `{"selectedTools":[]}`, nil, []string{"a"}, "", StrategySubset},
		{"selected and excluded", `{"selectedTools":[{"name":"a"}],"excludedTools":["a"]}`, nil, []string{"a"}, "WO774",
			StrategySubset},
		{"unknown strategy", `{"selectedTools":[{"name":"a"}],"contextStrategy":"most"}`, []string{"a"}, []string{"b"},
			"WO754", StrategySubset},
		{"broken", `{"selectedTools":`, nil, []string{"a"}, "EO732", StrategySubset},
		{"two objects", `{} {}`, nil, []string{"a"}, "EO732", StrategySubset},
		{"repeated", `{"excludedTools":["a"],"excludedTools":[]}`, []string{"b"}, []string{"a"}, "EO723", StrategyAll},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, problems := parseSelection([]byte(tc.text), problem.Lenient)
			if got := strings.Join(codes(problems), " "); got != tc.codes || s.Strategy != tc.strategies {
				t.Errorf("codes %q, want %q; strategy %s", got, tc.codes, s.Strategy)
			}
			for _, name := range tc.allows {
				if !s.Allows(name) {
					t.Errorf("%s is not allowed", name)
				}
			}
			for _, name := range tc.forbids {
				if s.Allows(name) {
					t.Errorf("%s is allowed", name)
				}
			}
		})
	}
	if !(Selection{}).Allows("anything") {
		t.Error("without ActiveMCP.json a tool is not allowed")
	}
}

func TestServerOfTheOtherForm(t *testing.T) {
	a, problems := Load(dir("AGENTS.md", manifestOf(), "mcp-configs/s/config.yaml",
		`server: {name: search, command: npx, args: [-y, srv]}
authentication: {type: api_key, header: X-Key, env_var: SEARCH_KEY}
rate_limiting: {requests_per_second: 2, burst_size: 3}
permissions: {read: [/data], write: [], max_file_size: 2MiB}
retry: {max_attempts: 3}
health_check: {interval: 30}
`), ".", problem.Lenient)
	if len(a.Servers) != 1 || !slices.Equal(codes(problems), []string{"IO764", "IO804", "IO806"}) {
		t.Fatalf("problems %v", problems)
	}
	s := a.Servers[0]
	if s.Name != "search" || s.Connection.Type != TransportStdio || s.Connection.Command != "npx" ||
		s.Auth.Header != "X-Key" ||
		s.Auth.Token != "${SEARCH_KEY}" || s.RateLimit != (RateLimit{120, 3}) || s.Permissions.MaxFileSize != 2<<20 ||
		!slices.Equal(s.Permissions.ReadPaths, []string{"/data"}) || len(s.Extra) != 2 {
		t.Errorf("server %+v", s)
	}
}

// The agents of an archive share one budget: what one of them has read is not there for the next.
func TestAgentsOfAnArchiveShareABudget(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{PackageName: text("format: oaf-package\n")}
	for i := range 3 {
		key := fmt.Sprint("a", i)
		files[key+"/AGENTS.md"] = text(manifestOf("agentKey: "+key, "slug: acme/"+key))
		for j := range 2_000 / 2 {
			files[fmt.Sprintf("%s/docs/%d.md", key, j)] = text("x")
		}
	}
	list := &problem.List{}
	pack := loadPackage(files, problem.Lenient, list)
	kept := 0
	for _, a := range pack.Agents {
		kept += len(a.Files)
	}
	if p, bad := repute.FirstError(list.Problems()); !bad || p.Code != problem.CodeTooManyFiles ||
		kept > 2_000 {
		t.Errorf("%d files of %d agents are kept: %+v", kept, len(pack.Agents), p)
	}
}

// An agent of an archive that others name is read once, and has all of its problems.
func TestAgentsOfAnArchiveAreReadOnce(t *testing.T) {
	t.Parallel()
	c := counted{fstest.MapFS{PackageName: text("format: oaf-package\n")}, map[string]int{}}
	for i := range 20 {
		key := fmt.Sprint("a", i)
		c.MapFS[key+"/AGENTS.md"] = text(manifestOf("agentKey: "+key, "slug: acme/"+key, "agents: [{agent: shared}]"))
	}
	c.MapFS["shared/AGENTS.md"] = text(manifestOf("agentKey: shared", "slug: acme/shared", "colour: red",
		"license: \"\""))
	c.MapFS["shared/docs/a.md"] = text("x")
	list := &problem.List{}
	pack := loadPackage(c, problem.Lenient, list)
	if len(pack.Agents) != 21 || c.opened["shared/docs/a.md"] != 1 {
		t.Fatalf("%d agents, shared is read %d times", len(pack.Agents), c.opened["shared/docs/a.md"])
	}
	shared := pack.Agents[20]
	for _, a := range pack.Agents[:20] {
		if a.Agents[0].Local != shared {
			t.Errorf("%s has another sub-agent: %+v", a.Dir, a.Agents[0])
		}
	}
	var at []string
	for _, p := range list.Problems() {
		at = append(at, p.File+" "+p.Code)
	}
	if !slices.Contains(at, "shared/AGENTS.md WO730") || !slices.Contains(at, "shared/AGENTS.md EO740") {
		t.Errorf("problems %q", at)
	}
}
