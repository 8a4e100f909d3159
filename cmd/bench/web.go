package main

import (
	"errors"

	"github.com/spf13/cobra"

	"repute"
	"repute/internal/bench/apibench"
)

// webCommand is bench web. Pages for operators need a token, which apibench gives the product that it starts.
func (b *benches) webCommand() *cobra.Command {
	o := apibench.PagesOptions{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "web --json",
		Short: "how fast the pages of the dashboard are sent, their statements and sizes",
		Long: `Asks for every page of the dashboard, of a small index as the demo's and of a full one, each time about
another agent, reviewer, domain or search, from the request to the last byte. Sizes are those of the
compressed page and of the compressed scripts and styles that it refers to. Statements are counted in
this process, because the product does not count them.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = b.product(); err != nil {
				return err
			}
			if err := errors.Join(positive("agents", o.Agents), positive("ratings", o.Ratings),
				positive("views", o.Views)); err != nil {
				return err
			}
			if o.Heavy < 1 || o.Heavy > o.Ratings {
				return repute.Invalid("heavy", "is no part of the ratings", "1 to --ratings")
			}
			return b.report(apibench.RunPages(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Agents, "agents", 400_000, "of the full index")
	f.IntVar(&o.Ratings, "ratings", 600_000, "of the full index")
	f.IntVar(&o.Heavy, "heavy", 284_072, "of these, of one agent")
	f.IntVar(&o.Views, "views", 100, "of each page")
	return cmd
}
