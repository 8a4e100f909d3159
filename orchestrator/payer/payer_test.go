package payer_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/devnet"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/orchestrator/payer"
	"repute/orchestrator/safety"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/store/walletdb"
	"repute/x402"
	"repute/x402/facilitator"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// world is a chain, a shop that is paid through a facilitator, and a scripted index.
type world struct {
	*paytest.World
	shop  *paytest.Shop
	url   string // of the shop
	db    *store.DB
	index string
	// database is the URL of db.
	database string
	// answers are those of the index by path and query; others are 404.
	mu      sync.Mutex
	answers map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, 31337)
}

// newWorldOn is newWorld on a chain with an id.
func newWorldOn(t *testing.T, chainID uint64) *world {
	t.Helper()
	w := &world{World: paytest.New(t, devnet.Options{ChainID: chainID}), answers: map[string]string{},
		database: pgtest.New(t)}
	db, err := store.Open(t.Context(), w.database, store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	path := filepath.Join(t.TempDir(), "key")
	ok(t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.Account(paytest.SettlerAccount).Key))),
		0o600))
	c := w.Chain()
	wl, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{{ChainID: c.ID, RPC: []string{w.RPCURL()},
		Tokens: []common.Address{w.Token, w.Plain}, Registries: safety.Registries{Identity: c.Identity},
		Identities:    map[string]keys.Config{"settler": {KeyFile: path}},
		Confirmations: 1, Poll: 20 * time.Millisecond}}})
	ok(t, err)
	t.Cleanup(wl.Close)
	f, err := settlement.New(db, wl, settlement.Options{Settler: "settler", Chains: []uint64{c.ID},
		Tokens: map[uint64][]common.Address{c.ID: {w.Token, w.Plain}}})
	ok(t, err)
	w.db, w.shop = db, &paytest.Shop{Facilitator: f, Accepts: []x402.Requirements{w.Requirements(10_000)},
		Signer: w.Signer(paytest.PayeeAccount)}
	server := httptest.NewServer(w.shop)
	t.Cleanup(server.Close)
	w.url = server.URL + "/echo"
	index := httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(index.Close)
	w.index = index.URL
	return w
}

// answer is the scripted index.
func (w *world) answer(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	text, known := w.answers[r.URL.Path]
	for _, filter := range []string{"wallet", "owner", "q"} {
		if v := r.URL.Query().Get(filter); v != "" {
			text, known = w.answers[r.URL.Path+"?"+filter+"="+strings.ToLower(v)]
			if !known {
				text, known = `{"items":[]}`, true
			}
		}
	}
	w.mu.Unlock()
	if !known {
		http.NotFound(out, r)
		return
	}
	_, _ = out.Write([]byte(text))
}

// script sets an answer of the index.
func (w *world) script(path, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers[path] = text
}

// trusted makes the payee's account the wallet or owner of an agent with a score.
func (w *world) trusted(by string, low string) {
	w.script(fmt.Sprintf("/chains/%d/agents?%s=%s", w.Chain().ID, by, strings.ToLower(w.Payee().Hex())),
		`{"items":[{"id":"eip155:31337:0xa:1"}]}`)
	w.script("/agents/eip155:31337:0xa:1/reputation", `{"score":60,"low":`+low+`,"status":"rated"}`)
}

// payer is one with caps of 5 cents a call, 10 a host and 15 in all.
func (w *world) payer(t *testing.T, change func(*payer.Options)) *payer.Payer {
	t.Helper()
	o := payer.Options{Index: w.index, Agent: "buyer", MaxCall: 50_000, MaxHost: 100_000, MaxDay: 150_000, MinScore: 20,
		Keys: func(id uint64) (x402.Signer, error) {
			if id != w.Chain().ID {
				return nil, repute.ErrNotFound
			}
			return w.Signer(paytest.PayerAccount), nil
		},
		Coins: []repute.Stablecoin{{ChainID: w.Chain().ID, Address: w.Token, Symbol: "USDC", Decimals: 6},
			{ChainID: w.Chain().ID, Address: w.Plain, Symbol: "PLN", Decimals: 6}}}
	if change != nil {
		change(&o)
	}
	p, err := payer.New(w.db, o)
	ok(t, err)
	return p
}

func (w *world) paid(t *testing.T) int64 {
	t.Helper()
	return w.Balance(t, w.Token, w.Payee()) + w.Balance(t, w.Plain, w.Payee())
}

// TestPays: an agent that is trusted is paid, by EIP-3009 or Permit2, and the receipt is stored.
func TestPays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trusted("wallet", "40")
	p := w.payer(t, nil)
	a, err := p.Do(t.Context(), payer.Request{Method: "POST", URL: w.url, Body: []byte("hello")})
	ok(t, err)
	if a.Status != 200 || string(a.Body) != `{"echo":"hello","run":1}` || w.paid(t) != 10_000 {
		t.Fatalf("%d %s, %d units", a.Status, a.Body, w.paid(t))
	}
	r := a.Receipt
	if r.Dollars != "0.01" || r.Payee.Agent != "eip155:31337:0xa:1" || r.Payee.By != payer.ByWallet ||
		r.Transaction == "" {
		t.Errorf("%+v of %+v", r, r.Payee)
	}
	if by, err := paytest.ReceiptSigner(r.Signed); err != nil || by != w.Payee() {
		t.Errorf("signed by %s: %v", by, err)
	}
	stored, err := walletdb.Purchases(t.Context(), w.db, 10)
	ok(t, err)
	var kept payer.Receipt
	if len(stored) != 1 || stored[0].Ended.IsZero() || json.Unmarshal(stored[0].Receipt, &kept) != nil ||
		kept.Transaction != r.Transaction {
		t.Errorf("%+v", stored)
	}
	w.shop.Accepts = []x402.Requirements{w.PlainRequirements(20_000)}
	if a, err := p.Do(t.Context(), payer.Request{URL: w.url}); err != nil || a.Status != 200 || w.paid(t) != 30_000 {
		t.Errorf("Permit2: %+v, %v", a, err)
	}
}

// TestRefuses lists demands that are not paid: nothing is signed, nothing moves.
func TestRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dear := w.Requirements(50_001)
	foreign := w.Requirements(1)
	foreign.Asset = common.HexToAddress("0x77")
	elsewhere := w.Requirements(1)
	elsewhere.Network = "eip155:1"
	for _, x := range []struct {
		name   string
		script func()
		accept x402.Requirements
		why    string
	}{
		{"nobody can be named", func() {}, w.Requirements(10), "belongs to no agent"},
		{"over the cap of a call", func() {}, dear, "at most 0.05"},
		{"in a token that is not listed", func() {}, foreign, "list the token in chains[].stablecoins"},
		{"on a chain without a key", func() {}, elsewhere, "on chain 1: list the token"},
		{"a low score", func() { w.trusted("wallet", "19.9") }, w.Requirements(10), "at least 19.9, 20 are needed"},
		{"unrated", func() {
			w.script("/agents/eip155:31337:0xa:1/reputation", `{"score":0,"low":0,"status":"unrated"}`)
		}, w.Requirements(10), "nobody has rated"},
		{"the worst of two agents", func() {
			w.trusted("wallet", "40")
			w.script("/chains/31337/agents?wallet="+strings.ToLower(w.Payee().Hex()),
				`{"items":[{"id":"eip155:31337:0xa:1"},{"id":"eip155:31337:0xa:2"}]}`)
			w.script("/agents/eip155:31337:0xa:2/reputation", `{"score":1,"low":-7,"status":"rated"}`)
		}, w.Requirements(10), "at least -7"},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.script()
			w.shop.Accepts = []x402.Requirements{x.accept}
			_, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: w.url})
			var refused *payer.Refused
			if !errors.As(err, &refused) || !strings.Contains(refused.Reason, x.why) {
				t.Errorf("%v, want %s", err, x.why)
			}
		})
	}
	if w.paid(t) != 0 || w.shop.Runs() != 0 {
		t.Errorf("%d units, %d runs", w.paid(t), w.shop.Runs())
	}
	w.shop.Accepts = []x402.Requirements{w.Requirements(10)}
	w.mu.Lock()
	w.answers = map[string]string{}
	w.mu.Unlock()
	if _, err := w.payer(t, func(o *payer.Options) { o.AllowUnknown = true }).Do(t.Context(),
		payer.Request{URL: w.url}); err != nil || w.paid(t) != 10 {
		t.Errorf("unknown ones are allowed: %v", err)
	}
}

// TestByDomain: where the account is unknown, an agent counts that the server's host proves, and none
// that only names the host.
func TestByDomain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("/agents?q=127.0.0.1", `{"items":[{"id":"eip155:1:0xa:5"}]}`)
	w.script("/agents/eip155:1:0xa:5/reputation", `{"score":60,"low":50,"status":"rated"}`)
	for verdict, pays := range map[string]bool{"refused": false, "unavailable": false, "proven": true} {
		w.script("/agents/eip155:1:0xa:5", `{"domainProofs":[{"domain":"127.0.0.1","verdict":"`+verdict+`"}]}`)
		a, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: w.url})
		if (err == nil) != pays || pays && a.Receipt.Payee.By != payer.ByDomain {
			t.Errorf("%s: %v", verdict, err)
		}
	}
}

// TestBadIndexes: without an answer of the index nothing is paid, whatever is allowed.
func TestBadIndexes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, handler := range map[string]http.HandlerFunc{
		"HTML":  func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("<html>")) },
		"error": func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(500) },
	} {
		bad := httptest.NewServer(handler)
		p := w.payer(t, func(o *payer.Options) { o.Index, o.AllowUnknown = bad.URL, true })
		if _, err := p.Do(t.Context(), payer.Request{URL: w.url}); !errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		bad.Close()
	}
	if w.paid(t) != 0 {
		t.Error("something was paid")
	}
}

