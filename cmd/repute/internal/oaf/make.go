package oaf

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	format "repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

func newCommand(p *cli.Program) *cobra.Command {
	var vendor, template string
	cmd := &cobra.Command{
		Use:   "new DIR",
		Short: "write an agent to begin with",
		Long: `Write an agent to begin with into a new directory. The name of the directory is the agent's
key: lower-case letters and digits with single hyphens. Templates: minimal (instructions in
sections), sub-agent (a direct prompt and few tools), full (also a skill, an MCP server,
memory, and a reference to a sub-agent).`,
		Example: "  repute oaf new code-reviewer --vendor acme --template sub-agent",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			agent, err := format.New(format.Template(template), vendor, filepath.Base(dir))
			if err != nil {
				return err
			}
			files, err := agent.Write()
			if err != nil {
				return err
			}
			return write(p, args[0], append(files, agent.Generate()...), false)
		},
	}
	cmd.Flags().StringVar(&vendor, "vendor", "", "namespace of the publisher, e.g. acme (required)")
	cmd.Flags().StringVar(&template, "template", string(format.TemplateMinimal), "minimal, sub-agent or full")
	_ = cmd.MarkFlagRequired("vendor") // the flag exists
	return cmd
}

func generateCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "generate DIR",
		Short: "write README.md and LICENSE of an agent where they are missing",
		Long: `Write README.md and LICENSE of an agent where they are missing. Both are made of AGENTS.md
alone, so that they are the same every time. Existing files are left as they are.`,
		Example: "  repute oaf generate ./code-reviewer",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := usable(args[0])
			if err != nil {
				return err
			}
			return write(p, args[0], agent.Generate(), false)
		},
	}
}

func versionCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version DIR NEXT",
		Short: "keep the present AGENTS.md below versions/ and give it a later version",
		Long: `Keep the present AGENTS.md as versions/v{its version}/AGENTS.md, and give AGENTS.md a later
version. Nothing else of the file changes.`,
		Example: "  repute oaf version ./code-reviewer 1.1.0",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := usable(args[0])
			if err != nil {
				return err
			}
			text, err := os.ReadFile(filepath.Join(args[0], format.ManifestName))
			if err != nil {
				return fmt.Errorf("read %s: %w", format.ManifestName, err)
			}
			files, err := format.NextVersion(agent, text, args[1])
			if err != nil {
				return err
			}
			return write(p, args[0], files, true)
		},
	}
}

func packCommand(p *cli.Program) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "pack DIR...",
		Short: "write agents into an archive",
		Long: `Write one or more agents into an archive (.oaf, a zip file with PACKAGE.yaml). Equal
directories make equal archives.`,
		Example: "  repute oaf pack ./code-reviewer --output code-reviewer-1.0.0.oaf",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := pack(args)
			if err != nil {
				return err
			}
			return p.WriteFile(output, func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "name of the archive, or - for standard output (required)")
	_ = cmd.MarkFlagRequired("output") // the flag exists
	return cmd
}

// pack returns the archive of the agents of directories.
func pack(dirs []string) ([]byte, error) {
	var agents []*format.Agent
	files := map[string][]tree.File{}
	for _, dir := range dirs {
		agent, err := usable(dir)
		if err != nil {
			return nil, err
		}
		if _, twice := files[agent.AgentKey]; twice {
			return nil, repute.Invalid("agents", fmt.Sprintf("two agents have the key %.80q", agent.AgentKey), "pack them apart")
		}
		if files[agent.AgentKey], err = filesOf(dir); err != nil {
			return nil, err
		}
		agents = append(agents, agent)
	}
	return format.Pack(agents, files)
}

func unpackCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "unpack ZIP DIR",
		Short: "write the files of an archive of agents into a directory",
		Long: `Write the files of an archive of agents into a directory. An archive with an unsafe entry,
such as a path with .., a symbolic link or a bomb, is refused as a whole, and no existing
file is replaced.`,
		Example: "  repute oaf unpack code-reviewer-1.0.0.oaf ./agents",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := readArchive(args[0])
			if err != nil {
				return err
			}
			files, problems := format.Unpack(b, problem.Lenient)
			if bad, has := repute.FirstError(problems); has {
				return repute.Invalid(path.Join(filepath.Base(args[0]), bad.File), bad.Message, problem.Hint(bad.Code))
			}
			return write(p, args[1], files, false)
		},
	}
}
