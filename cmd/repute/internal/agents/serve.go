package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/agent"
	"repute/agent/a2aserver"
	agentconfig "repute/agent/config"
	"repute/agent/toolserver"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/x402"
)

// ServeCommand is repute agent serve.
func ServeCommand(p *cli.Program) *cobra.Command {
	var file, main string
	var resume, stdio bool
	shared := pflag.NewFlagSet("main", pflag.ContinueOnError) // --config of this command is the agent's file
	p.Flags.Database(shared)
	cmd := &cobra.Command{
		Use:   "serve --config agent.yaml",
		Short: "run an agent: capabilities over HTTP, paid by x402, every answer signed",
		Long: `Runs an agent by the Agent Runtime Specification 1.0. It starts only where the agent is
registered on its chain and the key is its owner's or wallet's. The environment of the
specification (AGENT_ID, AGENT_PRIVATE_KEY, RPC_URL, ...) wins over the file, and a
warning says so. Payments are claimed in Postgres before their work, so that any number of
processes serve one agent. SIGTERM ends it: requests in flight are waited for.`,
		Example: "  repute agent serve --config agent.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := shared.Set("config", main); main != "" && err != nil {
				return repute.Invalid("main-config", err.Error(), "a YAML file")
			}
			a, err := agentconfig.Load(file, os.Getenv)
			if err != nil {
				return err
			}
			return p.WithAnyStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				return run(cmd.Context(), p, &c, db, a, mode{resume: resume, stdio: stdio})
			})
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML file of the agent (docs/reference/agent.md)")
	cmd.Flags().StringVar(&main, "main-config", "",
		"YAML file of repute, for orchestrator.wallets and the database (REPUTE_CONFIG)")
	cmd.Flags().BoolVar(&resume, "resume", false, "serve again after a shutdown for low reputation")
	cmd.Flags().BoolVar(&stdio, "stdio", false,
		"answer MCP on standard input and output instead of HTTP, until the input ends; logs go to standard error")
	return cmd
}

// mode is how an agent is started.
type mode struct {
	resume bool // after a shutdown for low reputation
	stdio  bool // MCP on standard input and output
}

// process is an agent that runs.
type process struct {
	config *agentconfig.Config
	router *agent.Router
	upkeep *agent.Upkeep
	work   []func(context.Context) error // background work of parts that are configured, such as a wallet
	server *http.Server
	tools  *toolserver.Server
	tasks  *a2aserver.Server
	log    *slog.Logger
}

// run serves an agent until ctx ends. The timeout for writing is above the longest time of a capability, since an
// answer is written after its work.
func run(ctx context.Context, p *cli.Program, c *config.Config, db *store.DB, a *agentconfig.Config, m mode) error {
	c.LogLevel, c.LogFormat = a.LogLevel, "json"
	log := c.Logger(p.Stderr)
	for _, note := range a.Notes {
		log.Warn(note)
	}
	b := &builder{main: c, db: db, config: a, log: log, program: p, resume: m.resume,
		registry: prometheus.NewRegistry()}
	defer b.close()
	if err := b.build(ctx); err != nil {
		return err
	}
	if m.stdio {
		return b.out.converse(ctx, p.Stdin, p.Stdout)
	}
	l, err := net.Listen("tcp", a.Listen)
	if err != nil {
		return repute.Invalid("listen", err.Error(), "HOST:PORT that is free (AGENT_PORT)")
	}
	b.out.server = &http.Server{Handler: b.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		WriteTimeout: 10 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 4 * x402.MaxHeader}
	fmt.Fprintf(p.Stdout, "agent %s on http://%s\n", b.id.Short(), l.Addr())
	return b.out.serve(ctx, l)
}

// runBackground runs heartbeat, upkeep and transactions of the wallet, if there is one, until ctx ends. The returned
// context ends when one of them fails or ctx ends. Errors after that are dropped, because the work was told to end.
func (p *process) runBackground(ctx context.Context) (*errgroup.Group, context.Context) {
	g, running := errgroup.WithContext(ctx)
	for _, work := range append(p.work, p.upkeep.Run) {
		g.Go(func() error {
			if err := work(running); running.Err() == nil {
				return err
			}
			return nil
		})
	}
	return g, running
}

// converse answers one client of MCP until its input or ctx ends, then drains. The end of the input cancels the
// context, as a signal does, and both lead to the same drain.
func (p *process) converse(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, running := p.runBackground(ctx)
	g.Go(func() error {
		defer cancel()
		return p.tools.Stdio(running, io.NopCloser(in), cli.Unclosed(out))
	})
	g.Go(func() error {
		<-running.Done()
		return p.stop(context.WithoutCancel(ctx))
	})
	return g.Wait()
}

// serve answers until ctx ends, then drains. stop runs in the group, so that Wait returns after the last answer was
// sent.
func (p *process) serve(ctx context.Context, l net.Listener) error {
	g, running := p.runBackground(ctx)
	g.Go(func() error {
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-running.Done()
		return p.stop(context.WithoutCancel(ctx))
	})
	return g.Wait()
}

// stop accepts nothing new, waits for requests in flight, and cancels those that take too long. Its steps depend on
// each other: the server stops accepting first, the router then refuses new work and waits, and streams are ended last,
// because the server waits for them. It returns nil also where connections had to be cut off, which the log says.
func (p *process) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.config.Limits.Drain.Duration())
	defer cancel()
	p.log.Info("stopping", "wait", p.config.Limits.Drain.Duration())
	closed := make(chan error, 1)
	last, end := context.WithTimeout(context.WithoutCancel(ctx), p.config.Limits.Drain.Duration()+cutTime)
	defer end()
	go func() {
		if p.server == nil {
			closed <- nil
			return
		}
		closed <- p.server.Shutdown(last)
	}()
	p.router.Drain(ctx)
	p.tasks.Close()
	p.tools.Close() // ends streams, which the server waits for
	err := <-closed
	if err != nil {
		p.log.Warn("connections were cut off", "error", err)
		_ = p.server.Close() // the process ends
	}
	after, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer end()
	p.router.Event(after, "stop", map[string]bool{"clean": err == nil})
	p.log.Info("stopped")
	return nil
}

// cutTime is for the answers of canceled requests to be sent.
const cutTime = 5 * time.Second
