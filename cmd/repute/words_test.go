package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"repute/internal/freeport"
	"repute/internal/pgtest"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s",
		time.Hour:                    "1h0m",
		26*time.Hour + 5*time.Minute: "1d2h", 400 * 24 * time.Hour: "400d0h"} {
		if got := span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// What cannot be reached is said on one line, without the password.
func TestDatabaseAwayIsOneLine(t *testing.T) {
	t.Parallel()
	code, _, says := tool(t, "status", "--database-url", "postgres://u:secretword@127.0.0.1:1/x")
	if code != 1 || strings.Count(says, "\n") != 1 || strings.Count(says, "connection refused") != 1 ||
		strings.Contains(says, "secretword") {
		t.Errorf("exit code %d, says %q", code, says)
	}
}

// A service says when it starts that Redis is unavailable, once, and /status and the metric do too.
func TestRedisAway(t *testing.T) {
	address := freeport.Address(t)
	cmd, out := child(t, "serve", "--roles", "api", "--database-url", pgtest.New(t), "--redis-url",
		"redis://127.0.0.1:1/0", "--listen", address)
	eventually(t, "http://"+address+"/status", 200, `"redis":"away"`, out)
	eventually(t, "http://"+address+"/metrics", 200, "repute_redis_up 0", out)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, says %s", err, out)
	}
	if says := out.String(); strings.Count(says, "Redis does not answer") != 1 || strings.Contains(says, "pool.go") {
		t.Errorf("says %s", says)
	}
}
