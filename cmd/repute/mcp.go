package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/service"
	"repute/store"
)

// mcpCommand returns `repute mcp`. Standard output belongs to the protocol: nothing else may be printed there, and logs
// go to standard error.
func mcpCommand(p *cli.Program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "offer the tools of the index and the orchestrator to a program on standard input and output",
		Long: `Speaks the Model Context Protocol on standard input and output, on the configured
database; a process that serves over HTTP offers the same tools at /mcp. Tools that
change something need one of orchestrator.tokens, in REPUTE_TOKEN or --token-file.`,
		Example: `  claude mcp add repute -- repute mcp --database-url postgres://localhost/repute`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := tokenFrom(file)
			if err != nil {
				return err
			}
			return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				s := service.New(c, db, c.Logger(p.Stderr))
				return s.ServeStdio(cmd.Context(), p.Stdin, cli.Unclosed(p.Stdout), token)
			})
		},
	}
	p.Flags.Database(cmd.Flags())
	cmd.Flags().StringVar(&file, "token-file", "", "file with the token of whoever uses the tools (REPUTE_TOKEN)")
	return cmd
}

// tokenFrom reads a file, or else the environment; empty without either. There is no flag for the token itself, which
// every user of the computer could read in the list of processes.
func tokenFrom(file string) (string, error) {
	if file == "" {
		return os.Getenv("REPUTE_TOKEN"), nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", repute.Invalid("token-file", err.Error(), "a file with one token of orchestrator.tokens")
	}
	return strings.TrimSpace(string(raw)), nil
}
