package pg

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

// TestFetchedBinariesRun downloads, so it runs only when asked for.
func TestFetchedBinariesRun(t *testing.T) {
	if os.Getenv("REPUTE_TEST_FETCH") == "" {
		t.Skip("set REPUTE_TEST_FETCH to download Postgres")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	user, err := unprivileged(os.Geteuid())
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.MkdirTemp("", "repute-pg-cache-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(cache)
	if err := os.Chmod(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	bin, err := fetchBinaries(ctx, "", user, Options{Cache: cache, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := prepareDir(filepath.Join(cache, "cluster"), user)
	if err != nil {
		t.Fatal(err)
	}
	c := cluster{dir: dir, bin: bin, user: user, log: slog.New(slog.DiscardHandler)}
	if err := c.init(ctx, ""); err != nil {
		t.Fatal(err)
	}
	s := &Server{cluster: c}
	if err := s.launch(ctx, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownVersionIsNotFetched(t *testing.T) {
	t.Parallel()
	_, err := findBinaries(context.Background(), "9", nil,
		Options{Cache: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "of version 9") ||
		!strings.Contains(err.Error(), "set DATABASE_URL") {
		t.Fatalf("error = %v", err)
	}
}

// An archive is run only when it is the very one whose hash is pinned, whatever its host
// says of it.
func TestOtherArchivesAreNotRun(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := "another archive"
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			body = fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
		}
		fmt.Fprint(w, body)
	}))
	t.Cleanup(host.Close)
	cache := t.TempDir()
	err := download(t.Context(), host.URL, "linux-amd64", embeddedpostgres.V17, cache)
	if err == nil || !strings.Contains(err.Error(), "it is not run") {
		t.Errorf("a foreign archive: %v", err)
	}
	if err := download(t.Context(), host.URL, "plan9-amd64", embeddedpostgres.V17, cache); err == nil {
		t.Error("a platform without a hash is fetched")
	}
	if files, err := os.ReadDir(cache); err != nil || len(files) != 0 {
		t.Errorf("left in the cache: %v, %v", files, err)
	}
}

// The newest versions that are fetched have hashes on the platforms most used.
func TestFetchableVersionsArePinned(t *testing.T) {
	t.Parallel()
	for _, major := range []string{"", "16", "17", "18"} {
		version, ok := fetchable(major)
		for _, on := range []string{platform("linux", "amd64", false), platform("linux", "arm64", false),
			platform("linux", "amd64", true), platform("darwin", "arm64", false)} {
			if archiveHashes()[on+" "+string(version)] == "" || !ok {
				t.Errorf("Postgres %s has no hash on %s", version, on)
			}
		}
	}
}
