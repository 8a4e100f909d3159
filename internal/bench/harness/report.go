package harness

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Seed of everything that is generated: figures of different days speak of the same histories.
const Seed = 8004

// Report is the outcome of one benchmark, as JSON. Reports of docs/bench have this form, and the API serves that of
// trust: a member that is renamed changes both.
type Report struct {
	Name         string   `json:"name"`
	Machine      Machine  `json:"machine"`
	Config       any      `json:"config"`       // what was asked for, with the seed where there is one
	Measurements any      `json:"measurements"` // of the benchmark's own type
	Targets      []Target `json:"targets"`      // in the order in which they are told
}

// OK reports whether every target was met. A report without targets is met.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Targets, func(t Target) bool { return !t.OK })
}

// Target is a value that must keep to its limit.
type Target struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Bound string  `json:"bound"` // what the limit is of the value: min or max
	Unit  string  `json:"unit"`  // "" for shares and counts
	OK    bool    `json:"ok"`
}

// AtLeast is a target that value must reach. NaN, which a division of nothing by nothing gives, misses it.
func AtLeast(name string, value, limit float64, unit string) Target {
	return Target{Name: name, Value: value, Limit: limit, Bound: "min", Unit: unit, OK: value >= limit}
}

// AtMost is a target that value must not exceed. NaN misses it. A value of 0 meets every limit: the caller MUST see to
// it that something was measured.
func AtMost(name string, value, limit float64, unit string) Target {
	return Target{Name: name, Value: value, Limit: limit, Bound: "max", Unit: unit, OK: value <= limit}
}

// Holds is a target that is met or not.
func Holds(name string, met bool) Target {
	value := 0.0
	if met {
		value = 1
	}
	return AtLeast(name, value, 1, "")
}

// String is a line for a person.
func (t Target) String() string {
	verdict := "MISSED"
	if t.OK {
		verdict = "ok"
	}
	return fmt.Sprintf("%-6s %s: %.4g %s (%s %.4g)", verdict, t.Name, t.Value, t.Unit, t.Bound, t.Limit)
}

// Progress writes lines for a person while a benchmark runs. The report is apart from it, on standard output.
type Progress struct{ To io.Writer }

// Say writes a line with the time of day; nothing is written to no writer.
func (p Progress) Say(format string, args ...any) {
	if p.To == nil {
		return
	}
	fmt.Fprintf(p.To, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// Machine is where a benchmark ran.
type Machine struct {
	System   string            `json:"system"`
	CPUs     int               `json:"cpus"`
	CPU      string            `json:"cpu"`
	MemoryMB int64             `json:"memory_mb"`
	Load     float64           `json:"load_average"` // of the minute before: what else it had to do
	Go       string            `json:"go"`
	Postgres string            `json:"postgres,omitempty"`
	Settings map[string]string `json:"settings,omitempty"` // of Postgres, those that decide its speed
}

// Host describes this machine. What the system does not tell is empty or 0.
func Host() Machine {
	m := Machine{System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(),
		CPU: field("/proc/cpuinfo", "model name"), Settings: map[string]string{}}
	_, _ = fmt.Sscan(field("/proc/meminfo", "MemTotal"), &m.MemoryMB) // 0 on other systems
	m.MemoryMB /= 1024
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(raw), &m.Load)
	}
	return m
}

// machine looks at this one and at the server behind conn. The settings are those that change how fast it writes:
// reports of servers with other ones cannot be compared.
func machine(ctx context.Context, conn *pgx.Conn) (Machine, error) {
	m := Host()
	rows, err := conn.Query(ctx,
		`select name, current_setting(name) from pg_settings where name in ('server_version', 'fsync',
		'synchronous_commit', 'full_page_writes', 'shared_buffers', 'wal_level', 'max_wal_size', 'autovacuum')`)
	if err != nil {
		return m, fmt.Errorf("settings: %w", err)
	}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		m.Settings[name] = value
		return nil
	})
	m.Postgres = m.Settings["server_version"]
	delete(m.Settings, "server_version")
	return m, err
}

// field reads a "name: value" line of a file under /proc, "" where there is none.
func field(path, name string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Median is the middle value, the mean of the two in the middle of an even number,
// and 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[at]
	}
	return (sorted[at-1] + sorted[at]) / 2
}

// Quantile is the least of some values that at least a share of them do not exceed, 0 of none. The share is 0 to 1; 1
// is the largest value. Nothing is interpolated, so that a p99 of few values is their largest.
func Quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
}

// Millis is a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / 1e6 }

// WriteConfig writes a configuration into a new temporary directory, which the caller removes: it holds the file alone.
func WriteConfig(text string) (path string, err error) {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return "", fmt.Errorf("configure: %w", err)
	}
	path = filepath.Join(dir, "repute.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}
