package serve_test

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"repute/agent"
	"repute/agent/capability"
	"repute/agent/toolserver"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
)

// clientsVariable names a folder that scripts/x402.sh has filled: node, python, the scripts of
// scripts/x402 and the packages that they import. Without it tests with clients of others are skipped.
const clientsVariable = "REPUTE_X402_CLIENTS"

// baseSepolia is a chain that clients of version 1 know.
const baseSepolia = 84532

// outside is an agent with programs of others.
type outside struct {
	*world
	*shop
	clients string
	handler *echo
}

// newOutside serves a paid capability, whose input is a text, and a free one.
func newOutside(t *testing.T) *outside {
	t.Helper()
	clients := os.Getenv(clientsVariable)
	if clients == "" {
		t.Skip("programs of others are not installed: make test-x402")
	}
	w, h := &world{paytest.New(t, devnet.Options{ChainID: baseSepolia}), pgtest.New(t)}, &echo{}
	s := w.open(t, agent.Options{}, service(t, "for-free", h, nil, nil),
		service(t, "for-money", h, w.price(), func(d *capability.Definition) {
			d.InputSchema = json.RawMessage(`{"type":["string","object"]}`)
		}))
	return &outside{w, s, clients, h}
}

// said is what a program prints.
type said struct {
	Status            int
	Body, Transaction string
}

// last is the end of what a program says, where Python names the error.
func last(text string) string { return text[max(0, len(text)-1500):] }

// run runs a program with the payer's key.
func (o *outside) run(t *testing.T, program string, args ...string) (out said) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(o.clients, program), args...)
	cmd.Dir = o.clients
	cmd.Env = append(os.Environ(), "KEY=0x"+hex.EncodeToString(crypto.FromECDSA(o.Account(paytest.PayerAccount).Key)))
	var errors strings.Builder
	cmd.Stderr = &errors
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, last(errors.String()))
	}
	ok(t, json.Unmarshal(text, &out))
	return out
}

// TestRuntimePaidByClientsOfOthers: clients of npm (versions 1 and 2) and of PyPI pay an agent by HTTP, and
// npm's extensions verify its offers and receipts.
func TestRuntimePaidByClientsOfOthers(t *testing.T) {
	o := newOutside(t)
	url := o.URL + "/capability/for-money"
	for _, x := range []struct {
		name, program string
		args          []string
		said          string
	}{
		{"npm x402-fetch, version 1", "node", []string{"pay.mjs", "v1", url, o.Payee().Hex()}, `"from npm"`},
		{"npm @x402/fetch, version 2", "node", []string{"pay.mjs", "v2", url, o.Payee().Hex()}, `"from npm"`},
		{"PyPI x402", "venv/bin/python", []string{"client.py", url}, `"from PyPI"`},
	} {
		t.Run(x.name, func(t *testing.T) {
			before, runs := o.paid(t), o.handler.count()
			out := o.run(t, x.program, x.args...)
			if out.Status != http.StatusOK || !strings.Contains(out.Body, x.said) || o.paid(t)-before != 10 ||
				o.handler.count() != runs+1 {
				t.Errorf("%+v: %d units moved, %d runs", out, o.paid(t)-before, o.handler.count()-runs)
			}
		})
	}
}

// TestRuntimeTasksOfOthers: the A2A clients of npm and PyPI find an agent by its card, run a free
// capability, and pay for another by the x402 extension; PyPI's x402 pays for a tool of MCP.
func TestRuntimeTasksOfOthers(t *testing.T) {
	o := newOutside(t)
	for _, x := range []struct {
		name, program, script, capability string
		paid                              int64
	}{
		{"npm @a2a-js/sdk", "node", "a2a.mjs", "for-free", 0},
		{"npm @a2a-js/sdk and @x402/core", "node", "a2a.mjs", "for-money", 10},
		{"PyPI a2a-sdk", "venv/bin/python", "a2a_client.py", "for-free", 0},
		{"PyPI a2a-sdk and x402", "venv/bin/python", "a2a_client.py", "for-money", 10},
		{"PyPI x402 over MCP", "venv/bin/python", "mcp_client.py", "for-free", 0},
		{"PyPI x402 pays over MCP", "venv/bin/python", "mcp_client.py", "for-money", 10},
	} {
		t.Run(x.name, func(t *testing.T) {
			before, runs, url := o.paid(t), o.handler.count(), o.URL
			if x.script == "mcp_client.py" {
				url += toolserver.Path
			}
			out := o.run(t, x.program, x.script, url, x.capability)
			if out.Status != http.StatusOK || !strings.Contains(out.Body, "from outside") ||
				o.paid(t)-before != x.paid ||
				o.handler.count() != runs+1 || (out.Transaction != "") != (x.paid > 0) {
				t.Errorf("%+v: %d units moved, %d runs", out, o.paid(t)-before, o.handler.count()-runs)
			}
		})
	}
}
