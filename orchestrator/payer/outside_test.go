package payer_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"repute/internal/paytest"
	"repute/orchestrator/payer"
	"repute/x402"
	"repute/x402/facilitator"
)

// clientsVariable names a folder that scripts/x402.sh has filled: node, the scripts of scripts/x402
// and the packages that they import. Without it tests with parties of others are skipped.
const clientsVariable = "REPUTE_X402_CLIENTS"

// baseSepolia is the chain of tests with clients of version 1, which know a fixed list of chains.
const baseSepolia = 84532

// outside is a world with programs of others.
type outside struct {
	*world
	clients string
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	clients := os.Getenv(clientsVariable)
	if clients == "" {
		t.Skip("programs of others are not installed: make test-x402")
	}
	return &outside{newWorldOn(t, baseSepolia), clients}
}

// command is a program of others with the key of an account.
func (o *outside) command(t *testing.T, account int, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(o.clients, program), args...)
	cmd.Dir = o.clients
	cmd.Env = append(os.Environ(), "KEY=0x"+hex.EncodeToString(crypto.FromECDSA(o.Account(account).Key)))
	cmd.Stderr = &testWriter{t}
	return cmd
}

// testWriter shows what a program says.
type testWriter struct{ t *testing.T }

// Write implements io.Writer.
func (w *testWriter) Write(b []byte) (int, error) {
	w.t.Logf("%s", b)
	return len(b), nil
}

// run runs a program and reads the JSON that it prints.
func (o *outside) run(t *testing.T, program string, args ...string) (out struct {
	Status            int
	Body, Transaction string
}) {
	t.Helper()
	text, err := o.command(t, paytest.PayerAccount, program, args...).Output()
	ok(t, err)
	ok(t, json.Unmarshal(text, &out))
	return out
}

// serve starts a program that prints its URL, and ends it with the test.
func (o *outside) serve(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := o.command(t, paytest.SettlerAccount, program, args...)
	lines, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for said := bufio.NewScanner(lines); said.Scan(); {
		if strings.HasPrefix(said.Text(), "http://") {
			return said.Text()
		}
		t.Log(said.Text())
	}
	t.Fatal("the program has ended")
	return ""
}

// TestClientsOfOthers: clients of npm (versions 1 and 2) and of PyPI pay a server of ours, and npm's
// extensions verify its offers and receipts.
func TestClientsOfOthers(t *testing.T) {
	o := newOutside(t)
	for _, x := range []struct {
		name    string
		program string
		args    []string
		said    string
	}{
		{"npm x402-fetch, version 1", "node", []string{"pay.mjs", "v1", o.url, o.Payee().Hex()}, `"\"from npm\""`},
		{"npm @x402/fetch, version 2", "node", []string{"pay.mjs", "v2", o.url, o.Payee().Hex()}, `"\"from npm\""`},
		{"PyPI x402", "venv/bin/python", []string{"client.py", o.url}, `"\"from PyPI\""`},
	} {
		t.Run(x.name, func(t *testing.T) {
			before, runs := o.paid(t), o.shop.Runs()
			out := o.run(t, x.program, x.args...)
			if out.Status != 200 || !strings.Contains(out.Body, x.said) || o.paid(t)-before != 10_000 ||
				o.shop.Runs() != runs+1 {
				t.Errorf("%+v: %d units moved", out, o.paid(t)-before)
			}
		})
	}
	t.Run("npm @x402/fetch by Permit2", func(t *testing.T) {
		o.shop.Accepts = []x402.Requirements{o.PlainRequirements(700)}
		before := o.paid(t)
		if out := o.run(t, "node", "pay.mjs", "v2", o.url, o.Payee().Hex()); out.Status != 200 ||
			o.paid(t)-before != 700 {
			t.Errorf("%+v: %d units moved", out, o.paid(t)-before)
		}
	})
}

// TestFacilitatorOfOthers: the facilitator of PyPI settles for a server of ours.
func TestFacilitatorOfOthers(t *testing.T) {
	o := newOutside(t)
	url := o.serve(t, "venv/bin/python", "facilitator.py", o.RPCURL(), x402.Network(baseSepolia))
	c, err := facilitator.NewClient(nil, time.Minute, url)
	ok(t, err)
	supported, err := c.Supported(t.Context())
	ok(t, err)
	r := o.Requirements(10_000)
	v, err := c.Verify(t.Context(), o.Pay(t, r), r)
	if err != nil || !v.IsValid || len(supported.Kinds) == 0 {
		t.Fatalf("%+v, %+v, %v", supported, v, err)
	}
	o.shop.Facilitator = c
	o.trusted("wallet", "40")
	a, err := o.payer(t, nil).Do(t.Context(), payer.Request{URL: o.url})
	ok(t, err)
	if a.Receipt == nil || o.paid(t) != 10_000 {
		t.Errorf("%+v: %d units", a, o.paid(t))
	}
}

// TestServerOfOthers: our facilitator settles for the server of PyPI, which our payer pays.
func TestServerOfOthers(t *testing.T) {
	o := newOutside(t)
	facilitator := httptest.NewServer(facilitator.NewHandler(o.shop.Facilitator))
	t.Cleanup(facilitator.Close)
	url := o.serve(t, "venv/bin/python", "server.py", facilitator.URL, x402.Network(baseSepolia), o.Payee().Hex(),
		o.Token.Hex(), "20000")
	o.trusted("wallet", "40")
	a, err := o.payer(t, nil).Do(t.Context(), payer.Request{URL: url + "/paid"})
	ok(t, err)
	if a.Status != http.StatusOK || !strings.Contains(string(a.Body), "true") || a.Receipt == nil ||
		a.Receipt.Transaction == "" || o.paid(t) != 20_000 {
		t.Errorf("%d %s: %d units", a.Status, a.Body, o.paid(t))
	}
}
