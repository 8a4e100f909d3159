package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// updateCommands is the same flag as that of the configuration's reference.
var updateCommands = flag.Bool("update", false, "write the reference page instead of comparing it")

const commandsHead = `# Commands

Made from the program by ` + "`go test ./cmd/repute -run Reference -update`" + `. What they are for, with examples:
[operations](../how-to/operations.md). Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted.
`

// docs/reference/cli.md has every command with its flags.
func TestCommandReference(t *testing.T) {
	var out strings.Builder
	out.WriteString(commandsHead)
	writeCommand(&out, newRoot(io.Discard, io.Discard))
	compareCommands(t, out.String())
}

// writeCommand writes a command and those below it.
func writeCommand(out *strings.Builder, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if c.Runnable() {
		fmt.Fprintf(out, "\n## %s\n\n", c.CommandPath())
		fmt.Fprintf(out, "    %s\n\n%s\n", c.UseLine(), sentence(c.Short))
		writeFlags(out, c)
	}
	for _, below := range c.Commands() {
		writeCommand(out, below)
	}
}

// sentence makes a sentence of a summary.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func writeFlags(out *strings.Builder, c *cobra.Command) {
	var rows []string
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		rows = append(rows, fmt.Sprintf("| `--%s` %s | %s | %s |\n", f.Name, f.Value.Type(),
			strings.ReplaceAll(f.Usage, "|", "\\|"), defaultFlag(f)))
	})
	if len(rows) == 0 {
		return
	}
	slices.Sort(rows)
	out.WriteString("\n| flag | meaning | default |\n|---|---|---|\n" + strings.Join(rows, ""))
}

func defaultFlag(f *pflag.Flag) string {
	if f.DefValue == "" || f.DefValue == "[]" || f.DefValue == "false" || f.DefValue == "0" || f.DefValue == "0s" {
		return ""
	}
	return "`" + f.DefValue + "`"
}

// compareCommands compares docs/reference/cli.md with what it must be.
func compareCommands(t *testing.T, want string) {
	t.Helper()
	path := "../../docs/reference/cli.md"
	if *updateCommands {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is, err := os.ReadFile(path); err != nil || string(is) != want {
		t.Errorf("%s is not what the program has (%v): run go test ./cmd/repute -run Reference -update", path, err)
	}
}
