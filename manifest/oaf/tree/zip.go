package tree

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"repute"
	"repute/manifest/oaf/problem"
)

// Limits of an archive. Text compresses by ten; an archive that unpacks to two hundred times its size is a bomb.
const (
	MaxArchive   = 64 << 20
	maxUnpacked  = 4 * maxBytes
	maxEntries   = 4 * maxFiles
	maxRatio     = 200
	freeOfRatios = 1 << 20 // bytes; less harms nobody, however well it compresses
)

// OpenZip returns the file system of an archive whose entries are all safe to unpack; nil, with the reasons, for any
// other.
func OpenZip(b []byte, l *problem.List) fs.FS {
	if len(b) > MaxArchive {
		l.Add(problem.CodeBomb, problem.Place{}, "has %d bytes, at most %d are read", len(b), MaxArchive)
		return nil
	}
	// The reader reports unsafe names as an error that comes with an archive; isSafeZip names them one by one.
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if archive == nil || err != nil && len(archive.File) == 0 {
		l.Add(problem.CodeArchive, problem.Place{}, "%.120s", err)
		return nil
	}
	if !isSafeZip(archive.File, l) {
		return nil
	}
	return archive
}

// isSafeZip checks the directory of an archive, and reports every entry that is not safe.
func isSafeZip(entries []*zip.File, l *problem.List) bool {
	before := l.Len()
	if len(entries) > maxEntries {
		l.Add(problem.CodeBomb, problem.Place{}, "has %d entries, at most %d are read", len(entries), maxEntries)
		return false
	}
	var packed, unpacked uint64
	seen := map[string]bool{}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name, "/")
		at := problem.Place{File: visible(name)}
		// Names that differ in case only are one file on some systems.
		folded := strings.ToLower(name)
		switch mode := e.Mode(); {
		case !IsSafe(name):
			l.Add(problem.CodePath, at, "the archive has an entry whose path leaves it or is not portable")
		case mode&fs.ModeType != 0 && !mode.IsDir():
			l.Add(problem.CodeSymlink, at, "the archive has a %s", kindOf(mode))
		case seen[folded]:
			l.Add(problem.CodeDuplicateFile, at, "the archive has two entries of this name")
		}
		seen[folded] = true
		packed, unpacked = packed+e.CompressedSize64, unpacked+e.UncompressedSize64
		if e.UncompressedSize64 > maxUnpacked || unpacked > maxUnpacked ||
			unpacked > freeOfRatios && unpacked/maxRatio > packed {
			l.Add(problem.CodeBomb, at, "unpacks to more than %d bytes or %d times its size", maxUnpacked, maxRatio)
			return false
		}
	}
	return l.Len() == before
}

// epoch is the time of every entry that Zip writes, so that equal files make equal archives. It is the first that the
// format can hold.
func epoch() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }

// Zip writes an archive of files, ordered by path. Equal files make equal bytes.
func Zip(w io.Writer, files []File) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	out := zip.NewWriter(w)
	seen := map[string]string{}
	for _, f := range files {
		folded := strings.ToLower(f.Path)
		if !IsSafe(f.Path) {
			return fmt.Errorf("pack %.120q: not a path below the directory", f.Path)
		}
		if other, twice := seen[folded]; twice {
			return repute.Invalid(f.Path, fmt.Sprintf("%.120q is one file with it on some systems", other),
				"names that differ in more than letter case")
		}
		seen[folded] = f.Path
		header := &zip.FileHeader{Name: f.Path, Method: zip.Deflate, Modified: epoch()}
		header.SetMode(f.mode())
		entry, err := out.CreateHeader(header)
		if err != nil {
			return fmt.Errorf("pack %s: %w", f.Path, err)
		}
		if _, err := entry.Write(f.Data); err != nil {
			return fmt.Errorf("pack %s: %w", f.Path, err)
		}
	}
	return out.Close()
}

// mode returns the permissions in an archive. Only whether a file is executable is carried: the rest is of the machine
// that packed it.
func (f File) mode() fs.FileMode {
	if f.Executable {
		return 0o755
	}
	return 0o644
}

// Within returns the files with dir before their paths. A path that leaves its directory stays one that is not safe.
func Within(dir string, files []File) []File {
	out := make([]File, len(files))
	for i, f := range files {
		f.Path = dir + "/" + f.Path
		out[i] = f
	}
	return out
}

// FS returns a file system of files, for code that reads what it wrote.
func FS(files []File) (fs.FS, error) {
	var b bytes.Buffer
	if err := Zip(&b, files); err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
}
