//go:build linux

package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"repute"
	"repute/agent/capability"
	"repute/agent/handler"
)

// shell runs a script as a handler.
func shell(script string, change ...func(*handler.Exec)) *handler.Exec {
	e := &handler.Exec{Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Wall: 5 * time.Minute} // longer than a test runs
	for _, c := range change {
		c(e)
	}
	return e
}

func call(input string) capability.Call {
	return capability.Call{AgentID: "42", Capability: "echo", Version: "1.0.0", RequestID: "r-1",
		Time: time.Unix(1_700_000_000, 0), Input: json.RawMessage(input)}
}

func TestExecGivesTheCallAndTakesTheAnswer(t *testing.T) {
	t.Parallel()
	out, err := shell(`cat`).Run(t.Context(), call(`{"text":"hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		AgentID, Capability, Version, RequestID, Timestamp string
		Input                                              struct{ Text string }
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.AgentID != "42" || got.Capability != "echo" || got.RequestID != "r-1" || got.Input.Text != "hi" ||
		got.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the program got %s", out)
	}
}

func TestExecEnvironmentIsWhatIsListed(t *testing.T) {
	t.Setenv("HANDLER_SECRET", "do not inherit")
	out, err := shell(`printf '"%s"' "$(env | cut -d= -f1 | sort | tr '\n' ' ')"`).Run(t.Context(), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	// The shell itself sets PWD, OLDPWD, SHLVL and _.
	for _, name := range strings.Fields(strings.Trim(string(out), `"`)) {
		switch name {
		case "PATH", "PWD", "OLDPWD", "SHLVL", "_":
		default:
			t.Errorf("the program sees %s", name)
		}
	}
}

func TestExecEndsWhatMisbehaves(t *testing.T) {
	t.Parallel()
	second := func(e *handler.Exec) { e.CPU = time.Second }
	brief := func(e *handler.Exec) { e.Wall = 700 * time.Millisecond }
	tests := []struct {
		name string
		e    *handler.Exec
		want error
	}{
		{"crash", shell(`echo secret-on-stderr >&2; exit 3`), handler.ErrFailed},
		{"killed", shell(`kill -9 $$`), handler.ErrFailed},
		{"no JSON", shell(`echo secret-on-stdout`), handler.ErrFailed},
		{"nothing", shell(`:`), handler.ErrFailed},
		{"100 MB", shell(`yes secret-on-stdout | head -c 100000000`), handler.ErrFailed},
		{"never ends", shell(`sleep 600`, brief), handler.ErrTimeout},
		{"never reads, never ends", shell(`exec 0<&-; sleep 600`, brief), handler.ErrTimeout},
		{"burns CPU", shell(`while :; do :; done`, second), handler.ErrTimeout},
		{"burns CPU and ignores the signal", shell(`trap '' XCPU; while :; do :; done`, second), handler.ErrTimeout},
		{"fork that burns", shell(`while :; do :; done & while :; do :; done`, brief), handler.ErrTimeout},
		{"too much memory", shell(`x=x; while :; do x=$x$x; done`, func(e *handler.Exec) { e.Memory = 64 << 20 }),
			handler.ErrFailed},
		{"no such program", &handler.Exec{Path: "/no/such/program"}, repute.ErrUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := tt.e.Run(t.Context(), call(`{}`))
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %.100s, %v; want %v", out, err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "/") {
				t.Errorf("the error tells what clients must not see: %v", err)
			}
		})
	}
}

// Programs that others started on the same thread are neither waited for nor taken from who started them.
func TestExecLeavesOtherChildrenAlone(t *testing.T) {
	const threads = 12
	others := make([]*exec.Cmd, threads)
	var started, all sync.WaitGroup
	started.Add(threads)
	for i := range others {
		all.Go(func() {
			runtime.LockOSThread() // so that each is a child of another thread
			defer runtime.UnlockOSThread()
			others[i] = exec.Command("/bin/sleep", "600")
			if err := others[i].Start(); err != nil {
				t.Error(err)
			}
			started.Done()
			started.Wait()
		})
	}
	all.Wait()
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		done := make(chan error, 1)
		go func() {
			_, err := shell(`echo 1`).Run(ctx, call(`{}`))
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			t.Error("a run waits for a program of others")
		}
		cancel()
	}
	for _, other := range others {
		if err := other.Process.Kill(); err != nil {
			t.Error(err)
		}
		var ended *exec.ExitError
		if err := other.Wait(); !errors.As(err, &ended) {
			t.Errorf("the end of a program was taken from who started it: %v", err)
		}
	}
}

