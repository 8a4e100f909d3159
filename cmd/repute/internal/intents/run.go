package intents

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/payments"
	"repute/cmd/repute/internal/service"
	"repute/orchestrator/intentcall"
	"repute/orchestrator/payer"
	"repute/resolver/wellknown"
	"repute/store"
)

// Command is repute intent.
func Command(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "intent", Short: "find what services offer in agent.json, and act on it"}
	cmd.AddCommand(runCommand(p), findCommand(p))
	return cmd
}

// runFlags are those of repute intent run.
type runFlags struct {
	payments.Buying
	params []string
}

// runCommand returns `repute intent run`.
func runCommand(p *cli.Program) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run NAME@DOMAIN [--param k=v] [--max 0.05] [--min-score 20]",
		Short: "call an intent of a domain's agent.json, and pay for it within a bound",
		Long: `Fetches the agent.json of a domain, checks the parameters against it, and calls the
intent's endpoint, which must be of the domain itself. No redirect is followed. Without
--max nothing is paid: an intent with a price is not called then, and a demand for payment
is refused. With it, an answer is paid for as repute pay does, by the trust in the agent
behind the account and within the caps; a price in the manifest is the most that is paid.
An intent without an endpoint says in words what to do: they are printed and not acted on.`,
		Example: `  repute intent run code_review@agent.example --param language=go --max 0.05 --index http://127.0.0.1:8080`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), p, args[0]) },
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Reading(cmd.Flags())
	f.Flags(cmd.Flags())
	cmd.Flags().StringArrayVar(&f.params, "param", nil,
		"argument NAME=VALUE; lists and objects in JSON; may be repeated")
	cmd.Flags().StringVar(&f.Max, "max", "", "most that this call may cost, in dollars; nothing is paid without it")
	p.JSONFlag(cmd.Flags(), "print answer and receipt, or the instructions, as one JSON object")
	return cmd
}

// run finds the intent and calls it. Everything that can be refused without a request to the endpoint is checked first,
// and in this order: the name, the bound, the manifest, the arguments, the price.
func (f *runFlags) run(ctx context.Context, p *cli.Program, name string) error {
	target, err := intentcall.ParseTarget(name)
	if err != nil {
		return err
	}
	most, err := f.bound()
	if err != nil {
		return err
	}
	c, err := p.Flags.Load()
	if err != nil {
		return err
	}
	client, err := c.Resolver(nil)
	if err != nil {
		return err
	}
	defer client.Close()
	plan, err := intentcall.Find(ctx, wellknown.New(client), target)
	if err != nil {
		return err
	}
	arguments, err := plan.Arguments(f.params)
	if err != nil {
		return err
	}
	if plan.Semantic() {
		if err := plan.Intent.CheckArguments(arguments); err != nil {
			return err
		}
		return f.instruct(p, plan, arguments)
	}
	request, err := plan.Request(arguments)
	if err != nil {
		return err
	}
	limit, err := plan.Limit(most)
	if err != nil {
		return err
	}
	return f.call(ctx, p, &c, request, limit)
}

// bound is the most that the call may cost; nil where nothing may be paid.
func (f *runFlags) bound() (*repute.Micros, error) {
	if f.Max == "" {
		return nil, nil
	}
	most, err := repute.ParseDollars("max", f.Max)
	return &most, err
}

// call sends the request, and pays for it where a bound is given. Without --max no database and no key is opened. With
// it, the bound of the payer becomes the lower one of --max and the manifest's price: a server that demands more than
// it publishes is refused.
func (f *runFlags) call(ctx context.Context, p *cli.Program, c *config.Config, r payer.Request,
	limit repute.Micros) error {
	client := service.Outside(c, c.AllowHosts)
	if f.Max == "" {
		a, err := intentcall.Call(ctx, intentcall.Free{Client: client}, r)
		if err != nil {
			return err
		}
		return payments.Print(p, &a)
	}
	f.Max = limit.String()
	return p.WithStore(ctx, func(c config.Config, db *store.DB) error {
		a, err := intentcall.Call(ctx, senderFunc(func(ctx context.Context, r payer.Request) (payer.Answer, error) {
			return f.Do(ctx, p, &c, db, "repute intent run", client, r)
		}), r)
		if err != nil {
			return err
		}
		return payments.Print(p, &a)
	})
}

// senderFunc is a function that sends requests.
type senderFunc func(ctx context.Context, r payer.Request) (payer.Answer, error)

// Do implements intentcall.Sender.
func (f senderFunc) Do(ctx context.Context, r payer.Request) (payer.Answer, error) { return f(ctx, r) }

// instructions are what an intent without an endpoint says. They are untrusted text. Arguments are those of --param
// after the check, in JSON.
type instructions struct {
	Intent      string                     `json:"intent"`
	Origin      string                     `json:"origin"`
	Description string                     `json:"description"`
	Arguments   map[string]json.RawMessage `json:"arguments"`
}

// instruct prints what an intent says in words.
func (f *runFlags) instruct(p *cli.Program, plan *intentcall.Plan, arguments map[string]json.RawMessage) error {
	in := instructions{plan.Intent.Name, plan.Origin, plan.Intent.Description, arguments}
	return p.Show(map[string]instructions{"instructions": in}, func(w io.Writer) error {
		fmt.Fprintf(w, "%s of %s has no endpoint; its instructions, which are not checked:\n  %s\n",
			cli.Visible(in.Intent), cli.Visible(in.Origin), cli.Visible(strings.TrimSpace(in.Description)))
		for _, text := range f.params {
			fmt.Fprintf(w, "  %s\n", cli.Visible(text))
		}
		return nil
	})
}
