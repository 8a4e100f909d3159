package oafagent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute/agent/handler"
	"repute/manifest/oaf"
)

// A server whose limits have braces is refused: they are no part of patterns, so that nothing would be denied.
func TestBracesInLimits(t *testing.T) {
	for member, p := range map[string]oaf.Permissions{"deny_paths": {DenyPaths: []string{"*.{pem,key}"}},
		"allow_paths": {AllowPaths: []string{"/data/{a,b}"}}, "": {DenyPaths: []string{"*.pem"}}} {
		_, err := newServer(&oaf.Server{Name: "s", Connection: oaf.Connection{Type: oaf.TransportHTTP, URL: "http://a"},
			Permissions: p}, &Options{})
		if want := "permissions." + member + ": "; (err == nil) != (member == "") ||
			err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", member, err)
		}
	}
}

// A path with braces may mean a parent directory, which is outside what is allowed.
func TestBracesOfCalls(t *testing.T) {
	s := &server{def: &oaf.Server{Permissions: oaf.Permissions{AllowPaths: []string{"/data"}}}}
	for path, good := range map[string]bool{"/data/{x,..}/etc": false, "/data/{..}/etc": false, "/data/{a,b}": true,
		"/data/.{.,x}/etc": false, "/data/{.,x}./etc": false, "/data/{a,b}/..": false} {
		if err := s.permits(mustJSON(map[string]string{"path": path}), true); (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A directory of this computer may have braces in its name, and a path of a call a pattern in its place.
func TestBracesOfDirectories(t *testing.T) {
	if !mayMeet("{app}", "*") || !mayMeet("{app}", "{app}") || mayMeet("a{b}", "c*") {
		t.Error("patterns that meet")
	}
}

// Paths are judged by where they may lead, whatever form and member they have: what is denied wins, and what is not
// surely allowed is refused.
func TestPaths(t *testing.T) {
	s := &server{def: &oaf.Server{Permissions: oaf.Permissions{AllowPaths: []string{"/data/**"},
		DenyPaths: []string{"/data/.git/**", "/data/keys", "*.pem", ".env"}}}}
	for input, want := range map[string]string{ // want is a part of the refusal, empty where the call is permitted
		`{"path":"/data/a"}`:                                                   "",
		`{"path":"/data"}`:                                                     "",
		`{"path":"/data/./a//b/"}`:                                             "",
		`{"path":"/data/a b","content":"/etc/passwd\nroot"}`:                   "",
		`{"path":"/data/a","content":"/node_modules"}`:                         "",
		`{"path":"/data/a","query":"keys of the past"}`:                        "",
		`{"path":"/data/a","mode":"text/plain"}`:                               "",
		`{"files":[{"path":"/data/a","encoding":"utf8"}]}`:                     "",
		`{"uri":"file:///data/a"}`:                                             "",
		`{"path":"/data/[id].ts"}`:                                             "",
		`{"path":"/data/*.txt"}`:                                               "",
		`{"path":"/etc/passwd"}`:                                               "is not allowed",
		`{"path":"/data/../etc/passwd"}`:                                       "segment ..",
		`{"path":"/data/%2e%2e/etc/passwd"}`:                                   "segment ..",
		`{"path":"/data/%252e%252e/etc/passwd"}`:                               "segment ..",
		`{"path":"/data\\..\\etc"}`:                                            "segment ..",
		`{"path":"~/x"}`:                                                       "begins with ~",
		`{"path":"/database"}`:                                                 "is not allowed",
		`{"path":"/DATA/a"}`:                                                   "is not allowed",
		`{"path":"a"}`:                                                         "is not allowed",
		`{"path":"/data/a\u0000.txt"}`:                                         "control character",
		`{"path":"/data/.git/config"}`:                                         "is denied",
		`{"path":"/data/.GIT/config"}`:                                         "is denied",
		`{"path":"/data/keys"}`:                                                "is denied",
		`{"path":"/data/k*/x"}`:                                                "is denied",
		`{"path":"/data/**/x"}`:                                                "is denied",
		`{"path":"/data/{keys,other}/x"}`:                                      "is denied",
		`{"path":"/data/{a/b,.git/x}/config"}`:                                 "is denied",
		`{"path":"/other/{a,b}"}`:                                              "is denied",
		`{"path":"/data/sub/a.pem"}`:                                           "is denied",
		`{"path":"/data/sub/.env"}`:                                            "is denied",
		`{"path":"file:///data/keys/x"}`:                                       "is denied",
		`{"path":"file://localhost/data/keys/x"}`:                              "is denied",
		`{"path":"keys/x"}`:                                                    "is denied",
		`{"PATH":"/etc/passwd"}`:                                               "is not allowed",
		`{"p":"/etc/passwd"}`:                                                  "is not allowed",
		`{"options":{"output":"/etc/passwd"}}`:                                 "is not allowed",
		`{"args":["-o","/data/keys/x"]}`:                                       "is denied",
		`{"command":"cat '/data/keys/x' | sort"}`:                              "is denied",
		`{"command":"ls\ncat /data/keys/x"}`:                                   "is denied",
		`{"p":"file:///etc/passwd"}`:                                           "is not allowed",
		`{"p":"../x"}`:                                                         "segment ..",
		`{"p":"C:\\x"}`:                                                        "is not allowed",
		`{"edits":{"/etc/passwd":"x"}}`:                                        "is not allowed",
		`{"name":".env"}`:                                                      "is denied",
		`{"p":"vscode://file/data/keys/x"}`:                                    "is denied",
		`{"path":"file://x/data/keys/x"}`:                                      "is denied",
		`{"path":"file://data/etc/passwd"}`:                                    "is not allowed",
		`{"uri":"file:///data/%zz/%2e%2e/%2e%2e/etc/passwd"}`:                  "segment ..",
		`{"uri":"file:///data/%2ezz/%6beys"}`:                                  "",
		`{"uri":"file:///data/%zz/../%6beys"}`:                                 "is denied",
		`{"repo_path":"a"}`:                                                    "is not allowed",
		`{"notebookPath":"a"}`:                                                 "is not allowed",
		`{"old-path":"a"}`:                                                     "is not allowed",
		`{"NEW_PATH":"a"}`:                                                     "is not allowed",
		`{"outputDir":"a"}`:                                                    "is not allowed",
		`{"output":"a"}`:                                                       "is not allowed",
		`{"from":"/data/a","to":"a"}`:                                          "is not allowed",
		`{"p":"/etc/pass\u0001wd"}`:                                            "control character",
		`{"path":"/data/a","pattern":"\\bTODO"}`:                               "",
		`{"path":"/data/a","pattern":"keys/*"}`:                                "is denied",
		`{"path":"/data/a","delimiter":"/","separator":".","escape":"\\n"}`:    "",
		`{"path":"/data/a","old_str":"/api/v1","newStr":"/api/v2"}`:            "",
		`{"path":"/data/a","old_string":"../x","new_string":"./x"}`:            "",
		`{"path":"/data/a","file_text":"// x","insert_text":"/x"}`:             "",
		`{"path":"/data/a","body":"/x","code":"/x","regex":"/x","query":"/x"}`: "",
		`{"path":"/"}`:                                                         "is not allowed",
		`{"path":"."}`:                                                         "is not allowed",
		`{"p":".."}`:                                                           "segment ..",
	} {
		err := s.permits(json.RawMessage(input), false)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
}

// A limit with ** allows any number of directories, and nothing beside its other segments.
func TestPatternsOfLimits(t *testing.T) {
	for _, c := range []struct {
		limit, path string
		allowed     bool
	}{
		{"/data/**/public", "/data/public/a", true},
		{"/data/**/public", "/data/x/public", true},
		{"/data/**/public/**", "/data/x/y/public/a/b", true},
		{"/data/**/public", "/data/x/y", false},
		{"/data/**/public", "/x/public", false},
		{"/data/**/*.md", "/data/a.md", true},
		{"/data/**/*.md", "/data/x/y/a.md", true},
		{"/data/**/*.md", "/data/x/y/a.txt", false},
		{"/data/*/public", "/data/x/y/public", false},
		{"/data/**/a/**/b", "/data/a/a/x/b", true},
		{"/data/**/a", "/data/**/b", false},
		{"/data/**/a", "/data/*/a", true},
	} {
		s := &server{def: &oaf.Server{Permissions: oaf.Permissions{AllowPaths: []string{c.limit}}}}
		input, err := json.Marshal(map[string]string{"path": c.path})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.permits(input, false); (err == nil) != c.allowed {
			t.Errorf("%s in %s: %v", c.path, c.limit, err)
		}
	}
}

// Symbolic links are followed where the server is a program on this computer.
func TestLinkedPaths(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"open", "closed"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"open/out": "/etc", "open/in": "closed", "alias": "open",
		"open/new": "../outside", "open/chain": "next", "open/next": "new", "open/loop": "loop",
		"open/deep": "/nowhere/a/../b"} {
		if err := os.Symlink(strings.Replace(to, "closed", filepath.Join(dir, "closed"), 1),
			filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		permissions oaf.Permissions
		path        string
		refused     bool
	}{
		"plain":                {oaf.Permissions{AllowPaths: []string{dir + "/open"}}, "open/more/file", false},
		"dangling link":        {oaf.Permissions{AllowPaths: []string{dir + "/open"}}, "open/new", true},
		"dangling links":       {oaf.Permissions{AllowPaths: []string{dir + "/open"}}, "open/chain", true},
		"dangling and denied":  {oaf.Permissions{DenyPaths: []string{dir + "/outside"}}, "open/chain", true},
		"dangling and far":     {oaf.Permissions{DenyPaths: []string{"/nowhere/b"}}, "open/deep/x", true},
		"dangling in a place":  {oaf.Permissions{AllowPaths: []string{dir}}, "open/chain", false},
		"link to itself":       {oaf.Permissions{AllowPaths: []string{dir + "/open"}}, "open/loop/x", false},
		"link out":             {oaf.Permissions{AllowPaths: []string{dir + "/open"}}, "open/out/passwd", true},
		"link to what is open": {oaf.Permissions{AllowPaths: []string{dir}}, "open/in/x", false},
		"link to what is not": {oaf.Permissions{AllowPaths: []string{dir}, DenyPaths: []string{dir + "/closed"}},
			"open/in/x", true},
		"limit is a link":  {oaf.Permissions{AllowPaths: []string{dir + "/alias"}}, "alias/x", false},
		"denied by a link": {oaf.Permissions{DenyPaths: []string{dir + "/alias"}}, "open/x", true},
	} {
		s := &server{def: &oaf.Server{Permissions: c.permissions}, program: &handler.MCPProgram{}}
		input, err := json.Marshal(map[string]string{"path": filepath.Join(dir, c.path)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.permits(input, false); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No way of writing a path leads into a denied directory: whatever is put before, between and around its segments,
// the call is refused, or the path is another one.
func TestDeniedPathProperty(t *testing.T) {
	s := &server{def: &oaf.Server{Permissions: oaf.Permissions{DenyPaths: []string{"/data/secret/**"}}}}
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"data", "secret", "x", ".", "..", "DATA", "secre?", "s*", "**", "%73ecret",
			"%zz", "{secret,x}", "a b"})
		parts := rapid.SliceOfN(part, 1, 6).Draw(t, "parts")
		separator := rapid.SampledFrom([]string{"/", "//", `\`, "/./"}).Draw(t, "separator")
		prefix := rapid.SampledFrom([]string{"/", "", "file:///", "file://localhost/", "file://x/", "x://"}).Draw(t,
			"prefix")
		input, err := json.Marshal(map[string]string{rapid.SampledFrom([]string{"path", "other"}).Draw(t,
			"member"): prefix + strings.Join(parts, separator)})
		if err != nil {
			t.Fatal(err)
		}
		refused := s.permits(input, false) != nil
		clean := filepath.Clean("/" + strings.Join(parts, "/"))
		if (clean == "/data/secret" || strings.HasPrefix(clean, "/data/secret/")) && prefix != "x://" && !refused {
			t.Fatalf("%s is permitted", input)
		}
	})
}