// TestNoScore: an answer without a score is none, also where every score of 0 would do.
func TestNoScore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trusted("wallet", "40")
	for _, text := range []string{`{}`, `{"status":"rated"}`, `{"score":1000,"low":900,"status":"rated"}`} {
		w.script("/agents/eip155:31337:0xa:1/reputation", text)
		p := w.payer(t, func(o *payer.Options) { o.MinScore = -100 })
		if _, err := p.Do(t.Context(), payer.Request{URL: w.url}); !errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if w.paid(t) != 0 {
		t.Error("something was paid")
	}
}

// TestCaps: a host gets no more than its cap in a day, also by payments at the same time.
func TestCaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trusted("owner", "40")
	w.shop.Accepts = []x402.Requirements{w.Requirements(40_000)}
	var all sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range 6 {
		all.Go(func() {
			_, err := w.payer(t, nil).Do(t.Context(),
				payer.Request{URL: w.url, Body: []byte{byte('a' + i)}, Method: "POST"})
			var over *walletdb.CapError
			if errors.As(err, &over) {
				mu.Lock()
				refused++
				mu.Unlock()
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if refused != 4 || w.paid(t) != 80_000 {
		t.Errorf("%d refused, %d units", refused, w.paid(t))
	}
}

// TestCapOfSpellings: a host has one cap, however its URL is written.
func TestCapOfSpellings(t *testing.T) {
	t.Parallel()
	for _, spellings := range [][4]string{
		{"bücher.example", "BÜCHER.example:80", "xn--bcher-kva.example.", "bücher.example:080"},
		{"[2001:db8::1]", "[2001:0db8::1]", "[2001:db8:0::1]:80", "[2001:DB8::0001]"},
		{"192.0.2.1", "[::ffff:192.0.2.1]", "192.0.2.1:80", "[::ffff:c000:201]"},
	} {
		w := newWorld(t)
		w.trusted("owner", "40")
		w.shop.Accepts = []x402.Requirements{w.Requirements(40_000)}
		shop, err := url.Parse(w.url)
		ok(t, err)
		p := w.payer(t, func(o *payer.Options) {
			o.HTTP = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network,
				_ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, shop.Host)
			}}}
		})
		for i, host := range spellings {
			_, err := p.Do(t.Context(), payer.Request{Method: "POST", URL: "http://" + host + shop.Path,
				Body: []byte{byte('a' + i)}})
			var over *walletdb.CapError
			if i < 2 && err != nil || i >= 2 && !errors.As(err, &over) {
				t.Errorf("%s: %v", host, err)
			}
		}
		if w.paid(t) != 80_000 {
			t.Errorf("%s: %d units", spellings[0], w.paid(t))
		}
	}
}

// TestLostAnswers: a request whose answer is lost is repeated with the same payment: the server runs
// once, and the payer pays once. It is so too in a process that comes later.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trusted("wallet", "40")
	w.shop.Lose(2)
	a, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: w.url})
	ok(t, err)
	if a.Receipt == nil || w.paid(t) != 10_000 || w.shop.Runs() != 1 {
		t.Errorf("%d units, %d runs", w.paid(t), w.shop.Runs())
	}
	w.shop.Lose(1000)
	if _, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: w.url}); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("all answers are lost: %v", err)
	}
	w.shop.Lose(0)
	later, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: w.url})
	ok(t, err)
	if later.Receipt == nil || later.Receipt.ID == a.Receipt.ID || w.paid(t) != 20_000 || w.shop.Runs() != 2 {
		t.Errorf("%+v: %d units, %d runs", later.Receipt, w.paid(t), w.shop.Runs())
	}
}

// TestUnpaid: an answer without a demand is given as it is.
func TestUnpaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	free := httptest.NewServer(http.NotFoundHandler())
	defer free.Close()
	if a, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: free.URL}); err != nil || a.Status != 404 ||
		a.Receipt != nil {
		t.Errorf("%+v, %v", a, err)
	}
	for _, u := range []string{"", "ftp://a", "a"} {
		if _, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: u}); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", u, err)
		}
	}
}

// TestVersion1: a server that speaks version 1 alone is paid, and its facilitator, which is asked over
// HTTP, settles in that version.
func TestVersion1(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, 84532)
	w.trusted("wallet", "40")
	server := httptest.NewServer(facilitator.NewHandler(w.shop.Facilitator))
	t.Cleanup(server.Close)
	c, err := facilitator.NewClient(nil, 0, server.URL)
	ok(t, err)
	w.shop.Facilitator, w.shop.Signer = c, nil
	old := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get(x402.HeaderPayment) != "" {
			t.Error("a payment of version 2")
		}
		kept := httptest.NewRecorder()
		w.shop.ServeHTTP(kept, r)
		for _, name := range []string{"Content-Type", x402.HeaderResponseV1} {
			out.Header().Set(name, kept.Header().Get(name))
		}
		out.WriteHeader(kept.Code)
		_, _ = out.Write(kept.Body.Bytes())
	}))
	t.Cleanup(old.Close)
	a, err := w.payer(t, nil).Do(t.Context(), payer.Request{URL: old.URL})
	ok(t, err)
	if a.Receipt == nil || a.Receipt.Transaction == "" || a.Receipt.Network != "eip155:84532" || w.paid(t) != 10_000 {
		t.Errorf("%+v: %d units", a.Receipt, w.paid(t))
	}
}
