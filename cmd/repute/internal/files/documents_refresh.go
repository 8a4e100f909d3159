package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/indexer/documents"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/query"
)

// documentsRetryCommand returns `repute documents retry`. Flags and arguments are joined by and: agents with a host are
// the documents of these agents at this host.
func documentsRetryCommand(p *cli.Program) *cobra.Command {
	var f docdb.RetryFilter
	var all bool
	cmd := &cobra.Command{
		Use:   "retry [--host HOST] [--reason REASON] [AGENT…] | --all",
		Short: "fetch again now what could not be fetched, the dead included",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkRetry(f, args, all); err != nil {
				return err
			}
			return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) (err error) {
				if f.Agents, err = agentsNamed(cmd.Context(), db, c, args); err != nil {
					return err
				}
				return retry(cmd.Context(), p, db, f)
			})
		},
	}
	cmd.Flags().StringVar(&f.Host, "host", "", "of this host")
	cmd.Flags().StringVar(&f.Reason, "reason", "", "with this reason: see documents status")
	cmd.Flags().BoolVar(&all, "all", false, "all of them")
	return cmd
}

// checkRetry refuses flags that select nothing or contradict each other. The form of --all is what keeps an empty
// variable of a script from scheduling every failed document.
func checkRetry(f docdb.RetryFilter, agents []string, all bool) error {
	selects := f.Host != "" || f.Reason != "" || len(agents) > 0
	switch {
	case !all && !selects:
		return repute.Invalid("retry", "selects nothing", "give --host, --reason, agents, or --all")
	case all && selects:
		return repute.Invalid("all", "is everything, and something is selected beside it",
			"give --all alone, or leave it out")
	case f.Reason != "" && !slices.Contains(documents.Reasons(), f.Reason):
		return repute.Invalid("reason", fmt.Sprintf("%.40q is no reason", f.Reason),
			"one of "+strings.Join(documents.Reasons(), ", "))
	}
	return nil
}

// retry schedules failed documents, and prints the reason if nothing was scheduled. A process with the role documents
// fetches them, host by host: many documents of one host still take their time.
func retry(ctx context.Context, p *cli.Program, db *store.DB, f docdb.RetryFilter) error {
	n, err := docdb.RetryDocuments(ctx, db, f)
	if err != nil {
		return err
	}
	if n > 0 {
		fmt.Fprintf(p.Stdout, "%s due now\n", areOf(n, "document"))
		return nil
	}
	selected, err := docdb.CountSelected(ctx, db, f)
	switch {
	case err != nil:
		return err
	case f.Host != "" && selected.URIs == 0:
		return &repute.MissingError{What: "host " + f.Host, Why: "has no document"}
	}
	fmt.Fprintf(p.Stdout, "nothing to fetch again: none of %s failed", cli.Count(selected.URIs, "document"))
	if f.Reason != "" {
		fmt.Fprintf(p.Stdout, " with %s", f.Reason)
	}
	fmt.Fprintf(p.Stdout, "; %s due anyway\n", areOf(selected.Due, "document"))
	return nil
}

// areOf returns "1 document is" or "2 documents are".
func areOf(n int64, what string) string {
	if n == 1 {
		return cli.Count(n, what) + " is"
	}
	return cli.Count(n, what) + " are"
}

