package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/store/docstats"
	"repute/store/query"
)

// watchPause is between two looks of status --watch.
const watchPause = 2 * time.Second

// statusCommand returns `repute status`. It reads the database alone, so that it works with and without a running
// serve.
func statusCommand(p *cli.Program) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [--json] [--watch]",
		Short: "what is indexed, how fresh and how complete it is",
		Args:  cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, _ config.Config, db *store.DB, _ []string) error {
			if !watch {
				return status(ctx, p, db)
			}
			return watchStatus(ctx, p, db)
		}),
	}
	p.Flags.Database(cmd.Flags())
	p.JSONFlag(cmd.Flags(), "print what /status answers")
	cmd.Flags().BoolVar(&watch, "watch", false, "look again every two seconds until Ctrl-C")
	return cmd
}

// status prints one look at the database: a table, or what /status answers but for what
// only a running API knows. Chains and documents are read in two snapshots, a moment apart.
func status(ctx context.Context, p *cli.Program, db *store.DB) error {
	chains, err := query.Chains(ctx, db)
	if err != nil {
		return err
	}
	fetching, err := docstats.ReadFetching(ctx, db)
	if err != nil {
		return err
	}
	s := wire.NewStatus(config.Version, chains)
	s.Documents = answers.FetchState(fetching, time.Now())
	return p.Show(s, func(w io.Writer) error {
		if len(chains) == 0 {
			fmt.Fprintln(w, "no chain is indexed yet: repute serve --chain NAME --rpc URL")
		} else if err := printStatus(w, chains); err != nil {
			return err
		}
		printFetching(w, fetching, time.Now())
		return nil
	})
}

// printFetching says what is wrong with the documents' queue, nothing where nothing is. The states are those of
// answers.FetchState, which the API shows too.
func printFetching(w io.Writer, f docstats.Fetching, now time.Time) {
	waits := span(now.Sub(f.Since))
	switch answers.FetchState(f, now) {
	case "unfetched":
		fmt.Fprintf(w,
			"\nDOCUMENTS: they wait for %s and no process fetches them: run repute serve with the role documents\n",
			waits)
	case "late":
		fmt.Fprintf(w,
			"\nDOCUMENTS: they wait for %s: see repute documents status; another process with the role documents helps\n", waits)
	}
}

// watchStatus shows each look on a cleared terminal, elsewhere below the one before.
func watchStatus(ctx context.Context, p *cli.Program, db *store.DB) error {
	for {
		if cli.IsTerminal(p.Stdout) && !p.JSON {
			fmt.Fprint(p.Stdout, "\x1b[H\x1b[2J")
		}
		if err := status(ctx, p, db); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchPause):
		}
	}
}

// printStatus prints a line for each chain, and tables of endpoints, of kinds of events and
// of gaps where there are any. Lag is now minus the time of the newest indexed block.
func printStatus(w io.Writer, chains []repute.ChainStatus) error {
	t := cli.NewTable(w, "CHAIN", "ID", "BLOCK", "HEAD", "FINALIZED", "LAG", "AGENTS", "FEEDBACK", "URIS DUE", "WAITING",
		"UNREAD", "REORGS", "UPGRADES", "COMPLETENESS", "PROBLEM")
	for _, c := range chains {
		started := c.Block.Hash != (common.Hash{}) || c.Imported
		t.Row(c.Name, c.Chain.ID, known(started, c.Block.Number), known(c.LagBlocks != nil, c.Head),
			known(c.Finalized > 0, c.Finalized), lag(c.LagSeconds), c.Agents, c.Feedback, c.URIsDue,
			c.Completeness.Pending, c.Completeness.Undecoded, c.Reorgs, c.Upgrades,
			known(started, c.Completeness.Status), trouble(c))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, section := range []func(io.Writer, []repute.ChainStatus) error{printReasons, printEndpoints, printScores,
		printSourceStates, printKinds, printGaps} {
		if err := section(w, chains); err != nil {
			return err
		}
	}
	return nil
}

// lag is a dash where no block's time is known.
func lag(seconds *int64) string {
	if seconds == nil {
		return "-"
	}
	return span(time.Duration(*seconds) * time.Second)
}

// span is a duration in its two largest units, of days, hours, minutes and seconds.
func span(d time.Duration) string {
	days, d := d/(24*time.Hour), d%(24*time.Hour)
	hours, minutes, seconds := d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	}
	return fmt.Sprintf("%ds", seconds)
}

// trouble is what an operator should know of a chain first. The order is that of severity: a halted chain says nothing
// more of its scores.
func trouble(c repute.ChainStatus) string {
	switch {
	case c.Halted:
		return "HALTED: " + c.LastError
	case c.LastError == "" && c.LagBlocks == nil && !c.Imported:
		return "the head is not known: no process follows the chain, or no endpoint answers"
	case c.LastError == "" && c.Scoring.Late && c.Scoring.Run == 0:
		return "no scores: no process does the role trust, or its first walk is under way"
	case c.LastError == "" && c.Scoring.Late:
		return "scores are late: no process does the role trust, or it cannot keep up"
	}
	return c.LastError
}

// condition is an endpoint's state for people.
func condition(s repute.EndpointState) string {
	switch s {
	case repute.EndpointClosed:
		return "ok"
	case repute.EndpointOpen:
		return "resting"
	case repute.EndpointHalfOpen:
		return "trying"
	}
	return string(s)
}

