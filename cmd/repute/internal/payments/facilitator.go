package payments

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/store"
	"repute/x402"
	"repute/x402/facilitator"
)

// FacilitatorCommand is repute facilitator.
func FacilitatorCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "facilitator", Short: "verify and settle payments of x402 for servers"}
	cmd.AddCommand(facilitatorServeCommand(p))
	return cmd
}

// facilitatorServeCommand returns `repute facilitator serve`. It needs no index and checks no caller: every client that
// reaches the address may send a payment.
func facilitatorServeCommand(p *cli.Program) *cobra.Command {
	var listen, settler string
	cmd := &cobra.Command{
		Use:   "serve --settler SLUG [--listen HOST:PORT]",
		Short: "offer POST /verify, POST /settle and GET /supported",
		Long: `Verifies payments of x402 (versions 1 and 2, schemes exact and upto) and settles them on
the chains of orchestrator.wallets on which the settler has a key. The key pays the gas.
Accepted are the stablecoins that are known of each chain. A payment's transaction is
stored before it is sent, and sent once by any number of processes on one database.
503 says that the end of a settlement is not known yet: send the same payment again.`,
		Args: cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, _ []string) error {
			return serveFacilitator(ctx, p, &c, db, settler, listen)
		}),
	}
	p.Flags.Database(cmd.Flags())
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:4022", "address of the facilitator")
	cmd.Flags().StringVar(&settler, "settler", "", "slug of the identity in orchestrator.wallets whose key settles")
	return cmd
}

// openWallet opens the configured wallets. The caller MUST close it. Keys are checked here, so that a command with a
// wrong one ends before anything is asked.
func openWallet(p *cli.Program, c *config.Config, db *store.DB) (*wallet.Wallet, []wallet.ChainConfig, error) {
	list, err := c.Wallets()
	if err != nil {
		return nil, nil, err
	}
	if len(list) == 0 {
		return nil, nil, repute.Invalid("orchestrator.wallets", "is empty", "a chain with identities, whose keys sign")
	}
	w, err := wallet.Open(db, wallet.Config{Chains: list, Registrar: c.Registrar(), Log: c.Logger(p.Stderr)})
	return w, list, err
}

// local is the facilitator of the chains on which the settler has a key. Only the tokens of orchestrator.wallets are
// accepted. A chain on which the settler has no key is left out; no chain at all is repute.ErrInvalid.
func local(db *store.DB, w *wallet.Wallet, list []wallet.ChainConfig, settler string) (*x402.Local, error) {
	o := settlement.Options{Settler: settler, Tokens: map[uint64][]common.Address{}}
	for _, chain := range list {
		if _, err := w.Identity(chain.ChainID, settler); errors.Is(err, repute.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		o.Chains = append(o.Chains, chain.ChainID)
		o.Tokens[chain.ChainID] = chain.Tokens
	}
	if len(o.Chains) == 0 {
		return nil, repute.Invalid("settler", fmt.Sprintf("%.80q has no key in orchestrator.wallets", settler),
			"a slug of identities")
	}
	return settlement.New(db, w, o)
}

// stopWait bounds how long requests are waited for at the end; settlements go on in another process,
// or with the next start.
const stopWait = 10 * time.Second

// serveFacilitator serves until ctx ends, and follows what was sent. A request that is cut off at the end loses
// nothing: its payment is stored, and the same request later gets the stored outcome. Three goroutines run until the
// first of them fails or ctx ends: the wallet, which follows and replaces transactions, the server, and the shutdown of
// the server. The wallet ends with ctx, so that a request that is answered while the server shuts down is not followed
// by this process.
func serveFacilitator(ctx context.Context, p *cli.Program, c *config.Config, db *store.DB,
	settler, listen string) error {
	w, list, err := openWallet(p, c, db)
	if err != nil {
		return err
	}
	defer w.Close()
	f, err := local(db, w, list, settler)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return repute.Invalid("listen", err.Error(), "HOST:PORT that is free")
	}
	server := &http.Server{Handler: facilitator.NewHandler(f), ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:    30 * time.Second,
		MaxHeaderBytes: 2 * x402.MaxHeader}
	fmt.Fprintf(p.Stdout, "facilitator on http://%s\n", l.Addr())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := w.Run(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	g.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
		defer cancel()
		return server.Shutdown(within)
	})
	return g.Wait()
}
