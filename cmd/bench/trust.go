package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"repute/internal/bench"
	"repute/internal/bench/trustbench"
)

// writePlots writes the charts of a report of trust, to no directory: none.
func writePlots(dir string, r bench.Report) error {
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

func (b *benches) trustCommand() *cobra.Command {
	o := trustbench.TrustOptions{Progress: b.stderr}
	var curve, plots string
	cmd := &cobra.Command{
		Use:   "trust --json",
		Short: "what it takes to move a score, compared with other formulas, and what scores cost",
		Long: `Attacks the trust engine on a generated population, and on recorded traders where
--data has their files, and asks other scorers' formulas about the same victims.
It needs neither Postgres nor a network.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := positive("trials", o.Trials); err != nil {
				return err
			}
			if o.Curve, err = parseSizes(curve); err != nil {
				return err
			}
			if err := trustbench.CheckTrustData(o.Data); err != nil {
				return err
			}
			r, err := trustbench.Trust(cmd.Context(), o)
			if err == nil {
				err = writePlots(plots, r)
			}
			return b.report(r, err)
		},
	}
	f := cmd.Flags()
	f.Bool("json", true, "print the report as JSON, the only form there is")
	f.StringVar(&o.Data, "data", os.Getenv("REPUTE_TEST_DATA"),
		"directory with trust/soc-sign-bitcoinalpha.csv and trust/alpha_gt.csv; without it detection is not measured")
	f.StringVar(&curve, "curve", "10000,100000,1000000,10000000",
		"numbers of ratings to recompute all scores of, empty for none; the last takes a minute to load")
	f.StringVar(&plots, "plots", "", "directory to write charts of the report to, as SVG")
	f.IntVar(&o.Trials, "trials", 2000, "of what must hold for any agent")
	return cmd
}