// agentsNamed reads ids as the API does and looks them up. An agent that is not indexed is repute.ErrNotFound, so that
// a mistyped id is not taken for one without failures.
func agentsNamed(ctx context.Context, db *store.DB, c config.Config, args []string) (ids []repute.AgentID, err error) {
	for _, arg := range args {
		id, err := agentNamed(ctx, db, c, arg)
		if err != nil {
			return nil, err
		}
		if _, _, err := query.Agent(ctx, db, id, repute.At{Finality: repute.Latest}); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// agentNamed parses an agent's id; a bare token id is of the only chain or of the default chain.
func agentNamed(ctx context.Context, db *store.DB, c config.Config, arg string) (repute.AgentID, error) {
	ref, err := repute.ParseAgentRef(arg)
	if err == nil {
		var id repute.AgentID
		if id, err = chaindb.ResolveAgent(ctx, db, ref, c.DefaultChain); err == nil {
			return id, nil
		}
	}
	var input *repute.InputError
	if errors.As(err, &input) {
		err = repute.Invalid("agent", fmt.Sprintf("%.80q: %s", arg, input.Reason),
			"{chainId}:{tokenId}, or {tokenId} where one chain is indexed")
	}
	return repute.AgentID{}, err
}

// denyKinds is the help for the first argument of deny and allow.
const denyKinds = "KIND is sha256, cid, host or agent."

// documentsDenyCommand returns `repute documents deny`. The denial covers what is indexed later too.
func documentsDenyCommand(p *cli.Program) *cobra.Command {
	var reason string
	var drop bool
	cmd := &cobra.Command{
		Use:   "deny KIND VALUE --reason TEXT",
		Short: "no longer fetch, show or serve a document, a host's or an agent's",
		Long:  denyKinds + " Callers are told the reason.",
		Args:  cobra.ExactArgs(2),
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, args []string) error {
			d, err := denialNamed(ctx, db, c, args)
			if err != nil {
				return err
			}
			d.Reason = reason
			return deny(ctx, p, db, d, drop)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for callers to read")
	cmd.Flags().BoolVar(&drop, "drop", false, "drop the bytes too, but those that also come from what is not denied")
	return cmd
}

// denialNamed returns a denial in its stored form, with an agent's full id. Values of other kinds are checked and
// normalized where they are stored (package store/denydb).
func denialNamed(ctx context.Context, db *store.DB, c config.Config, args []string) (repute.Denial, error) {
	d := repute.Denial{Kind: repute.DenyKind(args[0]), Value: args[1]}
	if d.Kind != repute.DenyAgent {
		return d, nil
	}
	id, err := agentNamed(ctx, db, c, d.Value)
	if errors.Is(err, repute.ErrNotFound) {
		return d, nil // the chain may be indexed later
	}
	d.Value = id.Short()
	return d, err
}

// deny prints how many documents a denial affects, which shows a mistyped value. The count is read before the denial is
// stored: with --drop it would be lower afterwards.
func deny(ctx context.Context, p *cli.Program, db *store.DB, d repute.Denial, drop bool) error {
	reach, err := denydb.DenialReach(ctx, db, d)
	if err != nil {
		return err
	}
	if err := denydb.Deny(ctx, db, d, drop); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "denied %s %s: %s of %s\n", d.Kind, d.Value, cli.Count(reach.Documents, "document"),
		cli.Count(reach.Agents, "agent"))
	switch {
	case reach == denydb.Reach{}:
		fmt.Fprintf(p.Stderr, "nothing that is indexed has this %s: the denial waits for it\n", d.Kind)
	case drop:
		fmt.Fprintln(p.Stdout, "their bytes are dropped, but those that also come from what is not denied")
	}
	return nil
}

// documentsAllowCommand returns `repute documents allow`. It prints how many documents and agents the denial covered.
func documentsAllowCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "allow KIND VALUE",
		Short: "take back a denial",
		Long:  denyKinds + " What was not read or was dropped because of it is due again.",
		Args:  cobra.ExactArgs(2),
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, args []string) error {
			d, err := denialNamed(ctx, db, c, args)
			if err != nil {
				return err
			}
			if err := denydb.Undeny(ctx, db, d.Kind, d.Value); err != nil {
				return err
			}
			reach, err := denydb.DenialReach(ctx, db, d)
			if err == nil {
				fmt.Fprintf(p.Stdout, "allowed %s %s again: %s of %s\n", d.Kind, d.Value,
					cli.Count(reach.Documents, "document"), cli.Count(reach.Agents, "agent"))
			}
			return err
		}),
	}
}
