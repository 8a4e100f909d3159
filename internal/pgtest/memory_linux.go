package pgtest

import (
	"os"
	"syscall"
)

// parent returns the directory of the shared server's files: memory where at least 8 GiB of it may hold files, unless
// TMPDIR names another place. A database is about 600 files, and each test makes one: in memory this takes a tenth of
// the time that it takes on a disk.
func parent() string {
	const (
		memory   = "/dev/shm"
		smallest = 8 << 30
	)
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &s) != nil || s.Blocks*uint64(s.Bsize) < smallest {
		return os.TempDir()
	}
	return memory
}
