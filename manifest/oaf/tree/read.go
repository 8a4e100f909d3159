package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"repute/manifest/oaf/problem"
)

// Limits of one agent's directory. Published agents have fewer than 50 files and 1 MiB.
const (
	// maxBytes and maxFile are in bytes, maxDepth in levels below the directory.
	maxFiles    = 2_000
	maxBytes    = 64 << 20
	maxFile     = 8 << 20
	MaxManifest = 1 << 20 // of AGENTS.md and SKILL.md
	maxDepth    = 16
)

// Budget is what may still be read. Agents that are read together share one.
// It goes below zero once it is used up, and stays there. It is not safe for concurrent use.
type Budget struct {
	files int
	bytes int64
}

// NewBudget returns the budget of one agent and its sub-agents, or of all agents of an archive.
func NewBudget() *Budget { return &Budget{files: maxFiles, bytes: maxBytes} }

// Take counts one file of so many bytes that is read without Read. It reports whether the budget has room for it.
func (b *Budget) Take(bytes int64) bool {
	b.files--
	b.bytes -= bytes
	return b.files >= 0 && b.bytes >= 0
}

// Read returns all files below a directory, ordered by path. It never follows a symbolic link, and reports and leaves
// out what is over a limit. Problems are placed below the directory.
//
// Once the budget is used up nothing more is read. The order of reading is that of the directory, so that the same
// files are left out each time.
func Read(fsys fs.FS, dir string, budget *Budget, l *problem.List) []File {
	r := &reader{fsys: fsys, dir: dir, list: l, budget: budget}
	r.walk(dir, 0)
	slices.SortFunc(r.files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return r.files
}

// reader collects the files of one directory.
type reader struct {
	fsys  fs.FS
	dir   string
	list  *problem.List
	files []File
	// full stops the walk: the budget is used up, and has been reported once.
	full bool

	budget *Budget
}

// below returns a path relative to the directory that is read.
func (r *reader) below(name string) string {
	if r.dir == "." {
		return name
	}
	return strings.TrimPrefix(name, r.dir+"/")
}

// isIgnored reports whether an entry is no part of an agent: the data of version control.
func isIgnored(name string) bool {
	return name == ".git" || name == ".hg" || name == ".svn" || name == ".DS_Store"
}

// walk reads a directory and those below it within the limits. What cannot be read is reported and left out, so that
// one bad file does not hide the others.
func (r *reader) walk(dir string, depth int) {
	entries, err := fs.ReadDir(r.fsys, dir)
	if err != nil {
		r.list.Add(problem.CodeUnreadable, problem.Place{File: r.below(dir)}, "%s", reason(err))
		return
	}
	for _, entry := range entries {
		if r.full {
			return
		}
		name := path.Join(dir, entry.Name())
		switch {
		case isIgnored(entry.Name()):
		case !IsSafe(r.below(name)):
			r.list.Add(problem.CodePath, problem.Place{File: visible(r.below(name))}, "is no portable path")
		case entry.Type()&fs.ModeType != 0 && !entry.IsDir():
			r.list.Add(problem.CodeSymlink, problem.Place{File: r.below(name)}, "is a %s", kindOf(entry.Type()))
		case entry.IsDir() && depth >= maxDepth:
			r.list.Add(problem.CodeTooManyFiles, problem.Place{File: r.below(name)}, "is nested deeper than %d levels",
				maxDepth)
		case entry.IsDir():
			r.walk(name, depth+1)
		default:
			r.file(name)
		}
	}
}

// kindOf names what a directory entry is that is neither a file nor a directory.
func kindOf(mode fs.FileMode) string {
	if mode&fs.ModeSymlink != 0 {
		return "symbolic link"
	}
	return "special file"
}

// file reads one file within the limits.
func (r *reader) file(name string) {
	at := problem.Place{File: r.below(name)}
	if r.budget.files--; r.budget.files < 0 {
		r.list.Add(problem.CodeTooManyFiles, at, "more than %d files: this one and later ones are not read", maxFiles)
		r.full = true
		return
	}
	limit := int64(maxFile)
	if base := path.Base(name); base == "AGENTS.md" || base == "SKILL.md" {
		limit = MaxManifest
	}
	f, err := ReadFile(r.fsys, name, limit)
	switch {
	case errors.Is(err, errTooLarge):
		r.list.Add(problem.CodeFileTooLarge, at, "has more than %d bytes", limit)
		return
	case err != nil:
		r.list.Add(problem.CodeUnreadable, at, "%s", reason(err))
		return
	}
	if r.budget.bytes -= int64(len(f.Data)); r.budget.bytes < 0 {
		r.list.Add(problem.CodeTooManyFiles, at, "more than %d bytes: this file and later ones are not read",
			int64(maxBytes))
		r.full = true
		return
	}
	f.Path = r.below(name)
	r.files = append(r.files, f)
}

// errTooLarge is returned by ReadFile for a file above its limit. It is not exported: callers in this package name the
// limit in a problem, and others show the error.
var errTooLarge = errors.New("too large")

// ReadFile reads one file of at most limit bytes, without its path.
// The limit is kept while reading and not by the size that the file system reports, as a file may grow.
func ReadFile(fsys fs.FS, name string, limit int64) (File, error) {
	in, err := fsys.Open(name)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("%s is no file", name)
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return File{}, err
	}
	if int64(len(data)) > limit {
		return File{}, errTooLarge
	}
	return File{Data: data, Executable: info.Mode()&0o111 != 0}, nil
}

// IsSafe reports whether a relative path stays below its directory on every system: no .., no absolute path, no
// backslash, no drive, no control character.
func IsSafe(name string) bool {
	if name == "" || !utf8.ValidString(name) || !fs.ValidPath(name) || name == "." {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\\' || r == ':' || r == 0x7f })
}

// Misspelled returns the file among files that differs from a wanted name in letter case alone; "" for none.
func Misspelled(files []File, name string) string {
	at := slices.IndexFunc(files, func(f File) bool { return f.Path != name && strings.EqualFold(f.Path, name) })
	if at < 0 {
		return ""
	}
	return files[at].Path
}

// visible returns a path for a message.
func visible(name string) string {
	if len(name) > 120 {
		name = name[:120]
	}
	return strings.ToValidUTF8(name, "\ufffd")
}

// reason returns why an operation failed without the path, which the problem has.
func reason(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err.Error()
	}
	return fmt.Sprintf("%.120s", err.Error())
}
