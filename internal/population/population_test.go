package population

import (
	"bytes"
	"crypto/tls"
	"io"
	"math/big"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/devnet"
)

// populate starts a devnet with a population and its documents.
func populate(t *testing.T, dn devnet.Options, o Options) *Population {
	t.Helper()
	chain, err := devnet.Start(t.Context(), dn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chain.Close() })
	if o.Documents == nil {
		if o.Documents, err = devnet.StartDocuments(""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Documents.Close() })
	}
	return ok(Populate(t.Context(), chain, o))(t)
}

// ok fails the test on an error and passes on the value.
func ok[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// logs are all logs of the registries.
func logs(t *testing.T, p *Population) []types.Log {
	t.Helper()
	return ok(p.dn.Client().FilterLogs(t.Context(), ethereum.FilterQuery{
		FromBlock: new(big.Int).SetUint64(p.chain.StartBlock),
		Addresses: append([]common.Address{p.chain.Identity, p.chain.Reputation}, p.chain.Validations...)}))(t)
}

// get returns the status and the body.
func get(t *testing.T, docs *devnet.Documents, url string) (int, []byte) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: docs.Roots()}}}
	resp := ok(client.Get(url))(t)
	defer resp.Body.Close()
	return resp.StatusCode, ok(io.ReadAll(resp.Body))(t)
}

// decoded are the events behind the logs.
func decoded(t *testing.T, list []types.Log) map[repute.EventKind]int {
	t.Helper()
	kinds := map[repute.EventKind]int{}
	for _, l := range list {
		e, err := contracts.Decode(l)
		if err != nil {
			t.Fatalf("log %d of block %d: %v", l.Index, l.BlockNumber, err)
		}
		kinds[e.Kind()]++
	}
	return kinds
}

func TestPopulationHasEverything(t *testing.T) {
	t.Parallel()
	p := populate(t, devnet.Options{}, Options{Seed: 1})
	kinds := decoded(t, logs(t, p))
	for kind, atLeast := range map[repute.EventKind]int{
		repute.KindRegistered: 50, repute.KindNewFeedback: 300 + 50 + 8, repute.KindFeedbackRevoked: 20,
		repute.KindResponseAppended: 50, repute.KindValidationRequest: 25, repute.KindValidationResponse: 24,
		repute.KindTransfer: 55, repute.KindURIUpdated: 6, repute.KindMetadataSet: 100,
		repute.KindApproval: 5, repute.KindApprovalForAll: 3,
	} {
		if kinds[kind] < atLeast {
			t.Errorf("%d %s, want at least %d", kinds[kind], kind, atLeast)
		}
	}
	if n := ok(p.dn.View().AgentCount(t.Context()))(t); n != uint64(len(p.Agents)) || n < 40 {
		t.Errorf("%d agents on chain, %d meant", n, len(p.Agents))
	}
	forms := map[Form]int{}
	for _, a := range p.Agents {
		forms[a.Form]++
	}
	for _, f := range []Form{FormBase64, FormPercent, FormGzip, FormWeb,
		FormIPFS, FormBlocks, FormHTML, FormMalformed, FormLegacy, FormTampered} {
		if forms[f] == 0 {
			t.Errorf("no agent with form %s", f)
		}
	}
}

func TestPopulationMeansWhatTheChainSays(t *testing.T) {
	t.Parallel()
	p := populate(t, devnet.Options{}, Options{Seed: 2})
	view := p.dn.View()
	for _, a := range p.Agents {
		owner := ok(view.OwnerOf(t.Context(), a.ID))(t)
		wallet := ok(view.AgentWallet(t.Context(), a.ID))(t)
		uri := ok(view.TokenURI(t.Context(), a.ID))(t)
		if owner != a.Owner.Address || wallet != a.Wallet || uri != a.URI {
			t.Errorf("agent %d: owner %s wallet %s uri %.60q, meant %s %s %.60q", a.ID, owner, wallet, uri,
				a.Owner.Address,
				a.Wallet, a.URI)
		}
	}
	clients := ok(view.Clients(t.Context(), p.Praised))(t)
	ring := map[common.Address]bool{}
	for _, w := range p.Ring {
		ring[w.Address] = true
	}
	praise := 0
	for _, c := range clients {
		if ring[c] {
			praise++
		}
	}
	if praise != 50 {
		t.Errorf("%d of 50 ring wallets rated agent %d", praise, p.Praised)
	}
}

// TestViewsAgree compares getSummary and the other totals with what the parts
// give by this module's own arithmetic.
func TestViewsAgree(t *testing.T) {
	t.Parallel()
	p := populate(t, devnet.Options{}, Options{Seed: 3})
	view, rated := p.dn.View(), 0
	for _, a := range p.Agents {
		clients := ok(view.Clients(t.Context(), a.ID))(t)
		if len(clients) == 0 {
			continue
		}
		rated++
		var tallies []repute.Tally
		for _, f := range ok(view.AllFeedback(t.Context(), a.ID))(t) {
			if !f.Revoked {
				tallies = append(tallies, repute.Tally{Decimals: f.Decimals, Count: 1, Sum: f.Value})
			}
			if last := ok(view.LastIndex(t.Context(), a.ID, f.Client))(t); f.Index > last {
				t.Errorf("index %d beyond the last, %d", f.Index, last)
			}
		}
		want := repute.Summarize(tallies)
		got := ok(view.Summary(t.Context(), a.ID, clients, "", ""))(t)
		if got.Count != want.Count || got.Decimals != want.Decimals || got.Value.Cmp(want.Value) != 0 {
			t.Errorf("agent %d: getSummary %+v, computed %+v", a.ID, got, want)
		}
	}
	if rated < 30 {
		t.Errorf("only %d agents are rated", rated)
	}
}

