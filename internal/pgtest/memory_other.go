//go:build !linux

package pgtest

import "os"

// parent returns the directory of the shared server's files.
func parent() string { return os.TempDir() }
