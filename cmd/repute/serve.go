package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/progress"
	"repute/cmd/repute/internal/service"
	"repute/store"
	"repute/store/query"
)

// serveCommand returns repute serve, the one command that runs until it is stopped and that migrates the database.
func serveCommand(p *cli.Program) *cobra.Command {
	var end service.Ending
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "index chains, read documents and answer",
		Long: `Runs the configured roles until SIGTERM or Ctrl-C. Any number of processes may
share one Postgres.

  repute serve --chain base --rpc https://your-node.example

With --once or --until-block it ends by itself, exit code 0, when every chain is
indexed that far; --roles indexer leaves the rest out.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("until-block") && end.Until == 0 {
				return repute.Invalid("until-block", "0 is before every block", "a block above the chain's start")
			}
			return serve(cmd.Context(), p, end)
		},
	}
	p.Flags.Serving(cmd.Flags())
	cmd.Flags().Uint64Var(&end.Until, "until-block", 0, "end when this block of the one chain is indexed")
	cmd.Flags().BoolVar(&end.Once, "once", false, "end when the head that each node has at the start is indexed")
	return cmd
}

// serve checks the configuration as far as possible before it opens anything, and runs the service.
// A signal is an error only if it came before a requested end.
func serve(ctx context.Context, p *cli.Program, end service.Ending) error {
	c, err := p.Flags.Load()
	if err != nil {
		return err
	}
	if err := c.CheckChains(); err != nil {
		return err
	}
	if c.Has("indexer") && len(c.Chains) == 0 {
		return repute.Invalid("chains", "role indexer has no chain to follow",
			"e.g. --chain base --rpc URL, or --roles api,documents")
	}
	if err := end.Check(c); err != nil {
		return err
	}
	if err := service.CheckSender(ctx, &c); err != nil {
		return err
	}
	err = serveOn(ctx, p, c, end)
	switch {
	case ctx.Err() == nil:
	case end.Comes():
		return fmt.Errorf("ended before everything was indexed: %w", ctx.Err())
	case errors.Is(err, context.Canceled):
		return nil // interrupted during the start
	}
	return err
}

// settle completes the configured chains with data from the database, and refuses a default chain that nobody has. It
// runs after the migration and before the service, because only then the stored chains are known.
func settle(ctx context.Context, c *config.Config, db *store.DB) error {
	stored, err := query.Chains(ctx, db)
	if err != nil {
		return err
	}
	c.Complete(cli.Plain(stored)...)
	return c.CheckDefault(stored)
}

// serveOn runs the service on its database until ctx ends, which is no error, or until the requested end. The port is
// opened first and the database last, so that requests wait in the port's queue while the service waits for a database
// that is unavailable. What was opened is closed in reverse: the database before the server that it is on, and the
// screen last.
func serveOn(ctx context.Context, p *cli.Program, c config.Config, end service.Ending) error {
	screen := newScreen(p, c)
	defer screen.Close()
	log := c.Logger(screen)
	listener, err := listener(&c)
	if err != nil {
		return err
	}
	database, err := cli.FindDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer database.Stop()
	db, err := cli.AwaitStore(ctx, database.URL, c, log)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := settle(ctx, &c, db); err != nil {
		return err
	}
	c.Signing.Warn(log, time.Now())
	s := service.New(c, db, log)
	s.Ending, s.Screen, s.Restarts = end, screen, database.Restarts
	if err := s.Run(ctx, listener); err != nil {
		return err
	}
	if end.Comes() && ctx.Err() == nil {
		return tellEnd(ctx, p, db, s.Config)
	}
	log.Info("stopped")
	return nil
}

// tellEnd prints the indexed blocks of each chain after a run with a requested end.
func tellEnd(ctx context.Context, p *cli.Program, db *store.DB, c config.Config) error {
	stored, err := query.Chains(ctx, db)
	if err != nil {
		return err
	}
	chains, err := c.Followed()
	if err != nil {
		return err
	}
	for _, f := range chains {
		if now, err := cli.Indexed(stored, f.ID); err == nil {
			fmt.Fprintf(p.Stdout, "%s is indexed to block %d\n", f.Name, now.Block.Number)
		}
	}
	return nil
}

// newScreen returns a screen with progress bars on a terminal.
func newScreen(p *cli.Program, c config.Config) *progress.Screen {
	return progress.NewScreen(p.Stderr, cli.IsTerminal(p.Stderr) && c.LogFormat == "text")
}

// listener opens the API's port before slow work, so that a used port is reported at once. Nil without the role api.
// The service closes it.
func listener(c *config.Config) (net.Listener, error) {
	if !c.Has("api") {
		return nil, nil
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, repute.Invalid("listen", err.Error(), "choose another address with --listen HOST:PORT")
	}
	return l, nil
}
