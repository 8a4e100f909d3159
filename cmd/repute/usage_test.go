package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"repute/cmd/repute/internal/cli"
	"repute/internal/pgtest"
)

// A command line that cannot be meant exits with 2, whatever is wrong with it.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"nope", "nope --help", "verify --jsn", "verify --from -1", "export event",
		"bench foo",
		"import", "dump extra", "serve --until-block 0 --chain base --rpc http://127.0.0.1:1",
		"demo --chain base", "status --rpc http://h", "bench index --events 0", "bench follow --blocks 0",
		"bench index --curve 0"} {
		var out, said bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), &out, &said); code != 2 || said.Len() == 0 {
			t.Errorf("%s: exit code %d, says %q, want 2", line, code, said.String())
		}
	}
}

// What a stranger's server says in an error cannot act on the terminal that shows it.
func TestErrorsAreVisible(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	if code := exitCode(t.Context(), errors.New("the server says \x1b[2J\u202e\nand more"), &said); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if got, want := said.String(), "repute: the server says \ufffd[2J\ufffd\nand more\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An error of a wrong command line names the command and its usage, and the program once.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"serv":                            `repute: command line: unknown command "serv", did you mean serve? (repute; see repute --help)`,
		"task aprove x":                   `repute: task: unknown command "aprove", did you mean approve? (`,
		"status --jsn":                    "repute: status: unknown flag: --jsn, did you mean --json? (",
		"manifest new x":                  "repute: domain: is missing (--domain HOST",
		"manifest did":                    "repute: domain: is missing (--domain HOST",
		"manifest did example.com":        "repute: manifest did: takes no argument, give --domain HOST (",
		"task submit":                     "repute: task submit: accepts 1 arg(s), received 0 (repute task submit GOAL [flags]; see",
		"task show":                       `repute: task: unknown command "show" (`,
		"score replay 1:2 --at finalized": `repute: score replay: --at: "finalized" is no whole number from 0 on (`,
		"export events --from -1":         `repute: export events: --from: "-1" is no whole number from 0 on (`,
		"chains --frozen":                 "repute: chains: unknown flag: --frozen (",
		"demo":                            "repute: demo: a program of its own (make demo",
	} {
		var said bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), io.Discard, &said); code != 2 ||
			!strings.HasPrefix(said.String(), want) {
			t.Errorf("%s: exit code %d, says %q, want %q", line, code, said.String(), want)
		}
	}
}

// A root without a chain is refused before a database is made.
func TestRootsAddMakesNoDatabase(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	for flag, want := range map[string]string{"--set=default": "chain: exactly one is needed", "--set=No": "set"} {
		var said bytes.Buffer
		args := []string{"roots", "add", "0x" + strings.Repeat("1", 40), "--reason", "x", flag, "--data-dir", dir}
		code := run(t.Context(), args, io.Discard, &said)
		if code != 2 || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit code %d, says %q", flag, code, said.String())
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: made %s", flag, dir)
		}
	}
}

// Commands that list say what to do where nothing is stored; their JSON stays a list or object.
func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	for line, want := range map[string]string{"status": "no chain is indexed yet: repute serve --chain NAME --rpc URL\n",
		"pay list": "no payments yet\n", "agent list": "no agents are registered\n"} {
		args := append(strings.Fields(line), "--database-url", url)
		var out, asJSON, said bytes.Buffer
		if code := run(t.Context(), args, &out, &said); code != 0 || out.String() != want {
			t.Errorf("%s: exit code %d, prints %q, says %q", line, code, &out, &said)
		}
		if code := run(t.Context(), append(args, "--json"), &asJSON, &said); code != 0 || !json.Valid(asJSON.Bytes()) {
			t.Errorf("%s --json: exit code %d, prints %q", line, code, &asJSON)
		}
	}
}

