package payments_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"repute"
	"repute/agent/signed"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/payments"
	"repute/cmd/repute/internal/service"
	"repute/contracts/bindings"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/orchestrator/payer"
	"repute/store"
	"repute/x402"
	"repute/x402/facilitator"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// world is a chain, its index, and a configuration with keys.
type world struct {
	*paytest.World
	file, database, index string
}

const configuration = `chains:
  - {name: pay, id: 31337, identity: "%s", reputation: "%s", start_block: 1, rpc: "%s", stablecoins: ["%s USDC 6"]}
orchestrator:
  wallets:
    - chain: pay
      identities: {settler: "file:%s", buyer: "file:%s"}
`

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: paytest.New(t, devnet.Options{}), database: pgtest.New(t)}
	key := func(account int) string {
		path := filepath.Join(t.TempDir(), "key")
		ok(t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.Account(account).Key))), 0o600))
		return path
	}
	c := w.Chain()
	w.file = filepath.Join(t.TempDir(), "repute.yaml")
	ok(t, os.WriteFile(w.file, fmt.Appendf(nil, configuration, c.Identity, c.Reputation, w.RPCURL(), w.Token,
		key(paytest.SettlerAccount), key(paytest.PayerAccount)), 0o600))
	return w
}

// serveIndex follows the chain and answers over HTTP until the test ends.
func (w *world) serveIndex(t *testing.T) {
	t.Helper()
	var f config.Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Serving(set)
	ok(t, set.Parse([]string{"--config", w.file, "--database-url", w.database, "--roles",
		"indexer,documents,api,trust"}))
	c, err := f.Load()
	ok(t, err)
	db, err := store.Open(t.Context(), w.database, store.Options{})
	ok(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	w.index = "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- service.New(c, db, c.Logger(io.Discard)).Run(ctx, l) }()
	t.Cleanup(func() {
		stop()
		<-ended
		db.Close()
	})
}

// run runs a command of repute.
func (w *world) run(ctx context.Context, out *clitest.Output, args ...string) error {
	return clitest.Run(ctx, out, func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{payments.FacilitatorCommand(p), payments.PayCommand(p), payments.FeedbackCommand(p)}
	}, append(args, "--config", w.file, "--database-url", w.database, "--log-level", "error")...)
}

// facilitator serves one until the test ends, and returns its client.
func (w *world) facilitator(t *testing.T) *facilitator.Client {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	out, ended := &clitest.Output{}, make(chan error, 1)
	go func() {
		ended <- w.run(ctx, out, "facilitator", "serve", "--settler", "settler", "--listen", "127.0.0.1:0")
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	const said = "facilitator on "
	for end := time.Now().Add(time.Minute); !strings.Contains(out.String(), said); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the facilitator does not serve: %s", out)
		}
	}
	_, url, _ := strings.Cut(strings.TrimSpace(out.String()), said)
	c, err := facilitator.NewClient(nil, 0, url)
	ok(t, err)
	return c
}

// register makes an agent of the payee's, whose wallet is the payee, and waits for its index.
func (w *world) register(t *testing.T) {
	t.Helper()
	data, err := bindings.NewIdentityRegistry().TryPackRegister()
	ok(t, err)
	w.Send(t, paytest.PayeeAccount, w.Chain().Identity, data)
}

// TestPayOnce is the whole path: an agent that the index knows demands payment, repute pay asks the
// index and pays, and a facilitator of repute settles.
func TestPayOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serveIndex(t)
	shop := &paytest.Shop{Facilitator: w.facilitator(t), Accepts: []x402.Requirements{w.Requirements(20_000)}}
	server := httptest.NewServer(shop)
	t.Cleanup(server.Close)
	pay := func(more ...string) (*clitest.Output, error) {
		out := &clitest.Output{}
		return out, w.run(t.Context(), out, append([]string{"pay", server.URL, "--index", w.index, "--as", "buyer"},
			more...)...)
	}
	if _, err := pay(); err == nil || !strings.Contains(err.Error(), "belongs to no agent") {
		t.Fatalf("nobody can be named: %v", err)
	}
	w.register(t)
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		// Between the questions by wallet and by owner the index may have read the agent.
		if _, err = pay(); err != nil && strings.Contains(err.Error(), "(by wallet)") {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "nobody has rated agent") ||
		!strings.Contains(err.Error(), "(by wallet)") {
		t.Fatalf("the agent is not named: %v", err)
	}
	if _, err := pay("--allow-unknown", "--max", "0.019999"); err == nil ||
		!strings.Contains(err.Error(), "at most 0.019999") {
		t.Errorf("over the cap: %v", err)
	}
	if w.Balance(t, w.Token, w.Payee()) != 0 {
		t.Fatal("something was paid")
	}
	out, err := pay("--allow-unknown", "--json", "--data", `{"a":1}`)
	ok(t, err)
	var answer struct {
		Status  int
		Body    string
		Receipt *payer.Receipt
	}
	ok(t, json.Unmarshal([]byte(out.String()), &answer))
	if answer.Status != 200 || !strings.Contains(answer.Body, "run") || answer.Receipt.Payee.By != payer.ByWallet ||
		answer.Receipt.Dollars != "0.02" || w.Balance(t, w.Token, w.Payee()) != 20_000 {
		t.Errorf("%s: %d units", out, w.Balance(t, w.Token, w.Payee()))
	}
	if out, err := pay("--allow-unknown"); err != nil || !strings.Contains(out.String(), "paid 0.02 dollars to") {
		t.Errorf("%s: %v", out, err)
	}
	w.listed(t, answer.Receipt)
}