func TestValidationViews(t *testing.T) {
	t.Parallel()
	p := populate(t, devnet.Options{}, Options{Seed: 4})
	view, requests, answered := p.dn.View(), 0, uint64(0)
	for _, a := range p.Agents {
		count, _, err := view.ValidationSummary(t.Context(), a.ID, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		answered += count
		for _, h := range ok(view.Validations(t.Context(), a.ID))(t) {
			requests++
			if s := ok(view.ValidationStatus(t.Context(), h))(t); s.Agent.Uint64() != a.ID || s.Updated == 0 {
				t.Errorf("request %s: %+v", h, s)
			}
		}
	}
	if requests != 25 || answered != 17 {
		t.Errorf("%d requests, %d answered; want 25 and 17", requests, answered)
	}
}

func TestPopulationIsDeterministic(t *testing.T) {
	t.Parallel()
	docs, err := devnet.StartDocuments("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docs.Close() })
	genesis := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	run := func(seed uint64) []types.Log {
		p := populate(t, devnet.Options{GenesisTime: genesis}, Options{Documents: docs, Seed: seed,
			Until: genesis.Add(720 * time.Hour)})
		for range 10 {
			if err := p.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return logs(t, p)
	}
	one, same, other := run(5), run(5), run(6)
	if !reflect.DeepEqual(one, same) {
		t.Error("the same seed gave other logs")
	}
	if reflect.DeepEqual(one, other) {
		t.Error("another seed gave the same logs")
	}
}

func TestPopulationSpreadsOverTime(t *testing.T) {
	t.Parallel()
	until := time.Now().Truncate(time.Second)
	p := populate(t, devnet.Options{GenesisTime: until.Add(-30 * 24 * time.Hour)}, Options{Until: until})
	if head := p.dn.Head(); !head.Time.Equal(until) {
		t.Errorf("last block at %s, want %s", head.Time, until)
	}
	first := ok(p.dn.Client().HeaderByNumber(t.Context(), common.Big2))(t)
	if day := until.Add(-25 * 24 * time.Hour).Unix(); int64(first.Time) > day {
		t.Errorf("first block of the population at %d, after %d", first.Time, day)
	}
}

func TestTickSurvivesReorganizations(t *testing.T) {
	t.Parallel()
	p := populate(t, devnet.Options{}, Options{Seed: 7})
	before := len(logs(t, p))
	for i := range 60 {
		if err := p.Tick(t.Context()); err != nil {
			t.Fatalf("tick %d: %v", i, err)
		}
		if i%6 == 5 {
			if err := p.dn.Reorg(t.Context(), 1+i%4, 2+i%4); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := len(logs(t, p)); after < before+60 {
		t.Errorf("%d logs after %d: the chain hardly lives", after, before)
	}
}

func TestPopulationDocumentsAreServed(t *testing.T) {
	t.Parallel()
	p := populate(t, devnet.Options{}, Options{Seed: 8})
	verbose := 0
	for _, a := range p.Agents {
		switch {
		case a.Form == FormWeb:
			code, body := get(t, p.docs, a.URI)
			if code != 200 || !bytes.Contains(body, []byte(a.Name)) {
				t.Errorf("agent %d: %d %.80q", a.ID, code, body)
			}
			if len(body) > 4<<10 {
				verbose++
			}
		case strings.HasPrefix(a.URI, "ipfs://"):
			url := p.docs.URL() + "/ipfs/" + strings.TrimPrefix(a.URI, "ipfs://") + "?format=car"
			code, body := get(t, p.docs, url)
			if good := code == 200 && bytes.Contains(body, []byte(`"name"`)); good == a.Form.Broken() &&
				a.Form != FormTampered {
				t.Errorf("agent %d, %s: %d, %d bytes", a.ID, a.Form, code, len(body))
			}
		}
	}
	if verbose != 1 {
		t.Errorf("%d descriptions are longer than answers show, want 1", verbose)
	}
}

func TestFeedbackHashesMostlyMatch(t *testing.T) {
	t.Parallel()
	p := populate(t, devnet.Options{}, Options{Seed: 9})
	right, wrong := 0, 0
	for _, l := range logs(t, p) {
		e := ok(contracts.Decode(l))(t)
		f, isFeedback := e.(repute.NewFeedback)
		if !isFeedback || !strings.HasPrefix(f.URI, p.docs.URL()) || strings.HasSuffix(f.URI, ".gone") {
			continue
		}
		if _, body := get(t, p.docs, f.URI); crypto.Keccak256Hash(body) == f.FeedbackHash {
			right++
		} else {
			wrong++
		}
	}
	if right <= wrong || wrong == 0 {
		t.Errorf("%d feedback files match their hash, %d do not", right, wrong)
	}
}
