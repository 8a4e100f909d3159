package pg_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/internal/pg"
)

// childDir, when set, turns the test binary into a parent that starts a server
// there, prints its URL and waits to be killed.
const childDir = "REPUTE_PG_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		s, err := pg.Start(context.Background(), pg.Options{Dir: dir, Outlive: os.Getenv("REPUTE_PG_OUTLIVE") != ""})
		fmt.Println(s.URL(), err)
		select {}
	}
	os.Exit(m.Run())
}

func timeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, o pg.Options) *pg.Server {
	t.Helper()
	s, err := pg.Start(timeout(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// query runs one statement and gives its single value as text.
func query(t *testing.T, url, sql string) (string, error) {
	t.Helper()
	ctx := timeout(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var out string
	err = conn.QueryRow(ctx, sql).Scan(&out)
	return out, err
}

func mustQuery(t *testing.T, url, sql string) string {
	t.Helper()
	out, err := query(t, url, sql)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustExec(t *testing.T, url, sql string) {
	t.Helper()
	ctx := timeout(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func TestTemporaryServerIsRemovedByStop(t *testing.T) {
	t.Parallel()
	s := start(t, pg.Options{Settings: map[string]string{"max_connections": "17"}})
	if got := mustQuery(t, s.URL(),
		"select current_database() || ' ' || current_setting('max_connections') || ' ' || current_setting('listen_addresses')"); got != "repute 17 127.0.0.1" {
		t.Errorf("database, max_connections, address = %q", got)
	}
	dir := mustQuery(t, s.URL(), "select current_setting('data_directory')")
	for range 2 {
		if err := s.Stop(timeout(t)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Stop")
	}
}

func TestPasswordIsRequired(t *testing.T) {
	t.Parallel()
	s := start(t, pg.Options{})
	config, err := pgx.ParseConfig(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Password = "wrong"
	if _, err := pgx.ConnectConfig(timeout(t), config); err == nil || !strings.Contains(err.Error(), "password") {
		t.Errorf("a wrong password gave %v", err)
	}
}

// publicDir is a directory the unprivileged account can reach: t.TempDir() is
// closed to others.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "repute-pg-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "pg")
}

// Root's child must be able to enter directories that did not exist before.
func TestDirectoryBelowMissingOnes(t *testing.T) {
	s := start(t, pg.Options{Dir: filepath.Join(publicDir(t), "missing", "too", "cluster")})
	if got := mustQuery(t, s.URL(), "select 1"); got != "1" {
		t.Errorf("got %s", got)
	}
}

func TestDirectoryKeepsDataAndIsExclusive(t *testing.T) {
	t.Parallel()
	dir := publicDir(t)
	s := start(t, pg.Options{Dir: dir})
	mustExec(t, s.URL(), "create table kept as select 7 as n")
	if _, err := pg.Start(timeout(t), pg.Options{Dir: dir}); err == nil ||
		!strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second start in the same directory: %v", err)
	}
	if err := s.Stop(timeout(t)); err != nil {
		t.Fatal(err)
	}
	s = start(t, pg.Options{Dir: dir})
	if got := mustQuery(t, s.URL(), "select n::text from kept"); got != "7" {
		t.Errorf("kept = %s", got)
	}
}

// child starts a server from another process and gives that process and the URL.
func child(t *testing.T, dir string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, childDir+"="+dir)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	url, failure, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || failure != "<nil>" {
		t.Fatalf("child: %q, %v", line, err)
	}
	return cmd, url
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // reports the signal
}

func TestServerEndsWithKilledParent(t *testing.T) {
	t.Parallel()
	dir := publicDir(t)
	cmd, url := child(t, dir)
	mustQuery(t, url, "select 'up'")
	kill(t, cmd)
	ctx := timeout(t)
	for {
		if _, err := query(t, url, "select 'up'"); err != nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the server outlived its parent")
		}
	}
	s := start(t, pg.Options{Dir: dir})
	mustQuery(t, s.URL(), "select 'up'")
}

func TestOutlivingServerIsStoppedByNextStart(t *testing.T) {
	t.Parallel()
	dir := publicDir(t)
	cmd, url := child(t, dir, "REPUTE_PG_OUTLIVE=1")
	kill(t, cmd)
	mustExec(t, url, "create table kept as select 7 as n")
	s := start(t, pg.Options{Dir: dir})
	if got := mustQuery(t, s.URL(), "select n::text from kept"); got != "7" {
		t.Errorf("kept = %s", got)
	}
	if s.URL() != url {
		if _, err := query(t, url, "select 'up'"); err == nil {
			t.Error("the first server still runs")
		}
	}
}

func TestForeignPidFileDoesNotStopStart(t *testing.T) {
	t.Parallel()
	dir := publicDir(t)
	s := start(t, pg.Options{Dir: dir})
	if err := s.Stop(timeout(t)); err != nil {
		t.Fatal(err)
	}
	// Our own number: alive, and no Postgres.
	pidFile := filepath.Join(dir, "data", "postmaster.pid")
	if err := os.WriteFile(pidFile, fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), dir), 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, pg.Options{Dir: dir})
	mustQuery(t, s.URL(), "select 'up'")
}

func TestClosedDirectoryIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root changes to another user")
	}
	parent := filepath.Dir(publicDir(t))
	if err := os.Chmod(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := pg.Start(timeout(t), pg.Options{Dir: filepath.Join(parent, "pg")})
	if err == nil || !strings.Contains(err.Error(), "may not enter "+parent) {
		t.Errorf("error = %v", err)
	}
}

// A kept server that is killed runs again, under the same URL and with its data.
func TestKeptServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := start(t, pg.Options{})
	s.Keep()
	dir := mustQuery(t, s.URL(), "select current_setting('data_directory')")
	mustQuery(t, s.URL(), "select lo_from_bytea(8004, 'kept')::text")
	if n, last := s.Restarts(); n != 0 || !last.IsZero() {
		t.Errorf("restarted %d times, last at %s, before anything ended", n, last)
	}
	for killed := range 2 {
		pid, before := postmaster(t, dir), time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var got string
		for end := time.Now().Add(time.Minute); got != "kept"; time.Sleep(20 * time.Millisecond) {
			if got, _ = query(t, s.URL(), "select convert_from(lo_get(8004), 'UTF8')"); time.Now().After(end) {
				t.Fatal("the server does not answer again")
			}
		}
		if postmaster(t, dir) == pid {
			t.Fatal("the server was not killed")
		}
		// it may answer before that is counted
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			n, last := s.Restarts()
			if n == killed+1 && last.After(before) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("killed %d times: restarted %d times, last at %s", killed+1, n, last)
			}
		}
	}
}

// postmaster is the process id of the server of a data directory.
func postmaster(t *testing.T, data string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// What another user put in the way is not written through.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "repute-pg-links-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(base, "target")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(base, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "linked")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Start(timeout(t), pg.Options{Dir: link}); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a directory that is a link: %v", err)
	}
	if found, _ := os.ReadDir(elsewhere); len(found) > 0 {
		t.Errorf("%v was written through a link", found)
	}
	for _, name := range []string{"password", "lock", "postgres.log"} {
		dir := filepath.Join(base, "dir-"+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := pg.Start(timeout(t), pg.Options{Dir: dir}); err == nil {
			t.Errorf("%s that is a link was accepted", name)
		}
	}
	if raw, _ := os.ReadFile(target); string(raw) != "mine" {
		t.Errorf("the target of the links holds %q", raw)
	}
}
