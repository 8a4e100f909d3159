package bulk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"repute/api/export"
	"repute/cmd/repute/internal/cli"
	"repute/internal/freeport"
)

// readers returns the directory with programs of others that read exports. scripts/export.sh makes it.
func readers(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("REPUTE_EXPORT_READERS")
	if dir == "" {
		t.Skip("REPUTE_EXPORT_READERS is not set: make test-export sets it")
	}
	return dir
}

// downloaded returns a directory with every set that has rows here.
func (x *index) downloaded(t *testing.T, format string) string {
	t.Helper()
	dir := t.TempDir()
	for _, set := range []string{"agents", "feedback", "events", "changes"} {
		if _, _, err := x.into(dir, format).set(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// DuckDB reads both formats, exactly and with the documented types.
func TestDuckDBOfOthers(t *testing.T) {
	dir := readers(t)
	x := newIndex(t)
	x.add(t, 0, 40)
	cmd := exec.Command(filepath.Join(dir, "venv/bin/python"), filepath.Join(dir, "duck.py"),
		x.downloaded(t, export.Parquet), x.downloaded(t, export.NDJSON))
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Parquet, NDJSON map[string][]any
		Types           map[string]map[string]string
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Parquet, got.NDJSON) {
		t.Errorf("Parquet has %v, NDJSON %v", got.Parquet, got.NDJSON)
	}
	if want := fmt.Sprintf("[40 40%s 0 1]", strings.Repeat("0", 30)); fmt.Sprint(got.Parquet["feedback"]) != want {
		t.Errorf("feedback is %v, want %s", got.Parquet["feedback"], want)
	}
	for column, want := range map[string]string{"agents.token_id": "VARCHAR",
		"agents.registered_time": "TIMESTAMP WITH TIME ZONE",
		"feedback.value":         "VARCHAR", "feedback.value_decimals": "INTEGER", "feedback.block": "UBIGINT",
		"changes.learned_at": "TIMESTAMP WITH TIME ZONE", "agents.uri_denied": "BOOLEAN"} {
		set, name, _ := strings.Cut(column, ".")
		if got.Types[set][name] != want {
			t.Errorf("%s is %s, want %s", column, got.Types[set][name], want)
		}
	}
}

// startClickHouse starts the HTTP interface and returns its URL.
func startClickHouse(t *testing.T, dir string) string {
	t.Helper()
	port := freeport.Port(t)
	cmd := exec.Command(filepath.Join(dir, "venv/bin/python"), filepath.Join(dir, "clickhouse.py"), port)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 600 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return "http://user:secret@127.0.0.1:" + port + "/default"
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("ClickHouse does not answer")
	return ""
}

// ClickHouse has every row once, also when a part is loaded twice, and the state of the later block.
func TestClickHouseOfOthers(t *testing.T) {
	to := startClickHouse(t, readers(t))
	x := newIndex(t)
	x.add(t, 0, 30)
	var out bytes.Buffer
	p := &cli.Program{Stdout: &out, Stderr: &out}
	first := x.downloaded(t, export.Parquet)
	for range 2 {
		if err := load(t.Context(), p, first, to); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String(); !strings.Contains(text, "agents: 1 of 1 part loaded") ||
		!strings.Contains(text, "agents: 0 of 1 part loaded") {
		t.Errorf("printed %s", text)
	}
	x.add(t, 30, 10)
	if err := load(t.Context(), p, x.downloaded(t, export.Parquet), to); err != nil {
		t.Fatal(err)
	}
	db, err := openClickHouse(to)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"SELECT count() FROM repute_agents FINAL":                                     "40",
		"SELECT max(toUInt256(token_id)) FROM repute_agents FINAL":                    "39",
		"SELECT uniqExact(snapshot_block) FROM repute_agents FINAL":                   "1",
		"SELECT sum(toInt256(value)) FROM repute_feedback FINAL":                      "40" + strings.Repeat("0", 30),
		"SELECT count() FROM repute_events FINAL WHERE name = 'Registered'":           "40",
		"SELECT min(toDate(block_time)) FROM repute_events FINAL":                     "2025-06-15",
		"SELECT count() FROM repute_changes FINAL WHERE kind = 'feedback.given'":      "40",
		"SELECT countIf(revoked_block IS NULL) FROM repute_feedback FINAL":            "40",
		"SELECT sum(rows) FROM repute_parts WHERE set = 'agents' AND chain_id = 8453": "70",
	} {
		if got, err := db.run(t.Context(), query, nil); err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: %s, %v, want %s", query, got, err, want)
		}
	}
}

// A URL that is none is refused without being shown, because it may hold a password.
func TestClickHouseURL(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "127.0.0.1:8123", "ftp://user:secret@host", "http://user:secret@",
		"http://user:secret@host:x y"} {
		if _, err := openClickHouse(wrong); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	c, err := openClickHouse("clickhouse://user:secret@host/data")
	if err != nil || c.base != "http://host:8123/" || c.database != "data" || c.user != "user" ||
		c.password != "secret" {
		t.Errorf("%+v, %v", c, err)
	}
}
