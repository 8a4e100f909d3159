// Command repute indexes the ERC-8004 registries of EVM chains and answers how
// far their agents can be trusted.
//
// This package has the root of the command line, the commands of the index (serve, import, export events, verify,
// reindex, dump, migrate, status), and those that have no other home. The others are in packages below internal, one
// for each subject, which export a function for each command or family of commands; root puts them together. What they
// share is in internal/cli, what an operator can set in internal/config, and the roles of serve in internal/service.
//
// A run of the program is one command: its context ends with the first SIGINT or SIGTERM, its error becomes a line on
// standard error and an exit code (exitCode), and its result goes to standard output. Cobra's own handling of wrong
// usage is replaced: every error of the command line names the command, what is wrong and what is allowed (misused).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"repute"
	"repute/cmd/repute/internal/agents"
	"repute/cmd/repute/internal/bulk"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/crawl"
	"repute/cmd/repute/internal/files"
	"repute/cmd/repute/internal/intents"
	"repute/cmd/repute/internal/oaf"
	"repute/cmd/repute/internal/payments"
	"repute/cmd/repute/internal/scores"
	"repute/cmd/repute/internal/tasks"
	"repute/cmd/repute/internal/webhooks"
)

// main does nothing but what cannot be tested: it exits. Everything else is in run.
func main() {
	ctx, stop := interruptible()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible returns a context that ends at the first Ctrl-C or SIGTERM. The second signal ends
// the process at once, by the default handler.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// codeInterrupted is the exit code of a command that a signal ended early.
const codeInterrupted = 130

// run is the whole program. It returns the exit code: 2 for wrong usage or input, 1 for another
// failure, 130 after an interruption.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	if err := knownCommand(root, args); err != nil {
		return exitCode(ctx, err, stderr)
	}
	root.SetArgs(args)
	return exitCode(ctx, root.ExecuteContext(ctx), stderr)
}

// knownCommand refuses an unknown command, also together with --help, which cobra handles before
// the arguments. Requests of shells for completions are left to cobra.
func knownCommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(args)
	if err == nil && cmd == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") &&
		!strings.HasPrefix(rest[0], cobra.ShellCompRequestCmd) {
		return misused(cmd, unknownCommand(cmd, rest[0]))
	}
	return nil
}

// exitCode prints an error and returns its exit code.
func exitCode(ctx context.Context, err error, stderr io.Writer) int {
	var chosen cli.ExitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(stderr, "repute: interrupted")
		return codeInterrupted
	}
	fmt.Fprintln(stderr, "repute:", cli.VisibleLines(err.Error())) // errors may quote strangers
	switch {
	case errors.As(err, &chosen):
		return chosen.Code
	case errors.Is(err, repute.ErrInvalid), errors.Is(err, repute.ErrConflict):
		return 2
	}
	return 1
}

// newRoot returns the command line with its output streams.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	p := &cli.Program{Stdin: os.Stdin, Stdout: stdout, Stderr: stderr, Terminal: cli.IsTerminal(os.Stdin) &&
		cli.IsTerminal(stderr)}
	return root(p)
}

