package tasks

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/standard"
)

// scaffolds are the agents that agent new writes. They need nothing but the standard
// library of their language.
//
//	Each has a README.md that tells the next steps.
//
//go:embed scaffold
var scaffolds embed.FS

// agentNewCommand returns `repute agent new`. The flag --remote is named after what the agent is for an orchestrator, a
// program that it calls over HTTP, and chooses Python.
func agentNewCommand(p *cli.Program) *cobra.Command {
	var python, runtime bool
	cmd := &cobra.Command{
		Use:   "new DIRECTORY",
		Short: "write an agent that compiles, has a test and can be run",
		Long: `Write an agent into a new directory, whose name is the agent's slug. It is a Go
program of its own that needs nothing but the standard library and serves the
protocol of docs/reference/agents.md; with --remote it is a Python program. With
--runtime it is configuration for repute agent serve, and a program for its capability.`,
		Example: "  repute agent new my-agent && repute agent run ./my-agent\n  repute agent new my-agent --runtime",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			from, next := "scaffold/go", "repute agent run "+runnable(args[0])
			switch {
			case python && runtime:
				return repute.Invalid("runtime", "comes with --remote", "one of both")
			case python:
				from = "scaffold/python"
			case runtime:
				from, next = "scaffold/runtime", "" // it cannot be served before it is registered
			}
			if err := writeAgent(from, args[0]); err != nil {
				return err
			}
			if next == "" {
				fmt.Fprintf(p.Stdout, "%s is written. Register the agent first: see %s\n", args[0],
					filepath.Join(args[0], "README.md"))
				return nil
			}
			fmt.Fprintf(p.Stdout, "%s is written; its README.md says how to go on:\n\n  %s\n", args[0], next)
			return nil
		},
	}
	cmd.Flags().BoolVar(&python, "remote", false, "an agent in Python instead of Go")
	cmd.Flags().BoolVar(&runtime, "runtime", false, "configuration of an agent that repute agent serve runs")
	return cmd
}

// runnable returns a directory in the form that agent run distinguishes from an agent's name. A directory without a dot
// and a slash would be taken for the name of an agent that repute comes with.
func runnable(dir string) string {
	if filepath.IsAbs(dir) || strings.HasPrefix(dir, ".") {
		return dir
	}
	return "./" + dir
}

// writeAgent writes a scaffold into a directory that is not there yet. The base of the directory's name becomes the
// agent's slug and is checked before anything is made. A failure after that, such as a full disk, leaves the directory
// with the files so far: the next attempt is then refused until it is removed.
//
// Files are stored with the ending .tmpl, so that the Go files among them are no part of this module. Placeholders are
// replaced in every file; a file that begins with #! is made executable.
func writeAgent(from, dir string) error {
	slug := filepath.Base(filepath.Clean(dir))
	info := standard.Info{Slug: slug, IdentityMode: standard.IdentityMode,
		Manifest: standard.Manifest{Slug: slug}}
	if err := standard.CheckInfo(info, false); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return repute.Invalid("directory", err.Error(), "one that can be made")
	}
	if err := os.Mkdir(dir, 0o755); errors.Is(err, fs.ErrExist) {
		return repute.Invalid("directory", fmt.Sprintf("%q exists", dir), "name a new directory")
	} else if err != nil {
		return repute.Invalid("directory", err.Error(), "one that is not there yet")
	}
	full, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	fill := strings.NewReplacer("__DIR__", full, "__SLUG__", slug, "__NAME__", titled(slug))
	return fs.WalkDir(scaffolds, from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := scaffolds.ReadFile(name)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(string(text), "#!") {
			mode = 0o755
		}
		return os.WriteFile(filepath.Join(dir, strings.TrimSuffix(path.Base(name), ".tmpl")),
			[]byte(fill.Replace(string(text))), mode)
	})
}

// titled returns the display name for a slug: My agent. The slug is not empty, which CheckInfo has made sure of.
func titled(slug string) string {
	words := strings.ReplaceAll(slug, "-", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}
