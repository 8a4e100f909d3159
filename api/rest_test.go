package api_test

import (
	"context"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/docdb"
)

const agent7 = "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:7"

func TestREST(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{Version: "test"})
	l.finalize()
	t.Run("ids", func(t *testing.T) {
		for _, path := range []string{
			"/agents/" + agent7, "/agents/" + strings.ToLower(agent7), "/agents/8453:7", "/agents/7?chainId=8453",
			"/agents/8453/7", "/agents/8453:7/",
			"/chains/8453/agents/7", "/chains/8453/agents/8453:7", "/agents/8453:7?at=latest",
			"/agents/8453%3A7", "/agents/" + url.PathEscape(agent7),
			"/agents/" + strings.ReplaceAll(agent7, ":", "%3A"),
		} {
			if a := as[wire.AgentAnswer](t, get(t, s, path)); a.ID != agent7 || a.ShortID != "8453:7" {
				t.Errorf("%s: %s", path, a.ID)
			}
		}
	})
	t.Run("agent", func(t *testing.T) { checkAgent(t, as[wire.AgentAnswer](t, get(t, s, "/agents/8453:7")), l) })
	t.Run("hostile text", func(t *testing.T) {
		for _, path := range []string{"/agents/8453:7", "/agents/8453:7/feedback", "/agents/8453:7/reputation",
			"/agents"} {
			r := get(t, s, path)
			if !utf8.Valid(r.body) || strings.Contains(string(r.body), `\u0000`) {
				t.Errorf("%s holds invalid text: %q", path, r.body)
			}
			if r.header.Get("Content-Type") != "application/json" ||
				r.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", path, r.header)
			}
		}
	})
	t.Run("views of the past", func(t *testing.T) {
		born := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:7?at=1"))
		if born.URI != "https://agent.example/7.json" || born.Wallet != nil || len(born.Metadata) != 0 ||
			born.AsOf.Block != 1 {
			t.Errorf("at birth: %+v", born)
		}
		before := as[wire.ReputationAnswer](t, get(t, s, "/agents/8453:7/reputation?at=2"))
		if before.Summary.Count != 3 || before.Summary.Decimal != "7" || before.Counts.Feedback != 3 {
			t.Errorf("before the history: %+v", before)
		}
	})
	t.Run("chains", func(t *testing.T) { checkChains(t, func(path string) reply { return get(t, s, path) }) })
}

func checkAgent(t *testing.T, a wire.AgentAnswer, l *ledger) {
	t.Helper()
	if a.Score != 0 || a.Status != "unrated" || a.Owner != wire.Address(addr(2).Hex()) || a.OwnerClaimed ||
		a.Approved != nil {
		t.Errorf("%+v", a)
	}
	if a.Wallet == nil || *a.Wallet != wire.Address(addr(77).Hex()) {
		t.Errorf("wallet %v", a.Wallet)
	}
	if a.URI != "javascript:alert(1)//\uFFFD(" || a.URIHex == nil || !strings.HasSuffix(string(*a.URIHex), "f028") {
		t.Errorf("uri %q %v", a.URI, a.URIHex)
	}
	if len(a.Metadata) != 2 {
		t.Fatalf("metadata %+v", a.Metadata)
	}
	for _, m := range a.Metadata {
		if m.Key == "model" && (m.Text == nil || *m.Text != "gpt" || m.Value != "0x677074" || m.KeyHex != nil) {
			t.Errorf("model: %+v", m)
		}
		if m.Key != "model" && (m.KeyHex == nil || m.Value != "0x00ff" || m.Text != nil) {
			t.Errorf("hostile key: %+v", m)
		}
	}
	want := wire.Counts{Feedback: 17, Revoked: 1, Clients: 7, Responses: 1, Validations: 1}
	if a.Counts != want {
		t.Errorf("counts %+v, want %+v", a.Counts, want)
	}
	if a.Registered.Block != 1 || a.Registered.Time == nil || *a.Registered.Time != "2025-06-15T15:06:42Z" {
		t.Errorf("registered %+v", a.Registered)
	}
	if a.Document.Status != "pending" {
		t.Errorf("document %+v", a.Document)
	}
	o := a.AsOf
	if o.ChainID != 8453 || o.Block != wire.Long(l.tip.Number) || *o.Hash != wire.Hash(l.tip.Hash.Hex()) ||
		o.Finality != "latest" {
		t.Errorf("asOf %+v", o)
	}
	if o.LagSeconds == nil || *o.LagSeconds <= 0 || o.LagBlocks != nil || o.Completeness.Status != "complete" {
		t.Errorf("asOf %+v", o)
	}
}

