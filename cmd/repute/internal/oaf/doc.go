// Package oaf has the commands for agents of the Open Agent Format: check, make, pack, export and import them.
//
// The format itself is package manifest/oaf, which does no I/O. This package reads directories and archives into it,
// and writes what it returns. Archives and directories may come from strangers: they are read within the bounds of
// package manifest/oaf/tree, which refuses paths that lead out of a directory, links and bombs. Commands that write
// never replace a file of somebody else: new, export and import refuse a directory that has one of the names, unpack
// replaces agents only with --force and only as a whole, and generate and version leave edited files as they are.
//
// check is the only command that may ask other computers or start programs, and only where its flags allow it. It has
// the report and the exit codes of manifest check. The other commands refuse an agent with errors, and name check.
package oaf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"repute"
	"repute/agent/llm/oafagent"
	"repute/cmd/repute/internal/cli"
	format "repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// Command returns the commands for agents of the Open Agent Format.
func Command(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oaf",
		Short: "check, make, pack, export and import agents of the Open Agent Format",
	}
	cmd.AddCommand(checkCommand(p), newCommand(p), generateCommand(p), versionCommand(p), packCommand(p),
		unpackCommand(p),
		exportCommand(p), importCommand(p))
	return cmd
}

// profile returns the profile of --strict.
func profile(strict bool) problem.Profile {
	if strict {
		return problem.Strict
	}
	return problem.Lenient
}

// usable reads the agent of a directory for a command that needs one without errors. The first error is returned, with
// the command that lists all.
func usable(dir string) (*format.Agent, error) {
	agent, problems, err := oafagent.Load(dir, problem.Lenient)
	if err != nil {
		return nil, err
	}
	if bad, has := repute.FirstError(problems); has || agent == nil {
		return nil, repute.Invalid(cmp.Or(bad.File, dir), bad.Message, "repute oaf check "+dir+" lists all problems")
	}
	return agent, nil
}

// filesOf returns all files of an agent's directory as they are. os.OpenRoot keeps links from leading out of the
// directory.
func filesOf(dir string) ([]tree.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	defer root.Close()
	list := &problem.List{}
	files := tree.Read(root.FS(), ".", tree.NewBudget(), list)
	if bad, has := repute.FirstError(list.Problems()); has {
		return nil, repute.Invalid(bad.File, bad.Message, bad.Hint)
	}
	return files, nil
}

// write writes files below a directory, which it makes. Without replace nothing is written where one of the files
// exists.
func write(dir string, files []tree.File, replace bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return repute.Invalid("output", err.Error(), "a directory that can be written")
	}
	err := tree.Write(dir, files, replace)
	if errors.Is(err, repute.ErrConflict) {
		return fmt.Errorf("%s: %w: choose another directory, or remove it", dir, err)
	}
	return err
}

// list prints the names of files that were written below a directory.
func list(p *cli.Program, dir string, files []tree.File) {
	for _, name := range names(dir, files) {
		fmt.Fprintln(p.Stdout, cli.Visible(name))
	}
}

// names returns the names of files below a directory.
func names(dir string, files []tree.File) []string {
	out := []string{}
	for _, f := range files {
		out = append(out, filepath.Join(dir, filepath.FromSlash(f.Path)))
	}
	return out
}

// given refuses a flag without a value, which is wrong usage.
func given(flag, value, allowed string) error {
	if value == "" {
		return repute.Invalid(flag, "is missing", "--"+flag+" "+allowed)
	}
	return nil
}
