package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"

	"repute/internal/pg"
)

// watchdog ends server $2 of directory $1 once nobody holds the users lock, and
// itself when that server is gone. Test processes hold the lock as long as they
// live, however they end.
const watchdog = `
while sleep 300 && [ "$(readlink "/proc/$2/cwd")" = "$1/server/data" ]; do
	flock --nonblock --exclusive "$1/users" kill -INT "$2" && exit
done`

// sharedServer gives the URL of the server that all test processes of this
// user share, and starts it when none answers. The server may be ended once the
// lock is released, so the caller keeps it as long as the process lives.
func sharedServer(ctx context.Context) (string, *flock.Flock, error) {
	dir := filepath.Join(parent(), fmt.Sprintf("repute-pgtest-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	users := flock.New(filepath.Join(dir, "users"))
	if _, err := users.TryRLockContext(ctx, 20*time.Millisecond); err != nil {
		return "", nil, fmt.Errorf("register as a user of the test server: %w", err)
	}
	starting := flock.New(filepath.Join(dir, "starting"))
	if _, err := starting.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", nil, fmt.Errorf("wait for the test server's start: %w", err)
	}
	defer starting.Unlock()
	urlFile := filepath.Join(dir, "url")
	if b, err := os.ReadFile(urlFile); err == nil && answers(ctx, string(b)) {
		return string(b), users, nil
	}
	url, err := startShared(ctx, dir, urlFile)
	return url, users, err
}

func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false
	}
	return conn.Close(ctx) == nil
}

// startShared starts a server that trades durability for speed and outlives
// this process.
func startShared(ctx context.Context, dir, urlFile string) (string, error) {
	s, err := pg.Start(ctx, pg.Options{
		Dir:     filepath.Join(dir, "server"),
		Outlive: true,
		Settings: map[string]string{
			"fsync":              "off",
			"synchronous_commit": "off",
			"full_page_writes":   "off",
			"autovacuum":         "off", // plans in tests depend on analyze only
			"max_connections":    "500",
			"max_wal_size":       "256MB", // of memory, where the files are in memory
		},
	})
	if err != nil {
		return "", err
	}
	if err := watch(dir); err != nil {
		return "", err
	}
	return s.URL(), os.WriteFile(urlFile, []byte(s.URL()), 0o600)
}

// watch starts the watchdog. Where flock(1) is missing the server stays until
// the machine restarts.
func watch(dir string) error {
	if _, err := exec.LookPath("flock"); err != nil {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(dir, "server", "data", "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("find the test server's process: %w", err)
	}
	pid, _, _ := strings.Cut(string(b), "\n")
	cmd := exec.Command("/bin/sh", "-c", watchdog, "watchdog", dir, pid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
