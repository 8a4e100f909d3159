package main

import (
	"github.com/spf13/cobra"

	"repute/internal/bench/exportbench"
)

// exportCommand is bench export, which measures the packages of the product in this process: it needs no binary.
func (b *benches) exportCommand() *cobra.Command {
	o := exportbench.Options{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "export --json",
		Short: "how fast ratings are exported, against COPY of the same rows",
		Long: `Stores ratings in a private Postgres and downloads them as NDJSON and as Parquet over HTTP,
from a server in this process, and by COPY: the table as it is, and the rows of the export with
their texts, transactions and times.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := positive("ratings", o.Ratings); err != nil {
				return err
			}
			return b.report(exportbench.Run(cmd.Context(), o))
		},
	}
	cmd.Flags().IntVar(&o.Ratings, "ratings", 500_000, "that are exported")
	return cmd
}
