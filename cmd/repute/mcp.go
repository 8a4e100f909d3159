package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"repute"
	"repute/mcp"
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

// tools makes a server without tools yet.
func (s *service) tools() *mcp.Server {
	return mcp.New(mcp.Options{Version: version, Logger: s.log})
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
				return p.speak(cmd.Context(), newService(c, db, c.logger(p.stderr)), token)
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

// speak serves all tools to one caller until it goes away.
func (p *program) speak(ctx context.Context, s *service, token string) error {
	tools := s.tools()
	if _, err := s.api(nil, tools); err != nil {
		return err
	}
	h, err := s.openHands(ctx)
	if err != nil {
		return err
	}
	defer h.close()
	if _, err := s.control(ctx, h, http.NotFoundHandler(), nil, tools); err != nil {
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	beside.Go(func() { s.config.Orchestrator.file.Watch(ctx, policyEvery, s.log) })
	beside.Go(func() {
		if err := h.run(ctx); err != nil {
			s.log.Error("what was begun on a chain is not looked after", "error", err)
		}
	})
	in, ok := p.stdin.(io.ReadCloser)
	if !ok {
		in = io.NopCloser(p.stdin)
	}
	return tools.Stdio(ctx, in, unclosed{p.stdout}, token)
}

// unclosed is a writer that others may not close.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }
