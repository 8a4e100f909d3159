package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/store"
)

// mcpConfig says which sites' pages may use this service, beside programs.
type mcpConfig struct {
	// Sites, scheme://host[:port], whose pages may call tools, change things and read runs.
	Origins []string `yaml:"origins"`
}

// origins are the sites whose pages may call tools: those of the operator and our own.
func (c *config) origins() []string {
	if own := c.Orchestrator.PublicURL; own != "" {
		return append(slices.Clone(c.MCP.Origins), own)
	}
	return c.MCP.Origins
}

func (p *program) mcpCommand() *cobra.Command {
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
			return p.withStore(cmd.Context(), func(c config, db *store.DB) error {
				return newService(c, db, c.logger(p.stderr)).speak(cmd.Context(), p.stdin, p.stdout, token)
			})
		},
	}
	p.flags.database(cmd.Flags())
	cmd.Flags().StringVar(&file, "token-file", "", "file with the token of whoever uses the tools (REPUTE_TOKEN)")
	return cmd
}

// tokenFrom reads a file, or else the environment; empty without either.
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
