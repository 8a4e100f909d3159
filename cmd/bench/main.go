// Command bench measures repute on this machine: index, follow, documents, trust, runs, manifests, agent, api, web and
// export. It runs the binary of the product in processes of its own, on a private Postgres and generated histories, and
// prints one JSON report on standard output.
//
// Each subcommand reads its flags, refuses what leaves nothing to measure, and calls one package below internal/bench.
// Hidden subcommands are processes that a benchmark starts: the node that serves a history, and workers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"repute"
	"repute/internal/bench/harness"
)

// main ends the benchmark at the first signal: processes and databases are removed. A second signal kills this program
// at once, because the first one restores what signals do by default.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// errMissed is returned where a target was missed. The report is printed before, and says which one it was.
var errMissed = errors.New("a target was missed")

// run is the whole program: it returns the exit code, 2 for wrong usage, 1 for a missed
// target and anything else that failed, 130 for what was interrupted.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b := &benches{stdout: stdout, stderr: stderr}
	root := b.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	// Wrong usage first: it is wrong also where a signal came meanwhile.
	switch {
	case errors.Is(err, repute.ErrInvalid):
		return 2
	case ctx.Err() != nil:
		return 130
	}
	return 1
}

// benches is what the subcommands share.
type benches struct {
	stdout, stderr io.Writer
	program        string // path of the product's binary, as --program has it; relative to the working directory
}

// root has one subcommand for each benchmark, and hidden ones for the processes that benchmarks start.
func (b *benches) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bench",
		Short: "measure repute on this machine",
		Long: `Measures the product in processes of its own, on a private Postgres and a generated
history, and prints one JSON report on standard output.

Exit codes: 0 all targets are met; 1 a target was missed, which the report names, or
there is no report because something failed; 2 wrong usage; 130 interrupted.`,
		Args:          noArguments,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(b.stdout)
	root.SetErr(b.stderr)
	root.SetFlagErrorFunc(misused)
	root.PersistentFlags().StringVar(&b.program, "program", filepath.Join("bin", "repute"),
		"the binary to measure, which make build makes")
	root.AddCommand(b.indexCommand(), b.followCommand(), b.documentsCommand(), b.trustCommand(), b.runsCommand(),
		b.runsWorkerCommand(), b.nodeCommand(), b.agentCommand(), b.agentWorkerCommand(),
		b.manifestsCommand(), b.apiCommand(), b.apiBareCommand(), b.webCommand(), b.exportCommand())
	for _, cmd := range root.Commands() {
		cmd.Args = noArguments
		if !cmd.Hidden {
			cmd.Flags().Bool("json", true, "print the report as JSON, the only form there is")
		}
	}
	return root
}

// misused is a command line that nothing was done for.
func misused(cmd *cobra.Command, err error) error {
	return repute.Invalid(cmd.CommandPath(), err.Error(), "see "+cmd.CommandPath()+" --help")
}

// noArguments refuses arguments as wrong usage: cobra would take them for a failure of the benchmark.
func noArguments(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return misused(cmd, err)
	}
	return nil
}

// product is the binary that --program names. repute.ErrInvalid when there is none.
func (b *benches) product() (harness.Program, error) {
	path, err := filepath.Abs(b.program)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return harness.Program{}, repute.Invalid("program", "there is no "+b.program,
			"make build, or the path of a repute binary")
	}
	return harness.Program{Path: path}, nil
}

// self is this program, to be run again as a worker or as the node that serves a history. In tests it is their own
// binary, whose TestMain runs main.
func self() (harness.Program, error) {
	path, err := os.Executable()
	if err != nil {
		return harness.Program{}, fmt.Errorf("find this program: %w", err)
	}
	return harness.Program{Path: path}, nil
}

// report prints what a benchmark found. Nothing is printed on standard output where it failed, so that whatever is
// there is one whole report. The error is errMissed where a target was missed.
func (b *benches) report(r harness.Report, err error) error {
	if err != nil {
		return err
	}
	enc := json.NewEncoder(b.stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	if !r.OK() {
		return errMissed
	}
	return nil
}
