package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"repute"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "index chains, read documents and answer",
		Long: `Runs the configured roles until SIGTERM or Ctrl-C. Any number of processes may
share one Postgres.

  repute serve --chain base --rpc https://your-node.example`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.serve(cmd.Context()) },
	}
}

func (p *program) serve(ctx context.Context) error {
	c, err := p.flags.load()
	if err != nil {
		return err
	}
	chains, err := c.followed()
	if err != nil {
		return err
	}
	if c.has("indexer") && len(chains) == 0 {
		return repute.Invalid("chains", "role indexer has no chain to follow", "e.g. --chain base --rpc URL, or --roles api,documents")
	}
	log := c.logger(p.stderr)
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopWith(ctx, cancel, database.gone, errors.New("the private Postgres ended"))
	if err := newService(c, db, log).run(ctx, listener); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	log.Info("stopped")
	return nil
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

// stopWith cancels with cause when gone closes before ctx ends.
func stopWith(ctx context.Context, cancel context.CancelCauseFunc, gone <-chan struct{}, cause error) {
	if gone == nil {
		return
	}
	go func() {
		select {
		case <-gone:
			cancel(fmt.Errorf("%w", cause))
		case <-ctx.Done():
		}
	}()
}