func checkChains(t *testing.T, get func(string) reply) {
	t.Helper()
	all := as[wire.ChainList](t, get("/chains"))
	if len(all.Items) != 2 || all.Items[0].ChainID != 1 || all.Items[1].ChainID != 8453 {
		t.Fatalf("%+v", all)
	}
	one := as[wire.Chain](t, get("/chains/8453"))
	if one.Agents != crowd || one.Name != "chain 8453" ||
		one.Registries.Validations[0] != wire.Address(addr(900).Hex()) {
		t.Errorf("%+v", one)
	}
	status := as[wire.StatusAnswer](t, get("/status"))
	if status.Status != "ok" || status.Version != "test" || len(status.Chains) != 2 {
		t.Errorf("%+v", status)
	}
	if one := as[wire.StatusAnswer](t, get("/chains/1/status")); len(one.Chains) != 1 {
		t.Errorf("%+v", one)
	}
	if r := get("/chains/5"); r.status != http.StatusNotFound {
		t.Errorf("unknown chain: %d", r.status)
	}
}

func TestReputation(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	path := "/agents/8453:7/reputation"
	all := get(t, s, path)
	r := as[wire.ReputationAnswer](t, all)
	if !strings.Contains(string(all.body), `"score":0`) {
		t.Errorf("score is missing: %s", all.body)
	}
	// 3×7, 1..12 without 3, 99.50, -5 and 80: 270.5 / 17, shown in decimals 0.
	if r.Agent != agent7 || r.Summary.Count != 17 || r.Summary.Value != "15" || r.Summary.Decimals != 0 ||
		r.Summary.Decimal != "15" {
		t.Errorf("summary %+v", r.Summary)
	}
	if len(r.Tags) != 4 || r.Counts.Revoked != 1 || r.AsOf.ChainID != 8453 {
		t.Fatalf("%+v", r)
	}
	if top := r.Tags[0]; top.Tag != "speed" || top.Count != 11 || top.Reviewers != 1 || top.Median.Decimal != "12" ||
		top.Unit == nil || *top.Unit != "points of 100" {
		t.Errorf("speed: %+v", top)
	}
	quality := r.Tags[1]
	if quality.Tag != "quality" || quality.Reviewers != 4 || quality.Median.Decimal != "7" ||
		quality.Max.Decimal != "99.5" ||
		quality.Max.Value != "9950" || quality.Max.Decimals != 2 || quality.Mean.Decimal != "30.125" {
		t.Errorf("quality: %+v", quality)
	}
	client := addr(201).Hex()
	one := as[wire.ReputationAnswer](t, get(t, s, path+query("clients", client, "tag1", "quality", "tag2", "web")))
	if one.Summary.Count != 1 || one.Summary.Decimal != "99.5" || one.Summary.Decimals != 2 || len(one.Tags) != 4 {
		t.Errorf("one client: %+v", one)
	}
	twice := as[wire.ReputationAnswer](t, get(t, s, path+query("clients", client+","+client)))
	if twice.Summary.Count != 2 {
		t.Errorf("a client given twice counts twice, as on chain: %+v", twice.Summary)
	}
	none := as[wire.ReputationAnswer](t, get(t, s, path+query("tag1", "absent")))
	if none.Summary.Count != 0 || none.Summary.Value != "0" {
		t.Errorf("absent tag: %+v", none.Summary)
	}
	fresh := as[wire.ReputationAnswer](t, get(t, s, "/agents/1:0/reputation"))
	if fresh.Summary.Count != 0 || fresh.Tags == nil || len(fresh.Tags) != 0 {
		t.Errorf("agent without ratings: %+v", fresh)
	}
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	path := "/agents/8453:7/feedback"
	live := as[wire.FeedbackList](t, get(t, s, path))
	if len(live.Items) != 17 || live.Next != nil || len(live.AsOf) != 1 {
		t.Fatalf("%d items, next %v, asOf %v", len(live.Items), live.Next, live.AsOf)
	}
	for i := 1; i < len(live.Items); i++ {
		a, b := live.Items[i-1].Given, live.Items[i].Given
		if a.Block < b.Block || (a.Block == b.Block && a.LogIndex < b.LogIndex) {
			t.Errorf("not newest first: %+v before %+v", a, b)
		}
	}
	withRevoked := as[wire.FeedbackList](t, get(t, s, path+"?includeRevoked=true&client="+addr(200).Hex()))
	revoked := 0
	for _, f := range withRevoked.Items {
		if f.IsRevoked {
			revoked++
			if f.Revoked == nil || f.Index != 3 || f.Revoked.Block <= f.Given.Block {
				t.Errorf("revoked: %+v", f)
			}
		}
	}
	if len(withRevoked.Items) != 12 || revoked != 1 {
		t.Errorf("%d items, %d revoked", len(withRevoked.Items), revoked)
	}
	answered := as[wire.FeedbackList](t, get(t, s, path+"?client="+addr(201).Hex())).Items[0]
	if answered.ResponseCount != 1 || len(answered.Responses) != 1 ||
		answered.Responses[0].URI != "https://answer.example" ||
		answered.Value != "9950" || answered.Decimal != "99.5" || answered.Hash == nil {
		t.Errorf("%+v", answered)
	}
	untagged := as[wire.FeedbackList](t, get(t, s, path+"?tag1=")).Items
	if len(untagged) != 1 || untagged[0].Decimal != "-5" {
		t.Errorf("the empty tag: %+v", untagged)
	}
	hostile := as[wire.FeedbackList](t, get(t, s, path+query("tag1", hostileTag))).Items
	if len(hostile) != 1 || hostile[0].Tag1Hex == nil || strings.ContainsRune(hostile[0].Tag1, 0) {
		t.Errorf("the hostile tag: %+v", hostile)
	}
}

