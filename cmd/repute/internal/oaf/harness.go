package oaf

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/manifest/oaf/harness"
	"repute/manifest/oaf/tree"
)

// Carried is the result of oaf export and oaf import, and their JSON output. Files are the names of the written files,
// with the directory that was given.
type Carried struct {
	Files []string `json:"files"`
	Notes []Note   `json:"notes"`
	// Problems are those of the agents of an import. An agent with an error is left out.
	Problems []Problem `json:"problems,omitempty"`
}

// Note is a part of an agent that is not carried as it is.
type Note struct {
	Kind   harness.Kind `json:"kind"`            // dropped or guessed
	Agent  string       `json:"agent,omitempty"` // "" for the source as a whole
	Field  string       `json:"field"`
	Reason string       `json:"reason"`
}

// notes returns notes in the form of the output.
func notes(list []harness.Note) []Note {
	out := []Note{}
	for _, n := range list {
		out = append(out, Note(n))
	}
	return out
}

// report prints what was written on standard output, and what is not carried on standard error, or both as one JSON
// object.
func report(p *cli.Program, c Carried) error {
	return p.Show(c, func(w io.Writer) error {
		c.write(w, p.Stderr)
		return nil
	})
}

// write prints the files to out, and what is not carried to notes.
func (c Carried) write(out, notes io.Writer) {
	for _, bad := range c.Problems {
		fmt.Fprintf(notes, "%s %s: %s (%s)\n", bad.Code, cli.Visible(bad.place()), cli.Visible(bad.Message),
			cli.Visible(bad.Hint))
	}
	for _, n := range c.Notes {
		label := "not carried"
		if n.Kind == harness.Guessed {
			label = "guessed"
		}
		parts := []string{label}
		if n.Agent != "" {
			parts = append(parts, n.Agent)
		}
		fmt.Fprintln(notes, cli.Visible(strings.Join(append(parts, n.Field, n.Reason), ": ")))
	}
	for _, name := range c.Files {
		fmt.Fprintln(out, cli.Visible(name))
	}
}

// exportCommand returns `repute oaf export`. The output may be the directory of a project, where none of the files may
// exist yet.
func exportCommand(p *cli.Program) *cobra.Command {
	var to, layout, output string
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "write an agent as the files that another harness loads",
		Long: `Write an agent and its local sub-agents as the files that another harness loads:
claude-code (.claude/agents, .claude/skills, .mcp.json), goose (AGENTS.md, .agents/skills,
recipes), deep-agents (.deepagents) or letta (one .af file). The text of the Open Agent
Format names other places for some of them, which the harnesses do not read: --layout text
writes those. What the harness has no place for is listed on standard error.`,
		Example: "  repute oaf export ./code-reviewer --to claude-code --output ./project",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := given("to", to, "claude-code, goose, deep-agents or letta"); err != nil {
				return err
			}
			if err := given("output", output, "DIR"); err != nil {
				return err
			}
			agent, err := usable(args[0])
			if err != nil {
				return err
			}
			out, err := harness.Export(agent, harness.Target(to), harness.Options{Layout: harness.Layout(layout)})
			if err != nil {
				return err
			}
			if err := write(output, out.Files, false); err != nil {
				return err
			}
			return report(p, Carried{Files: names(output, out.Files), Notes: notes(out.Notes)})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "claude-code, goose, deep-agents or letta (required)")
	cmd.Flags().StringVar(&layout, "layout", string(harness.LayoutLoaded),
		"loaded: where the harness looks; text: where the format's text says")
	cmd.Flags().StringVar(&output, "output", "", "directory to write below, e.g. the project's (required)")
	p.JSONFlag(cmd.Flags(), "print one JSON object: the files, and what is not carried")
	return cmd
}

// Sources of import.
const (
	fromClaudeCode = "claude-code"
	fromLetta      = "letta"
)

// importCommand returns `repute oaf import`. All agents are read before the first file is written, and those with
// errors are left out.
func importCommand(p *cli.Program) *cobra.Command {
	var from, vendor, output string
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "write agents of Claude Code or Letta as agents of the Open Agent Format",
		Long: `Write agents of Claude Code (a project's directory with .claude) or of Letta (an .af file) as
agents of the Open Agent Format, each in a directory of its key. What is not carried, and
what is guessed, such as a key that is made of a name, is listed on standard error. What the
source does not say, such as version and license, is left out: repute oaf check names it. An
agent with errors is left out as well, and the exit code is 1; name the publisher of agents
whose source has none with --vendor.`,
		Example: "  repute oaf import ./project --from claude-code --vendor acme --output ./agents",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := given("from", from, "claude-code or letta"); err != nil {
				return err
			}
			if err := given("output", output, "DIR"); err != nil {
				return err
			}
			agents, err := imports(args[0], from)
			if err != nil {
				return err
			}
			c := Carried{Notes: []Note{}}
			var files []tree.File
			broken := 0
			for _, in := range agents {
				c.Problems = append(c.Problems, newReport(args[0], nil, in.Problems).Problems...)
				c.Notes = append(c.Notes, notes(in.Notes)...)
				if _, has := repute.FirstError(in.Problems); has {
					broken++
					continue
				}
				own, err := imported(in, vendor)
				if err != nil {
					return err
				}
				files = append(files, own...)
			}
			if err := write(output, files, false); err != nil {
				return err
			}
			c.Files = names(output, files)
			if err := report(p, c); err != nil || broken == 0 {
				return err
			}
			return cli.ExitError{Code: cli.CodeFailed, Text: cli.Count(broken, "agent") + " with errors left out"}
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "claude-code or letta (required)")
	cmd.Flags().StringVar(&vendor, "vendor", "", "namespace of the publisher, for agents whose source names none")
	cmd.Flags().StringVar(&output, "output", "", "directory to write below (required)")
	p.JSONFlag(cmd.Flags(), "print one JSON object: the files, and what is not carried or guessed")
	return cmd
}

// imports reads the agents of a source. Claude Code's files are read within os.OpenRoot, because a project may come
// from a stranger.
func imports(source, from string) ([]harness.Import, error) {
	switch from {
	case fromClaudeCode:
		const hint = "the directory of a project of Claude Code, which has .claude"
		root, err := os.OpenRoot(source)
		if info, other := os.Stat(source); other == nil && !info.IsDir() {
			return nil, repute.Invalid("source", source+" is a file", hint)
		}
		if err != nil {
			return nil, repute.Invalid("source", err.Error(), hint)
		}
		defer root.Close()
		return harness.FromClaudeCode(root.FS())
	case fromLetta:
		b, err := readFile(source, "an .af file of Letta")
		if err != nil {
			return nil, err
		}
		return harness.FromLetta(b)
	}
	return nil, repute.Invalid("from", fmt.Sprintf("%.80q is unknown", from), "claude-code or letta")
}

// imported returns the files of an imported agent below a directory of its key. A key that is no directory is refused:
// the source is untrusted, and could leave the directory that is written below.
func imported(in harness.Import, vendor string) ([]tree.File, error) {
	a := in.Agent
	if a.VendorKey == "" && vendor != "" {
		a.VendorKey, a.Slug = vendor, vendor+"/"+a.AgentKey
	}
	if !tree.IsSafe(a.AgentKey) || strings.Contains(a.AgentKey, "/") {
		return nil, repute.Invalid("source", fmt.Sprintf("the key %.80q makes no directory", a.AgentKey), "another key")
	}
	files, err := a.Write()
	return tree.Within(a.AgentKey, files), err
}
