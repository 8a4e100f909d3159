package scores

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/trust/engine"
	"repute/trust/source"
	sourceread "repute/trust/source/read"
)

// sourcesVerifyCommand returns `repute sources verify`.
func sourcesVerifyCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [--chain NAME --rpc URL]",
		Short: "read the stored credentials of a chain's newest run again, and tell what differs",
		Long: `Reads each stored credential again at the block at which it was read, by the policy of the run.
The endpoints must have the state of that block; attestations are also compared by their own
times. Credentials by payments are compared with the verified payments in the index. Credentials
that cannot be read again, and inputs that were pruned, count as not checked.

Exit codes: 0 all are confirmed, 1 some differ, 2 not everything could be checked.`,
		Args: cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, _ []string) error {
			return ask(ctx, p, c, db, true, func(a *asking) error { return verifySources(ctx, p, db, a) })
		}),
	}
	p.JSONFlag(cmd.Flags(), "print JSON")
	return cmd
}

// verifySpent compares the credentials by payments with those that the verified payments give now.
func verifySpent(ctx context.Context, db *store.DB, a *asking, out *sourceread.Checked) error {
	for _, s := range a.spent {
		held := slices.DeleteFunc(slices.Clone(a.past.Credentials), func(c source.Credential) bool {
			return c.Source != s.ID || c.Version != s.Version
		})
		if len(held) == 0 {
			continue
		}
		found, err := engine.Spent(ctx, db, a.run, s)
		if err != nil {
			return err
		}
		out.Compare(s, held, &found)
	}
	return nil
}

// verifySources reads the stored credentials of the newest run again and prints the differences. A difference is exit
// code 1, also where something could not be checked, which alone is 2.
func verifySources(ctx context.Context, p *cli.Program, db *store.DB, a *asking) error {
	if !a.reader.Reaches(a.chain) {
		return repute.Invalid("rpc", fmt.Sprintf("no endpoint of chain %d is configured", a.chain),
			"--chain NAME --rpc URL")
	}
	onChains := a.past
	onChains.Credentials = slices.DeleteFunc(slices.Clone(a.past.Credentials), func(c source.Credential) bool {
		return slices.ContainsFunc(a.spent,
			func(s *source.Source) bool { return s.ID == c.Source && s.Version == c.Version })
	})
	found, err := a.reader.Verify(ctx, a.chain, a.run.Block, a.sources, onChains)
	if err != nil {
		return err
	}
	if err := verifySpent(ctx, db, a, &found); err != nil {
		return err
	}
	found.Unchecked = append(found.Unchecked, a.pruned...)
	err = p.Show(found, func(w io.Writer) error {
		for _, d := range found.Differences {
			fmt.Fprintf(w, "%s of %s at block %d: %s\n", d.Source, d.Rater, d.Block, d.What)
		}
		fmt.Fprintf(w, "%s of run %d compared, %s\n", cli.Count(found.Credentials, "credential"), a.run.Run,
			cli.Count(len(found.Differences), "difference"))
		for _, what := range found.Unchecked {
			fmt.Fprintln(w, "not checked:", strings.TrimSpace(what))
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(found.Differences) > 0:
		return cli.ExitError{Code: cli.CodeFailed, Text: "stored credentials differ from the chain in " +
			cli.Count(len(found.Differences), "place")}
	case len(found.Unchecked) > 0:
		return cli.ExitError{Code: cli.CodeUnchecked, Text: "not everything could be checked"}
	}
	return nil
}
