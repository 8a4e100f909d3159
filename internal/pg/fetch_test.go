package pg

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	if err := c.init(ctx); err != nil {
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
	_, err := findBinaries(context.Background(), "9", nil, Options{Cache: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "of version 9") || !strings.Contains(err.Error(), "set DATABASE_URL") {
		t.Fatalf("error = %v", err)
	}
}