// The next step that agent new prints can be done, and a directory that exists is named.
func TestAgentNewSaysWhatIsNext(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "my-agent")
	var out, said bytes.Buffer
	if code := run(t.Context(), []string{"agent", "new", dir, "--runtime"}, &out, &said); code != 0 ||
		!strings.Contains(out.String(), "Register the agent first: see "+filepath.Join(dir, "README.md")) {
		t.Errorf("exit code %d, prints %q, says %q", code, &out, &said)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil || !strings.Contains(string(readme), `"register(string)" METADATA_URI`) {
		t.Errorf("the README does not say how to register: %v\n%s", err, readme)
	}
	said.Reset()
	if code := run(t.Context(), []string{"agent", "new", dir}, &out, &said); code != 2 ||
		!strings.Contains(said.String(), "exists (name a new directory)") {
		t.Errorf("exit code %d, says %q", code, &said)
	}
}

// Help is no wrong usage.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"--help", "help task", "task --help", "task submit --help", "completion bash"} {
		var out, said bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), &out, &said); code != 0 || out.Len() == 0 {
			t.Errorf("%s: exit code %d, says %q", line, code, said.String())
		}
	}
}

// What a signal ended before it was done is no success.
func TestInterruptedIsNoSuccess(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, line := range []string{"serve --once --roles indexer --chain base --rpc http://127.0.0.1:1",
		"bench index --events 2000 --json"} {
		if code := run(ctx, append(strings.Fields(line), "--data-dir", t.TempDir()), io.Discard,
			io.Discard); code == 0 {
			t.Errorf("%s: exit code 0", line)
		}
	}
}

// Commands that read make no database, so that a mistyped directory is noticed.
func TestReadersMakeNoDatabase(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"status", "dump --canonical", "export events",
		"verify --chain base --rpc http://127.0.0.1:1"} {
		dir := filepath.Join(t.TempDir(), "typo")
		var said bytes.Buffer
		if code := run(t.Context(), append(strings.Fields(line), "--data-dir", dir), io.Discard, &said); code != 2 ||
			!strings.Contains(said.String(), dir) {
			t.Errorf("%s: exit code %d, says %q", line, code, said.String())
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s made %s", line, dir)
		}
	}
}

// A file that was cut short is called that, compressed or not.
func TestCutFiles(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte(`{"address":"0x8004a169fb4a3325136eb29fa0ceb6d2e539a432","topics":[],"data":"0x","transactionHash":"0x`+
		strings.Repeat("1", 64)+`","blockNumber":"0x1","logIndex":"0x1"}`+"\n"), 5_000)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	database := pgtest.New(t)
	for _, n := range []int{5, zipped.Len() / 2} {
		file := filepath.Join(t.TempDir(), "logs.json.gz")
		if err := os.WriteFile(file, zipped.Bytes()[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, says := tool(t, "import", file, "--chain", "base", "--database-url", database); code != 2 ||
			!strings.Contains(says, "cut short") {
			t.Errorf("%d bytes: exit code %d, says %s", n, code, says)
		}
	}
}

// Only regular files are replaced by a finished file; anything else, such as a
// device, is written to.
func TestWriteFileKeepsDevices(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := &cli.Program{Stdout: io.Discard}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		b, _ := os.ReadFile(pipe)
		read <- string(b)
	}()
	hello := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	if err := p.WriteFile(pipe, hello); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "hello" {
		t.Errorf("the reader got %q", got)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe became %v (%v)", info.Mode(), err)
	}
	link, file := filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteFile(link, hello); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v in the link's file", b, err)
	}
}

func TestWrongUsageExitsTwo(t *testing.T) {
	for _, args := range [][]string{
		{"serve"},
		{"serve", "--chain", "base"},
		{"import", "nofile.json", "--chain", "ethereum"},
		{"import", "nofile.json"},
		{"dump"},
	} {
		var stderr bytes.Buffer
		if code := run(context.Background(), args, io.Discard, &stderr); code != 2 {
			t.Errorf("%v: exit code %d, says %s", args, code, &stderr)
		}
	}
}
