package service

import (
	"context"
	"io"
	"sync"

	"repute/cmd/repute/internal/config"
	"repute/mcp"
)

// tools returns an MCP server without tools.
func (s *Service) tools() *mcp.Server {
	return mcp.New(mcp.Options{Version: config.Version, Logger: s.log})
}

// ServeStdio serves all tools to one caller over a pair of streams until the input ends or ctx does. The token is that
// of every call. Webhooks are not delivered, and no port is opened.
func (s *Service) ServeStdio(ctx context.Context, in io.Reader, out io.WriteCloser, token string) error {
	defer s.Close()
	tools := s.tools()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h, err := s.openSender(ctx)
	if err != nil {
		return err
	}
	defer h.close()
	intents, err := s.finder()
	if err != nil {
		return err
	}
	if _, err := s.server(ctx, h, nil, tools, intents, nil); err != nil { // mounting routes adds their tools
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { s.Config.Orchestrator.File.Watch(ctx, policyEvery, s.log) })
	beside.Go(func() { _ = intents.Run(ctx) }) // ends with ctx, without an error
	beside.Go(func() {
		if err := h.run(ctx); err != nil {
			s.log.Error("what was begun on a chain is not looked after", "error", err)
		}
	})
	closer, ok := in.(io.ReadCloser)
	if !ok {
		closer = io.NopCloser(in)
	}
	return tools.Stdio(ctx, closer, out, token)
}