func TestValidations(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	all := as[wire.ValidationList](t, get(t, s, "/agents/8453:7/validations")).Items
	if len(all) != 3 {
		t.Fatalf("%+v", all)
	}
	byHash := map[wire.Hash]wire.Validation{}
	for _, v := range all {
		byHash[v.RequestHash] = v
	}
	zero := byHash[wire.Hash(common.Hash{0xaa}.Hex())]
	if zero.Status != "answered" || zero.Answer == nil || zero.Answer.Response != 0 || zero.Answer.Tag != "tee" ||
		!zero.ContractTrusted {
		t.Errorf("answered with 0: %+v", zero)
	}
	pending := byHash[wire.Hash(common.Hash{0xbb}.Hex())]
	if pending.Status != "pending" || pending.Answer != nil || pending.Answers != 0 {
		t.Errorf("pending: %+v", pending)
	}
	foreign := byHash[wire.Hash(common.Hash{0xcc}.Hex())]
	if foreign.ContractTrusted || foreign.Answer == nil || foreign.Answer.Response != 100 {
		t.Errorf("foreign contract: %+v", foreign)
	}
	if trusted := as[wire.ValidationList](t,
		get(t, s, "/agents/8453:7/validations?trustedOnly=true")).Items; len(trusted) != 2 {
		t.Errorf("trusted only: %+v", trusted)
	}
}

