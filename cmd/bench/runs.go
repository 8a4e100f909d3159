package main

import (
	"errors"

	"github.com/spf13/cobra"

	"repute/internal/bench"
)

// runsCommand is bench runs. It measures workers of this program, whose agent does nothing.
func (b *benches) runsCommand() *cobra.Command {
	o := bench.RunsOptions{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "runs --json",
		Short: "what the nine phases of a run cost, and that killed workers lose nothing",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Worker, err = self(); err != nil {
				return err
			}
			if err := errors.Join(positive("runs", o.Runs), positive("single", o.Single),
				positive("workers", o.Workers)); err != nil {
				return err
			}
			return b.report(bench.Runs(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Runs, "runs", 2000, "of an agent that does nothing, at full load")
	f.IntVar(&o.Single, "single", 100, "one after the other, whose times are the overhead")
	f.IntVar(&o.Kills, "kills", 20, "of workers at random moments, kill -9")
	f.IntVar(&o.Workers, "workers", 3, "processes while some are killed")
	return cmd
}

// runsWorkerCommand is a worker of bench runs, a process of its own, because it is killed.
func (b *benches) runsWorkerCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:    "runs-worker",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return bench.WorkRuns(cmd.Context(), url) },
	}
	cmd.Flags().StringVar(&url, "database-url", "", "of the benchmark's database")
	return cmd
}
