package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"repute/orchestrator/control"
	"repute/store"
)

func (p *program) agentCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "the agents that the orchestrator can give work to"}
	p.flags.database(cmd.PersistentFlags())
	cmd.AddCommand(p.agentListCommand(), p.agentRegisterCommand(), p.agentNewCommand(), p.agentRunCommand())
	return cmd
}

func (p *program) agentListCommand() *cobra.Command {
	var asJSON bool
	var e elsewhere
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the agents",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.url != "" {
				var list control.AgentList
				if err := e.call(cmd.Context(), http.MethodGet, "/v1/agents", nil, &list); err != nil {
					return err
				}
				return p.showAgents(list.Agents, asJSON)
			}
			return p.withControl(cmd.Context(), func(c *control.Control, _ *store.DB) error {
				list, err := c.Agents(cmd.Context())
				return firstOf(err, func() error { return p.showAgents(list, asJSON) })
			})
		},
	}
	e.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func (p *program) showAgents(list []control.Agent, asJSON bool) error {
	if asJSON {
		return p.printJSON(list)
	}
	for _, a := range list {
		fmt.Fprintf(p.stdout, "%-24s %-6s %-10s %s %s\n", visible(a.Slug), a.Kind, visible(a.Version), visible(a.AgentID), visible(a.URL))
	}
	return nil
}

// firstOf is err, or what f says where there is none.
func firstOf(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

func (p *program) agentRegisterCommand() *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "register SLUG URL [AGENT]",
		Short: "register an agent that lives elsewhere, with its onchain identity",
		Long: `Register an agent that lives elsewhere, with its onchain identity. The agent is asked
who it is, through a guard that keeps it from private addresses
(orchestrator.agent_hosts). Only with orchestrator.development an agent needs no identity, and none is
proven; else the URL is of a domain that proves the identity, or --key-file signs for it.`,
		Example: "  repute agent register my-agent https://agent.example 8453:22",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := control.Registration{Slug: args[0], URL: args[1]}
			if len(args) == 3 {
				r.AgentID = args[2]
			}
			if err := prove(&r, keyFile); err != nil {
				return err
			}
			return p.withControl(cmd.Context(), func(c *control.Control, _ *store.DB) error {
				a, isNew, err := c.Register(cmd.Context(), r)
				if err == nil {
					fmt.Fprintf(p.stdout, "%s %s\n", map[bool]string{true: "registered", false: "asked again:"}[isNew], a.Slug)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&keyFile, "key-file", "", "private key of the identity's wallet or owner: signs that the agent works as it")
	return cmd
}
