package tasks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/cmd/repute/internal/apiclient"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/internal/httpapi"
	"repute/orchestrator/agents"
	"repute/orchestrator/control"
	"repute/orchestrator/remote"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/trust/statement"
)

// running has the argument and the flags of agent run.
type running struct {
	what         string           // directory of an agent's program, or name of an agent that repute comes with
	address      string           // host:port to listen on
	slug         string           // in place of the name of an agent that repute comes with
	id           string           // onchain identity; empty: none
	wallet       string           // account that an agent that repute comes with writes from
	keyFile      string           // of the identity's wallet or owner; empty: it proves nothing
	orchestrator apiclient.Client // where to register; without URL: in the database
	alone        bool             // do not register
}

// agentRunCommand returns `repute agent run`. The flags of the database are those of the parent command.
func agentRunCommand(p *cli.Program) *cobra.Command {
	var r running
	cmd := &cobra.Command{
		Use:   "run DIRECTORY|NAME",
		Short: "serve an agent and register it",
		Long: fmt.Sprintf(`Serve an agent by the protocol of docs/reference/agents.md and register it with an
orchestrator: one that repute agent new wrote, by its directory (./my-agent), or one
that repute comes with, by its name (%s).

It is registered over HTTP where --orchestrator is given, else in the configured
database. The orchestrator itself must be allowed to reach the address
(orchestrator.agent_hosts), where it is not public.`, strings.Join(agents.Names(), ", ")),
		Example: "  repute agent run ./my-agent --orchestrator http://127.0.0.1:8080 --token …\n  repute agent run reporter --slug my-reporter --agent-id 8453:22 --config repute.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.what = args[0]
			return runAgent(cmd.Context(), p, r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.address, "address", agentAddress, "host:port to listen on")
	f.StringVar(&r.slug, "slug", "", "of an agent that repute comes with, in place of its name")
	f.StringVar(&r.id, "agent-id", "", "its onchain identity: chain:id")
	f.StringVar(&r.keyFile, "key-file", "",
		"private key of the identity's wallet or owner: signs that this agent works as it")
	f.StringVar(&r.wallet, "wallet", "",
		"of an agent that repute comes with: the account that the orchestrator sends its registry writes from")
	f.StringVar(&r.orchestrator.URL, "orchestrator", "", "URL of the orchestrator to register with")
	f.StringVar(&r.orchestrator.Token, "token", "", "bearer token, one of orchestrator.tokens (REPUTE_TOKEN)")
	f.BoolVar(&r.alone, "no-register", false, "serve it alone")
	return cmd
}

// runAgent serves an agent until ctx ends, and registers it as soon as it answers. When the agent ends by itself, or
// cannot be registered, the command fails and takes the other part down with it. A context that was canceled from
// outside is the usual end of the command and no error.
func runAgent(ctx context.Context, p *cli.Program, r running) error {
	if _, _, err := net.SplitHostPort(r.address); err != nil {
		return repute.Invalid("address", fmt.Sprintf("%.80q is no address", r.address), "host:port")
	}
	serve, err := serving(ctx, p, r)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serve(ctx) })
	g.Go(func() error { return introduce(ctx, p, r) })
	if err := g.Wait(); ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serving returns the function that serves the agent until its context ends. An argument with a dot, a slash or a
