package tree

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"

	"repute"
	"repute/manifest/oaf/problem"
)

func codes(l *problem.List) []string {
	var out []string
	for _, p := range l.Problems() {
		out = append(out, p.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestReadIsBounded(t *testing.T) {
	many := fstest.MapFS{}
	for i := range maxFiles + 5 {
		many["f"+strconv.Itoa(i)] = &fstest.MapFile{Data: []byte("x")}
	}
	deep := fstest.MapFS{"a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s": {Data: []byte("x")}}
	heavy := fstest.MapFS{}
	for i := range 10 {
		heavy["f"+strconv.Itoa(i)] = &fstest.MapFile{Data: make([]byte, maxFile)}
	}
	for _, tc := range []struct {
		name  string
		files fstest.MapFS
		read  int
		codes []string
	}{
		{"many", many, maxFiles, []string{"EO703"}},
		{"deep", deep, 0, []string{"EO703"}},
		{"heavy", heavy, maxBytes / maxFile, []string{"EO703"}},
		{"large", fstest.MapFS{"a": {Data: make([]byte, maxFile+1)}, "b": {}}, 1, []string{"EO702"}},
		{"large manifest", fstest.MapFS{"AGENTS.md": {Data: make([]byte, MaxManifest+1)}}, 0, []string{"EO702"}},
		{"version control", fstest.MapFS{".git/config": {}, "a": {}}, 1, nil},
		{"names", fstest.MapFS{`a\b`: {}, "a:b": {}, "a": {}}, 1, []string{"EO704"}},
		{"device", fstest.MapFS{"a": {Mode: os.ModeNamedPipe}}, 0, []string{"EO705"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &problem.List{}
			if got := Read(tc.files, ".", NewBudget(), l); len(got) != tc.read || !slices.Equal(codes(l), tc.codes) {
				t.Errorf("%d files, codes %v, want %d and %v", len(got), codes(l), tc.read, tc.codes)
			}
		})
	}
}

// Agents that are read together share one budget.
func TestBudgetIsShared(t *testing.T) {
	budget, l := NewBudget(), &problem.List{}
	files := fstest.MapFS{}
	for i := range maxFiles/2 + 1 {
		files["f"+strconv.Itoa(i)] = &fstest.MapFile{}
	}
	first, second := Read(files, ".", budget, l), Read(files, ".", budget, l)
	if len(first)+len(second) != maxFiles || !slices.Equal(codes(l), []string{"EO703"}) {
		t.Errorf("%d and %d files, codes %v", len(first), len(second), codes(l))
	}
}

func TestWriteNeverLeavesItsDirectory(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../x", "/x", "link/x", `a\b`, ".."} {
		if err := Write(dir, []File{{Path: "ok"}, {Path: name, Data: []byte("x")}}, true); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside are %v, %v", entries, err)
	}
}

func TestWriteReplacesOnlyIfAsked(t *testing.T) {
	dir := t.TempDir()
	files := []File{{Path: "a/b", Data: []byte("1")}, {Path: "c", Data: []byte("2"), Executable: true}}
	if err := Write(dir, files[1:], false); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, files, false); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a second write: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("a refused write wrote a file")
	}
	if err := Write(dir, files, true); err != nil {
		t.Fatal(err)
	}
	if got := Read(os.DirFS(dir), ".", NewBudget(), &problem.List{}); len(got) != 2 || !got[1].Executable ||
		string(got[0].Data) != "1" {
		t.Errorf("read %+v", got)
	}
}

func TestZipKeepsFiles(t *testing.T) {
	files := []File{{Path: "b", Data: []byte("2"), Executable: true}, {Path: "a/c", Data: []byte("1")}}
	var x, y bytes.Buffer
	if err := errors.Join(Zip(&x, files), Zip(&y, []File{files[1], files[0]})); err != nil || !bytes.Equal(x.Bytes(),
		y.Bytes()) {
		t.Fatalf("archives of one directory differ: %v", err)
	}
	l := &problem.List{}
	got := Read(OpenZip(x.Bytes(), l), ".", NewBudget(), l)
	if len(got) != 2 || got[0].Path != "a/c" || !got[1].Executable || got[0].Executable || l.Len() > 0 {
		t.Errorf("read %+v, %v", got, l.Problems())
	}
	if err := Zip(&x, []File{{Path: "../x"}}); err == nil {
		t.Error("an unsafe path was packed")
	}
}
