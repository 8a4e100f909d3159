package scores

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/internal/httpapi"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/rootdb"
	"repute/trust"
	"repute/trust/explain"
	"repute/trust/rating"
)

// ScoreCommand returns `repute score` with its subcommands.
func ScoreCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "score", Short: "explain and replay scores"}
	cmd.AddCommand(scoreExplainCommand(p), scoreReplayCommand(p))
	for _, sub := range cmd.Commands() {
		p.Flags.Database(sub.Flags())
	}
	params, tags := rating.DefaultFiles()
	cmd.AddCommand(printCommand(p, "params", "parameters of scores", params),
		printCommand(p, "tags", "table of tags", tags))
	return cmd
}

// printCommand returns a command that prints an embedded file, as a template for an own one. It needs no configuration
// and no database.
func printCommand(p *cli.Program, name, what string, body []byte) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "print the " + what + " that repute comes with, as a start for a file of your own (trust." +
			name + ")",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := p.Stdout.Write(body)
			return err
		},
	}
}

// scoreExplainCommand returns `repute score explain`. Its flags have the names and the meaning of the parameters of the
// route /agents/{id}/explain, and are checked by the same code.
func scoreExplainCommand(p *cli.Program) *cobra.Command {
	var at, set string
	var without, roots []string
	var sources string
	var limit int
	cmd := &cobra.Command{
		Use:   "explain AGENT",
		Short: "list what an agent's score is made of, what does not count, and what is missing for each gate",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := rootsAsked(roots, set)
			if err != nil {
				return err
			}
			q := answers.ExplainQuery{AtQuery: answers.AtQuery{At: at}, Without: strings.Join(without, ","), Roots: by,
				Sources: sources,
				Limit:   httpapi.Number(fmt.Sprint(limit))}
			return withReader(cmd.Context(), p, args[0], func(r *explain.Reader, id repute.AgentID) error {
				answer, err := answers.Explain(cmd.Context(), r, id, q)
				if err != nil {
					return err
				}
				if p.JSON {
					return p.PrintLine(answer)
				}
				return printExplanation(p.Stdout, answer)
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "latest, safe, finalized or a block number")
	cmd.Flags().StringSliceVar(&without, "without", nil, "also tell the score without what this client says")
	cmd.Flags().StringSliceVar(&roots, "roots", nil,
		"explain the score by these roots instead of the chain's: addresses divided by commas, no more than 100; at latest only")
	cmd.Flags().StringVar(&set, "root-set", "",
		"explain the score by this set of the chain's roots; roots list shows them")
	cmd.Flags().StringVar(&sources, "sources", "",
		"beside --roots or --root-set: default counts the chain's sources too, none (the default) does not")
	cmd.Flags().IntVar(&limit, "limit", 20, "contributions and rows that do not count to list, 1 to 100")
	p.JSONFlag(cmd.Flags(), "one JSON object")
	return cmd
}

// rootsAsked returns the value of the API's parameter roots: addresses, or the name of a set.
// Empty: the roots of the chain.
func rootsAsked(roots []string, set string) (string, error) {
	switch {
	case len(roots) > 0 && set != "":
		return "", repute.Invalid("root-set", "--roots is given too", "one of them")
	case set != "":
		return set, rootdb.CheckRootSet(set)
	case len(roots) == 0:
		return "", nil
	}
	list := strings.Join(roots, ",")
	_, err := explain.PersonalRoots(list)
	return list, err
}

// scoreReplayCommand returns `repute score replay`. It exits with 0 only where the same bytes come out: any other
// outcome, such as an input that is no longer stored, is an error.
func scoreReplayCommand(p *cli.Program) *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "replay AGENT --at BLOCK",
		Short: "recompute a final score from stored inputs and compare it",
		Long: `Reads the inputs of the agent's final score of the last epoch up to the block: the
chain's ratings, parameters, tags, roots, links, and the list of payments and agents of the
same identity. Fails with "input pruned" and what is missing where they do not lead to the
stored bytes, and where a number stored beside these is another.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("at") {
				return repute.Invalid("at", "is missing", "--at and a block number")
			}
			return withReader(cmd.Context(), p, args[0], func(r *explain.Reader, id repute.AgentID) error {
				s, err := r.Replay(cmd.Context(), id, at)
				if err != nil {
					return err
				}
				fmt.Fprintf(p.Stdout,
					"agent %s: score %s of epoch %d (block %d) follows from its stored inputs, byte by byte\n",
					id.Short(), s.Score, s.Epoch, s.Block.Number)
				return nil
			})
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "block: the last epoch that ended by then")
	return cmd
}

// withReader calls f with an agent and the reader of its scores. The id is parsed before the database is opened, and
// completed by the chains in it.
func withReader(ctx context.Context, p *cli.Program, agent string, f func(*explain.Reader,
	repute.AgentID) error) error {
	ref, err := repute.ParseAgentRef(agent)
	if err != nil {
		return err
	}
	return p.WithStore(ctx, func(c config.Config, db *store.DB) error {
		id, err := chaindb.ResolveAgent(ctx, db, ref, c.DefaultChain)
		if err != nil {
			return err
		}
		options, err := c.Trust.Reader()
		if err != nil {
			return err
		}
		r, err := explain.NewReader(db, options)
		if err != nil {
			return err
		}
		return f(r, id)
	})
}

// printExplanation prints an explanation as tables. Points of all contributions, those of the kinds rest, prior and
// guard among them, add up to the score.
func printExplanation(w io.Writer, e wire.ExplainAnswer) error {
	fmt.Fprintln(w, e.Sentence)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "agent\t%s\n", e.Agent)
	fmt.Fprintf(t, "score\t%.3f\t%s, %.3f to %.3f, confidence %.3f, tier %d\n", e.Score, e.Status, e.Low, e.High,
		e.Confidence, e.Tier)
	if e.Reason != nil {
		fmt.Fprintf(t, "\t\t%s\n", *e.Reason)
	}
	if e.ScoredAt != nil {
		fmt.Fprintf(t, "of\tblock %d\t%s, epoch %d, scorer %s, %s\n", e.ScoredAt.Block, *e.Finality, *e.Epoch,
			*e.Scorer,
			verified(e.Verified, e.VerifiedTo))
	}
	for _, s := range e.Sources {
		fmt.Fprintf(t, "source\t%s\t%s\n", s.Source, troubleOf(s))
	}
	if own := e.OwnRoots; own != nil {
		sources := "without the chain's sources"
		if own.Sourced {
			sources = "with the chain's sources"
		}
		fmt.Fprintf(t, "by\troots: %s\t%d, of which %d ever rated anybody; %s\n", *e.Roots, own.Given, own.Known,
			sources)
	}
	fmt.Fprintln(t, "\npoints\tkind\topinion\tevidence\tweight\trater\trows")
	for _, c := range e.Contributions {
		fmt.Fprintf(t, "%+.3f\t%s\t%s\t%s\t%s\n", c.Points, c.Kind, figures(c), raters(c.Raters), where(c))
	}
	fmt.Fprintln(t, "\ngate\t\tmissing")
	for _, g := range e.Gates {
		fmt.Fprintf(t, "%s\t%s\t%s\n", g.ID, meaning(g), lacks(g))
	}
	for i, r := range e.ExcludedByReason {
		if i == 0 {
			fmt.Fprintln(t, "\nrows that do not count")
		}
		fmt.Fprintf(t, "%s\t%d\n", r.Reason, r.Count)
	}
	for i, c := range e.Counterfactuals {
		if i == 0 {
			fmt.Fprintln(t, "\nscore\tstatus\twithout")
		}
		fmt.Fprintf(t, "%.3f\t%s\t%s\n", c.Score, c.Status, raters(c.Without))
	}
	return t.Flush()
}

// raters lists addresses, shortened if there are many.
func raters(list []wire.Address) string {
	switch len(list) {
	case 0:
		return "-"
	case 1:
		return string(list[0])
	}
	return fmt.Sprintf("%s and %d more", list[0], len(list)-1)
}

// figures returns a contribution's opinion, evidence and weight as far as its kind has them.
func figures(c wire.Contribution) string {
	switch c.Kind {
	case trust.KindOpinion:
		return fmt.Sprintf("%+.3f\t%.3f\t%.3f", c.Opinion, c.Evidence, c.Weight)
	case trust.KindRest:
		return fmt.Sprintf("-\t%.3f\t-", c.Evidence)
	}
	return "-\t-\t-"
}

// where names the newest row of a contribution and the way from a root. The hash is zeros where the transaction of the
// row is not known.
func where(c wire.Contribution) string {
	switch {
	case c.Kind == trust.KindRest:
		return fmt.Sprintf("of %d opinions", c.Count)
	case len(c.Rows) == 0:
		return "-"
	}
	tx := common.Hash{}.Hex()
	if c.Rows[0].Tx != nil {
		tx = string(*c.Rows[0].Tx)
	}
	out := fmt.Sprintf("%d, newest %s log %d", c.Count, tx, c.Rows[0].LogIndex)
	if len(c.Sources) > 0 {
		out += fmt.Sprintf("; %.3f by %s", c.Sourced, strings.Join(c.Sources, ", "))
	}
	if len(c.Path) > 0 {
		out += fmt.Sprintf("; %d steps from root %s", len(c.Path)-1, c.Path[0])
	}
	return out
}

// verified says whether all blocks that a score follows from were proven.
func verified(yes bool, to *wire.Long) string {
	switch {
	case yes:
		return fmt.Sprintf("verified to block %d", *to)
	case to == nil:
		return "not verified"
	}
	return fmt.Sprintf("not verified: blocks are proven to %d", *to)
}

// troubleOf says how a source was read that was not read completely.
func troubleOf(s wire.SourceState) string {
	out := s.Status
	if s.Reason != nil {
		out += ": " + *s.Reason
	}
	if s.CompleteAt != nil {
		out += fmt.Sprintf("; last read completely as of %s", *s.CompleteAt)
	}
	if s.Kept > 0 {
		out += fmt.Sprintf("; %d credentials of then count on", s.Kept)
	}
	return out
}

// meaning describes a gate's result for the agent: not passing a gate that excludes agents is good.
func meaning(g wire.Gate) string {
	switch keepsOut := g.Direction == string(rating.KeepsOut); {
	case keepsOut && g.Passed:
		return "excludes the agent"
	case keepsOut:
		return "passed: not excluded"
	case g.Passed:
		return "admits the agent"
	}
	return "does not admit it"
}

// lacks lists the unmet conditions of a gate.
func lacks(g wire.Gate) string {
	parts := make([]string, 0, len(g.Lacks))
	for _, l := range g.Lacks {
		part := fmt.Sprintf("%s %.3f of %.3f", l.What, l.Have, l.Need)
		if l.Must == "below" {
			part = fmt.Sprintf("%s %.3f must be below %.3f", l.What, l.Have, l.Need)
		}
		if l.Units != nil {
			part += fmt.Sprintf(" (%.2f full-weight opinions of +1)", *l.Units)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}
