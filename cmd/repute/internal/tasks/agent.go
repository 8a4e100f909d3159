package tasks

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/control"
	"repute/store"
)

// AgentCommand returns the command that lists, writes, runs and registers agents.
func AgentCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "run, create, register and check agents"}
	p.Flags.Database(cmd.PersistentFlags())
	cmd.AddCommand(agentListCommand(p), agentRegisterCommand(p), agentNewCommand(p), agentRunCommand(p))
	return cmd
}

// agentListCommand returns `repute agent list`. Both ways print the agents in the order of the database, by slug.
func agentListCommand(p *cli.Program) *cobra.Command {
	var e remoteClient
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the agents",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.URL != "" {
				var list control.TaskAgentList
				if err := e.Call(cmd.Context(), http.MethodGet, "/v1/agents", nil, &list); err != nil {
					return err
				}
				return showAgents(p, list.Agents)
			}
			return withControl(cmd.Context(), p, func(c *control.Control, _ *store.DB) error {
				list, err := c.Agents(cmd.Context())
				if err != nil {
					return err
				}
				return showAgents(p, list)
			})
		},
	}
	e.Flags(cmd.Flags())
	p.JSONFlag(cmd.Flags(), "print a JSON array")
	return cmd
}

// showAgents prints agents as a table or as JSON.
func showAgents(p *cli.Program, list []control.TaskAgent) error {
	return p.Show(list, func(w io.Writer) error {
		if len(list) == 0 {
			fmt.Fprintln(w, "no agents are registered")
		}
		for _, a := range list {
			fmt.Fprintf(w, "%-24s %-6s %-10s %s %s\n", cli.Visible(a.Slug), a.Kind, cli.Visible(a.Version),
				cli.Visible(a.AgentID), cli.Visible(a.URL))
		}
		return nil
	})
}

// agentRegisterCommand returns `repute agent register`. It works on the database alone: the process that runs the
// command asks the agent for its description, so that agent_hosts of this configuration applies and not that of a
// server. An agent that is registered already is asked again, and what it answers replaces what was stored.
func agentRegisterCommand(p *cli.Program) *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "register SLUG URL [AGENT]",
		Short: "register an agent that runs on another server",
		Long: `Register an agent that runs on another server, with its onchain identity. The agent is asked
who it is, through a guard that keeps it from private addresses
(orchestrator.agent_hosts). Only with orchestrator.development an agent needs no identity, and none is
proven; else the URL is of a domain that proves the identity, or --key-file signs for it.`,
		Example: "  repute agent register my-agent https://agent.example 8453:22",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := control.AgentRegistration{Slug: args[0], URL: args[1]}
			if len(args) == 3 {
				r.AgentID = args[2]
			}
			if err := prove(&r, keyFile); err != nil {
				return err
			}
			return withControl(cmd.Context(), p, func(c *control.Control, _ *store.DB) error {
				a, isNew, err := c.Register(cmd.Context(), r)
				if err == nil {
					fmt.Fprintf(p.Stdout, "%s %s\n", map[bool]string{true: "registered", false: "asked again:"}[isNew],
						a.Slug)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&keyFile, "key-file", "",
		"private key of the identity's wallet or owner: signs that the agent works as it")
	return cmd
}