// TestBigNumbers: a uint256 id and an int128 value pass unharmed.
func TestBigNumbers(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	const id = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	var huge repute.TokenID
	if err := huge.SetFromDecimal(id); err != nil {
		t.Fatal(err)
	}
	value, _ := new(big.Int).SetString("-170141183460469231731687303715884105728", 10)
	l.add(
		repute.Transfer{To: addr(1), TokenID: huge},
		repute.NewFeedback{TokenID: huge, Client: addr(3), Index: 1, Value: value, Decimals: 18},
	)
	f := as[wire.FeedbackList](t, get(t, s, "/agents/8453/"+id+"/feedback")).Items[0]
	if f.Value != "-170141183460469231731687303715884105728" ||
		f.Decimal != "-170141183460469231731.687303715884105728" {
		t.Errorf("%+v", f)
	}
	a := as[wire.AgentAnswer](t, get(t, s, "/chains/8453/agents/"+id))
	if a.TokenID != id {
		t.Errorf("token id %s", a.TokenID)
	}
}

func TestPagination(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{})
	for _, list := range []string{
		"/agents?limit=7", "/agents?limit=7&sort=feedback", "/agents?limit=13&sort=updated&order=asc",
		"/agents?limit=9&order=desc",
		"/chains/8453/agents?limit=60", "/agents?limit=1&owner=" + addr(1).Hex(),
	} {
		seen := map[wire.ID]bool{}
		cursor, pages := "", 0
		for {
			page := as[wire.AgentList](t, get(t, s, list+cursor))
			for _, a := range page.Items {
				if seen[a.ID] {
					t.Fatalf("%s: %s twice", list, a.ID)
				}
				seen[a.ID] = true
			}
			if pages++; page.Next == nil {
				break
			}
			if pages > 100 {
				t.Fatalf("%s never ends", list)
			}
			cursor = "&cursor=" + *page.Next
		}
		want := crowd + 1
		switch {
		case strings.HasPrefix(list, "/chains"):
			want = crowd
		case strings.Contains(list, "owner"):
			want = crowd/5 + 1
		}
		if len(seen) != want {
			t.Errorf("%s: %d agents, want %d", list, len(seen), want)
		}
	}
	top := as[wire.AgentList](t, get(t, s, "/agents?sort=feedback&limit=1")).Items[0]
	if top.ShortID != "8453:7" {
		t.Errorf("most rated is %s", top.ShortID)
	}
	if wallet := as[wire.AgentList](t, get(t, s, "/agents?wallet="+addr(77).Hex())).Items; len(wallet) != 1 ||
		wallet[0].ShortID != "8453:7" {
		t.Errorf("by wallet: %+v", wallet)
	}
	if lists := as[wire.AgentList](t, get(t, s, "/agents")); len(lists.AsOf) != 2 {
		t.Errorf("asOf %+v", lists.AsOf)
	}
	walkFeedback(t, func(path string) reply { return get(t, s, path) })
}

func walkFeedback(t *testing.T, get func(string) reply) {
	t.Helper()
	seen, cursor := 0, ""
	for {
		page := as[wire.FeedbackList](t, get("/agents/8453:7/feedback?limit=5"+cursor))
		if seen += len(page.Items); page.Next == nil {
			break
		}
		cursor = "&cursor=" + *page.Next
	}
	if seen != 17 {
		t.Errorf("%d ratings in all pages", seen)
	}
}

