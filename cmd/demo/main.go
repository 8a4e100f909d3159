// Command demo shows repute at work on one machine: it starts a private Postgres, an Ethereum
// chain with the three registries and a population, a server for their documents, and the binary
// of the product on top, twice: as the service, and as the runtime of an agent that is paid. Nothing
// is kept.
//
// It knows the product as a user does, by its binary, its configuration file and its API, and imports none of its
// commands. So the demo is also a test of the whole (--once): it lets the population live through some blocks and a
// reorganization, waits until the index is at the chain's head, and compares
//
//   - every agent, rating, summary, tag and validation with the view functions of the contracts (verification);
//   - scores with what the population deserves, and the decisions of the tutorial with the page that shows them;
//   - four tasks with what must become of them: one is done, one is refused because a ring praises its agent, one is
//     answered by an agent of the Open Agent Format with a scripted model, and one buys an answer by x402.
//
// The crew are the demo's own agents. They are registered and rated on the chain before the population is, so that the
// orchestrator's trust gate has something to go by. demo.run starts the parts from the bottom up and takes them down in
// reverse; a part that ends by itself ends all.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"repute"
)

// main ends the demo at the first signal in order, and at the second one at once.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: it returns the exit code, 2 for wrong usage, 1 for anything else
// that failed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := command(stdout, stderr)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "demo: %v\n", err)
	if errors.Is(err, repute.ErrInvalid) {
		return 2
	}
	return 1
}

// options are what a caller may choose. once compares and ends instead of serving a person.
type options struct {
	stdout, stderr      io.Writer
	log                 *slog.Logger
	program             string // path of the product's binary
	listen              string // host:port of the API
	logLevel, logFormat string
	once, allRoles      bool
}

// command returns the command line. With --once the port is any free one, so that several comparisons may run at the
// same time; a person finds the demo at the same address each time.
func command(stdout, stderr io.Writer) *cobra.Command {
	o := options{stdout: stdout, stderr: stderr}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "everything on one machine: chain, agents, index, API",
		Long: `Starts a private Postgres, an Ethereum chain with the three registries, a
population of agents, clients and validators, a server for their documents,
repute on top, and a runtime of an agent that is paid. Nothing is kept.

With --once it compares every answer of the API with the chain's own view
functions, prints a JSON summary and exits with 1 where an answer differs.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return misused(cmd, err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.once && !cmd.Flags().Changed("listen") {
				o.listen = "127.0.0.1:0"
			}
			return show(cmd.Context(), o)
		},
	}
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetFlagErrorFunc(misused)
	f := cmd.Flags()
	f.BoolVar(&o.once, "once", false, "verify the index against the chain, print a summary, exit")
	f.BoolVar(&o.allRoles, "all-roles", false,
		"give the token of role own all roles, for programs that try every operation")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "host:port of the API; port 0 for any")
	f.StringVar(&o.logLevel, "log-level", "warn", "of repute: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "of repute: text or json")
	f.StringVar(&o.program, "program", filepath.Join("bin", "repute"), "the binary of repute, which make build makes")
	return cmd
}

// misused is a command line that nothing was done for.
func misused(cmd *cobra.Command, err error) error {
	return repute.Invalid(cmd.CommandPath(), err.Error(), "see --help")
}

// show runs the demo. repute.ErrInvalid when there is no binary of the product.
func show(ctx context.Context, o options) error {
	path, err := filepath.Abs(o.program)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return repute.Invalid("program", "there is no "+o.program, "make build, or the path of a repute binary")
	}
	o.program, o.log = path, slog.New(slog.NewTextHandler(o.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := newDemo(o)
	if err != nil {
		return err
	}
	return d.run(ctx)
}
