package pg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Exists tells whether a server's files are in dir, running or not.
func Exists(dir string) bool {
	c := cluster{dir: dir}
	return c.version() != ""
}

// Running gives the URL of a server that some process runs in dir, and whether
// there seems to be one: it reads what that server left in its files and does
// not connect.
func Running(dir string) (string, bool) {
	c := cluster{dir: dir}
	pid, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return "", false
	}
	password, err := c.password()
	lines := strings.Split(string(pid), "\n") // pid, data directory, start time, port, …
	if err != nil || len(lines) < 4 {
		return "", false
	}
	port, err := strconv.Atoi(strings.TrimSpace(lines[3]))
	if err != nil {
		return "", false
	}
	return serverURL(port, password), true
}