// printEndpoints shows each endpoint as each process sees that asks it; errors are the share
// of lately failed requests.
func printEndpoints(w io.Writer, chains []repute.ChainStatus) error {
	t := cli.Section(w, "\nCHAIN\tENDPOINT\tKIND\tSTATE\tLATENCY\tERRORS\tREQUESTS\tAT A TIME\tHEAD\tPROCESS\tLAST ERROR")
	for _, c := range chains {
		for _, e := range c.Endpoints {
			t.Row(c.Name, e.Name, e.Kind, condition(e.State), e.Latency.Round(100*time.Microsecond),
				fmt.Sprintf("%.0f%%", 100*e.ErrorRate), e.Requests, e.Concurrency, known(e.Head > 0, e.Head), e.Owner,
				e.LastError)
		}
	}
	return t.Flush()
}

// printScores shows how far scores are, of chains that have any.
func printScores(w io.Writer, chains []repute.ChainStatus) error {
	t := cli.Section(w,
		"\nCHAIN\tEPOCH\tTO BLOCK\tWALKED\tFINAL SCORES\tVERIFIED TO\tROOTS\tSTALE\tWAITING\tLAST LOOK")
	for _, c := range chains {
		s := c.Scoring
		if s.Run == 0 {
			continue
		}
		final := "being stored"
		if s.Final {
			final = "stored"
		}
		t.Row(c.Name, s.Epoch, s.Block, since(s.WalkedAt), final, verifiedTo(s), rootCount(s.Roots, len(s.Sources)),
			s.Stale, since(s.StaleSince), since(s.LookedAt))
	}
	return t.Flush()
}

// printSourceStates shows the sources that were off or not read completely for the newest final scores.
func printSourceStates(w io.Writer, chains []repute.ChainStatus) error {
	t := cli.Section(w, "\nCHAIN\tSOURCE\tSTATE\tLAST READ COMPLETELY\tKEPT\tREASON")
	for _, c := range chains {
		for _, s := range c.Scoring.Sources {
			if s.Status != repute.SourceOK {
				t.Row(c.Name, s.Source, s.Status, sinceUnix(s.Complete), s.Kept, s.Reason)
			}
		}
	}
	return t.Flush()
}

// sinceUnix is how long ago a time of the Unix era was, a dash for 0.
func sinceUnix(seconds uint64) string {
	if seconds == 0 {
		return since(time.Time{})
	}
	return since(time.Unix(int64(seconds), 0))
}

// verifiedTo shows how far the blocks of the newest final scores were proven, and marks those that go beyond. Scores go
// beyond what is proven where an endpoint could not prove receipts, or where verification is behind.
func verifiedTo(s repute.Scoring) string {
	if s.Verified {
		return fmt.Sprint(s.VerifiedTo)
	}
	return known(s.VerifiedTo > 0, s.VerifiedTo) + ": SCORES GO BEYOND"
}

// rootCount marks a chain where nobody can be rated.
func rootCount(n, sources int) string {
	switch {
	case n == 0 && sources > 0:
		return fmt.Sprintf("0, and %d sources", sources)
	case n == 0:
		return "0: NOBODY IS RATED, see repute roots add"
	}
	return fmt.Sprint(n)
}

// since is how long ago a moment was, a dash for none.
func since(t time.Time) string {
	return known(!t.IsZero(), span(max(0, time.Since(t).Truncate(time.Second))))
}

// printReasons shows of each chain how far its blocks are proven, and what it lacks to be
// complete.
func printReasons(w io.Writer, chains []repute.ChainStatus) error {
	t := cli.Section(w, "\nCHAIN\tPROVEN TO\tNOT COMPLETE BECAUSE")
	for _, c := range chains {
		if c.Completeness.Reason != "" {
			t.Row(c.Name, known(c.Completeness.VerifiedTo > 0, c.Completeness.VerifiedTo), c.Completeness.Reason)
		}
	}
	return t.Flush()
}

// printKinds shows the kinds of events of which anything was verified or is missing.
func printKinds(w io.Writer, chains []repute.ChainStatus) error {
	t := cli.Section(w, "\nCHAIN\tEVENT\tCOMPLETENESS\tSTATE VERIFIED TO\tWAITING\tGAPS")
	for _, c := range chains {
		for _, k := range c.Completeness.Kinds {
			if k.VerifiedTo > 0 || k.Pending > 0 || k.Open > 0 {
				t.Row(c.Name, k.Kind, k.Status, known(k.VerifiedTo > 0, k.VerifiedTo), k.Pending, k.Open)
			}
		}
	}
	return t.Flush()
}

// printGaps shows the oldest gaps of each chain: no more than repute.MaxGaps of one.
func printGaps(w io.Writer, chains []repute.ChainStatus) error {
	t := cli.Section(w, "\nCHAIN\tMISSING\tAGENT\tBLOCKS\tSINCE\tTRIES\tWHY")
	for _, c := range chains {
		for _, k := range c.Completeness.Kinds {
			for _, g := range k.Gaps {
				agent := "-"
				if g.Agent != nil {
					agent = g.Agent.Dec()
				}
				t.Row(c.Name, k.Kind, agent, fmt.Sprintf("%d to %d", g.Blocks.From, g.Blocks.To),
					g.Since.Format(time.RFC3339), g.Tries, g.Reason)
			}
		}
	}
	return t.Flush()
}

// known prints a dash for what nobody knows. A value that is not known is not shown as 0, which would be a claim.
func known(is bool, v any) string {
	if !is {
		return "-"
	}
	return fmt.Sprint(v)
}
