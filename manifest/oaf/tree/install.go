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

// Install writes the files of an archive of agents below a directory, which it creates. Without replace, a directory
// that is not empty is repute.ErrConflict, and nothing is written, because files of two archives would mix.
//
// With replace, every top-level directory of the archive replaces the directory of its name, and the archive's
// manifest file, whose name is manifest, replaces the old one. Other entries stay. A replaced directory MUST contain
// the same agent and no data of version control: repute.ErrConflict otherwise, and nothing is changed. agentOf
// returns the id of the agent in a directory, "" for none. All new files are written before the first old entry is
// moved. Where a later move fails, entries that were replaced before stay so.
func Install(dir string, files []File, replace bool, manifest string,
	agentOf func(fsys fs.FS, dir string) string) error {
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
	archive, err := FS(files)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	for _, top := range tops {
		isSame := func() bool {
			id := agentOf(archive, top)
			return id != "" && agentOf(root.FS(), top) == id
		}
		if err := replaceable(root, top, manifest, isSame); err != nil {
			return fmt.Errorf("%s is not replaced: %w", path.Join(dir, top), err)
		}
	}
	return swap(root, dir, tops, files)
}

// topsOf returns the names at the top of the directory that files are in, ordered.
func topsOf(files []File) ([]string, error) {
	var tops []string
	for _, f := range files {
		if !IsSafe(f.Path) {
			return nil, repute.Invalid("file", fmt.Sprintf("%.120q is no path below the directory", f.Path),
				"a relative path")
		}
		top, _, _ := strings.Cut(f.Path, "/")
		tops = append(tops, top)
	}
	slices.Sort(tops)
	return slices.Compact(tops), nil
}

// replaceable returns repute.ErrConflict for an entry of a directory that is neither absent, nor the manifest of an
// archive, nor the directory of the same agent. A symbolic link is none of them.
// The same agent is asked for last, since agentOf has to parse both.
func replaceable(root *os.Root, top, manifest string, isSame func() bool) error {
	info, err := root.Lstat(top)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular() && top == manifest:
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", top, err)
	case !info.IsDir():
		return repute.Conflict("it is no directory of an agent")
	}
	agent, err := root.Lstat(path.Join(top, "AGENTS.md"))
	if err != nil || !agent.Mode().IsRegular() || !isSame() {
		return repute.Conflict("it does not contain the same agent as the archive")
	}
	return fs.WalkDir(root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		if err == nil && isIgnored(d.Name()) && d.Name() != ".DS_Store" {
			err = repute.Conflict("it contains %s, which the archive does not have and which would be lost", name)
		}
		return err
	})
}

// swap writes files to a directory of their own, and then moves each entry of its top to the place of the old one.
//
// Everything is in one file system below dir, so that a move is a rename. A crash leaves the directory .unpack-… with
// the old and the new entries, and each entry of the top is then either the old or the new one, or absent between two
// renames.
func swap(root *os.Root, dir string, tops []string, files []File) error {
	work := ".unpack-" + rand.Text()
	if err := root.MkdirAll(work+"/old", 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	// lost keeps the work directory: it has the only copy of an old entry that could not be moved back.
	lost := false
	defer func() {
		if !lost {
			_ = root.RemoveAll(work) // best effort: later installs use another name
		}
	}()
	if err := root.Mkdir(work+"/new", 0o755); err != nil {
		return fmt.Errorf("write %s: %w", dir, err)
	}
	if err := Write(path.Join(dir, work, "new"), files, false); err != nil {
		return err
	}
	for _, top := range tops {
		if err := move(root, work, top); err != nil {
			_, gone := root.Lstat(top)
			_, kept := root.Lstat(path.Join(work, "old", top))
			if lost = gone != nil && kept == nil; lost {
				return fmt.Errorf("replace %s: %w: the old one is in %s", top, err, path.Join(dir, work, "old"))
			}
			return fmt.Errorf("replace %s: %w", top, err)
		}
	}
	return nil
}

// move puts a new entry in the place of the old one. After an error the old one is back, unless that fails as well.
func move(root *os.Root, work, top string) error {
	old := path.Join(work, "old", top)
	err := root.Rename(top, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	had := err == nil
	if err = root.Rename(path.Join(work, "new", top), top); err != nil && had {
		err = errors.Join(err, root.Rename(old, top))
	}
	return err
}
