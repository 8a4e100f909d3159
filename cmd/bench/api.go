package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/internal/bench/apibench"
)

// apiCommand is bench api. The ratings of the heavy agent are a part of all, so that it is refused to ask for more.
func (b *benches) apiCommand() *cobra.Command {
	o := apibench.Options{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "api --json",
		Short: "how fast the API answers over a full index, beside a bare handler",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = b.product(); err != nil {
				return err
			}
			if o.Bare, err = self(); err != nil {
				return err
			}
			if err := errors.Join(positive("agents", o.Agents), positive("ratings", o.Ratings),
				positive("rate", o.Rate),
				positive("streams", o.Streams), positive("messages", o.Messages),
				positive("span", int(o.Span))); err != nil {
				return err
			}
			if o.Heavy < 1 || o.Heavy > o.Ratings {
				return repute.Invalid("heavy", "is no part of the ratings", "1 to --ratings")
			}
			return b.report(apibench.Run(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Agents, "agents", 400_000, "of the index")
	f.IntVar(&o.Ratings, "ratings", 600_000, "of the index")
	f.IntVar(&o.Heavy, "heavy", 284_072, "of these, of one agent")
	f.DurationVar(&o.Span, "span", 12*time.Second, "of each measurement of rates")
	f.IntVar(&o.Rate, "rate", 500, "requests a second where a rate is given")
	f.IntVar(&o.Messages, "messages", 10_000, "to the receiver of a webhook")
	f.IntVar(&o.Streams, "streams", 2000, "of the change feed that wait")
	return cmd
}

// apiBareCommand is the other side of bench api: a handler that answers a constant body, by which the product's answers
// are divided.
func (b *benches) apiBareCommand() *cobra.Command {
	bytes := 0
	cmd := &cobra.Command{
		Use:    "api-bare",
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return apibench.ServeConstant(cmd.Context(), b.stdout, bytes)
		},
	}
	cmd.Flags().IntVar(&bytes, "bytes", 1, "of the body")
	return cmd
}
