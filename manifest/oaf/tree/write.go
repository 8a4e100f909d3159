package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"repute"
)

// Write writes files below an existing directory. It never leaves the directory, also where that has symbolic links,
// and replaces a file only if replace is set: otherwise an existing file is repute.ErrConflict, and nothing is written.
func Write(dir string, files []File, replace bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer root.Close()
	if err := check(root, files, replace); err != nil {
		return err
	}
	for _, f := range files {
		if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
		if err := root.WriteFile(f.Path, f.Data, f.mode()); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

// check reports files that cannot be written before any is.
func check(root *os.Root, files []File, replace bool) error {
	for _, f := range files {
		if !IsSafe(f.Path) {
			return repute.Invalid("file", fmt.Sprintf("%.120q is no path below the directory", f.Path),
				"a relative path")
		}
		_, err := root.Lstat(f.Path)
		switch {
		case err == nil && !replace:
			return repute.Conflict("%s exists already", f.Path)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}
