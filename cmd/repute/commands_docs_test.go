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

Made from the program by ` + "`go test ./cmd/repute -run Reference -update`" + `: what ` + "`repute COMMAND --help`" + `
prints. [Operations](../how-to/operations.md#commands) says which command serves what. Exit codes: 0 done, 1 failed,
2 wrong usage or input, 130 interrupted.

## Where the index is

Commands that may work on the index take these flags too:

| flag | meaning | default |
|---|---|---|
`

// docs/reference/cli.md has every command with its flags.
func TestCommandReference(t *testing.T) {
	var out strings.Builder
	out.WriteString(commandsHead)
	root := newRoot(io.Discard, io.Discard)
	status, _, err := root.Find([]string{"status"})
	if err != nil {
		t.Fatal(err)
	}
	shared := flagsOf(status, func(f *pflag.Flag) bool { return f.Name != "json" && f.Name != "watch" })
	out.WriteString(strings.Join(shared, ""))
	writeCommand(&out, root, shared)
	compareCommands(t, out.String())
}

// writeCommand writes a command and those below it. A command that has all shared flags is said to work on the index.
func writeCommand(out *strings.Builder, c *cobra.Command, shared []string) {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	if c.HasParent() {
		fmt.Fprintf(out, "\n## %s\n\n    %s\n\n%s\n", c.CommandPath(), c.UseLine(), sentence(c.Short))
		writeText(out, c.Long)
		if c.Example != "" {
			out.WriteString("\nFor example:\n")
			writeText(out, c.Example)
		}
	}
	if c.HasParent() && !c.HasSubCommands() || c.LocalNonPersistentFlags().HasFlags() {
		writeFlags(out, flagsOf(c, func(*pflag.Flag) bool { return true }), shared)
	}
	for _, below := range c.Commands() {
		writeCommand(out, below, shared)
	}
}

// writeText writes the paragraphs of a help text. Indented ones are commands.
func writeText(out *strings.Builder, text string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if paragraph == "" {
			continue
		}
		if strings.HasPrefix(paragraph, "  ") {
			paragraph = "  " + strings.ReplaceAll(paragraph, "\n", "\n  ")
		}
		fmt.Fprintf(out, "\n%s\n", paragraph)
	}
}

// sentence makes a sentence of a summary.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// flagsOf returns the rows of a command's flags, those of the commands above it included.
func flagsOf(c *cobra.Command, wanted func(*pflag.Flag) bool) (rows []string) {
	row := func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && wanted(f) {
			rows = append(rows, fmt.Sprintf("| `--%s` %s | %s | %s |\n", f.Name, f.Value.Type(),
				strings.ReplaceAll(f.Usage, "|", "\\|"), defaultFlag(f)))
		}
	}
	c.NonInheritedFlags().VisitAll(row)
	c.InheritedFlags().VisitAll(row)
	slices.Sort(rows)
	return rows
}

// writeFlags writes the rows of flags, without the shared ones where all of them are there.
func writeFlags(out *strings.Builder, rows, shared []string) {
	isShared := func(row string) bool { return slices.Contains(shared, row) }
	if !slices.ContainsFunc(shared, func(row string) bool { return !slices.Contains(rows, row) }) {
		rows = slices.DeleteFunc(rows, isShared)
		out.WriteString("\nIt also takes the flags that say [where the index is](#where-the-index-is).\n")
	}
	if len(rows) > 0 {
		out.WriteString("\n| flag | meaning | default |\n|---|---|---|\n" + strings.Join(rows, ""))
	}
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