// listed checks what repute pay list says after TestPayOnce.
func (w *world) listed(t *testing.T, r *payer.Receipt) {
	t.Helper()
	out := &clitest.Output{}
	ok(t, w.run(t.Context(), out, "pay", "list", "--json", "--limit", "3"))
	var list []struct {
		ID, State, As, By, Dollars, Reason string
		Payee                              *payer.Payee
		Receipt                            *payer.Receipt
	}
	ok(t, json.Unmarshal([]byte(out.String()), &list))
	if len(list) != 3 || list[0].State != "paid" || list[1].ID != r.ID ||
		list[1].Receipt.Transaction != r.Transaction ||
		list[1].As != "buyer" || list[1].Payee.Agent != r.Payee.Agent || list[2].State != "refused" ||
		!strings.Contains(list[2].Reason, "at most 0.019999") || list[2].Receipt != nil {
		t.Errorf("%s", out)
	}
	out = &clitest.Output{}
	ok(t, w.run(t.Context(), out, "pay", "list"))
	if text := out.String(); !strings.Contains(text, "STATE") || !strings.Contains(text, r.ID) ||
		!strings.Contains(text, "belongs to no agent") {
		t.Errorf("%s", text)
	}
	if err := w.run(t.Context(), out, "pay", "list", "--limit", "0"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("limit 0: %v", err)
	}
}

// TestFeedbackGiven closes the loop: an agent is found, paid and rated, the rating proves the payment,
// and the index shows it as paid. The same command again rates nothing, another rating of the same
// payment is refused.
func TestFeedbackGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t)
	w.serveIndex(t)
	shop := &paytest.Shop{Facilitator: w.facilitator(t), Accepts: []x402.Requirements{w.Requirements(20_000)}}
	server := httptest.NewServer(shop)
	t.Cleanup(server.Close)
	out, err := &clitest.Output{}, error(nil)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		out = &clitest.Output{}
		if err = w.run(t.Context(), out, "pay", server.URL, "--index", w.index, "--as", "buyer", "--allow-unknown",
			"--json"); err != nil ||
			strings.Contains(out.String(), `"agent"`) {
			break
		}
	}
	ok(t, err)
	receipt := filepath.Join(t.TempDir(), "paid.json")
	ok(t, os.WriteFile(receipt, []byte(out.String()), 0o600))
	give := func(more ...string) (string, error) {
		out := &clitest.Output{}
		err := w.run(t.Context(), out, append([]string{"feedback", "give", "--receipt", receipt, "--tag", "quality",
			"--as"}, more...)...)
		return out.String(), err
	}
	if _, err := give("settler", "--value", "90"); err == nil || !strings.HasPrefix(err.Error(), "as:") {
		t.Errorf("one who did not pay: %v", err)
	}
	first, err := give("buyer", "--value", "90", "--json")
	ok(t, err)
	again, err := give("buyer", "--value", "90", "--json")
	if err != nil || again != first {
		t.Errorf("again: %s, %v; first %s", again, err, first)
	}
	if _, err := give("buyer", "--value", "91"); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another rating of the payment: %v", err)
	}
	w.seesPaid(t)
	w.ratesByAnswer(t, server.URL)
}

