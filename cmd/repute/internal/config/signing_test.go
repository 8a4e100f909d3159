package config

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A key that is for later is no error, but may be a slip: the log says so.
func TestKeyForLaterIsSaid(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat("01", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{"2030-01-01": "signing.retired", "2029-12-31": "", "": ""} {
		c := Config{Signing: signingConfig{Key: keyRef("file:" + file)}}
		if to != "" {
			c.Signing.Retired = []string{"0x1111111111111111111111111111111111111111 /" + to}
		}
		if err := c.checkSigning(); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		c.Signing.Warn(slog.New(slog.NewTextHandler(&log, nil)), time.Date(2029, 12, 31, 12, 0, 0, 0, time.UTC))
		if want == "" && log.Len() > 0 || !strings.Contains(log.String(), want) {
			t.Errorf("to %q: %s", to, &log)
		}
	}
}
