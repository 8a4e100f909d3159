package devnet_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/devnet"
)

func populate(t *testing.T, dn *devnet.Devnet, docs devnet.DocumentHost,
	o devnet.PopulationOptions) *devnet.Population {
	t.Helper()
	o.Documents = docs
	return ok(devnet.Populate(t.Context(), dn, o))(t)
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
	dn, docs := start(t, devnet.Options{}), documents(t)
	p := populate(t, dn, docs, devnet.PopulationOptions{Seed: 1})
	kinds := decoded(t, logs(t, dn))
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
	if n := ok(dn.View().AgentCount(t.Context()))(t); n != uint64(len(p.Agents)) || n < 40 {
		t.Errorf("%d agents on chain, %d meant", n, len(p.Agents))
	}
	forms := map[devnet.Form]int{}
	for _, a := range p.Agents {
		forms[a.Form]++
	}
	for _, f := range []devnet.Form{devnet.FormBase64, devnet.FormPercent, devnet.FormGzip, devnet.FormWeb,
		devnet.FormIPFS, devnet.FormBlocks, devnet.FormHTML, devnet.FormMalformed, devnet.FormLegacy, devnet.FormTampered} {
		if forms[f] == 0 {
			t.Errorf("no agent with form %s", f)
		}
	}
}

func TestPopulationMeansWhatTheChainSays(t *testing.T) {
	t.Parallel()
	dn, docs := start(t, devnet.Options{}), documents(t)
	p := populate(t, dn, docs, devnet.PopulationOptions{Seed: 2})
	view := dn.View()
	for _, a := range p.Agents {
		owner := ok(view.OwnerOf(t.Context(), a.ID))(t)
		wallet := ok(view.AgentWallet(t.Context(), a.ID))(t)
		uri := ok(view.TokenURI(t.Context(), a.ID))(t)
		if owner != a.Owner.Address || wallet != a.Wallet || uri != a.URI {
			t.Errorf("agent %d: owner %s wallet %s uri %.60q, meant %s %s %.60q", a.ID, owner, wallet, uri, a.Owner.Address,
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
	dn, docs := start(t, devnet.Options{}), documents(t)
	p := populate(t, dn, docs, devnet.PopulationOptions{Seed: 3})
	view, rated := dn.View(), 0
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
	dn, docs := start(t, devnet.Options{}), documents(t)
	p := populate(t, dn, docs, devnet.PopulationOptions{Seed: 4})
	view, requests, answered := dn.View(), 0, uint64(0)
	for _, a := range p.Agents {
		count, _, err := view.ValidationSummary(t.Context(), a.ID, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		answered += count
		for _, h := range ok(view.Validations(t.Context(), a.ID))(t) {
			requests++
			if s := ok(view.ValidationStatus(t.Context(), h))(t); s.Agent != a.ID || s.LastUpdate == 0 {
				t.Errorf("request %s: %+v", h, s)
			}
		}
	}
	if requests != 25 || answered != 17 {
		t.Errorf("%d requests, %d answered; want 25 and 17", requests, answered)
	}
}

func TestResponseCounts(t *testing.T) {
	t.Parallel()
	dn := start(t, devnet.Options{})
	client, other := dn.Account(1), dn.Account(2)
	b := dn.Batch()
	b.Register(dn.Account(0), "")
	b.GiveFeedback(client, devnet.Rating{Value: common.Big1})
	b.AppendResponse(other, 0, client.Address, 1, "ipfs://a", common.Hash{})
	b.AppendResponse(other, 0, client.Address, 1, "ipfs://b", common.Hash{})
	ok(b.Mine(t.Context()))(t)
	if n := ok(dn.View().ResponseCount(t.Context(), 0, client.Address, 1))(t); n != 2 {
		t.Errorf("%d responses", n)
	}
	if n := len(ok(dn.ViewAt(1).Clients(t.Context(), 0))(t)); n != 0 {
		t.Errorf("%d clients before there was an agent", n)
	}
}

func TestPopulationIsDeterministic(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	genesis := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	run := func(seed uint64) []types.Log {
		dn := start(t, devnet.Options{GenesisTime: genesis})
		p := populate(t, dn, docs, devnet.PopulationOptions{Seed: seed, Until: genesis.Add(720 * time.Hour)})
		for range 10 {
			if err := p.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return logs(t, dn)
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
	dn, docs := start(t, devnet.Options{GenesisTime: until.Add(-30 * 24 * time.Hour)}), documents(t)
	populate(t, dn, docs, devnet.PopulationOptions{Until: until})
	if head := dn.Head(); !head.Time.Equal(until) {
		t.Errorf("last block at %s, want %s", head.Time, until)
	}
	first := ok(dn.Client().HeaderByNumber(t.Context(), common.Big2))(t)
	if day := until.Add(-25 * 24 * time.Hour).Unix(); int64(first.Time) > day {
		t.Errorf("first block of the population at %d, after %d", first.Time, day)
	}
}

func TestTickSurvivesReorganizations(t *testing.T) {
	t.Parallel()
	dn, docs := start(t, devnet.Options{}), documents(t)
	p := populate(t, dn, docs, devnet.PopulationOptions{Seed: 7})
	before := len(logs(t, dn))
	for i := range 60 {
		if err := p.Tick(t.Context()); err != nil {
			t.Fatalf("tick %d: %v", i, err)
		}
		if i%6 == 5 {
			if err := dn.Reorg(t.Context(), 1+i%4, 2+i%4); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := len(logs(t, dn)); after < before+60 {
		t.Errorf("%d logs after %d: the chain hardly lives", after, before)
	}
}

func TestPopulationDocumentsAreServed(t *testing.T) {
	t.Parallel()
	dn, docs := start(t, devnet.Options{}), documents(t)
	p := populate(t, dn, docs, devnet.PopulationOptions{Seed: 8})
	verbose := 0
	for _, a := range p.Agents {
		switch {
		case a.Form == devnet.FormWeb:
			code, _, body := get(t, docs, a.URI)
			if code != 200 || !bytes.Contains(body, []byte(a.Name)) {
				t.Errorf("agent %d: %d %.80q", a.ID, code, body)
			}
			if len(body) > 4<<10 {
				verbose++
			}
		case strings.HasPrefix(a.URI, "ipfs://"):
			url := docs.URL() + "/ipfs/" + strings.TrimPrefix(a.URI, "ipfs://") + "?format=car"
			code, _, body := get(t, docs, url)
			if good := code == 200 && bytes.Contains(body, []byte(`"name"`)); good == a.Form.Broken() &&
				a.Form != devnet.FormTampered {
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
	dn, docs := start(t, devnet.Options{}), documents(t)
	populate(t, dn, docs, devnet.PopulationOptions{Seed: 9})
	right, wrong := 0, 0
	for _, l := range logs(t, dn) {
		e := ok(contracts.Decode(l))(t)
		f, isFeedback := e.(repute.NewFeedback)
		if !isFeedback || !strings.HasPrefix(f.URI, docs.URL()) || strings.HasSuffix(f.URI, ".gone") {
			continue
		}
		if _, _, body := get(t, docs, f.URI); crypto.Keccak256Hash(body) == f.FeedbackHash {
			right++
		} else {
			wrong++
		}
	}
	if right <= wrong || wrong == 0 {
		t.Errorf("%d feedback files match their hash, %d do not", right, wrong)
	}
}
