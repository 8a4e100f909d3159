package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"repute/internal/freeport"
	"repute/internal/pgtest"
)

// A private Postgres that is killed runs again, and /status says how often that happened and
// when last. A process that keeps no Postgres says nothing of it.
func TestStatusTellsOfRestarts(t *testing.T) {
	dir, err := os.MkdirTemp("", "repute-restart-") // the server's user may enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	address, other := freeport.Address(t), freeport.Address(t)
	data := filepath.Join(dir, "data")
	cmd, out := child(t, "serve", "--roles", "api", "--data-dir", data, "--listen", address)
	eventually(t, "http://"+address+"/status", 200, `"database":{"restarts":0}`, out)
	text, err := os.ReadFile(filepath.Join(data, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "http://"+address+"/status", 200, `"database":{"restarts":1,"restartedAt":"20`, out)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v, says %s", err, out)
	}
	_, out = child(t, "serve", "--roles", "api", "--database-url", pgtest.New(t), "--listen", other)
	eventually(t, "http://"+other+"/status", 200, `"chains":`, out)
	if _, body := fetch(t, "http://"+other+"/status"); strings.Contains(body, "restarts") {
		t.Errorf("of a database that others keep: %s", body)
	}
}
