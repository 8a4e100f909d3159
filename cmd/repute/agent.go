package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"repute/orchestrator/control"
)

func (p *program) agentCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "the agents that the orchestrator can give work to"}
	p.flags.database(cmd.PersistentFlags())
	cmd.AddCommand(p.agentListCommand(), p.agentRegisterCommand(), p.agentNewCommand(), p.agentRunCommand())
	return cmd
}

func (p *program) agentListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the agents",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withControl(cmd.Context(), func(c *control.Control) error {
				list, err := c.Agents(cmd.Context())
				if err != nil || asJSON {
					return firstOf(err, func() error { return p.printJSON(list) })
				}
				for _, a := range list {
					fmt.Fprintf(p.stdout, "%-24s %-6s %-10s %s %s\n", a.Slug, a.Kind, visible(a.Version), a.AgentID, visible(a.URL))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// firstOf is err, or what f says where there is none.
func firstOf(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

func (p *program) agentRegisterCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "register SLUG URL [AGENT]",
		Short: "register an agent that lives elsewhere, with its onchain identity",
		Long: `Register an agent that lives elsewhere, with its onchain identity. The agent is asked
who it is, through the same guard that keeps documents from private addresses
(allow_hosts). Only with orchestrator.development an agent needs no identity.`,
		Example: "  repute agent register my-agent https://agent.example 8453:22",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := control.Registration{Slug: args[0], URL: args[1]}
			if len(args) == 3 {
				r.AgentID = args[2]
			}
			return p.withControl(cmd.Context(), func(c *control.Control) error {
				a, isNew, err := c.Register(cmd.Context(), r)
				if err == nil {
					fmt.Fprintf(p.stdout, "%s %s\n", map[bool]string{true: "registered", false: "asked again:"}[isNew], a.Slug)
				}
				return err
			})
		},
	}
}
