package payments

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/service"
	"repute/orchestrator/payer"
	"repute/orchestrator/wallet"
	"repute/store"
	"repute/x402"
)

// Buying is how the command line pays: with which key, which payees, and how much at most. Its fields are values of
// flags.
type Buying struct {
	Max             string  // most that a call may cost, in dollars
	index           string  // URL of the index that is asked whom to trust
	as              string  // slug of the identity that pays; empty: the only one that has a key
	maxHost, maxDay string  // most that all purchases of 24 hours may cost, in dollars: to one host, and to all
	minScore        float64 // that the lower bound of the payee's score must reach
	unknown         bool    // also pay accounts of no known agent
}

// Flags adds all flags to a set but the one for Max. The commands differ in what Max means when it is not given.
func (b *Buying) Flags(set *pflag.FlagSet) {
	set.StringVar(&b.index, "index", "", "URL of the index that is asked whom to trust (INDEXER_URL)")
	set.StringVar(&b.as, "as", "",
		"slug of the identity in orchestrator.wallets whose key pays; may be left out where one has a key")
	set.StringVar(&b.maxHost, "max-host", "1", "most that is paid to one host in 24 hours, in dollars")
	set.StringVar(&b.maxDay, "max-day", "5", "most that is paid in 24 hours, in dollars")
	set.Float64Var(&b.minScore, "min-score", 20,
		"the lower bound of the payee's score must be at least this, -100 to 100")
	set.BoolVar(&b.unknown, "allow-unknown", false,
		"also pay accounts of no known agent, and agents that nobody has rated")
}

// Do asks a server by a client, and pays for the answer. By names the caller in the records. The purchase is stored
// before it is sent: repeated after a crash, the same request continues it with the same payment while that holds.
// Nothing was paid where the error is a *payer.Refused, or repute.ErrLimited for a cap.
func (b *Buying) Do(ctx context.Context, p *cli.Program, c *config.Config, db *store.DB, by string, client *http.Client,
	r payer.Request) (a payer.Answer, err error) {
	w, list, err := openWallet(p, c, db)
	if err != nil {
		return a, err
	}
	defer w.Close()
	o, err := b.options(c, w, list)
	if err != nil {
		return a, err
	}
	o.By, o.HTTP, o.Log = by, client, c.Logger(p.Stderr)
	buyer, err := payer.New(db, o)
	if err != nil {
		return a, err
	}
	return buyer.Do(ctx, r)
}

// payFlags are those of repute pay.
type payFlags struct {
	Buying
	method, data string
}

// PayCommand is repute pay.
func PayCommand(p *cli.Program) *cobra.Command {
	var f payFlags
	cmd := &cobra.Command{
		Use:   "pay URL [--max 0.05] [--min-score 20]",
		Short: "ask a server, and pay for its answer if the agent behind it is trusted",
		Long: `Asks a URL. If the server demands payment by x402, finds whose account is to be paid in the
index (an agent's wallet or owner on the chain of the payment, or an agent that the host
proves), asks for its score and pays if it is high enough and no cap is passed. Only
known stablecoins are paid with, one US dollar each. A request whose answer was lost is
asked again with the same payment while that holds. The answer goes to standard output,
the receipt to standard error; receipts are stored.`,
		Example: `  repute pay https://agent.example/report --index http://127.0.0.1:8080 --max 0.05 --min-score 20`,
		Args:    cobra.ExactArgs(1),
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, args []string) error {
			return f.pay(ctx, p, &c, db, args[0])
		}),
	}
	p.Flags.Database(cmd.Flags())
	set := cmd.Flags()
	f.Flags(set)
	set.StringVar(&f.Max, "max", "0.05", "most that this call may cost, in dollars")
	set.StringVar(&f.method, "method", "", "GET, or POST where there is data")
	set.StringVar(&f.data, "data", "", "JSON that is sent; @FILE reads a file")
	p.JSONFlag(set, "print answer and receipt as one JSON object")
	cmd.AddCommand(payListCommand(p))
	return cmd
}

// maxData bounds what a file of --data has, in bytes.
const maxData = 10 << 20

// request is what is asked for. A name after @ is read as cli.ReadInput does, - being standard input. Data that are too
// many are refused and not cut.
func (f *payFlags) request(p *cli.Program, address string) (payer.Request, error) {
	r := payer.Request{Method: strings.ToUpper(f.method), URL: address, Body: []byte(f.data)}
	if name, ok := strings.CutPrefix(f.data, "@"); ok {
		var err error
		if r.Body, err = p.ReadInput("data", name, maxData); err != nil {
			return r, err
		}
	}
	if len(r.Body) > 0 {
		r.Type, r.Method = "application/json", cmp.Or(r.Method, http.MethodPost)
	}
	return r, nil
}

