package oaf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/manifest/oaf/harness"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

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
			agent, err := usable(args[0])
			if err != nil {
				return err
			}
			out, err := harness.Export(agent, harness.Target(to), harness.Options{Layout: harness.Layout(layout)})
			if err != nil {
				return err
			}
			for _, l := range out.Lost {
				fmt.Fprintf(p.Stderr, "not carried: %s: %s: %s\n", cli.Visible(l.Agent), l.Field, cli.Visible(l.Reason))
			}
			return write(p, output, out.Files, false)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "claude-code, goose, deep-agents or letta (required)")
	cmd.Flags().StringVar(&layout, "layout", string(harness.LayoutLoaded),
		"loaded: where the harness looks; text: where the format's text says")
	cmd.Flags().StringVar(&output, "output", "", "directory to write below, e.g. the project's (required)")
	_ = cmd.MarkFlagRequired("to") // both flags exist
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

// Sources of import.
const (
	fromClaudeCode = "claude-code"
	fromLetta      = "letta"
)

func importCommand(p *cli.Program) *cobra.Command {
	var from, vendor, output string
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "write agents of Claude Code or Letta as agents of the Open Agent Format",
		Long: `Write agents of Claude Code (a project's directory with .claude) or of Letta (an .af file) as
agents of the Open Agent Format, each in a directory of its key. What the source does not
say, such as version and license, is left out: repute oaf check names it.`,
		Example: "  repute oaf import ./project --from claude-code --vendor acme --output ./agents",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			agents, err := imports(args[0], from)
			if err != nil {
				return err
			}
			for _, in := range agents {
				for _, bad := range in.Problems {
					fmt.Fprintf(p.Stderr, "%s %s: %s\n", bad.Code, cli.Visible(bad.File), cli.Visible(bad.Message))
				}
				if err := writeImport(p, in, vendor, output); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "claude-code or letta (required)")
	cmd.Flags().StringVar(&vendor, "vendor", "", "namespace of the publisher, for agents whose source names none")
	cmd.Flags().StringVar(&output, "output", "", "directory to write below (required)")
	_ = cmd.MarkFlagRequired("from") // both flags exist
	_ = cmd.MarkFlagRequired("output")
	return cmd
}

// imports reads the agents of a source.
func imports(source, from string) ([]harness.Import, error) {
	switch from {
	case fromClaudeCode:
		root, err := os.OpenRoot(source)
		if err != nil {
			return nil, repute.Invalid("directory", err.Error(), "the directory of a project of Claude Code")
		}
		defer root.Close()
		return harness.FromClaudeCode(root.FS())
	case fromLetta:
		b, err := readArchive(source)
		if err != nil {
			return nil, err
		}
		return harness.FromLetta(b)
	}
	return nil, repute.Invalid("from", fmt.Sprintf("%.80q is unknown", from), "claude-code or letta")
}

// writeImport writes an imported agent to a directory below output. A name that is no directory is refused: the file is
// foreign and could leave output.
func writeImport(p *cli.Program, in harness.Import, vendor, output string) error {
	if slices.ContainsFunc(in.Problems, func(b problem.Problem) bool { return b.Severity == repute.SeverityError }) {
		return repute.Invalid("source", "an agent has errors", "mend them first")
	}
	a := in.Agent
	if a.VendorKey == "" && vendor != "" {
		a.VendorKey, a.Slug = vendor, vendor+"/"+a.AgentKey
	}
	if !tree.IsSafe(a.AgentKey) || strings.Contains(a.AgentKey, "/") {
		return repute.Invalid("source", "an agent has no name that makes a directory", "name it")
	}
	files, err := a.Write()
	if err != nil {
		return err
	}
	return write(p, filepath.Join(output, a.AgentKey), files, false)
}
