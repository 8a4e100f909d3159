package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"repute"
	"repute/store"
	"repute/store/trustdb"
	"repute/trust/rootfile"
)

func (p *program) evidenceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "evidence",
		Short: "tell what is known from outside the chain about who is one party",
		Long: `Raters that are one party count as one. What the registries tell of that is known;
a common funder, for one, is not, and comes in by import. A change counts from the next
epoch on. docs/how-to/roots.md describes the file.`,
	}
	cmd.AddCommand(p.evidenceImportCommand(), p.evidenceListCommand(), p.evidenceRemoveCommand())
	for _, sub := range cmd.Commands() {
		p.flags.database(sub.Flags())
		p.flags.chain(sub.Flags())
	}
	return cmd
}

func (p *program) evidenceImportCommand() *cobra.Command {
	return importCommand(p, fileImport[rootfile.Link]{
		list: "links", one: "evidence remove takes one away", read: rootfile.ReadLinks,
		chain: func(l rootfile.Link) uint64 { return l.ChainID },
		add: func(ctx context.Context, db *store.DB, chain uint64, of []rootfile.Link, replace bool) error {
			links := make([]repute.TrustLink, len(of))
			for i, l := range of {
				links[i] = l.TrustLink
			}
			return trustdb.AddLinks(ctx, db, chain, links, replace)
		},
	})
}

func (p *program) evidenceRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove A B [--chain NAME]",
		Short: "forget that two addresses are one party",
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
			return p.withStore(cmd.Context(), func(c config, db *store.DB) error {
				chain, err := p.theChain(cmd.Context(), c, db)
				if err != nil {
					return err
				}
				if err := trustdb.RemoveLink(cmd.Context(), db, chain, a, b); err != nil {
					return err
				}
				fmt.Fprintf(p.stdout, "removed the link of %s and %s on chain %d, from the next epoch on\n", a.Hex(), b.Hex(), chain)
				return nil
			})
		},
	}
}

func (p *program) evidenceListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [--chain NAME]",
		Short: "show the links of a chain",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(c config, db *store.DB) error {
				chain, err := p.theChain(cmd.Context(), c, db)
				if err != nil {
					return err
				}
				links, err := trustdb.Links(cmd.Context(), db, chain)
				if err != nil {
					return err
				}
				t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(t, "A\tB\tREASON\tSOURCE")
				for _, l := range links {
					fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", l.A.Hex(), l.B.Hex(), l.Reason, l.Source)
				}
				return t.Flush()
			})
		},
	}
}
