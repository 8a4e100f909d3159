package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"repute"
)

// below lists the files of a directory.
func below(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir)+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// place writes files with their own names as contents.
func place(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// What an archive may take the place of is an agent or the manifest of an archive. A refusal changes nothing.
func TestInstall(t *testing.T) {
	const manifest = "PACKAGE.yaml"
	// The first letter of an AGENTS.md is the id of its agent here.
	agentOf := func(fsys fs.FS, dir string) string {
		text, err := fs.ReadFile(fsys, dir+"/AGENTS.md")
		if err != nil || len(text) == 0 {
			return ""
		}
		return string(text[:1])
	}
	files := []File{{Path: "a/AGENTS.md", Data: []byte("a new")}, {Path: "a/docs/b.md"}, {Path: manifest}}
	for _, tc := range []struct {
		name    string
		files   []File
		have    []string
		replace bool
		err     error
		want    string
	}{
		{"absent", files, nil, false, nil, "PACKAGE.yaml a/AGENTS.md a/docs/b.md"},
		{"absent and replaced", files, nil, true, nil, "PACKAGE.yaml a/AGENTS.md a/docs/b.md"},
		{"not empty", files, []string{"x"}, false, repute.ErrConflict, "x"},
		{"another agent", files, []string{"x", "b/AGENTS.md"}, true, nil,
			"PACKAGE.yaml a/AGENTS.md a/docs/b.md b/AGENTS.md x"},
		{"the agent", files, []string{manifest, "a/AGENTS.md", "a/old", "a/docs/old"}, true, nil,
			"PACKAGE.yaml a/AGENTS.md a/docs/b.md"},
		{"another agent of the name", []File{{Path: "a/AGENTS.md", Data: []byte("b")}}, []string{"a/AGENTS.md"}, true,
			repute.ErrConflict, "a/AGENTS.md"},
		{"no agent in the archive", []File{{Path: "a/x"}}, []string{"a/AGENTS.md"}, true, repute.ErrConflict,
			"a/AGENTS.md"},
		{"a repository", files, []string{"a/AGENTS.md", "a/.git/config"}, true, repute.ErrConflict,
			"a/.git/config a/AGENTS.md"},
		{"a repository below", files, []string{"a/AGENTS.md", "a/docs/.hg"}, true, repute.ErrConflict,
			"a/AGENTS.md a/docs/.hg"},
		{"no agent", files, []string{manifest, "a/old"}, true, repute.ErrConflict, "PACKAGE.yaml a/old"},
		{"no manifest", []File{{Path: "x"}, {Path: "a/AGENTS.md"}}, []string{"x", "a/AGENTS.md"}, true,
			repute.ErrConflict, "a/AGENTS.md x"},
		{"unsafe", []File{{Path: "../x"}}, []string{"x"}, true, repute.ErrInvalid, "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			if tc.have != nil {
				place(t, dir, tc.have...)
			}
			err := Install(dir, tc.files, tc.replace, manifest, agentOf)
			if got := below(t, dir); !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) ||
				strings.Join(got, " ") != tc.want {
				t.Errorf("%v, %q, want %v, %s", err, got, tc.err, tc.want)
			}
			if entries, _ := os.ReadDir(dir); slices.ContainsFunc(entries,
				func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".unpack") }) {
				t.Error("the directory of the work is left")
			}
		})
	}
	dir := t.TempDir()
	other := t.TempDir()
	place(t, other, "AGENTS.md")
	if err := os.Symlink(other, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := Install(dir, files, true, manifest, agentOf); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a symbolic link was replaced: %v", err)
	}
}

// What cannot be replaced stays: an old agent is put back where the new one cannot take its place.
func TestFailedMove(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, "a/AGENTS.md", "work/old/x")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := move(root, "work", "a"); !errors.Is(err, fs.ErrNotExist) { // there is no new one
		t.Error(err)
	}
	if got := strings.Join(below(t, dir), " "); got != "a/AGENTS.md work/old/x" {
		t.Errorf("files %s", got)
	}
}
