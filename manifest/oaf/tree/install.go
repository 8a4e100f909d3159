package tree

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"repute"
)

// Install writes the files of an archive of agents below a directory, which it makes. The directory MUST be absent or
// empty: repute.ErrConflict otherwise, and nothing is written, because files of two archives would be one agent.
//
// With replace, every directory at the top of the archive takes the place of the one of its name as a whole, and so
// does the manifest of the archive; all else in the directory stays. What is replaced MUST be an agent or such a
// manifest, else it is repute.ErrConflict, and nothing is changed. The new files are complete before the old ones go.
func Install(dir string, files []File, replace bool, manifest string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return repute.Invalid("directory", err.Error(), "a directory that can be written")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	if len(entries) == 0 {
		return Write(dir, files, false)
	}
	if !replace {
		return repute.Conflict("%s is not empty", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer root.Close()
	tops, err := topsOf(files)
	if err != nil {
		return err
	}
	for _, top := range tops {
		if !isReplaceable(root, top, manifest) {
			return repute.Conflict("%s is no agent, so that it is not replaced", path.Join(dir, top))
		}
	}
	return swap(root, dir, tops, files)
}

// topsOf returns the names at the top of the directory that files are in, ordered.
func topsOf(files []File) ([]string, error) {
	var tops []string
	for _, f := range files {
		if !IsSafe(f.Path) {
			return nil, repute.Invalid("file", fmt.Sprintf("%.120q is no path below the directory", f.Path), "a relative path")
		}
		top, _, _ := strings.Cut(f.Path, "/")
		tops = append(tops, top)
	}
	slices.Sort(tops)
	return slices.Compact(tops), nil
}

// isReplaceable reports whether an entry of a directory is absent, the directory of an agent, or the manifest of an
// archive. A symbolic link is none of them.
func isReplaceable(root *os.Root, top, manifest string) bool {
	info, err := root.Lstat(top)
	switch {
	case err != nil:
		return errors.Is(err, fs.ErrNotExist)
	case info.Mode().IsRegular():
		return top == manifest
	case !info.IsDir():
		return false
	}
	agent, err := root.Lstat(path.Join(top, "AGENTS.md"))
	return err == nil && agent.Mode().IsRegular()
}

// swap writes files to a directory of their own, and then moves each entry of its top to the place of the old one.
func swap(root *os.Root, dir string, tops []string, files []File) error {
	work := ".unpack-" + rand.Text()
	if err := root.MkdirAll(work+"/old", 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	defer root.RemoveAll(work) //nolint:errcheck // what cannot be removed is in nobody's way
	if err := root.Mkdir(work+"/new", 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	if err := Write(path.Join(dir, work, "new"), files, false); err != nil {
		return err
	}
	for _, top := range tops {
		err := root.Rename(top, path.Join(work, "old", top))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = root.Rename(path.Join(work, "new", top), top)
		}
		if err != nil {
			return fmt.Errorf("replace %s: %w", top, err)
		}
	}
	return nil
}
