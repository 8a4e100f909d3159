// Package webhooks has the commands for webhooks, to which a running server sends what changes in its index.
//
// Unlike most commands they never open the database, because adding a webhook needs what only the server has: the rules
// for hosts that it may call, and the loop that delivers. They call the routes below /v1/webhooks, as anybody with a
// token of the role operate can, and print what these answer. The secret of a webhook is in two answers only, those of
// add and rotate.
package webhooks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"repute/api/wire"
	"repute/api/wire/push"
	"repute/cmd/repute/internal/apiclient"
	"repute/cmd/repute/internal/cli"
)

// defaultServer is the server that is asked without --orchestrator.
const defaultServer = "http://127.0.0.1:8080"

// Command returns the command with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "send changes of the index to other programs",
		Long: `Webhooks are addresses that a running server sends changes of its index to, in order
and each at least once, as Standard Webhooks. The commands ask that server, with a token
that has the role operate.`,
	}
	x := &commands{p: p, client: &apiclient.Client{}}
	for _, sub := range []*cobra.Command{x.add(), x.list(), x.test(), x.replay(), x.remove(), x.rotate()} {
		x.client.Flags(sub.Flags())
		sub.Flags().Lookup("orchestrator").Usage = "URL of the server, " + defaultServer + " when absent"
		cmd.AddCommand(sub)
	}
	return cmd
}

// commands are the subcommands, which share a client. A process runs one of them, so that the client has the flags of
// that one.
type commands struct {
	p      *cli.Program
	client *apiclient.Client
}

// call requests a route below /v1/webhooks. The default server is set here and not as the default of the flag, because
// the flag of other commands is empty to mean the database.
func (x *commands) call(ctx context.Context, method, below string, body, into any) error {
	x.client.URL = cmp.Or(x.client.URL, defaultServer)
	return x.client.Call(ctx, method, "/v1/webhooks"+below, body, into)
}

// pathOf returns the path of a webhook, or of an action on it.
func pathOf(id, act string) string { return "/" + url.PathEscape(id) + act }

// filterFlags are the flags of a filter.
type filterFlags struct {
	// agent and finality are empty, and chain is 0, for no restriction.
	agent, finality string
	chain           uint64
	kinds           []string
	// below and above are scores, -100 to 100; they count only where their flags were given.
	below, above float64
	tier         bool
}

// add adds the flags to a set.
func (f *filterFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.agent, "agent", "", "only changes of this agent, {chainId}:{tokenId}")
	set.Uint64Var(&f.chain, "chain", 0, "only changes of this chain")
	set.StringSliceVar(&f.kinds, "kinds", nil, "only these kinds of changes, divided by commas")
	set.Float64Var(&f.below, "below", 0, "only scores that fall below this, or rise to it again")
	set.Float64Var(&f.above, "above", 0, "only scores that rise above this, or fall to it again")
	set.BoolVar(&f.tier, "tier", false, "only scores whose tier changes")
	set.StringVar(&f.finality, "finality", "", "finalized: only what no reorganization undoes")
}

// filter returns the filter of the flags that are set. Bounds are pointers, because 0 is a bound. A filter without
// anything selects all changes.
func (f *filterFlags) filter(set *pflag.FlagSet) push.WebhookFilter {
	out := push.WebhookFilter{Agent: f.agent, Chain: wire.Long(f.chain), Kinds: f.kinds, Tier: f.tier,
		Finality: f.finality}
	if set.Changed("below") {
		out.Below = &f.below
	}
	if set.Changed("above") {
		out.Above = &f.above
	}
	return out
}

// sinceFlag returns the value of --since, nil when it is not set. The three cases differ: absent is from now on, or for
// a replay where the webhook stopped; empty is the oldest change that is kept; anything else is a cursor.
func sinceFlag(cmd *cobra.Command, since string) *string {
	if !cmd.Flags().Changed("since") {
		return nil
	}
	return &since
}

// add returns `repute webhooks add`. The webhook is stored when its secret is printed: when the output is lost, rotate
// gives it another one.
func (x *commands) add() *cobra.Command {
	var f filterFlags
	var since string
	cmd := &cobra.Command{
		Use:   "add URL",
		Short: "add a webhook and print its secret, which is shown this once",
		Long: `Adds a webhook. The URL is https, at a public host or one of allow_hosts. With --below,
--above or --tier only changes of scores are sent, and only those that any of them selects.`,
		Example: "  repute webhooks add https://example.com/hook --agent 8453:22 --below 20",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := push.WebhookRequest{URL: args[0], Filter: f.filter(cmd.Flags()), Since: sinceFlag(cmd, since)}
			var w push.WebhookWithSecret
			if err := x.call(cmd.Context(), http.MethodPost, "", body, &w); err != nil {
				return err
			}
			return x.showSecret(&w)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&since, "since", "",
		"cursor after which changes are sent; empty: the oldest change that is kept; absent: from now on")
	x.p.JSONFlag(cmd.Flags(), "print JSON")
	return cmd
}

// showSecret prints a webhook with its secret. The secret is on a line of its own, after the word secret, for scripts
// that do not read JSON.
func (x *commands) showSecret(w *push.WebhookWithSecret) error {
	return x.p.Show(w, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, "%s\nsecret %s\n", cli.Visible(w.ID), cli.Visible(w.Secret))
		return err
	})
}

