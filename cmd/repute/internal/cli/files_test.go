package cli

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute"
)

// A file has its old content or the whole new one, and a failed command leaves nothing beside it.
func TestWriteFileReplacesAsAWhole(t *testing.T) {
	t.Parallel()
	p, dir := &Program{}, t.TempDir()
	name := filepath.Join(dir, "out")
	broken := errors.New("broken")
	for _, step := range []struct {
		write string
		fails error
		want  string
	}{{"one", nil, "one"}, {"two", broken, "one"}, {"three", nil, "three"}} {
		err := p.WriteFile(name, func(w io.Writer) error {
			_, err := io.WriteString(w, step.write)
			return errors.Join(err, step.fails)
		})
		if !errors.Is(err, step.fails) {
			t.Fatalf("%s: %v", step.write, err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != step.want {
			t.Errorf("after %s the file has %q (%v)", step.write, got, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the directory has %v (%v)", files, err)
	}
}

// A link stays a link: the file that it leads to is replaced.
func TestWriteFileFollowsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to, link := filepath.Join(dir, "to.gz"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(to, nil, 0o600), os.Symlink(to, link)); err != nil {
		t.Fatal(err)
	}
	err := (&Program{}).WriteFile(link, func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := os.Readlink(link); err != nil || at != to {
		t.Errorf("the link leads to %q (%v)", at, err)
	}
	file, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in, err := Decompressed(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || string(got) != "text" {
		t.Errorf("the file has %q (%v)", got, err)
	}
}

// What has more bytes than allowed is refused and not cut: the rest would be signed, sent or paid for as the whole.
func TestReadInputRefusesWhatItWouldCut(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, fits := range map[int64]bool{4: false, 5: true, 6: true} {
		for _, from := range []string{name, "-"} {
			p := &Program{Stdin: strings.NewReader("12345")}
			b, err := p.ReadInput("data", from, most)
			if fits && (err != nil || string(b) != "12345") || !fits && !errors.Is(err, repute.ErrInvalid) {
				t.Errorf("%s with at most %d bytes: %q, %v", from, most, b, err)
			}
		}
	}
	if _, err := (&Program{}).ReadInput("data", name+"x", 5); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A key that is there is never overwritten.
func TestWriteNewNeverReplaces(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "key")
	if err := WriteNew(name, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteNew(name, []byte("second"), 0o600); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("the file exists: %v", err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "first" {
		t.Errorf("the file has %q (%v)", got, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
}

// A file that begins like gzip and is none is an error, and every other one is read as it is.
func FuzzDecompressed(f *testing.F) {
	var zip bytes.Buffer
	w := gzip.NewWriter(&zip)
	_, _ = w.Write([]byte("text"))
	_ = w.Close()
	for _, b := range [][]byte{nil, []byte("text"), zip.Bytes(), zip.Bytes()[:9], {0x1f}, {0x1f, 0x8b}} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := Decompressed(bytes.NewReader(b))
		zipped := bytes.HasPrefix(b, []byte{0x1f, 0x8b})
		if err != nil {
			if !zipped {
				t.Fatalf("plain bytes: %v", err)
			}
			return
		}
		got, err := io.ReadAll(io.LimitReader(in, 1<<20))
		if !zipped && (err != nil || !bytes.Equal(got, b)) {
			t.Fatalf("plain bytes changed: %q, %v", got, err)
		}
	})
}
