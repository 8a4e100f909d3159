package scores

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"repute"
	"repute/api/wire"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
)

// TrustCommand returns `repute trust` with its subcommands.
func TrustCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "trust", Short: "show which ratings count toward scores"}
	cmd.AddCommand(coverageCommand(p))
	return cmd
}

// coverageCommand returns `repute trust coverage`. It reads what the engine stored with the epoch and computes nothing.
func coverageCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "coverage [--chain NAME] [--json]",
		Short: "how many ratings, raters and agents count, and why the rest does not",
		Long: `Of each chain, as of the end of its newest closed epoch: the part of the ratings, of the
raters and of the agents with ratings that count in scores, the agents that are rated or
thin, and why the other ratings do not count, the most frequent reason first.`,
		Args: cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, _ []string) error {
			chains, err := p.Chosen(ctx, c, db)
			if err != nil {
				return err
			}
			return printCoverage(p, chains)
		}),
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Chain(cmd.Flags())
	p.JSONFlag(cmd.Flags(), "print JSON, a list by chain")
	return cmd
}

// chainCoverage is the JSON output for one chain, as of the end of its newest closed epoch. Coverage has zeros before
// the first epoch. Verified reports whether all blocks that the scores follow from were proven, and VerifiedTo is the
// last proven block, null where none is.
type chainCoverage struct {
	ChainID    uint64             `json:"chainId"`
	Coverage   wire.Coverage      `json:"coverage"`
	Sources    []wire.SourceState `json:"sources"`
	Verified   bool               `json:"verified"`
	VerifiedTo *wire.Long         `json:"verifiedTo"`
}

// printCoverage prints the coverage of chains as a table or as a JSON list.
func printCoverage(p *cli.Program, chains []repute.ChainStatus) error {
	list := []chainCoverage{}
	for i, c := range wire.NewStatus(config.Version, chains).Chains {
		list = append(list, chainCoverage{chains[i].ID, c.Scores.Coverage, c.Scores.Sources, c.Scores.Verified,
			c.Scores.VerifiedTo})
	}
	return p.Show(list, func(out io.Writer) error {
		if len(list) == 0 {
			fmt.Fprintln(out, "no chain is indexed yet")
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for i, c := range list {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if c.Coverage.Records.All == 0 {
				fmt.Fprintf(w, "chain %d %s: no ratings before the end of the newest closed epoch\n", c.ChainID,
					chains[i].Name)
				continue
			}
			fmt.Fprintf(w, "chain %d %s\n", c.ChainID, chains[i].Name)
			printParts(w, c.Coverage)
			printBySource(w, c)
		}
		return w.Flush()
	})
}

// printParts shows which parts of the ratings, raters and agents count, and why the rest does not. The rows of sources
// may add up to more than the ratings that count: a rater can have the credentials of several.
func printParts(w io.Writer, v wire.Coverage) {
	row := func(what string, n wire.Long, of wire.Long) {
		fmt.Fprintf(w, "  %s\t%d of %d\t%s\n", what, n, of, percent(n, of))
	}
	row("ratings that count", v.Records.Counted, v.Records.All)
	row("  of these by roots", v.ByRoots, v.Records.Counted)
	for _, s := range v.BySource {
		row("  of these by "+s.Source, s.Count, v.Records.Counted)
	}
	row("raters that count", v.Raters.Counted, v.Raters.All)
	row("agents with ratings that count", v.Agents.Counted, v.Agents.All)
	row("agents with three raters or more", v.Several, v.Agents.All)
	row("agents rated", v.Rated, v.Agents.All)
	row("agents thin", v.Thin, v.Agents.All)
	for _, l := range v.Left {
		row("left out: "+l.Reason, l.Count, v.Records.All)
	}
	for _, t := range v.Tags {
		row(fmt.Sprintf("  %s: tag %q", t.Reason, t.Tag), t.Records, v.Records.All)
	}
}

// printBySource shows how sources were read, and what it costs to lift an agent by them. The price of lifting an agent
// is an estimate by published prices (repute.LiftPrice). To rent a credential for one rating costs less.
func printBySource(w io.Writer, c chainCoverage) {
	fmt.Fprintf(w, "\n  blocks of these scores\t%s\n", verified(c.Verified, c.VerifiedTo))
	for _, s := range c.Sources {
		fmt.Fprintf(w, "  source %s\t%s\n", s.Source, troubleOf(s))
	}
	lift := c.Coverage.ToFifty
	if lift == nil {
		return
	}
	price := fmt.Sprintf("out of reach by credentials with a published price, which give %.1f units at most",
		lift.Units)
	if lift.Dollars != nil {
		price = fmt.Sprintf("$%.0f by published prices (%s)", *lift.Dollars, strings.Join(lift.Priced, ", "))
	}
	fmt.Fprintf(w, "  to lift a new agent to 50\t%s\n", price)
	if len(lift.Unpriced) > 0 {
		fmt.Fprintf(w, "  not counted, without published price\t%s\n", strings.Join(lift.Unpriced, ", "))
	}
}

// percent returns a part in percent, empty if the whole is 0.
func percent(n, of wire.Long) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}