// The limits are those of the kernel, before the program's first instruction.
func TestExecLimitsAreSet(t *testing.T) {
	t.Parallel()
	out, err := shell(`printf '[%s,%s,%s]' "$(ulimit -v)" "$(ulimit -t)" "$(ulimit -f)"`).Run(t.Context(), call(`{}`))
	// dash counts files in blocks of 512 bytes
	if err != nil || string(out) != fmt.Sprintf("[%d,%d,%d]", 512<<10, 10, 256<<11) {
		t.Errorf("the program sees limits %s, %v", out, err)
	}
}

// What a program starts dies with it: children, those in a session of their own, and orphans.
func TestExecLeavesNoProcess(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"child":         `sleep 600 >/dev/null 2>&1 & echo $! >"$PIDS"`,
		"holds output":  `sleep 600 & echo $! >"$PIDS"`,
		"other session": `setsid sh -c 'echo $$ >"$PIDS"; exec sleep 600' >/dev/null 2>&1 & while [ ! -s "$PIDS" ]; do :; done`,
		"other environment": `env -i setsid /bin/sh -c "echo \$\$ >$PIDS; exec sleep 600" >/dev/null 2>&1 & ` +
			`while [ ! -s "$PIDS" ]; do :; done`,
		"orphan of another environment": `(env -i setsid /bin/sh -c "/bin/sh -c 'echo \$\$ >$PIDS; exec sleep 600' & exit" ` +
			`>/dev/null 2>&1 &) ; while [ ! -s "$PIDS" ]; do :; done`,
		"orphan": `(setsid sh -c 'sh -c "echo \$\$ >\"\$PIDS\"; exec sleep 600" & exit' >/dev/null 2>&1 &) ` +
			`; while [ ! -s "$PIDS" ]; do :; done`,
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pid")
			e := shell(script+`; echo '{"done":true}'`, func(e *handler.Exec) { e.Env = append(e.Env, "PIDS="+pids) })
			out, err := e.Run(t.Context(), call(`{}`))
			if err != nil || string(out) != `{"done":true}` {
				t.Fatalf("got %s, %v", out, err)
			}
			dead(t, pids)
		})
	}
}

// TestExecBoundsProcesses: a program that starts too many is ended, with all of them.
func TestExecBoundsProcesses(t *testing.T) {
	t.Parallel()
	const markOf = "TEST_BOMB=1"
	e := shell(`while :; do sleep 600 & done`, func(e *handler.Exec) { e.Env = append(e.Env, markOf) })
	if _, err := e.Run(t.Context(), call(`{}`)); !errors.Is(err, handler.ErrFailed) ||
		!strings.Contains(err.Error(), "processes") {
		t.Errorf("got %v", err)
	}
	if n := len(withMark(markOf)); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

// TestExecBoundsFiles: a program cannot fill the disk with one file.
func TestExecBoundsFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	out, err := shell(`dd if=/dev/zero of="$FILE" bs=1M seek=300 count=1 2>/dev/null; echo "{\"status\":$?}"`,
		func(e *handler.Exec) { e.Env = append(e.Env, "FILE="+file) }).Run(t.Context(), call(`{}`))
	if err != nil || string(out) == `{"status":0}` {
		t.Errorf("got %s, %v", out, err)
	}
}