// backslash is a directory, and any other one the name of a built-in agent: a directory in the working directory must
// therefore be given as ./NAME.
//
// The address is taken before this function returns, so that an address in use is told at once and not by a goroutine.
func serving(ctx context.Context, p *cli.Program, r running) (func(context.Context) error, error) {
	if info, err := os.Stat(r.what); err == nil && info.IsDir() && strings.ContainsAny(r.what, `./\`) {
		return directory(ctx, p, r)
	}
	if strings.ContainsAny(r.what, `./\`) {
		return nil, repute.Invalid("directory", r.what+" is none", "one that repute agent new wrote")
	}
	handler, err := builtin(p, r)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		return nil, taken(r.address, err)
	}
	return func(ctx context.Context) error {
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: time.Minute,
			WriteTimeout: time.Minute}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return ctx.Err()
	}, nil
}

// builtin returns the handler of a built-in agent, configured by the flags and chains. It answers
// only to IP addresses, loopback names and allowed_hosts, so that no page in a browser can reach
// it.
func builtin(p *cli.Program, r running) (http.Handler, error) {
	c, err := p.Flags.Load()
	if err != nil {
		return nil, err
	}
	list, err := c.Wallets()
	if err != nil {
		return nil, err
	}
	o, err := c.AgentOptions(c.Registries(list))
	if err != nil {
		return nil, err
	}
	self := agents.Self{Slug: r.slug}
	if self.ID, err = c.Identity("agent-id", r.id); err != nil {
		return nil, err
	}
	if r.wallet != "" {
		if self.Wallet, err = repute.ParseAddress("wallet", r.wallet); err != nil {
			return nil, err
		}
	}
	a, err := agents.New(r.what, self, o)
	if err != nil {
		return nil, err
	}
	guard, err := httpapi.NewGuard(httpapi.GuardOptions{Hosts: c.Hosts()})
	if err != nil {
		return nil, err
	}
	return guard.Over(agents.Handler(a)), nil
}

// directory builds the program in a directory and returns the function that runs it. Between the test of the address
// and the start of the program another process may take the port. The program then fails to listen and ends, which
// introduce notices by its context.
func directory(ctx context.Context, p *cli.Program, r running) (func(context.Context) error, error) {
	command, remove, err := build(ctx, p, r.what)
	if err != nil {
		return nil, err
	}
	// Another program on this port would be mistaken for the agent.
	if l, err := net.Listen("tcp", r.address); err != nil {
		remove()
		return nil, taken(r.address, err)
	} else if err := l.Close(); err != nil {
		remove()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer remove()
		return child(ctx, p, r, command)
	}, nil
}

// taken returns the error for an address that cannot be listened on.
func taken(address string, err error) error {
	reason := err.Error()
	if errors.Is(err, syscall.EADDRINUSE) {
		reason = address + " is in use"
	}
	return repute.Invalid("address", reason, "another one with --address HOST:PORT")
}

// build builds the program in a directory and returns its command line. The caller calls remove once the program has
// ended, which deletes build output. A Python program needs no build. The directory's code runs with the rights of the
// caller: nobody should run an agent of a stranger this way.
func build(ctx context.Context, p *cli.Program, dir string) (command []string, remove func(), err error) {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		if _, err := os.Stat(filepath.Join(dir, "agent.py")); err != nil {
			return nil, nil, repute.Invalid("directory", dir+" holds neither go.mod nor agent.py",
				"one that repute agent new wrote")
		}
		return []string{"python3", "agent.py"}, func() {}, nil
	}
	into, err := os.MkdirTemp("", "repute-agent-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(into) }
	binary := filepath.Join(into, "agent")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	cmd.Dir, cmd.Stderr = dir, p.Stderr
	if err := cmd.Run(); err != nil {
		remove()
		return nil, nil, fmt.Errorf("build %s: %w", dir, err)
	}
	return []string{binary}, remove, nil
}

// child runs an agent's program until ctx ends; that it ends before is an error. The program writes to standard error:
// standard output has the lines of the command alone. At the end it gets an interrupt, as from Ctrl-C, and is killed
// after five seconds. AGENT_ADDRESS tells it where to listen.
func child(ctx context.Context, p *cli.Program, r running, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = r.what, p.Stderr, p.Stderr, append(os.Environ(),
		"AGENT_ADDRESS="+r.address)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 5*time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		return fmt.Errorf("the agent ended by itself: %w", repute.ErrUnavailable)
	}
	return fmt.Errorf("the agent ended: %w", err)
}

// agentAddress is the default address of repute agent run and of agents that repute agent new
// creates.
const agentAddress = "127.0.0.1:8099"

// startsWithin bounds the time until an agent answers, including its build.
const startsWithin = 2 * time.Minute

// introduce waits until the agent answers, registers it, and prints so. It asks again every 100 ms, because a program
// says nothing when it is ready. The token of the orchestrator is not sent to the agent: the question is asked by a
// client without one. It takes what answers at the address for the agent, which is why directory and serving make sure
// of the port before.
func introduce(ctx context.Context, p *cli.Program, r running) error {
	base := "http://" + r.address
	waiting, cancel := context.WithTimeout(ctx, startsWithin)
	defer cancel()
	local := apiclient.Client{URL: base}
	var info remote.Info
	for local.Call(waiting, http.MethodGet, "/info", nil, &info) != nil {
		select {
		case <-waiting.Done():
			return fmt.Errorf("the agent at %s does not answer: %w", base, waiting.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	if ctx.Err() != nil { // the agent has ended, so that another program answered
		return ctx.Err()
	}
	fmt.Fprintf(p.Stdout, "agent %s answers at %s\n", cli.Visible(info.Slug), base)
	if r.alone {
		return nil
	}
	what := control.AgentRegistration{Slug: info.Slug, URL: base, AgentID: r.id}
	if err := prove(&what, r.keyFile); err != nil {
		return err
	}
	if err := register(ctx, p, r, what); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout,
		"registered; Ctrl-C ends it. Give it a task, with a token that has the role ask:\n\n  repute task submit --coordinator %s --watch 'what to do' --input '{…}'%s\n", info.Slug, r.where())
	return nil
}

// where returns the flags with which other commands reach the same orchestrator.
func (r running) where() string {
	if r.orchestrator.URL == "" {
		return ""
	}
	return " --orchestrator " + r.orchestrator.URL + " --token …"
}

// prove adds the signature of a key file, which proves that the agent acts for its identity. The signature names the
// slug, the URL and the present time, so that it cannot be used for another program. The key file MUST be readable by
// its owner only, which keys.SecretFile checks.
func prove(r *control.AgentRegistration, file string) error {
	if file == "" {
		return nil
	}
	ref, err := repute.ParseAgentRef(r.AgentID)
	if err != nil || ref.ChainID == 0 {
		return repute.Invalid("agent-id", fmt.Sprintf("%.80q is no id to sign for", r.AgentID),
			"chain:id beside --key-file")
	}
	text, err := keys.SecretFile("key-file", file, 1<<10)
	if err != nil {
		return err
	}
	key, err := statement.ParseKey("key-file", string(text))
	if err != nil {
		return err
	}
	r.Proof, err = control.Prove(key, r.Slug, r.URL, repute.AgentID{ChainID: ref.ChainID, TokenID: ref.TokenID},
		time.Now())
	return err
}

// register registers the agent with an orchestrator. On the database, the address is allowed for this one call: the
// person who runs the agent chose it. The orchestrator that will call the agent needs its own entry of agent_hosts.
func register(ctx context.Context, p *cli.Program, r running, what control.AgentRegistration) error {
	if r.orchestrator.URL != "" {
		return r.orchestrator.Call(ctx, http.MethodPost, "/v1/agents", what, nil)
	}
	return p.WithStore(ctx, func(c config.Config, db *store.DB) error {
		c.Orchestrator.AgentHosts = append(c.Orchestrator.AgentHosts, r.address)
		plane, err := newControl(p, c, db)
		if err == nil {
			_, _, err = plane.Register(ctx, what)
		}
		return err
	})
}
