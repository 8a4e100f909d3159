package oaf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	format "repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// newCommand returns `repute oaf new`. The key of the agent is the base of the absolute path, so that . names the
// directory that one is in.
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
			if err := given("vendor", vendor, "NAME"); err != nil {
				return err
			}
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
			generated, _ := agent.Generate() // a new agent has no edited files
			files = append(files, generated...)
			if err := write(args[0], files, false); err != nil {
				return err
			}
			list(p, args[0], files)
			return nil
		},
	}
	cmd.Flags().StringVar(&vendor, "vendor", "", "namespace of the publisher, e.g. acme (required)")
	cmd.Flags().StringVar(&template, "template", string(format.TemplateMinimal), "minimal, sub-agent or full")
	return cmd
}

// generateCommand returns `repute oaf generate`.
func generateCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "generate DIR",
		Short: "write README.md and LICENSE of an agent where they are missing or out of date",
		Long: `Write README.md and LICENSE of an agent where they are missing, and where they were
generated of an earlier AGENTS.md and nobody has edited them. Both are made of the agent
alone, so that they are the same every time. An edited file is left as it is, and a note on
standard error says so.`,
		Example: "  repute oaf generate ./code-reviewer",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := usable(args[0])
			if err != nil {
				return err
			}
			if err := agent.CheckIdentity(); err != nil {
				return err
			}
			files, edited := agent.Generate()
			return renew(p, args[0], files, edited)
		},
	}
}

// renew writes files of an agent's directory, also those that exist, and names the ones that are left.
func renew(p *cli.Program, dir string, files []tree.File, edited []string) error {
	if err := write(dir, files, true); err != nil {
		return err
	}
	list(p, dir, files)
	for _, name := range edited {
		fmt.Fprintf(p.Stderr, "%s is left as it is: it was edited. Remove it to have it generated.\n",
			cli.Visible(filepath.Join(dir, name)))
	}
	return nil
}

// versionCommand returns `repute oaf version`.
func versionCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version DIR NEXT",
		Short: "keep the present AGENTS.md below versions/ and give it a later version",
		Long: `Keep the present AGENTS.md as versions/v{its version}/AGENTS.md, and give AGENTS.md a later
version. Nothing else of the file changes. A README.md or LICENSE that was generated is
generated again; an edited one is left as it is, and a note on standard error says so.`,
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
			files, edited, err := format.NextVersion(agent, text, args[1])
			if err != nil {
				return err
			}
			return renew(p, args[0], files, edited)
		},
	}
}

// packCommand returns `repute oaf pack`. The archive is complete in memory before its file is replaced.
func packCommand(p *cli.Program) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "pack DIR...",
		Short: "write agents into an archive",
		Long: `Write one or more agents into an archive (.oaf, a zip file with PACKAGE.yaml). Equal
directories make equal archives. The archive itself is never packed: it may be below a
directory.`,
		Example: "  repute oaf pack ./code-reviewer --output code-reviewer-1.0.0.oaf",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := given("output", output, "FILE"); err != nil {
				return err
			}
			data, err := pack(args, output)
			if err != nil {
				return err
			}
			err = p.WriteFile(output, func(w io.Writer) error {
				_, err := w.Write(data)
				return err
			})
			if err == nil && output != "-" {
				fmt.Fprintln(p.Stdout, cli.Visible(output))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "name of the archive, or - for standard output (required)")
	return cmd
}

// pack returns the archive of the agents of directories, without the file output. Agents are the directories of the
// archive, by their keys, so that two of one key cannot be packed together.
func pack(dirs []string, output string) ([]byte, error) {
	var agents []*format.Agent
	files := map[string][]tree.File{}
	for _, dir := range dirs {
		agent, err := usable(dir)
		if err != nil {
			return nil, err
		}
		if _, twice := files[agent.AgentKey]; twice {
			return nil, repute.Invalid("agents", fmt.Sprintf("two agents have the key %.80q", agent.AgentKey),
				"pack them apart")
		}
		if files[agent.AgentKey], err = filesOf(dir); err != nil {
			return nil, err
		}
		files[agent.AgentKey] = slices.DeleteFunc(files[agent.AgentKey], func(f tree.File) bool {
			return isSameFile(filepath.Join(dir, filepath.FromSlash(f.Path)), output)
		})
		agents = append(agents, agent)
	}
	return format.Pack(agents, files)
}

// isSameFile reports whether two names are those of one file that exists. Names are compared by the file and not by
// their text: a link or another spelling is the same one.
func isSameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// unpackCommand returns `repute oaf unpack`. The whole archive is checked before the first file is written.
func unpackCommand(p *cli.Program) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "unpack ZIP DIR",
		Short: "write the files of an archive of agents into a new directory",
		Long: `Write the files of an archive of agents into a directory that is new or empty. An archive
with an unsafe entry, such as a path with .., a symbolic link or a bomb, is refused as a
whole.

With --force the directory may have other files. The directory of each agent of the archive
takes the place of the one of its name, of which no file is left, and so does PACKAGE.yaml;
all else stays. A directory that has not the same agent, or has data of version control, is
never replaced.`,
		Example: "  repute oaf unpack code-reviewer-1.0.0.oaf ./agents",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := unpacked(args[0])
			if err != nil {
				return err
			}
			err = tree.Install(args[1], files, force, format.PackageName, agentOf)
			if errors.Is(err, repute.ErrConflict) && !force {
				return fmt.Errorf("%w: name a new directory, or replace the agents of the same names with --force", err)
			}
			if err == nil {
				list(p, args[1], files)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace agents of the same names in the directory, each as a whole")
	return cmd
}

// agentOf returns the id of the agent in a directory, empty for none.
func agentOf(fsys fs.FS, dir string) string {
	a, _ := format.Load(fsys, dir, problem.Lenient)
	if a == nil {
		return ""
	}
	return a.ID()
}

// unpacked returns the files of an archive that is safe to unpack.
func unpacked(name string) ([]tree.File, error) {
	b, err := readArchive(name)
	if err != nil {
		return nil, err
	}
	files, problems := format.Unpack(b, problem.Lenient)
	if bad, has := repute.FirstError(problems); has {
		return nil, repute.Invalid(path.Join(filepath.Base(name), bad.File), bad.Message, bad.Hint)
	}
	return files, nil
}