// TestFinality: the head's views can be asked for, and asOf says where they are.
func TestFinality(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	tip := l.tip.Number
	head := chaindb.Head{Head: tip + 3, Safe: tip - 1, Finalized: 2, SeenAt: time.Now()}
	if err := chaindb.SetHead(context.Background(), l.db, 8453, store.Lease{}, head); err != nil {
		t.Fatal(err)
	}
	for at, block := range map[string]uint64{"latest": tip, "safe": tip - 1, "finalized": 2, "2": 2} {
		r := as[wire.ReputationAnswer](t, get(t, s, "/agents/8453:7/reputation?at="+at))
		if r.AsOf.Block != wire.Long(block) || r.AsOf.Safe == nil || *r.AsOf.Finalized != 2 ||
			*r.AsOf.Head != wire.Long(tip+3) || r.AsOf.HeadSeenAt == nil {
			t.Errorf("%s: %+v", at, r.AsOf)
		}
		if at == "latest" && (r.AsOf.LagBlocks == nil || *r.AsOf.LagBlocks != 3) {
			t.Errorf("%s: %+v", at, r.AsOf)
		}
	}
	if f := as[wire.FeedbackList](t, get(t, s, "/agents/8453:7/feedback?at=finalized")); len(f.Items) != 3 {
		t.Errorf("%d ratings at finalized", len(f.Items))
	}
	if v := as[wire.ValidationList](t, get(t, s, "/agents/8453:7/validations?at=safe")); len(v.Items) != 3 {
		t.Errorf("%d validations at safe", len(v.Items))
	}
}

// TestDocument: a registration file is shown as written, hostile parts as text.
func TestDocument(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	ctx := context.Background()
	active := true
	file := repute.Registration{
		Type: "agent", Name: "</script><b>", Description: "d", Active: &active, SupportedTrust: []string{"reputation"},
		Services: []repute.Service{{Name: "MCP", Endpoint: "https://agent.example/mcp", Skills: []string{"a"},
			Tools: []string{"t"}}},
		Registrations: []repute.RegistrationLink{{Registry: "eip155:8453:0x1"}},
		Extra:         map[string]json.RawMessage{"more": json.RawMessage(`{"deep":[1,2]}`)},
	}
	for _, c := range mustValue(docdb.ClaimHosts(ctx, l.db, []docdb.Rank{docdb.RankNew}, 10))(t) {
		for _, u := range mustValue(docdb.DueURIs(ctx, l.db, c.Host, 100))(t) {
			if u.URI != "https://agent.example/9.json" {
				continue
			}
			err := docdb.SaveDocuments(ctx, l.db, docdb.FetchResult{
				URIID: u.ID, Body: []byte("{}"), MediaType: "application/json", Source: "https", FetchedAt: time.Now(),
				ParserVersion: 1,
				Registration:  &file, Problems: []repute.Problem{{Code: "WA001", Severity: repute.SeverityWarning,
					Message: "odd"}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	d := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:9")).Document
	r := d.Registration
	if d.Status != "ok" || d.SHA256 == nil || d.Size != 2 || *d.Source != "https" || d.FetchedAt == nil ||
		len(d.Problems) != 1 || r == nil {
		t.Fatalf("%+v", d)
	}
	if r.Name != "</script><b>" || !*r.Active || r.X402 != nil ||
		r.Services[0].Endpoint != "https://agent.example/mcp" || r.Services[0].Tools[0] != "t" ||
		r.Registrations[0].TokenID != nil || len(r.Extra) != 1 {
		t.Errorf("%+v", r)
	}
	g := data[struct {
		Agent struct{ Document wire.Document }
	}](t,
		ask(t, s,
			`{ agent(id: "8453:9") { document { status registration { name services { name skills domains tools prompts resources } registrations { tokenId registry } } } } }`, nil))
	if got := g.Agent.Document.Registration.Services[0]; got.Name != "MCP" || len(got.Tools) != 1 ||
		got.Prompts == nil {
		t.Errorf("%+v", g)
	}
}

// mustValue ends the test when the call failed.
func mustValue[V any](v V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestDefaultChain: a bare id needs a chain from somewhere.
func TestDefaultChain(t *testing.T) {
	t.Parallel()
	several, _ := populated(t, api.Options{})
	if b := problemOf(t, get(t, several, "/agents/7")); b.Status != 400 || b.Hint == "" {
		t.Errorf("%+v", b)
	}
	withDefault, _ := populated(t, api.Options{DefaultChain: 8453})
	if a := as[wire.AgentAnswer](t, get(t, withDefault, "/agents/7")); a.ShortID != "8453:7" {
		t.Errorf("default chain: %s", a.ID)
	}
}
