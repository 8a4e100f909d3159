package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"repute"
	"repute/internal/bench/harness"
	"repute/internal/bench/trustbench"
)

// writePlots writes the charts of a report of trust, to no directory: none. The directory is made where it is missing,
// and files of the same names are replaced.
func writePlots(dir string, r harness.Report) error {
	m, ok := r.Measurements.(trustbench.TrustMeasurements)
	if dir == "" || !ok {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	for name, svg := range m.Plots() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(svg), 0o644); err != nil {
			return fmt.Errorf("plots: %w", err)
		}
	}
	return nil
}

// leastEpoch is the smallest chain whose epochs say anything: its later epochs have ten new ratings each.
const leastEpoch = 10_000

// trustCommand is bench trust. The charts are written before the report, so that a missed target does not keep them
// back.
func (b *benches) trustCommand() *cobra.Command {
	o := trustbench.TrustOptions{Progress: b.stderr}
	var curve, plots string
	cmd := &cobra.Command{
		Use:   "trust --json",
		Short: "what it takes to move a score, compared with other formulas, and what scores cost",
		Long: `Attacks the trust engine on a generated population, and on recorded traders where
--data has their files, and asks other scorers' formulas about the same victims.
It needs neither Postgres nor a network, except for --epoch, which runs the product on
a private Postgres.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := positive("trials", o.Trials); err != nil {
				return err
			}
			if o.Curve, err = parseSizes(curve); err != nil {
				return err
			}
			if o.Epoch < 0 || o.Epoch > 0 && o.Epoch < leastEpoch {
				return repute.Invalid("epoch", "is too few ratings", fmt.Sprintf("0, or %d and more", leastEpoch))
			}
			if err := trustbench.CheckTrustData(o.Data); err != nil {
				return err
			}
			if o.Epoch > 0 {
				if o.Program, err = b.product(); err != nil {
					return err
				}
			}
			r, err := trustbench.Trust(cmd.Context(), o)
			if err == nil {
				err = writePlots(plots, r)
			}
			return b.report(r, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", os.Getenv("REPUTE_TEST_DATA"),
		"directory with trust/soc-sign-bitcoinalpha.csv and trust/alpha_gt.csv; without it detection is not measured")
	f.StringVar(&curve, "curve", "10000,100000,1000000,10000000",
		"numbers of ratings to recompute all scores of, empty for none; the last takes a minute to load")
	f.StringVar(&plots, "plots", "", "directory to write charts of the report to, as SVG")
	f.IntVar(&o.Epoch, "epoch", 300_000,
		"ratings of the chain on which the product makes epochs, 0 for none; ten million take minutes and 20 GB of disk")
	f.IntVar(&o.Trials, "trials", 2000, "of what must hold for any agent")
	return cmd
}
