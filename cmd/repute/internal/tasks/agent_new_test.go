package tasks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
)

// run runs one of the commands of this package.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out := &clitest.Output{}
	err := clitest.Run(t.Context(), out, func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{AgentCommand(p), TaskCommand(p), RunCommand(p)}
	}, args...)
	return out.String(), err
}

// Every scaffold is filled: no placeholder is left in a file, none keeps the ending of a template, and programs that
// begin with #! can be executed.
func TestScaffoldsAreFilled(t *testing.T) {
	t.Parallel()
	for _, from := range []string{"scaffold/go", "scaffold/python", "scaffold/runtime"} {
		dir := filepath.Join(t.TempDir(), "below", "word-counter")
		if err := writeAgent(from, dir); err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		files, named := 0, false
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			files++
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			named = named || strings.Contains(string(text), "Word counter")
			info, err := e.Info()
			if err != nil {
				return err
			}
			for _, left := range []string{"__SLUG__", "__NAME__", "__DIR__"} {
				if strings.Contains(string(text), left) {
					t.Errorf("%s has %s", path, left)
				}
			}
			if strings.HasSuffix(path, ".tmpl") || strings.HasPrefix(string(text), "#!") != (info.Mode()&0o100 != 0) {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return nil
		})
		if err != nil || files < 3 || !named {
			t.Errorf("%s: %d files, named %t, %v", from, files, named, err)
		}
	}
}

// The name of the directory is the slug of the agent. One that can be none makes no directory, and a directory that is
// there is never written into.
func TestNewRefusesDirectories(t *testing.T) {
	t.Parallel()
	in := t.TempDir()
	for _, name := range []string{"Agent", "an agent", "agent_1", "-agent", "agent-", "a--b", "agent.go", "..", ".",
		strings.Repeat("a", 65), "agent\n", "ägent"} {
		dir := in + "/" + name
		if _, err := run(t, "agent", "new", dir); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if left, err := os.ReadDir(in); err != nil || len(left) > 0 {
		t.Errorf("the directory has %v, %v", left, err)
	}
	dir := filepath.Join(in, "agent")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := run(t, "agent", "new", dir)
	var input *repute.InputError
	if !errors.As(err, &input) || input.Field != "directory" || !strings.Contains(input.Reason, "exists") {
		t.Errorf("a directory that exists: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the directory that existed has %v, %v", left, err)
	}
	if _, err := run(t, "agent", "new", filepath.Join(in, "other"), "--remote", "--runtime"); !errors.As(err, &input) ||
		input.Field != "runtime" {
		t.Errorf("two kinds: %v", err)
	}
	if err := os.WriteFile(filepath.Join(in, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "agent", "new", filepath.Join(in, "file", "below")); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("below a file: %v", err)
	}
}

// The command that is printed runs the directory: agent run takes a name without a dot or slash for an agent that
// repute comes with.
func TestRunnable(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{"a": "./a", "a/b": "./a/b", "./a": "./a", "../a": "../a", "/a": "/a"} {
		if got := runnable(dir); got != want || !strings.ContainsAny(got, `./\`) {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

// A program is looked for where the argument says, and the error says what is missing there.
func TestRunFindsTheProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args  []string
		field string
	}{
		{[]string{"agent", "run", dir}, "directory"},
		{[]string{"agent", "run", dir + "/none"}, "directory"},
		{[]string{"agent", "run", dir, "--address", "nowhere"}, "address"},
	} {
		_, err := run(t, c.args...)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != c.field {
			t.Errorf("%q: %v", c.args, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	command, remove, err := build(t.Context(), &cli.Program{}, dir)
	if err != nil || strings.Join(command, " ") != "python3 agent.py" {
		t.Fatalf("%q, %v", command, err)
	}
	remove()
	if _, err := os.Stat(filepath.Join(dir, "agent.py")); err != nil {
		t.Errorf("what was not built is removed: %v", err)
	}
}

// An agent that ends by itself is an error, whatever its exit status, so that a supervisor starts it again.
func TestChildMustNotEnd(t *testing.T) {
	t.Parallel()
	p := &cli.Program{Stderr: &clitest.Output{}}
	r := running{what: t.TempDir(), address: "127.0.0.1:1"}
	if err := child(t.Context(), p, r, []string{"true"}); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("status 0: %v", err)
	}
	if err := child(t.Context(), p, r, []string{"false"}); err == nil {
		t.Error("status 1 is no error")
	}
	out := &clitest.Output{}
	_ = child(t.Context(), &cli.Program{Stderr: out}, r, []string{"sh", "-c", "echo $AGENT_ADDRESS; pwd"})
	if want := "127.0.0.1:1\n" + r.what + "\n"; out.String() != want {
		t.Errorf("address and directory are %q, want %q", out, want)
	}
}

// A signature is for an identity with its chain, and a key is read from a file that only its owner can read.
func TestProveRefusals(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, file, field string }{
		{"", file, "agent-id"}, {"22", file, "agent-id"}, {"a:b", file, "agent-id"}, {"8453:22", file, "key-file"},
		{"8453:22", file + "x", "key-file"},
	} {
		args := []string{"agent", "register", "slug", "https://a.example"}
		if c.id != "" {
			args = append(args, c.id)
		}
		_, err := run(t, append(args, "--key-file", c.file)...)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != c.field {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
