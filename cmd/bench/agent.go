package main

import (
	"errors"

	"github.com/spf13/cobra"

	"repute/internal/bench/agentbench"
)

// agentCommand is bench agent. It measures this program, which is also the agent: the product's binary is not needed.
func (b *benches) agentCommand() *cobra.Command {
	o := agentbench.Options{Progress: b.stderr}
	cmd := &cobra.Command{
		Use:   "agent --json",
		Short: "what the agent runtime adds to a handler, and that killed agents lose and double no payment",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Program, err = self(); err != nil {
				return err
			}
			if err := errors.Join(positive("requests", o.Requests), positive("at-once", o.AtOnce),
				positive("paid", o.Paid)); err != nil {
				return err
			}
			return b.report(agentbench.Agent(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Requests, "requests", 2000, "of each measurement of times")
	f.IntVar(&o.AtOnce, "at-once", 100, "clients")
	f.IntVar(&o.Paid, "paid", 2000, "paid calls while agents are killed")
	f.IntVar(&o.Kills, "kills", 10, "of agents at random moments, kill -9")
	return cmd
}

// agentWorkerCommand is the agent of bench agent, a process of its own, because it is killed. The benchmark gives all
// of its flags.
func (b *benches) agentWorkerCommand() *cobra.Command {
	var o agentbench.WorkerOptions
	cmd := &cobra.Command{
		Use:    "agent-worker",
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return agentbench.Work(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.DatabaseURL, "database-url", "", "of the benchmark's database")
	f.StringVar(&o.Facilitator, "facilitator", "", "URL of the benchmark's facilitator")
	f.StringVar(&o.Listen, "listen", "", "address of the agent")
	return cmd
}
