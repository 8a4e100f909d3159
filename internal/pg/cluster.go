package pg

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "repute"
	database  = "repute"
)

// errTransient marks a failed start that may succeed a moment later.
var errTransient = errors.New("transient")

// cluster is the directory of one server: data/, password, postgres.log, lock.
type cluster struct {
	dir  string
	bin  string
	user *account // nil: run as ourselves
	log  *slog.Logger
}

// data is the directory that initdb made.
func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// logFile is where the server writes its messages.
func (c *cluster) logFile() string { return filepath.Join(c.dir, "postgres.log") }

// passwordFile holds the password of the only user, readable by its owner alone.
func (c *cluster) passwordFile() string { return filepath.Join(c.dir, "password") }

// version is the major version the data belongs to, "" for a new cluster.
func (c *cluster) version() string {
	b, err := os.ReadFile(filepath.Join(c.data(), "PG_VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// init makes the cluster unless it is there: a new one, or a copy of the server at primary. It is written to
// another directory and then renamed, so that a kill in the middle leaves nothing that looks complete.
func (c *cluster) init(ctx context.Context, primary string) error {
	if c.version() != "" {
		return c.user.own(c.data())
	}
	c.log.Info("creating a private Postgres cluster", "dir", c.dir)
	password, err := newPassword(primary)
	if err != nil {
		return err
	}
	if err := c.writePassword(password); err != nil {
		return err
	}
	fresh := c.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished cluster: %w", err)
	}
	cmd := c.command(ctx, "initdb", "--pgdata", fresh, "--username", superuser,
		"--pwfile", c.passwordFile(), "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if primary != "" {
		cmd = c.command(ctx, "pg_basebackup", "--dbname", primary, "--pgdata", fresh, "--write-recovery-conf",
			"--wal-method", "stream", "--checkpoint", "fast", "--no-sync")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create cluster: %w: %s", err, bytes.TrimSpace(out))
	}
	if err := os.Rename(fresh, c.data()); err != nil {
		return fmt.Errorf("create cluster: %w", err)
	}
	return nil
}

// newPassword returns a random password, or that of the server at primary, whose users a copy has.
func newPassword(primary string) (string, error) {
	if primary != "" {
		u, err := url.Parse(primary)
		if err != nil {
			return "", errors.New("the URL of the primary server is none") // not quoted: it holds the password
		}
		password, _ := u.User.Password()
		return password, nil
	}
	var b [24]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:]), nil
}

// writePassword stores the password. It follows no symbolic link, because others may be
// able to write into the parent directory.
func (c *cluster) writePassword(password string) error {
	f, err := os.OpenFile(c.passwordFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("write password: %w", err)
	}
	_, err = f.WriteString(password + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write password: %w", err)
	}
	return c.user.own(c.passwordFile())
}

// password returns the stored password.
func (c *cluster) password() (string, error) {
	b, err := os.ReadFile(c.passwordFile())
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// stopOrphan ends a server that runs here although we hold the lock: its parent
// died without taking it along. A pid file that names no server of this
// directory is removed, as Postgres would refuse to start when another process
// has that number now.
func (c *cluster) stopOrphan(ctx context.Context) error {
	file := filepath.Join(c.data(), "postmaster.pid")
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read pid file: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || !servesDir(pid, c.data()) {
		return removeFile(file)
	}
	c.log.Warn("stopping a Postgres left by an earlier run", "pid", pid)
	cmd := c.command(ctx, "pg_ctl", "stop", "--pgdata", c.data(), "--mode", "fast", "--wait")
	if out, err := cmd.CombinedOutput(); err != nil && servesDir(pid, c.data()) {
		return fmt.Errorf("stop the Postgres left by an earlier run (pid %d): %w: %s", pid, err, bytes.TrimSpace(out))
	}
	return nil
}

// removeFile deletes a file that need not exist.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// command prepares one of the server's programs, as the server's user and deaf
// to PG* variables that are meant for other servers.
func (c *cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...)
	cmd.Dir = c.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	cmd.SysProcAttr = c.user.attr()
	return cmd
}

// run starts the server process and waits until it answers.
func (c *cluster) run(ctx context.Context, s *Server, port int, o Options) error {
	logFile, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer logFile.Close()
	if err := logFile.Chmod(0o600); err != nil { // one left by an earlier version
		return fmt.Errorf("protect log: %w", err)
	}
	cmd := c.command(context.WithoutCancel(ctx), "postgres", serverArgs(c.data(), port, o.Settings)...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	detach(cmd.SysProcAttr, o.Outlive)
	proc, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.proc = proc
	if err := c.ready(ctx, s.url, s.proc); err != nil {
		return errors.Join(err, s.proc.stop(ctx))
	}
	return nil
}

// spawn starts cmd and waits for it in a goroutine bound to one thread: Linux
// sends the parent-death signal when the starting thread ends, not the process.
func spawn(cmd *exec.Cmd) (*process, error) {
	started := make(chan error, 1)
	p := &process{done: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.os = cmd.Process
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

// serverArgs is the command line: data directory, address, settings by name.
func serverArgs(data string, port int, extra map[string]string) []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": "",
		"max_connections":         "200",
		"shared_buffers":          "256MB",
		"wal_level":               "minimal", // no replicas of a private server
		"max_wal_senders":         "0",
		"max_wal_size":            "2GB",
		"random_page_cost":        "1.1",
		"jit":                     "off", // costs more than it saves on short queries
		"autovacuum_naptime":      "5s",  // a backfill replaces current rows many times within the usual minute
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	maps.Copy(settings, extra)
	args := []string{"-D", data}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// ready waits until the server answers and database repute exists.
func (c *cluster) ready(ctx context.Context, url string, p *process) error {
	for {
		err := ensureDatabase(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return c.startFailure(p)
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w (last: %w)", ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// startFailure explains an early end with the server's own words.
func (c *cluster) startFailure(p *process) error {
	tail := c.logTail()
	err := fmt.Errorf("postgres ended while starting (%w): %s", p.err, tail)
	if strings.Contains(tail, "Address already in use") || strings.Contains(tail, "pre-existing shared memory") {
		return errors.Join(errTransient, err)
	}
	return err
}

// logTail returns the last 2 KiB of the server's messages, for an error when it does not start.
func (c *cluster) logTail() string {
	f, err := os.Open(c.logFile())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const keep = 2 << 10
	if st, err := f.Stat(); err == nil && st.Size() > keep {
		_, _ = f.Seek(-keep, io.SeekEnd)
	}
	b, _ := io.ReadAll(f)
	return strings.TrimSpace(string(b))
}

// ensureDatabase creates database repute through database postgres.
func ensureDatabase(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var exists bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)",
		database).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+database)
	return err
}
