// Package pg runs a private Postgres out of installed binaries: no container,
// no configuration, no root rights for the server. Where none are installed it
// fetches them once. The server listens on the loopback address only, with a
// random password, and ends with the process that started it.
//
// Start makes the cluster in a directory when it is new, takes the directory's lock, and returns a Server that answers.
// Stop ends it. Keep starts it again whenever it ends by itself, under the same URL. A cluster is written to another
// directory and renamed, and a server that a killed process left behind is stopped first, so that a kill at any moment
// is mended by the next Start.
//
// Postgres refuses to run as root. A process of root runs it as user postgres or nobody, who must be able to enter the
// directory. Others may be able to write next to it: no file is written through a symbolic link, and a directory of
// another user is refused.
//
// Binaries are fetched from one host and run only if their hash is among those of this program. The directory belongs
// to the major version that made it, which is the only one that can open it.
package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Options say where and how the server runs. The zero value is a temporary
// server on a free port.
type Options struct {
	// Dir keeps the cluster between runs; it is created when missing. Empty
	// means a temporary one, removed by Stop.
	Dir string
	// Port on 127.0.0.1, 0 for a free one.
	Port int
	// Cache is where fetched binaries are kept; empty means a directory under
	// the user's cache.
	Cache string
	// Settings are further server settings; they override the defaults.
	Settings map[string]string
	// ReplicaOf is the URL of a server of this package whose settings allow replicas: a new cluster is a copy of it,
	// which follows it and can only be read.
	ReplicaOf string
	// Outlive leaves the server running when this process ends.
	Outlive bool
	// Log gets progress; nil means none.
	Log *slog.Logger
}

// Server is a running Postgres.
type Server struct {
	cluster   cluster
	url       string
	temporary bool
	lock      *flock.Flock
	proc      *process
	port      int
	options   Options
	keeper    keeper
}

// startTries bounds restarts after a lost race for the port or while backends
// of a killed predecessor still hold its shared memory.
const startTries = 20

// Start initializes the cluster in o.Dir when it is new and starts the server.
// It returns when the server answers; recovery after a crash may take a while,
// so only ctx bounds the wait. A server that a dead process left behind in
// o.Dir is stopped first; one whose owner lives is an error.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	user, err := unprivileged(os.Geteuid())
	if err != nil {
		return nil, fmt.Errorf("private Postgres: %w", err)
	}
	dir, err := prepareDir(o.Dir, user)
	if err != nil {
		return nil, fmt.Errorf("private Postgres: %w", err)
	}
	s := &Server{cluster: cluster{dir: dir, user: user, log: o.Log}, temporary: o.Dir == ""}
	if err := s.start(ctx, o); err != nil {
		return nil, fmt.Errorf("private Postgres in %s: %w", dir, errors.Join(err, s.release()))
	}
	return s, nil
}

// start takes the lock of the directory, finds binaries of the version that made it, stops a
// server that a crashed process left behind, and starts a new one.
func (s *Server) start(ctx context.Context, o Options) (err error) {
	s.lock = flock.New(filepath.Join(s.cluster.dir, "lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW))
	if held, err := s.lock.TryLock(); err != nil {
		return fmt.Errorf("lock: %w", err)
	} else if !held {
		return errors.New("the directory is in use by another process; choose another directory or stop that process")
	}
	if s.cluster.bin, err = findBinaries(ctx, s.cluster.version(), s.cluster.user, o); err != nil {
		return err
	}
	if err := s.cluster.stopOrphan(ctx); err != nil {
		return err
	}
	if err := s.cluster.init(ctx, o.ReplicaOf); err != nil {
		return err
	}
	if err := s.launch(ctx, o); err != nil {
		return err
	}
	if o.Outlive {
		return s.lock.Unlock()
	}
	return nil
}

// launch starts the server process and waits until it answers, again when the
// port was taken in between.
func (s *Server) launch(ctx context.Context, o Options) error {
	password, err := s.cluster.password()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		port := o.Port
		if port == 0 {
			if port, err = freePort(ctx); err != nil {
				return err
			}
		}
		s.url, s.port, s.options = serverURL(port, password), port, o
		err := s.cluster.run(ctx, s, port, o)
		if err == nil || try == startTries || !errors.Is(err, errTransient) {
			return err
		}
		s.cluster.log.Debug("Postgres did not start, trying again", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// URL connects to database repute as its owner, a superuser of the server.
func (s *Server) URL() string { return s.url }

// Done is closed when the server has ended, by Stop or by itself. It is of no use after Keep.
func (s *Server) Done() <-chan struct{} { return s.proc.done }

// Stop ends the server at once but cleanly: sessions are cut, nothing is lost.
// When ctx ends first the server is told to drop everything; it recovers from
// its log at the next start. A temporary cluster is removed. Stop may be called
// twice.
func (s *Server) Stop(ctx context.Context) error {
	s.keeper.end()
	err := s.proc.stop(ctx)
	return errors.Join(err, s.release())
}

// release gives up the directory, and removes it when it was temporary.
func (s *Server) release() error {
	var err error
	if s.lock != nil {
		err = s.lock.Unlock()
	}
	if s.temporary {
		err = errors.Join(err, os.RemoveAll(s.cluster.dir))
	}
	return err
}

// process is a running server process, watched by its own goroutine.
type process struct {
	os   *os.Process
	done chan struct{}
	err  error // how it ended; valid once done is closed
}

// stop asks for a fast shutdown (SIGINT in Postgres), and for an immediate one
// (SIGQUIT) when ctx ends before it is done.
func (p *process) stop(ctx context.Context) error {
	if err := p.os.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop Postgres: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	if err := p.os.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop Postgres: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("stop Postgres: process %d does not end: %w", p.os.Pid, ctx.Err())
	}
}

// serverURL returns the connection string. The server listens on 127.0.0.1 only, so the connection
// is not encrypted.
func serverURL(port int, password string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// freePort returns a port that was free a moment ago. Another process may take it before the
// server does; the start then fails.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
