package agents_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"repute/agent/toolserver"
	"repute/cmd/repute/internal/agents"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
	"repute/internal/paytest"
	"repute/x402"
)

// TestStdio: with --stdio the command answers one client of MCP, which pays, and ends with its input.
func TestStdio(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler, _, _ := worker(t)
	file := w.agentFile(t, "0", w.key, "", handler)
	in, asking := io.Pipe()
	answers, out := io.Pipe()
	log, ended := &clitest.Output{}, make(chan error, 1)
	p := &cli.Program{Stdin: in, Stdout: out, Stderr: log}
	cmd := &cobra.Command{Use: "agent", SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { p.Flags.Set = cmd.Flags() }}
	p.Flags.Database(cmd.PersistentFlags())
	cmd.AddCommand(agents.ServeCommand(p))
	cmd.SetArgs([]string{"serve", "--stdio", "--config", file, "--main-config", w.main, "--database-url", w.database})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&sdk.IOTransport{Reader: answers, Writer: asking}, nil)
	ok(t, err)
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
	if err != nil || r.IsError || r.Meta[toolserver.MetaSignature] == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "report"})
	ok(t, err)
	raw, err := json.Marshal(r.StructuredContent)
	ok(t, err)
	var d x402.PaymentRequired
	ok(t, json.Unmarshal(raw, &d))
	pays, err := x402.Pay(t.Context(), w.Signer(paytest.PayerAccount), &d, x402.V2, d.Accepts[0], time.Now())
	ok(t, err)
	r, err = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "report", Meta: sdk.Meta{x402.MetaPayment: pays}})
	if err != nil || r.IsError || w.Balance(t, w.Token, w.Payee()) != 20_000 {
		t.Errorf("%+v, %v: %d units", r, err, w.Balance(t, w.Token, w.Payee()))
	}
	ok(t, asking.Close())
	select {
	case err := <-ended:
		if err != nil || !strings.Contains(log.String(), `"msg":"stopped"`) {
			t.Errorf("%v: %s", err, log)
		}
	case <-time.After(time.Minute):
		t.Errorf("the command does not end with its input: %s", log)
	}
}

// TestStreamsEnd: a client of server-sent events that stays does not delay the end of the agent.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler, _, _ := worker(t)
	url, out, stop := w.serve(t, w.agentFile(t, "0", w.key, "", handler))
	res, err := http.Get(url + toolserver.EventsPath)
	ok(t, err)
	defer res.Body.Close()
	first := make([]byte, len("event: endpoint"))
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "event: endpoint" {
		t.Fatalf("%q, %v", first, err)
	}
	if err := stop(); err != nil || strings.Contains(out.String(), "cut off") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
}
