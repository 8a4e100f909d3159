package payments

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/payer"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store/walletdb"
)

// fieldOf returns the field that an error of input names, "" for another error.
func fieldOf(err error) string {
	var input *repute.InputError
	if errors.As(err, &input) {
		return input.Field
	}
	return ""
}

// A rating is the decimal number that was typed, with as many decimals as were typed.
func TestValueOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"90": "90/0", "4.5": "45/1", "-4.50": "-450/2", "0": "0/0", "-0": "0/0",
		"0.000000000000000001": "1/18", "007": "7/0", "5.": "5/0"} {
		n, decimals, err := valueOf(text)
		if got := fmt.Sprintf("%s/%d", n, decimals); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", ".", ".5", "+5", "--5", "1e3", "0x10", "1_000", "1.2.3", " 5", "5 ",
		"٣", "NaN",
		"1.0000000000000000001", strings.Repeat("9", 31)} {
		if n, _, err := valueOf(text); fieldOf(err) != "value" {
			t.Errorf("%q: %v, %v", text, n, err)
		}
	}
}

// A rating that is written with its decimals is read as the same number.
func TestValueRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9][0-9]{0,11}`).Draw(t, "whole")
		fraction := rapid.StringMatching(`[0-9]{0,18}`).Draw(t, "fraction")
		text, minus := digits, rapid.Bool().Draw(t, "minus")
		if fraction != "" {
			text += "." + fraction
		}
		want, _ := new(big.Int).SetString(digits+fraction, 10)
		if minus {
			text = "-" + text
			want.Neg(want)
		}
		n, decimals, err := valueOf(text)
		if err != nil || n.Cmp(want) != 0 || int(decimals) != len(fraction) {
			t.Fatalf("%s: %v with %d decimals, %v", text, n, decimals, err)
		}
	})
}

// A receipt is a file of the caller: one that proves no payment is refused with what is missing.
func TestReceiptsThatProveNothing(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": "<html>", "nothing paid": `{"status":200,"body":"x","receipt":null}`, "empty": "",
		"an answer that is cut": "HTTP/1.1 200 OK\r\nX-A", "an answer without a signature": "HTTP/1.1 200 OK\r\n\r\nx",
	} {
		f := feedbackFlags{receipt: "-"}
		if b, err := f.read(&cli.Program{Stdin: strings.NewReader(text)}); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, b, err)
		}
	}
	if _, err := (&feedbackFlags{}).read(&cli.Program{}); fieldOf(err) != "receipt" {
		t.Errorf("no receipt: %v", err)
	}
}

// What repute pay --json prints is a receipt, also where nobody could be named.
func TestReceiptOfPay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := payer.Receipt{Payer: "0xa", PayTo: "0xb", Network: "eip155:8453", Transaction: "0xt", URL: "https://a.example",
		Time: at, Payee: &payer.Payee{Agent: "8453:22"}}
	want := purchase{agent: "8453:22", payer: "0xa", payTo: "0xb", network: "eip155:8453", transaction: "0xt",
		endpoint: "https://a.example", at: at}
	for _, named := range []bool{true, false} {
		if !named {
			r.Payee, want.agent = nil, ""
		}
		raw, err := json.Marshal(paidAnswer{Status: 200, Body: "x", Receipt: &r})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ofPay(raw); err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

// The feedback file has the form of ERC-8004, and is the same each time, so that its hash proves the stored rating.
func TestFeedbackDocument(t *testing.T) {
	t.Parallel()
	r := rating{id: repute.AgentID{ChainID: 8453, Registry: common.Address{1}}, from: common.Address{2},
		to: common.Address{3}, chain: 10, tx: common.Hash{4}, at: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		value: big.NewInt(-45), decimals: 1, endpoint: "https://a.example/x"}
	r.id.TokenID.SetUint64(22)
	f := feedbackFlags{tag: "quality"}
	const want = `{"agentRegistry":"eip155:8453:0x0100000000000000000000000000000000000000","agentId":22,` +
		`"clientAddress":"eip155:8453:0x0200000000000000000000000000000000000000","createdAt":"2026-01-02T03:04:05Z",` +
		`"value":-45,"valueDecimals":1,"tag1":"quality","endpoint":"https://a.example/x","proofOfPayment":{` +
		`"fromAddress":"0x0200000000000000000000000000000000000000",` +
		`"toAddress":"0x0300000000000000000000000000000000000000","chainId":"10",` +
		`"txHash":"0x0400000000000000000000000000000000000000000000000000000000000000"}}`
	for range 2 {
		if got, err := f.document(&r); err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}

// The file is in the URI, or where the flags say that it is published; one flag without the other publishes nothing.
func TestPublishDocument(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "feedback.json")
	uri, err := (&feedbackFlags{}).publish([]byte("{}"))
	if text, ok := strings.CutPrefix(uri, "data:application/json;base64,"); err != nil || !ok {
		t.Errorf("%s, %v", uri, err)
	} else if b, err := base64.StdEncoding.DecodeString(text); err != nil || string(b) != "{}" {
		t.Errorf("%s is %q, %v", uri, b, err)
	}
	for _, f := range []feedbackFlags{{out: out}, {uri: "ipfs://x"},
		{out: filepath.Join(out, "below"), uri: "ipfs://x"}} {
		if _, err := f.publish(nil); fieldOf(err) != "out" {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if uri, err := (&feedbackFlags{out: out, uri: "ipfs://x"}).publish([]byte("{}")); err != nil || uri != "ipfs://x" {
		t.Errorf("%s, %v", uri, err)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "{}" {
		t.Errorf("%q, %v", b, err)
	}
}

// A purchase has one state. A refusal wins, because its end is stored with it.
func TestStateOfPurchases(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	list := []walletdb.Purchase{
		{ID: "a", Refused: "too dear", Error: "x", Ended: now, Created: now, Host: "h\x1b[2J", By: "b", Worth: 20_000,
			Decision: json.RawMessage("no JSON")},
		{ID: "b", Error: "expired", Ended: now, Created: now},
		{ID: "c", Created: now, Agent: "buyer", Decision: json.RawMessage(`{"payee":{"agent":"8453:22"}}`)},
		{ID: "d", Ended: now, Created: now, Receipt: json.RawMessage(`{"id":"d"}`)},
	}
	states := ""
	for _, l := range listedOf(list) {
		states += l.ID + " " + l.State + " " + l.Reason + "|"
	}
	if states != "a refused too dear|b failed expired|c open |d paid |" {
		t.Error(states)
	}
	var out strings.Builder
	if err := printPurchases(&out, list); err != nil || strings.Contains(out.String(), "\x1b") ||
		!strings.Contains(out.String(), "0.02") || !strings.Contains(out.String(), "8453:22  buyer") {
		t.Errorf("%s, %v", out.String(), err)
	}
	out.Reset()
	if err := printPurchases(&out, nil); err != nil || out.String() != "no payments yet\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if b, err := json.Marshal(listedOf(nil)); err != nil || string(b) != "[]" {
		t.Errorf("no purchases are %s, %v", b, err)
	}
}

// A request with data is a POST unless another method is given, and data of a file are bounded.
func TestRequest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, []byte("[1]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f    payFlags
		want string
	}{
		{payFlags{}, "  "}, {payFlags{method: "delete"}, "DELETE  "},
		{payFlags{data: "{}"}, "POST application/json {}"},
		{payFlags{data: "{}", method: "put"}, "PUT application/json {}"},
		{payFlags{data: "@" + file}, "POST application/json [1]"}, {payFlags{data: "@-"}, "POST application/json in"},
	} {
		r, err := c.f.request(&cli.Program{Stdin: strings.NewReader("in")}, "https://a.example")
		if got := r.Method + " " + r.Type + " " + string(r.Body); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c.f, got, err)
		}
	}
	large := &cli.Program{Stdin: strings.NewReader(strings.Repeat("x", maxData+1))}
	if _, err := (&payFlags{data: "@-"}).request(large, "https://a.example"); fieldOf(err) != "data" {
		t.Errorf("too many data: %v", err)
	}
}

// The identity that pays may be left out only where there is no choice.
func TestIdentityThatPays(t *testing.T) {
	t.Parallel()
	chain := func(slugs ...string) (c wallet.ChainConfig) {
		c.Identities = map[string]keys.Config{}
		for _, s := range slugs {
			c.Identities[s] = keys.Config{}
		}
		return c
	}
	for _, c := range []struct {
		as   string
		list []wallet.ChainConfig
		want string
	}{
		{"", []wallet.ChainConfig{chain("a"), chain("a")}, "a"}, {"", []wallet.ChainConfig{chain("a"), chain("b")}, ""},
		{"b", []wallet.ChainConfig{chain("a"), chain("b")}, "b"}, {"c", []wallet.ChainConfig{chain("a", "b")}, ""},
		{"", []wallet.ChainConfig{chain()}, ""}, {"", nil, ""},
	} {
		got, err := (&Buying{as: c.as}).identity(c.list)
		if got != c.want || (c.want == "") != (fieldOf(err) == "as") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// What was paid is told apart from the answer, which goes to standard output alone.
func TestPrintReceipt(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{true, false} {
		r := &payer.Receipt{ID: "p1", Dollars: "0.02", PayTo: "0xb"}
		want := "paid 0.02 dollars to 0xb, an account of no known agent, in transaction unknown; receipt p1\n"
		if named {
			r.Payee, r.Transaction = &payer.Payee{Agent: "8453:22\x1b", By: "wallet", Score: 40, Low: 25.5}, "0xt"
			want = "paid 0.02 dollars to 0xb, agent 8453:22\ufffd (by wallet, score 40, at least 25.5), " +
				"in transaction 0xt; receipt p1\n"
		}
		var out, told strings.Builder
		err := Print(&cli.Program{Stdout: &out, Stderr: &told}, &payer.Answer{Status: 200, Body: []byte("raw\x1b"),
			Receipt: r})
		if err != nil || out.String() != "raw\x1b" || told.String() != want {
			t.Errorf("printed %q and %q, %v; want %q", out.String(), told.String(), err, want)
		}
	}
}
