package tree

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute/manifest/oaf/problem"
)

// foreign makes an archive of names as they are, each with its name as its text.
func foreign(t interface{ Fatal(args ...any) }, names ...string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		out, err := w.Create(name)
		if err == nil && !strings.HasSuffix(name, "/") {
			_, err = io.WriteString(out, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// paths returns names of entries, good and bad.
func paths() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[a-c./\\:]{1,8}`), rapid.StringMatching(`[a-c]{1,2}(/[a-c]{1,2}){0,3}`),
		rapid.SampledFrom([]string{"..", "../x", "a/../b", "/a", "a//b", "a/./b", "C:/x", `a\b`, "a\x00", "a\nb",
			"\xff", "", ".", "a/"}))
}

// A safe path stays below its directory by the rules of this system, and by those of others.
func TestSafePathsAreLocal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := paths().Draw(t, "name")
		if IsSafe(name) && (!filepath.IsLocal(name) || strings.ContainsAny(name, "\\:\x00\n") || !fs.ValidPath(name)) {
			t.Fatalf("%q is safe", name)
		}
	})
}

// An archive is read as a whole or not at all: each entry is there with its bytes, or the archive is refused and a
// problem says why. What is read can be written.
func TestArchivesAreReadWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(paths(), 0, 4).Draw(t, "names")
		l := &problem.List{}
		fsys := OpenZip(foreign(t, names...), l)
		if fsys == nil {
			if l.Len() == 0 {
				t.Fatalf("%q is refused without a reason", names)
			}
			return
		}
		files := Read(fsys, ".", NewBudget(), l)
		if l.Len() > 0 {
			return // an entry that is a file and a directory cannot be read, and says so
		}
		var got, want []string
		for _, f := range files {
			got = append(got, f.Path)
			if string(f.Data) != f.Path {
				t.Fatalf("%q has %q", f.Path, f.Data)
			}
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "/") {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("read %q of %q", got, want)
		}
		below, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(below, files, false); err != nil {
			t.Fatal(err)
		}
	})
}

// Sizes that an archive claims are not believed: reading ends at the limit, whatever its directory says.
func TestClaimedSizesAreNotBelieved(t *testing.T) {
	t.Parallel()
	b := foreign(t, "a")
	at := bytes.LastIndex(b, []byte("PK\x01\x02"))
	if at < 0 {
		t.Fatal("no directory in the archive")
	}
	for _, size := range []uint32{0, 2, 1 << 30, 1<<32 - 1} {
		lying := bytes.Clone(b)
		for i := range 4 {
			lying[at+24+i] = byte(size >> (8 * i)) // the uncompressed size in the directory of the archive
		}
		l := &problem.List{}
		fsys := OpenZip(lying, l)
		if fsys == nil {
			continue
		}
		for _, f := range Read(fsys, ".", NewBudget(), l) {
			if len(f.Data) > 1 {
				t.Errorf("size %d: %d bytes are read", size, len(f.Data))
			}
		}
		if l.Len() == 0 {
			t.Errorf("size %d is taken", size)
		}
	}
}

// Many small archives in one are no way around the limits: an archive within is a file.
func TestNestedArchivesAreFiles(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	inner := foreign(t, "../../x")
	if err := Zip(&b, []File{{Path: "inner.zip", Data: inner}}); err != nil {
		t.Fatal(err)
	}
	l := &problem.List{}
	files := Read(OpenZip(b.Bytes(), l), ".", NewBudget(), l)
	if len(files) != 1 || !bytes.Equal(files[0].Data, inner) || l.Len() > 0 {
		t.Errorf("%d files, %v", len(files), l.Problems())
	}
}

// Limits of an archive hold at their edges.
func TestArchiveLimits(t *testing.T) {
	t.Parallel()
	names := make([]string, maxEntries+1)
	for i := range names {
		names[i] = fmt.Sprint("f", i)
	}
	for _, tc := range []struct {
		name string
		b    []byte
		code string
	}{
		{"as many entries as are read", foreign(t, names[:maxEntries]...), ""},
		{"one more", foreign(t, names...), problem.CodeBomb},
		{"too large", make([]byte, MaxArchive+1), problem.CodeBomb},
		{"zeros that are few", zeros(t, freeOfRatios), ""},
		{"zeros", zeros(t, 4*freeOfRatios), problem.CodeBomb},
		{"empty", foreign(t), ""},
		{"nothing", nil, problem.CodeArchive},
		{"text", []byte("# Rules\n"), problem.CodeArchive},
	} {
		l := &problem.List{}
		fsys := OpenZip(tc.b, l)
		got := ""
		if l.Len() > 0 {
			got = l.Problems()[0].Code
		}
		if got != tc.code || (fsys == nil) != (tc.code != "") {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.code)
		}
	}
}

// zeros is an archive of one file with n zero bytes.
func zeros(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Zip(&b, []File{{Path: "zeros", Data: make([]byte, n)}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
