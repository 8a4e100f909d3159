package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"repute/internal/bench/manifestbench"
)

// manifestsCommand is bench manifests. Without hosts it needs no database, and the target of the crawl is not in the
// report.
func (b *benches) manifestsCommand() *cobra.Command {
	o := manifestbench.Options{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "manifests --json",
		Short: "how fast agent.json is read and verified, and an intent found by its meaning, on one core",
		Long: `Reads, judges and verifies a manifest of usual size again and again, and searches many
intents by texts that are new. The intents are 300 texts that are embedded, and copies whose
vectors have seeded noise. The crawl asks many hosts of this machine, of which half are dead.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(positive("manifests", o.Manifests), positive("intents", o.Intents),
				positive("queries", o.Queries), positive("texts", o.Texts)); err != nil {
				return err
			}
			return b.report(manifestbench.Run(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Manifests, "manifests", 50_000, "that are read, judged and verified")
	f.IntVar(&o.Intents, "intents", 100_000, "that are searched")
	f.IntVar(&o.Texts, "texts", 300, "that are embedded, 300 at most")
	f.IntVar(&o.Hosts, "hosts", 10_000, "that are crawled, half of them dead; 0 for none")
	f.DurationVar(&o.Timeout, "timeout", time.Second, "of a request of the crawl")
	f.IntVar(&o.Queries, "queries", 100, "each with a text of its own")
	return cmd
}