// options are those of the payer. The key is opened only when a payment is signed, on the chain of the payment.
func (b *Buying) options(c *config.Config, w *wallet.Wallet, list []wallet.ChainConfig) (o payer.Options, err error) {
	o = payer.Options{Index: cmp.Or(b.index, os.Getenv("INDEXER_URL")), MinScore: b.minScore, AllowUnknown: b.unknown}
	if o.Index == "" {
		return o, repute.Invalid("index", "is missing",
			"--index, or INDEXER_URL: the URL of an index such as repute serve")
	}
	for _, cap := range []struct {
		field, text string
		into        *repute.Micros
	}{{"max", b.Max, &o.MaxCall}, {"max-host", b.maxHost, &o.MaxHost}, {"max-day", b.maxDay, &o.MaxDay}} {
		if *cap.into, err = repute.ParseDollars(cap.field, cap.text); err != nil {
			return o, err
		}
	}
	if o.Coins, err = c.Tokens(list); err != nil {
		return o, err
	}
	if o.Agent, err = b.identity(list); err != nil {
		return o, err
	}
	o.Keys = func(id uint64) (x402.Signer, error) { return w.IdentityKey(id, o.Agent) }
	return o, nil
}

// identity is the slug that pays: the chosen one, or the only one. One slug with keys on several chains is one
// identity.
func (b *Buying) identity(list []wallet.ChainConfig) (string, error) {
	slugs := map[string]bool{}
	for _, c := range list {
		for slug := range c.Identities {
			slugs[slug] = true
		}
	}
	if b.as == "" && len(slugs) == 1 {
		for slug := range slugs {
			return slug, nil
		}
	}
	if !slugs[b.as] {
		return "", repute.Invalid("as", fmt.Sprintf("%.80q is no identity with a key", b.as),
			"a slug of identities in orchestrator.wallets")
	}
	return b.as, nil
}

// paidAnswer is what is printed with --json.
type paidAnswer struct {
	Status int `json:"status"`
	// Body is the answer as text: bytes that are no UTF-8 become U+FFFD, so that scripts read such answers without
	// --json.
	Body string `json:"body"`
	// Receipt is null where the server demanded no payment.
	Receipt *payer.Receipt `json:"receipt"`
}

// pay asks and pays. The host of the URL may be private, because the person at the command line chose it. Another
// private host is refused by the guard.
func (f *payFlags) pay(ctx context.Context, p *cli.Program, c *config.Config, db *store.DB, address string) error {
	r, err := f.request(p, address)
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return repute.Invalid("URL", err.Error(), "an http or https URL")
	}
	client := service.Outside(c, append([]string{u.Host}, c.AllowHosts...)) // the caller chose the host
	a, err := f.Do(ctx, p, c, db, "repute pay", client, r)
	if err != nil {
		return err
	}
	return Print(p, &a)
}

// Print writes an answer to standard output, and what was paid for it to standard error; as JSON both in one object. An
// answer that says that it failed ends the command with code 1. The body is printed byte by byte, also to a terminal:
// it is the output that was asked for.
func Print(p *cli.Program, a *payer.Answer) error {
	err := p.Show(paidAnswer{a.Status, string(a.Body), a.Receipt},
		func(io.Writer) error { return printText(p, a) })
	if err == nil && a.Status >= 400 {
		err = cli.ExitError{Code: 1, Text: fmt.Sprintf("the server answered with status %d", a.Status)}
	}
	return err
}

// printText writes the body, and what was paid.
func printText(p *cli.Program, a *payer.Answer) error {
	if _, err := p.Stdout.Write(a.Body); err != nil {
		return err
	}
	if a.Status >= 400 && len(a.Body) > 0 && !bytes.HasSuffix(a.Body, []byte("\n")) {
		fmt.Fprintln(p.Stdout) // the error of the command follows on a line of its own
	}
	r := a.Receipt
	if r == nil {
		return nil
	}
	whom := "an account of no known agent"
	if r.Payee != nil {
		whom = fmt.Sprintf("agent %s (by %s, score %g, at least %g)", cli.Visible(r.Payee.Agent), r.Payee.By,
			r.Payee.Score,
			r.Payee.Low)
	}
	fmt.Fprintf(p.Stderr, "paid %s dollars to %s, %s, in transaction %s; receipt %s\n", r.Dollars, r.PayTo, whom,
		cmp.Or(cli.Visible(r.Transaction), "unknown"), r.ID)
	return nil
}
