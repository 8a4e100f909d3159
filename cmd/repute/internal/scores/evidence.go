package scores

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/store"
	"repute/store/rootdb"
	"repute/trust/rootfile"
)

// EvidenceCommand returns `repute evidence` with its subcommands. Links join identities and never divide them: what the
// registries tell of one identity cannot be taken back by a file.
func EvidenceCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evidence",
		Short: "manage links between addresses of one identity",
		Long: `Raters that are one identity count as one. What the registries tell of that is known;
a common funder, for one, is not, and comes in by import. A change counts from the next
epoch on. docs/how-to/roots.md describes the file.`,
	}
	cmd.AddCommand(evidenceImportCommand(p), evidenceListCommand(p), evidenceRemoveCommand(p))
	for _, sub := range cmd.Commands() {
		p.Flags.Database(sub.Flags())
		p.Flags.Chain(sub.Flags())
	}
	return cmd
}

// evidenceImportCommand returns `repute evidence import`. A link has no direction.
func evidenceImportCommand(p *cli.Program) *cobra.Command {
	return importCommand(p, fileImport[rootfile.Link]{
		list: "links", one: "evidence remove takes one away", read: rootfile.ReadLinks,
		chain: func(l rootfile.Link) uint64 { return l.ChainID },
		add: func(ctx context.Context, db *store.DB, chain uint64, of []rootfile.Link, replace bool) error {
			links := make([]repute.TrustLink, len(of))
			for i, l := range of {
				links[i] = l.TrustLink
			}
			return rootdb.AddLinks(ctx, db, chain, links, replace)
		},
	})
}

// evidenceRemoveCommand returns `repute evidence remove`. The addresses may be given in either order. Links that the
// registries themselves give cannot be removed.
func evidenceRemoveCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "remove A B [--chain NAME]",
		Short: "remove the link between two addresses of one identity",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := repute.ParseAddress("address", args[0])
			if err != nil {
				return err
			}
			b, err := repute.ParseAddress("address", args[1])
			if err != nil {
				return err
			}
			return onChain(cmd.Context(), p, func(db *store.DB, chain uint64) error {
				if err := rootdb.RemoveLink(cmd.Context(), db, chain, a, b); err != nil {
					return err
				}
				fmt.Fprintf(p.Stdout, "removed the link of %s and %s on chain %d, from the next epoch on\n", a.Hex(),
					b.Hex(), chain)
				return nil
			})
		},
	}
}

// evidenceListCommand returns `repute evidence list`. It shows imported links only.
func evidenceListCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "list [--chain NAME]",
		Short: "show the links of a chain",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onChain(cmd.Context(), p, func(db *store.DB, chain uint64) error {
				links, err := rootdb.Links(cmd.Context(), db, chain)
				if err != nil {
					return err
				}
				t := cli.NewTable(p.Stdout, "A", "B", "REASON", "SOURCE")
				for _, l := range links {
					t.Row(l.A.Hex(), l.B.Hex(), l.Reason, l.Source)
				}
				return t.Flush()
			})
		},
	}
}
