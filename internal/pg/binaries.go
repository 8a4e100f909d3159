package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/gofrs/flock"
)

// minMajor is the oldest Postgres whose features the schema uses.
const minMajor = 14

// fetchable are the versions fetched where nothing fitting is installed, by
// major version; "" is for a new cluster.
func fetchable(major string) (embeddedpostgres.PostgresVersion, bool) {
	v, ok := map[string]embeddedpostgres.PostgresVersion{
		"":   embeddedpostgres.V17,
		"14": embeddedpostgres.V14,
		"15": embeddedpostgres.V15,
		"16": embeddedpostgres.V16,
		"17": embeddedpostgres.V17,
		"18": embeddedpostgres.V18,
	}[major]
	return v, ok
}

// findBinaries gives the directory of initdb, pg_ctl and postgres: the newest
// installed ones, of exactly that major version when the cluster exists, else
// fetched ones.
func findBinaries(ctx context.Context, major string, a *account, o Options) (string, error) {
	best, bestMajor := "", minMajor-1
	for _, dir := range installedDirs(ctx) {
		v := majorOf(ctx, dir)
		if major != "" && strconv.Itoa(v) != major {
			continue
		}
		if v > bestMajor {
			best, bestMajor = dir, v
		}
	}
	if best != "" {
		return best, nil
	}
	dir, err := fetchBinaries(ctx, major, a, o)
	if err != nil {
		return "", fmt.Errorf("no Postgres binaries%s are installed (looked in PATH, pg_config --bindir, /usr/lib/postgresql) and fetching them failed: %w; install Postgres or set DATABASE_URL", ofVersion(major), err)
	}
	return dir, nil
}

// ofVersion returns which versions of Postgres would do, for errors: a directory can be opened
// only by the major version that made it.
func ofVersion(major string) string {
	if major == "" {
		return fmt.Sprintf(" (%d or newer)", minMajor)
	}
	return " of version " + major + ", which made this directory,"
}

// installedDirs lists where binaries may be, most explicit first.
func installedDirs(ctx context.Context) []string {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/usr/local/opt/postgresql@*/bin", "/opt/homebrew/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // fails on a malformed pattern only
		dirs = append(dirs, found...)
	}
	return dirs
}

// majorOf asks the binary in dir for its version; 0 when the directory is not
// complete.
func majorOf(ctx context.Context, dir string) int {
	for _, program := range []string{"initdb", "pg_ctl"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return 0
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`\) (\d+)`).FindSubmatch(out)
	if m == nil {
		return 0
	}
	v, _ := strconv.Atoi(string(m[1]))
	return v
}

// fetchBinaries downloads binaries into the cache, once for all processes.
func fetchBinaries(ctx context.Context, major string, a *account, o Options) (string, error) {
	version, ok := fetchable(major)
	if !ok {
		return "", errors.New("that version cannot be fetched")
	}
	cache, err := cacheDir(o.Cache, a)
	if err != nil {
		return "", err
	}
	lock := flock.New(filepath.Join(cache, "lock"))
	if _, err := lock.TryLockContext(ctx, 200*time.Millisecond); err != nil {
		return "", fmt.Errorf("lock the cache: %w", err)
	}
	defer lock.Unlock()
	dir := filepath.Join(cache, "postgres-"+string(version))
	bin := filepath.Join(dir, "bin")
	if majorOf(ctx, bin) > 0 {
		return bin, nil
	}
	o.Log.Info("no Postgres is installed here: fetching binaries", "version", string(version), "cache", cache)
	if err := download(ctx, repository, platform(runtime.GOOS, runtime.GOARCH, isAlpine()), version,
		cache); err != nil {
		return "", err
	}
	err = unpack(ctx, version, cache, dir, o.Log)
	if majorOf(ctx, bin) == 0 {
		return "", errors.Join(err, errors.New("the fetched archive holds no usable binaries"))
	}
	return bin, nil
}

// cacheDir is where fetched binaries live, where the account can run them.
func cacheDir(dir string, a *account) (string, error) {
	if dir == "" && a != nil {
		dir = "/var/cache/repute" // root's home is closed to the account
	} else if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "repute")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if a == nil {
		return dir, nil
	}
	return dir, a.reaches(dir)
}

// unpack lets the library unpack what download put into the cache. It does so only on the way to
// starting a server, so a throw-away one is started and stopped. As root that
// start fails after unpacking, which is all that matters: the caller looks at
// the binaries, not at the error.
func unpack(ctx context.Context, version embeddedpostgres.PostgresVersion, cache, dir string, log *slog.Logger) error {
	scratch, err := os.MkdirTemp("", "repute-pg-fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	server := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().Version(version).Port(uint32(port)).
		CachePath(cache).BinariesPath(dir).RuntimePath(scratch).Logger(io.Discard))
	done := make(chan error, 1)
	go func() {
		err := server.Start()
		if err == nil {
			err = server.Stop()
		}
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	log.Debug("unpacked Postgres", "result", err)
	return err
}
