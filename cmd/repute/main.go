// Command repute indexes the ERC-8004 registries of EVM chains and answers how
// far their agents can be trusted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"repute"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: it returns the exit code, 2 for wrong usage or
// input, 1 for anything else that failed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil, errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return 0
	case errors.Is(err, repute.ErrInvalid), errors.Is(err, repute.ErrConflict):
		fmt.Fprintln(stderr, "repute:", err)
		return 2
	}
	fmt.Fprintln(stderr, "repute:", err)
	return 1
}

// program is what every subcommand shares.
type program struct {
	flags  flags
	stdout io.Writer
	stderr io.Writer
}

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	p := &program{stdout: stdout, stderr: stderr}
	root := &cobra.Command{
		Use:           "repute",
		Short:         "ERC-8004 index and reputation service",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	p.flags.bind(root.PersistentFlags())
	root.AddCommand(p.demoCommand(), p.serveCommand(), p.importCommand(), p.reindexCommand(),
		p.dumpCommand(), p.migrateCommand(), p.statusCommand(), p.chainsCommand(), p.versionCommand())
	return root
}