// ratesByAnswer pays again and rates with the signed answer as its receipt: the agent's wallet is read
// from the chain. An answer that was changed proves nothing.
func (w *world) ratesByAnswer(t *testing.T, url string) {
	t.Helper()
	out := &clitest.Output{}
	ok(t, w.run(t.Context(), out, "pay", url, "--index", w.index, "--as", "buyer", "--allow-unknown", "--json",
		"--data", `{"b":2}`))
	var paid struct{ Receipt payer.Receipt }
	ok(t, json.Unmarshal([]byte(out.String()), &paid))
	body, d := `{"answer":1}`, signed.Domain{ChainID: w.Chain().ID, Registry: w.Chain().Identity}
	answer := signed.Response{Domain: d, TaskResponse: signed.TaskResponse{ResultHash: signed.HashBody([]byte(body)),
		Timestamp: uint64(time.Now().Unix()), Metadata: "{}"}}
	var err error
	answer.Signature, err = w.Signer(paytest.PayeeAccount).SignTyped(t.Context(), answer.Data(d))
	ok(t, err)
	h := http.Header{}
	answer.Write(h, "1.0.0")
	ok(t, x402.WriteSettlement(h, x402.V2, x402.Settlement{Success: true, Transaction: paid.Receipt.Transaction,
		Network: paid.Receipt.Network, Payer: paid.Receipt.Payer}))
	var text bytes.Buffer
	text.WriteString("HTTP/1.1 200 OK\r\n")
	ok(t, h.Write(&text))
	give := func(body, name string) error {
		file := filepath.Join(t.TempDir(), name)
		ok(t, os.WriteFile(file, []byte(text.String()+"\r\n"+body), 0o600))
		out = &clitest.Output{}
		return w.run(t.Context(), out, "feedback", "give", "--receipt", file, "--value", "4.5", "--tag", "quality",
			"--as", "buyer",
			"--json")
	}
	if err := give(`{"answer":2}`, "changed.txt"); err == nil || !strings.HasPrefix(err.Error(), "body:") {
		t.Errorf("a changed answer: %v", err)
	}
	ok(t, give(body, "answer.txt"))
	var given struct{ Agent, Payment, URI string }
	ok(t, json.Unmarshal([]byte(out.String()), &given))
	document, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(given.URI, "data:application/json;base64,"))
	if err != nil || given.Payment != paid.Receipt.Transaction ||
		!strings.Contains(string(document), fmt.Sprintf(`"toAddress":%q`, w.Payee().Hex())) ||
		!strings.Contains(string(document), `"value":45,"valueDecimals":1`) {
		t.Errorf("%s: %s, %v", out, document, err)
	}
}

// seesPaid waits until the index shows one rating whose payment is verified.
func (w *world) seesPaid(t *testing.T) {
	t.Helper()
	var list struct {
		Items []struct {
			Client  string
			Payment *struct{ State, Reason, From, To, USD string }
		}
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		res, err := http.Get(w.index + "/agents/31337:0/feedback")
		ok(t, err)
		err = json.NewDecoder(res.Body).Decode(&list)
		_ = res.Body.Close()
		ok(t, err)
		if len(list.Items) == 1 && list.Items[0].Payment != nil && list.Items[0].Payment.State == "verified" {
			break
		}
	}
	payer := w.Account(paytest.PayerAccount).Address.Hex()
	if len(list.Items) != 1 || list.Items[0].Client != payer || list.Items[0].Payment == nil ||
		list.Items[0].Payment.State != "verified" || list.Items[0].Payment.From != payer ||
		list.Items[0].Payment.USD != "0.02" {
		t.Errorf("the rating is not shown as paid: %+v", list)
	}
}

// TestPrintEndsLines: an error status ends the body with a line break, so that the error has a line of its
// own. An answer that is a success is printed as it is.
func TestPrintEndsLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{{404, "none", "none\n"}, {404, "none\n", "none\n"}, {404, "", ""}, {200, "raw", "raw"}} {
		var out bytes.Buffer
		answer := payer.Answer{Status: c.status, Body: []byte(c.body)}
		err := payments.Print(&cli.Program{Stdout: &out, Stderr: io.Discard}, &answer)
		if (err != nil) != (c.status >= 400) || out.String() != c.want {
			t.Errorf("%d %q: %q, %v", c.status, c.body, &out, err)
		}
	}
}

// TestMisuse lists command lines that are refused with the flag that is wrong.
func TestMisuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, args := range map[string][]string{
		"settler":  {"facilitator", "serve"},
		"settler ": {"facilitator", "serve", "--settler", "nobody"},
		"index":    {"pay", "http://127.0.0.1:1", "--as", "buyer"},
		"receipt":  {"feedback", "give", "--value", "1"},
		"file":     {"feedback", "give", "--receipt", "/nowhere", "--value", "1"},
		"as":       {"pay", "http://127.0.0.1:1", "--index", "http://127.0.0.1:1"},
		"max":      {"pay", "http://127.0.0.1:1", "--index", "http://127.0.0.1:1", "--as", "buyer", "--max", "1e3"},
		"max-day":  {"pay", "http://127.0.0.1:1", "--index", "http://127.0.0.1:1", "--as", "buyer", "--max-day", "-1"},
	} {
		if err := w.run(t.Context(), &clitest.Output{}, args...); err == nil ||
			!strings.HasPrefix(err.Error(), strings.TrimSpace(name)+":") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