// list returns `repute webhooks list`. The server's answer is not paged, and JSON is its array.
func (x *commands) list() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list webhooks and how they are doing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l push.WebhookList
			if err := x.call(cmd.Context(), http.MethodGet, "", nil, &l); err != nil {
				return err
			}
			return x.p.Show(l.Webhooks, func(out io.Writer) error {
				if len(l.Webhooks) == 0 {
					fmt.Fprintln(out, "there are no webhooks")
				}
				for i := range l.Webhooks {
					x.show(&l.Webhooks[i])
				}
				return nil
			})
		},
	}
	x.p.JSONFlag(cmd.Flags(), "print a JSON array")
	return cmd
}

// show prints a webhook in one line, and what is wrong with it in another.
func (x *commands) show(w *push.Webhook) {
	fmt.Fprintf(x.p.Stdout, "%s %-8s %6d sent, at %s  %s  %s\n", cli.Visible(w.ID), cli.Visible(w.State), w.Delivered,
		cli.Visible(cmp.Or(w.Cursor, "the beginning")), cli.Visible(w.URL), cli.Visible(describe(&w.Filter)))
	switch {
	case w.Reason != nil:
		fmt.Fprintf(x.p.Stdout, "  %s\n", cli.Visible(*w.Reason))
	case w.Failure != nil:
		fmt.Fprintf(x.p.Stdout, "  refused %d times since %s, again at %s: %s\n", w.Failure.Attempts,
			cli.Visible(string(w.Failure.Since)), cli.Visible(string(w.Failure.NextAt)), cli.Visible(w.Failure.Reason))
	}
}

// describe returns a filter as flags. It has the form that add takes, so that a webhook can be made again from a list.
func describe(f *push.WebhookFilter) string {
	var out []string
	add := func(is bool, flag string, value any) {
		if is {
			out = append(out, strings.TrimSpace(fmt.Sprint("--", flag, " ", value)))
		}
	}
	add(f.Agent != "", "agent", f.Agent)
	add(f.Chain != 0, "chain", f.Chain)
	add(len(f.Kinds) > 0, "kinds", strings.Join(f.Kinds, ","))
	if f.Below != nil {
		add(true, "below", *f.Below)
	}
	if f.Above != nil {
		add(true, "above", *f.Above)
	}
	add(f.Tier, "tier", "")
	add(f.Finality != "", "finality", f.Finality)
	return strings.Join(out, " ")
}

// test returns `repute webhooks test`. A receiver that refuses is exit code 1, although the server did what it was
// asked.
func (x *commands) test() *cobra.Command {
	return &cobra.Command{
		Use:   "test ID",
		Short: "send a test message to a webhook and print how it was answered",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var t push.WebhookTest
			if err := x.call(cmd.Context(), http.MethodPost, pathOf(args[0], "/test"), nil, &t); err != nil {
				return err
			}
			if t.Reason != "" {
				return cli.ExitError{Code: 1, Text: "refused: " + cli.Visible(t.Reason)}
			}
			fmt.Fprintf(x.p.Stdout, "accepted with status %d after %d ms\n", t.Status, t.Millis)
			return nil
		},
	}
}

// replay returns `repute webhooks replay`. It is also how a webhook is enabled that the server has disabled after too
// many failures.
func (x *commands) replay() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "replay ID",
		Short: "send changes after a cursor again, or continue a disabled webhook",
		Long: `Sends the changes after --since again; without it the webhook continues where it stopped.
A disabled webhook is enabled. A cursor that is too old is refused, with the oldest one.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var w push.Webhook
			body := push.WebhookReplay{Since: sinceFlag(cmd, since)}
			if err := x.call(cmd.Context(), http.MethodPost, pathOf(args[0], "/replay"), body, &w); err != nil {
				return err
			}
			x.show(&w)
			return nil
		},
	}
	cmd.Flags().StringVar(&since, "since", "",
		"cursor after which changes are sent; empty: the oldest change that is kept")
	return cmd
}

// remove returns `repute webhooks remove`. A message that is under way may still arrive.
func (x *commands) remove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove ID",
		Short: "remove a webhook",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var w push.Webhook
			if err := x.call(cmd.Context(), http.MethodDelete, pathOf(args[0], ""), nil, &w); err != nil {
				return err
			}
			fmt.Fprintf(x.p.Stdout, "removed %s\n", cli.Visible(w.ID))
			return nil
		},
	}
}

// rotate returns `repute webhooks rotate`. Both secrets sign for a day, so that the receiver may learn the new one at
// any moment of it.
func (x *commands) rotate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "give a webhook a new secret and print it",
		Long:  `Gives a webhook a new secret. For 24 hours messages are signed with both secrets.`,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var w push.WebhookWithSecret
			if err := x.call(cmd.Context(), http.MethodPost, pathOf(args[0], "/rotate"), nil, &w); err != nil {
				return err
			}
			return x.showSecret(&w)
		},
	}
	x.p.JSONFlag(cmd.Flags(), "print JSON")
	return cmd
}
