package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/internal/bench"
)

// indexCommand is bench index. A smaller --events without --curve leaves larger sizes out of the curve: a short run
// does not wait for three million events.
func (b *benches) indexCommand() *cobra.Command {
	o := bench.IndexOptions{Progress: b.stderr}
	var curve string
	cmd := &cobra.Command{
		Use:   "index --json",
		Short: "how fast a history is indexed, against COPY of the same rows",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = b.product(); err != nil {
				return err
			}
			if o.Node, err = self(); err != nil {
				return err
			}
			if err := errors.Join(positive("events", o.Events), positive("runs", o.Runs)); err != nil {
				return err
			}
			if o.Curve, err = parseSizes(curve); err != nil {
				return err
			}
			if cmd.Flags().Changed("events") && !cmd.Flags().Changed("curve") {
				o.Curve = upTo(o.Curve, o.Events)
			}
			return b.report(bench.Index(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", bench.HistoryDir(),
		"where generated histories are kept, about 1.3 GB per million events")
	f.IntVar(&o.Events, "events", 1_000_000, "of the history of every mode")
	f.StringSliceVar(&o.Modes, "modes", bench.ModeNames(), "how the node behaves")
	f.IntVar(&o.Runs, "runs", 3, "of the first mode, with the yardsticks in between")
	f.StringVar(&curve, "curve", "100000,300000,1000000,3000000",
		"sizes of history to compare the cost of an event at, empty for none; by default only up to --events where that is given")
	f.IntVar(&o.Busy, "busy", 20_000, "feedback in blocks of ten, 0 for none of that")
	return cmd
}

// followCommand is bench follow. It has two runs of --blocks seconds, over WebSocket and over HTTP.
func (b *benches) followCommand() *cobra.Command {
	o := bench.FollowOptions{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "follow --json",
		Short: "how soon a new block is visible through the API",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = b.product(); err != nil {
				return err
			}
			if err := errors.Join(positive("blocks", o.Blocks), positive("events", o.PerSecond)); err != nil {
				return err
			}
			return b.report(bench.Follow(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Blocks, "blocks", 120, "made and watched, one a second")
	f.IntVar(&o.PerSecond, "events", 100, "per second")
	return cmd
}

// documentsCommand is bench documents. bench.Documents refuses numbers by which a host would have no document.
func (b *benches) documentsCommand() *cobra.Command {
	o := bench.DocumentsOptions{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "documents --json",
		Short: "how fast documents are read and stored, from their URIs and from slow hosts",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = b.product(); err != nil {
				return err
			}
			if err := errors.Join(positive("documents", o.Documents), positive("hosts", o.Hosts)); err != nil {
				return err
			}
			return b.report(bench.Documents(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Documents, "documents", 20_000, "of each run")
	f.IntVar(&o.Hosts, "hosts", 200, "that serve them over http, one in twenty of them dead")
	return cmd
}

// positive refuses what there is nothing to measure of. The error is repute.ErrInvalid and names the flag.
func positive(flag string, n int) error {
	if n > 0 {
		return nil
	}
	return repute.Invalid(flag, fmt.Sprintf("%d leaves nothing to measure", n), "1 or more")
}

// upTo leaves out sizes above the most that is to be generated, and ends with that one. It changes its argument.
func upTo(sizes []int, most int) []int {
	sizes = slices.DeleteFunc(sizes, func(n int) bool { return n >= most })
	return append(sizes, most)
}

// parseSizes reads numbers of events, apart by commas. repute.ErrInvalid for anything else;
// an empty list is none.
func parseSizes(list string) (sizes []int, err error) {
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(s)
		if err != nil || n <= 0 {
			return nil, repute.Invalid("curve", s+" is no number of events", "e.g. 100000,1000000")
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// nodeCommand is the other side of bench index: the node that serves a history, in a process of its own. It prints its
// URL as the first line and ends with a signal.
func (b *benches) nodeCommand() *cobra.Command {
	var o bench.NodeOptions
	cmd := &cobra.Command{
		Use:    "node",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return bench.ServeHistory(cmd.Context(), b.stdout, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", bench.HistoryDir(), "where histories are kept")
	f.StringVar(&o.Shape, "shape", "base", "base or busy")
	f.IntVar(&o.Events, "events", 1_000_000, "of the history")
	f.Uint64Var(&o.Range, "range", 0, "most blocks of an answer with logs, 0 for any")
	f.IntVar(&o.Rate, "rate", 0, "HTTP requests per second, 0 for any")
	f.DurationVar(&o.Latency, "latency", 0, "of every HTTP request")
	f.BoolVar(&o.Lossy, "lossy", false, "leave logs of every kind out of answers over more than one block")
	return cmd
}
