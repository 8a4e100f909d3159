package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/contracts"
	"repute/store"
	"repute/store/importdb"
)

// reindexCommand returns `repute reindex`. Chains are rebuilt one after the other, and raw events stay as they are.
func reindexCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reindex [--chain NAME]",
		Short: "rebuild histories and current rows from the stored events",
		Args:  cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, _ []string) error {
			chains, err := p.Chosen(ctx, c, db)
			if err != nil {
				return err
			}
			for _, chain := range chains {
				start := time.Now()
				if err := importdb.Reindex(ctx, db, chain.Chain.ID, contracts.Read); err != nil {
					return fmt.Errorf("reindex chain %d: %w", chain.Chain.ID, err)
				}
				fmt.Fprintf(p.Stderr, "reindexed %s (%d) in %s\n", chain.Name, chain.Chain.ID,
					time.Since(start).Round(time.Millisecond))
			}
			return nil
		}),
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Chain(cmd.Flags())
	return cmd
}

// dumpCommand returns `repute dump`. Equal indexes have equal dumps, whatever the order in which they learned of
// events: this is what tests and operators compare.
func dumpCommand(p *cli.Program) *cobra.Command {
	var canonical bool
	cmd := &cobra.Command{
		Use:   "dump --canonical [--chain NAME]",
		Short: "print the index by natural keys, one JSON object per line",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !canonical {
				return repute.Invalid("canonical", "the only form there is", "repute dump --canonical")
			}
			return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				chains, err := p.Chosen(cmd.Context(), c, db)
				if err != nil {
					return err
				}
				only := uint64(0) // all
				if len(p.Flags.Chains) > 0 {
					only = chains[0].Chain.ID
				}
				return importdb.Dump(cmd.Context(), db, p.Stdout, only)
			})
		},
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Chain(cmd.Flags())
	cmd.Flags().BoolVar(&canonical, "canonical", false,
		"events, histories and current rows in key order, without ids and clocks")
	return cmd
}

// migrateCommand returns `repute migrate`. Down removes everything and asks first; serve does the same as up at its
// start.
func migrateCommand(p *cli.Program) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:       "migrate up|down",
		Short:     "bring the schema up, or take it down with everything in it",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"up", "down"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.Flags.Load()
			if err != nil {
				return err
			}
			if args[0] == "down" && !yes {
				if err := p.Confirm("This removes the index with everything in it."); err != nil {
					return err
				}
			}
			database, err := cli.FindDatabase(cmd.Context(), c, c.Logger(p.Stderr))
			if err != nil {
				return err
			}
			defer database.Stop()
			if args[0] == "down" {
				return store.MigrateDown(cmd.Context(), database.URL)
			}
			return store.Migrate(cmd.Context(), database.URL)
		},
	}
	p.Flags.Database(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "take the schema down without asking")
	return cmd
}

// chainsCommand returns `repute chains`. It shows the table that is compiled in and reads no configuration.
func chainsCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "chains",
		Short: "the networks known by name",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t := cli.NewTable(p.Stdout, "NAME", "ID", "START BLOCK", "VERIFIED", "IDENTITY", "REPUTATION")
			for _, d := range contracts.Deployments() {
				t.Row(d.Name, d.ChainID, d.StartBlock, d.StartVerified, d.Identity, d.Reputation)
			}
			return t.Flush()
		},
	}
}

// versionCommand returns `repute version`.
func versionCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "version and build",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprintln(p.Stdout, config.Build())
		},
	}
}
