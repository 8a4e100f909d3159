package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/store"
	"repute/store/query"
)

func (p *program) serveCommand() *cobra.Command {
	var end ending
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
			end.never = cmd.Flags().Changed("until-block") && end.until == 0
			return p.serve(cmd.Context(), end)
		},
	}
	p.flags.serving(cmd.Flags())
	cmd.Flags().Uint64Var(&end.until, "until-block", 0, "end when this block of the one chain is indexed")
	cmd.Flags().BoolVar(&end.once, "once", false, "end when the head that each node has at the start is indexed")
	return cmd
}

// ending is when a service ends by itself; the zero value is never.
type ending struct {
	until uint64
	once  bool
	never bool // until was set to 0
}

func (e ending) comes() bool { return e != ending{} }

// check refuses endings that would never come.
func (e ending) check(c config) error {
	switch {
	case e.never:
		return repute.Invalid("until-block", "0 is before every block", "a block above the chain's start")
	case !e.comes():
	case !c.has("indexer"):
		return repute.Invalid("roles", "--once and --until-block need the role indexer", "e.g. --roles indexer")
	case e.until > 0 && e.once:
		return repute.Invalid("until-block", "given with --once", "one of the two")
	case e.until > 0 && len(c.Chains) != 1:
		return repute.Invalid("until-block", fmt.Sprintf("%d chains are followed", len(c.Chains)), "use it with one --chain")
	}
	return nil
}

// serve checks everything that can be checked before anything is opened, and runs. A
// signal is no error unless an end was wished for that it came before.
func (p *program) serve(ctx context.Context, end ending) error {
	c, err := p.flags.load()
	if err != nil {
		return err
	}
	if err := c.checkChains(); err != nil {
		return err
	}
	if c.has("indexer") && len(c.Chains) == 0 {
		return repute.Invalid("chains", "role indexer has no chain to follow", "e.g. --chain base --rpc URL, or --roles api,documents")
	}
	if err := end.check(c); err != nil {
		return err
	}
	if err := c.checkHands(ctx); err != nil {
		return err
	}
	err = p.serveOn(ctx, c, end)
	switch {
	case ctx.Err() == nil:
	case end.comes():
		return fmt.Errorf("ended before everything was indexed: %w", ctx.Err())
	case errors.Is(err, context.Canceled):
		return nil // told to stop while it started
	}
	return err
}

// checkChains refuses chains that cannot be followed as they are configured. What only
// the database may know is left to settle, where there is a database.
func (c *config) checkChains() error {
	sure := *c
	if c.hasDatabase() {
		sure.Chains = slices.DeleteFunc(slices.Clone(c.Chains), chainConfig.open)
	}
	_, err := sure.followed()
	return err
}

// settle completes the chains by what the database knows of them.
func (c *config) settle(ctx context.Context, db *store.DB) error {
	stored, err := query.Chains(ctx, db)
	if err != nil {
		return err
	}
	c.complete(plain(stored)...)
	return c.checkDefault(stored)
}

// serveOn runs the service on its database until ctx ends, which is no error, or
// the end that was wished for comes.
func (p *program) serveOn(ctx context.Context, c config, end ending) error {
	screen := p.newScreen(c)
	defer screen.close()
	log := c.logger(screen)
	listener, err := c.listener()
	if err != nil {
		return err
	}
	database, err := findDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer database.stop()
	db, err := awaitStore(ctx, database.url, c, log)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := c.settle(ctx, db); err != nil {
		return err
	}
	c.Signing.warn(log, time.Now())
	s := newService(c, db, log)
	s.ending, s.screen, s.restarts = end, screen, database.restarts
	if err := s.run(ctx, listener); err != nil {
		return err
	}
	if end.comes() && ctx.Err() == nil {
		return p.tellEnd(ctx, db, s.config)
	}
	log.Info("stopped")
	return nil
}

// tellEnd says how far each chain is indexed, where that was all there was to do.
func (p *program) tellEnd(ctx context.Context, db *store.DB, c config) error {
	stored, err := query.Chains(ctx, db)
	if err != nil {
		return err
	}
	chains, err := c.followed()
	if err != nil {
		return err
	}
	for _, f := range chains {
		if now, err := indexed(stored, f.ID); err == nil {
			fmt.Fprintf(p.stdout, "%s is indexed to block %d\n", f.Name, now[0].Block.Number)
		}
	}
	return nil
}

// newScreen has bars where a person reads the log.
func (p *program) newScreen(c config) *screen {
	return newScreen(p.stderr, isTerminal(p.stderr) && c.LogFormat == "text")
}

// listener opens the API's port before anything slow starts, so that a taken
// one is reported at once. Nil without the role.
func (c *config) listener() (net.Listener, error) {
	if !c.has("api") {
		return nil, nil
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return nil, repute.Invalid("listen", err.Error(), "choose another address with --listen HOST:PORT")
	}
	return l, nil
}