// root returns the command with all subcommands.
func root(p *cli.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "repute",
		Short: "ERC-8004 index and reputation service",
		Long: `Indexes the ERC-8004 registries of EVM chains and answers how far their agents can
be trusted.

Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted before it was
done. verify says more with its own: see its help.`,
		Version:          config.Build(),
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { p.Flags.Set = cmd.Flags() },
		SilenceUsage:     true,
		SilenceErrors:    true,
	}
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetVersionTemplate("{{.Version}}\n")
	manifests := files.ManifestCommand(p)
	manifests.AddCommand(crawl.ImportCommand(p), crawl.ProbeCommand(p))
	root.AddCommand(serveCommand(p), importEventsCommand(p), exportCommand(p), reindexCommand(p),
		dumpCommand(p), verifyCommand(p), migrateCommand(p), statusCommand(p), chainsCommand(p),
		files.DocumentsCommand(p),
		scores.ScoreCommand(p), scores.TrustCommand(p), manifests, oaf.Command(p),
		scores.RootsCommand(p), scores.SourcesCommand(p), scores.EvidenceCommand(p), keysCommand(p),
		bulk.KeysCommand(p), verifySnapshotCommand(p),
		tasks.TaskCommand(p), tasks.RunCommand(p), agentCommand(p), mcpCommand(p),
		webhooks.Command(p), intents.Command(p), payments.FacilitatorCommand(p), payments.PayCommand(p),
		payments.FeedbackCommand(p),
		movedCommand("bench", "make bench, or go run ./cmd/bench NAME"),
		movedCommand("demo", "make demo, or go run ./cmd/demo"), versionCommand(p))
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err) })
	strict(root)
	return root
}

// agentCommand has the commands for agents of the orchestrator, and those of the runtime for agents of
// one's own.
func agentCommand(p *cli.Program) *cobra.Command {
	cmd := tasks.AgentCommand(p)
	cmd.AddCommand(agents.ServeCommand(p), agents.VerifyCommand(p), agents.ComplianceCommand(p),
		agents.RefundsCommand(p))
	return cmd
}

// movedCommand returns a hidden command that names the program which has the command now. Benchmarks and the demo link
// an Ethereum node, which the product must not.
func movedCommand(name, use string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              use,
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return repute.Invalid(cmd.Name(), "a program of its own", use)
		},
	}
}

// misused returns the error of a command line that is wrong. Its field is the command without the
// name of the program, which every message begins with.
func misused(cmd *cobra.Command, err error) error {
	field := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	if cmd == cmd.Root() {
		field = "command line"
	}
	reason := err.Error()
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		reason += similarFlags(cmd, unknown.GetSpecifiedName())
	}
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) { // the text of package strconv is for programmers
		reason = fmt.Sprintf("--%s: %.60q is no %s", wrong.GetFlag().Name, wrong.GetValue(),
			kindOf(wrong.GetFlag().Value.Type()))
	}
	return repute.Invalid(field, reason, cmd.UseLine()+"; see "+cmd.CommandPath()+" --help")
}

// unknownCommand returns the error for a name that no subcommand has. It suggests similar names.
func unknownCommand(cmd *cobra.Command, name string) error {
	return fmt.Errorf("unknown command %q%s", name, suggestion(cmd, name, ""))
}

// suggestion returns the part of an error that suggests the commands below cmd with names that are similar
// to a misspelled one; empty if there is none.
func suggestion(cmd *cobra.Command, name, prefix string) string {
	cmd.SuggestionsMinimumDistance = 2 // edits between the names; cobra's own default
	similar := cmd.SuggestionsFor(name)
	if len(similar) == 0 {
		return ""
	}
	return ", did you mean " + prefix + strings.Join(similar, " or "+prefix) + "?"
}

// similarFlags is suggestion for a flag of cmd.
func similarFlags(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return suggestion(flags, name, "--")
}

// kindOf describes the values of a flag type.
func kindOf(flagType string) string {
	switch flagType {
	case "uint", "uint64":
		return "whole number from 0 on"
	case "int", "int64":
		return "whole number"
	case "float64":
		return "number"
	case "bool":
		return "true or false"
	}
	return flagType
}

// strict makes wrong arguments of a command and its subcommands a usage error, including unknown
// subcommands. A command that only has subcommands prints its help without arguments; cobra would also print it, and
// exit with 0, for a subcommand that does not exist.
func strict(cmd *cobra.Command) {
	if args := cmd.Args; args != nil {
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			if err := args(cmd, given); err != nil {
				return misused(cmd, err)
			}
			return nil
		}
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, given []string) error {
			if len(given) > 0 {
				return misused(cmd, unknownCommand(cmd, given[0]))
			}
			return cmd.Help()
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}
