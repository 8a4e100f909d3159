package tree

import (
	"errors"
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
	files := []File{{Path: "a/AGENTS.md", Data: []byte("new")}, {Path: "a/docs/b.md"}, {Path: manifest}}
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
		{"another agent", files, []string{"x", "b/AGENTS.md"}, true, nil, "PACKAGE.yaml a/AGENTS.md a/docs/b.md b/AGENTS.md x"},
		{"the agent", files, []string{manifest, "a/AGENTS.md", "a/old", "a/docs/old"}, true, nil, "PACKAGE.yaml a/AGENTS.md a/docs/b.md"},
		{"no agent", files, []string{manifest, "a/old"}, true, repute.ErrConflict, "PACKAGE.yaml a/old"},
		{"no manifest", []File{{Path: "x"}, {Path: "a/AGENTS.md"}}, []string{"x", "a/AGENTS.md"}, true, repute.ErrConflict, "a/AGENTS.md x"},
		{"unsafe", []File{{Path: "../x"}}, []string{"x"}, true, repute.ErrInvalid, "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			if tc.have != nil {
				place(t, dir, tc.have...)
			}
			err := Install(dir, tc.files, tc.replace, manifest)
			if got := below(t, dir); !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) || strings.Join(got, " ") != tc.want {
				t.Errorf("%v, %q, want %v, %s", err, got, tc.err, tc.want)
			}
			if entries, _ := os.ReadDir(dir); slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".unpack") }) {
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
	if err := Install(dir, files, true, manifest); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a symbolic link was replaced: %v", err)
	}
}