// TestExecEndsWithItsProcess: what programs started does not outlive the process that runs them.
func TestExecEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const markOf = "TEST_ORPHANS=1"
	cmd := exec.Command(self)
	cmd.Env = []string{"RUN_EXEC=" + `(setsid sleep 600 &); sleep 600`, "RUN_MARK=" + markOf}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until := func(what string, is func() bool) {
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%s: %v", what, withMark(markOf))
				return
			}
		}
	}
	until("too few processes", func() bool { return len(withMark(markOf)) >= 3 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	until("processes are left", func() bool { return len(withMark(markOf)) == 0 })
}

// TestExecPassesSignals: programs get the signals that they send each other, and may replace
// themselves and use threads.
func TestExecPassesSignals(t *testing.T) {
	t.Parallel()
	out, err := shell(`trap 'echo "{\"got\":true}"; exit 0' TERM; (kill -TERM $$); while :; do sleep 0.01; done`).
		Run(t.Context(), call(`{}`))
	if err != nil || string(out) != `{"got":true}` {
		t.Errorf("got %s, %v", out, err)
	}
	out, err = shell(`sh -c 'exec sh -c "exec cat"'`).Run(t.Context(), call(`{}`))
	if err != nil || !json.Valid(out) {
		t.Errorf("got %s, %v", out, err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	const threads = `import threading, os, sys
ts = [threading.Thread(target=lambda: os.system("true")) for _ in range(20)]
[t.start() for t in ts]; [t.join() for t in ts]
threading.Thread(target=lambda: os.execvp("echo", ["echo", "[20]"])).start()
`
	script := filepath.Join(t.TempDir(), "threads.py")
	if err := os.WriteFile(script, []byte(threads), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = shell(`exec python3 `+script,
		func(e *handler.Exec) { e.Memory = 8 << 30 }). // stacks and arenas of threads
		Run(t.Context(), call(`{}`))
	if err != nil || string(out) != `[20]` {
		t.Errorf("got %s, %v", out, err)
	}
}

// withMark lists the processes whose environment has a mark.
func withMark(text string) (out []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err == nil && bytes.Contains(env, []byte(text)) && !bytes.Contains(env, []byte("RUN_MARK")) {
			out = append(out, file)
		}
	}
	return out
}

// However many processes a program starts, none is left when its time is up.
func TestExecKillsManyForks(t *testing.T) {
	t.Parallel()
	const markOf = "TEST_FORKS=1"
	left := func() int { return len(withMark(markOf)) }
	most := 0
	e := shell(`for i in 1 2 3 4 5; do (for j in 1 2 3 4 5 6; do setsid sleep 600 & done; sleep 600) & done; wait`,
		func(e *handler.Exec) { e.Env, e.Wall = append(e.Env, markOf), 5*time.Second })
	done := make(chan error, 1)
	go func() {
		_, err := e.Run(t.Context(), call(`{}`))
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if n := left(); !errors.Is(err, handler.ErrTimeout) || n != 0 || most < 5 {
				t.Errorf("%d of at least %d processes are left; %v", n, most, err)
			}
			return
		case <-time.After(50 * time.Millisecond):
			most = max(most, left())
		}
	}
}

// dead fails unless the process whose id a file holds has ended.
func dead(t *testing.T, file string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if !runs(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL) // so that the test leaves none either
}

// runs reports whether a process exists that is not a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(rest, []byte("Z"))
}

func TestExecEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err := shell(`sleep 600`).Run(ctx, call(`{}`))
	if !errors.Is(err, context.Canceled) || errors.Is(err, handler.ErrTimeout) || errors.Is(err, handler.ErrFailed) {
		t.Errorf("got %v", err)
	}
}

// Standard error is logged up to a bound and does not end the program.
func TestExecLogsStandardErrorBounded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := shell(`yes noise | head -c 1000000 >&2; exit 1`, func(e *handler.Exec) {
		e.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	if _, err := e.Run(t.Context(), call(`{}`)); !errors.Is(err, handler.ErrFailed) {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "noise") || log.Len() > 64<<10 {
		t.Errorf("the log has %d bytes", log.Len())
	}
}

func TestExecRunsInParallel(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			out, err := shell(`read x; echo '{"n":1}'`).Run(t.Context(), call(`{}`))
			if err != nil || string(out) != `{"n":1}` {
				t.Errorf("got %s, %v", out, err)
			}
		})
	}
}

// TestExecReadsNoMemoryOfItsCaller: programs run as the same user, and the environment of the caller may
// hold a key.
func TestExecReadsNoMemoryOfItsCaller(t *testing.T) {
	t.Parallel()
	if _, err := shell(`echo 1`).Run(t.Context(), call(`{}`)); err != nil {
		t.Fatal(err)
	}
	if visible, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || visible != 0 {
		t.Errorf("/proc/PID/environ is readable for programs of the user: %d, %v", visible, err)
	}
}

// BenchmarkExec measures what a call of a program costs beside its work.
func BenchmarkExec(b *testing.B) {
	e := &handler.Exec{Path: "/bin/cat"}
	for b.Loop() {
		if _, err := e.Run(b.Context(), call(`{}`)); err != nil {
			b.Fatal(err)
		}
	}
}
