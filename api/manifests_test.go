package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/internal/pgtest"
	"repute/manifest/agentjson"
	"repute/mcp"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/manifestdb"
)

// shop is a manifest that sells flights.
func shop(domain, payout, amount string) string {
	return fmt.Sprintf(`{"version":"1.4","origin":%q,"payout_address":%q,"display_name":"Shop <b>","intents":[
		{"name":"book_flight","description":"Books a flight between two airports.","endpoint":"/book","method":"POST",
		 "parameters":{"departure":{"type":"string","required":true}},
		 "price":{"amount":%s,"currency":"USDC","model":"per_call","network":["base"]}},
		{"name":"find_hotel","description":"Lists hotels in a city.","endpoint":"/hotels","method":"GET"}]}`, domain, payout, amount)
}

// serveManifest stores what a domain serves, as the crawl does.
func serveManifest(t *testing.T, db *store.DB, domain, body string) {
	t.Helper()
	if _, err := manifestdb.Import(t.Context(), db, []string{domain}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool().Exec(t.Context(), `update manifests set due_at = now() where domain = $1`,
		domain); err != nil {
		t.Fatal(err)
	}
	claims, err := manifestdb.ClaimDue(t.Context(), db, 100)
	if err != nil || len(claims) != 1 {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	m, problems := agentjson.Parse([]byte(body), agentjson.Options{Host: domain})
	v := agentjson.Verify(m, problems, agentjson.Evidence{Host: domain, Now: time.Now()})
	content := &manifestdb.Content{State: manifestdb.StateOK, URL: "https://" + domain + "/.well-known/agent.json",
		Body: []byte(body), Parser: agentjson.Version, Format: string(agentjson.Detect([]byte(body))),
		Title:  m.DisplayName,
		Payout: common.HexToAddress(m.PayoutAddress).Bytes(), Declared: int(v.Declared), Verified: int(v.Verified)}
	content.Verdict, _ = json.Marshal(v)
	for i, in := range m.Intents {
		terms, _ := json.Marshal(m.Terms(i))
		row := manifestdb.Intent{Name: in.Name, Description: in.Description, Method: in.Method, URL: in.URL,
			Terms: terms}
		if in.Price != nil {
			price := string(in.Price.Amount)
			row.Price, row.Networks, row.Protocols = &price, in.Price.Networks, []string{agentjson.ProtocolTransfer}
		}
		for _, p := range in.Parameters {
			row.Parameters = append(row.Parameters, p.Name)
		}
		content.Intents = append(content.Intents, row)
	}
	if err := manifestdb.Save(t.Context(), db, claims[0],
		manifestdb.Result{Content: content, Wait: time.Hour}); err != nil {
		t.Fatal(err)
	}
}

// sold is a world with two shops. The document of agent 99:0, whose wallet is its owner's, names the first, which pays
// another address.
func sold(t *testing.T) (*store.DB, string) {
	t.Helper()
	url := pgtest.New(t)
	db := open(t, url)
	l := newLedger(t, db, 99)
	l.add(append(mint(0, addr(1), "https://cheap.example/0"), mint(1, addr(2), "https://dear.example/1")...)...)
	files := map[string]docdb.FetchResult{}
	for i, domain := range []string{"cheap.example", "dear.example"} {
		f := file(&repute.Registration{Name: "Ada",
			Services: []repute.Service{{Name: "web", Endpoint: "https://" + domain}}}, domain)
		f.Domains = []docdb.Domain{{Name: domain, Proof: "https://" + domain + "/.well-known/agent-registration.json"}}
		files[fmt.Sprintf("https://%s/%d", domain, i)] = f
	}
	saveFiles(t, db, files)
	if _, err := db.Pool().Exec(t.Context(), `update agents set wallet = owner`); err != nil {
		t.Fatal(err)
	}
	serveManifest(t, db, "cheap.example", shop("cheap.example", addr(77).Hex(), "0.1"))
	serveManifest(t, db, "dear.example", shop("dear.example", addr(2).Hex(), "5"))
	return db, url
}

// domainsOf returns the domains of manifests.
func domainsOf(list []wire.Manifest) (out string) {
	for _, m := range list {
		out += m.Domain + " "
	}
	return strings.TrimSpace(out)
}

func TestManifestList(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	if _, err := manifestdb.Import(t.Context(), db, []string{"later.example"}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                       "cheap.example dear.example later.example",
		"?state=ok":              "cheap.example dear.example",
		"?state=pending":         "later.example",
		"?domain=DEAR":           "dear.example",
		"?domain=%25":            "",
		"?priced=true":           "cheap.example dear.example",
		"?priced=false":          "later.example",
		"?network=base":          "cheap.example dear.example",
		"?network=solana":        "",
		"?tier=2&verifiedTier=2": "cheap.example dear.example",
		"?verifiedTier=3":        "",
	} {
		if got := as[wire.ManifestList](t, get(t, s, "/manifests"+query)); domainsOf(got.Items) != want {
			t.Errorf("%s: %s, want %s", query, domainsOf(got.Items), want)
		}
	}
	first := as[wire.ManifestList](t, get(t, s, "/manifests?limit=2"))
	second := as[wire.ManifestList](t, get(t, s, "/manifests?limit=2&cursor="+url.QueryEscape(*first.Next)))
	if domainsOf(second.Items) != "later.example" || second.Next != nil {
		t.Errorf("second page: %+v", second)
	}
	for query, field := range map[string]string{"?tier=5": "tier", "?priced=maybe": "priced", "?limit=0": "limit",
		"?cursor=x": "cursor", "?state=odd": "state", "?nonsense=1": "nonsense"} {
		if p := problemOf(t, get(t, s, "/manifests"+query)); len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// An answer shows each commitment with the measurement of the crawl. Before the first measurement, and for commitments
// that the crawl cannot measure, it shows none.
func TestCommitments(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	serveManifest(t, db, "kept.example", strings.Replace(shop("kept.example", addr(9).Hex(), "1"), `"intents"`,
		`"commitments":{"schema_version":"1.0","entries":[{"type":"latency_bound","constraint":"p99 < 100ms","verifiable":true},
		{"type":"latency_bound","constraint":"max < 1ms","verifiable":true},{"type":"uptime_sla","constraint":"99% daily uptime",
		"verifiable":true},{"type":"latency_bound","constraint":"p99 < 100ms"}]},"intents"`, 1))
	outcomes := func() (out string) {
		for _, c := range as[wire.ManifestAnswer](t, get(t, s, "/manifests/kept.example")).Commitments {
			out += c.Outcome + " "
			if c.Reason == "" {
				t.Errorf("no reason: %+v", c)
			}
		}
		return out
	}
	if got := outcomes(); got != "unknown unknown unknown unknown " {
		t.Errorf("without measurements: %s", got)
	}
	if _, err := db.Pool().Exec(t.Context(), `update manifests set latencies = array_fill(5000, array[120]),
		watched_at = checked_at - interval '2 days', down_ms = 60000 where domain = 'kept.example'`); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(); got != "kept broken kept unknown " {
		t.Errorf("with measurements: %s", got)
	}
	if err := manifestdb.SetProbed(t.Context(), db, "kept.example", true); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(); got != "unknown unknown unknown unknown " {
		t.Errorf("requests for the manifest count as probes: %s", got)
	}
	if c := as[wire.ManifestAnswer](t, get(t, s,
		"/manifests/kept.example")).Commitments; !strings.HasPrefix(c[0].Reason, "by probes of an endpoint: ") {
		t.Errorf("%+v", c[0])
	}
	if m := as[wire.ManifestAnswer](t, get(t, s, "/manifests/dear.example")); m.Commitments == nil ||
		len(m.Commitments) != 0 {
		t.Errorf("%+v", m.Commitments)
	}
}

// A manifest is shown with its terms, what is proven of it, its agents and what contradicts the chain.
func TestManifest(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	m := as[wire.ManifestAnswer](t, get(t, s, "/manifests/Cheap.example."))
	if m.Tier != "2" || m.VerifiedTier != "2" || m.Stale || m.AgeSeconds == nil || m.Verdict == nil ||
		!m.Verdict.Served ||
		len(m.Intents) != 2 || *m.Intents[0].URL != "https://cheap.example/book" ||
		m.Intents[0].Terms.Price.Amount != "0.1" || *m.Intents[0].Terms.Ways[0].Recipient != *m.PayoutAddress {
		t.Errorf("%+v", m)
	}
	if len(m.Links) != 1 || m.Links[0].How != "registration" || m.Links[0].Proven {
		t.Errorf("links: %+v", m.Links)
	}
	paid := as[wire.ManifestAnswer](t, get(t, s, "/manifests/dear.example"))
	if len(paid.Links) != 2 || paid.Links[0].How != "wallet" || !paid.Links[0].Proven {
		t.Errorf("links: %+v", paid.Links)
	}
	differs := func(m wire.ManifestAnswer) (n int) {
		for _, p := range m.Problems {
			if p.Code == "WJ680" {
				n++
			}
		}
		return n
	}
	if differs(m) != 1 || differs(paid) != 0 {
		t.Errorf("payout problems: %+v, %+v", m.Problems, paid.Problems)
	}
	if again := get(t, s, "/manifests/dear.example", "If-None-Match",
		get(t, s, "/manifests/dear.example").header.Get("ETag")); again.status != http.StatusNotModified {
		t.Errorf("status %d with the ETag", again.status)
	}
	if p := problemOf(t, get(t, s, "/manifests/unknown.example")); p.Status != http.StatusNotFound {
		t.Errorf("%+v", p)
	}
	type answer struct {
		Manifest *wire.ManifestAnswer
		Unknown  *struct{ Domain string }
	}
	q := `{ manifest(domain: "dear.example") { domain state format displayName tier verifiedTier url sha256 intentCount errors
		warnings fetchedAt stale checkedAt nextCheck reason detail version origin description payoutAddress
		verdict { served identified identityReason keyForm keyId signature signatureReason issuer { verified proven keyId reason } }
		commitments { type constraint ref verifiable outcome reason }
		intents { name description method url parameters { name type required description } terms {
			price { amount currency model unitParam freeTier networks } ways { protocol network asset contract facilitator
			recipient direct ticket currency unit counts freeTier missing } bounty { type rate currency } incentive { type rate
			currency } } } links { agent how proven } problems { code severity path message } }
		unknown: manifest(domain: "unknown.example") { domain } }`
	got := data[answer](t, ask(t, s, q, nil))
	paid.AgeSeconds = nil
	if !reflect.DeepEqual(*got.Manifest, paid) || got.Unknown != nil {
		t.Errorf("GraphQL and REST disagree:\n%+v\n%+v", *got.Manifest, paid)
	}
}

// Words of an intent find it, by where they are; a misspelled word finds what is spelt similarly.
func TestIntents(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	found := func(query string) (out []string) {
		for _, i := range as[wire.IntentList](t, get(t, s, "/intents"+query)).Items {
			out = append(out, *i.Domain+" "+i.Name)
		}
		return out
	}
	flights := []string{"cheap.example book_flight", "dear.example book_flight"}
	hotels := []string{"cheap.example find_hotel", "dear.example find_hotel"}
	for query, want := range map[string][]string{
		"?q=booking+flights+to+the+moon": flights,
		"?q=hotel":                       hotels,
		"?q=departure":                   flights,
		"?q=flihgt+book":                 flights,
		"?q=hotle+in+citty":              hotels,
		"?q=zzzzzz":                      nil,
		"?q=flight&maxPrice=0.5":         flights[:1],
		"?q=flight&network=base&protocol=transfer": flights,
		"?q=flight&network=solana":                 nil,
		"?q=flight&tier=3":                         nil,
		"?q=flight&tier=2&kind=intent&limit=1":     flights[:1],
		"?q=flight&minScore=10":                    nil,
		"?q=%27+%5C+%7C+%26+%21+flight":            flights,
		"?limit=2":                                 {flights[0], hotels[0]},
	} {
		if got := found(query); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, sql := range []string{
		`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links,
			weights, identities, edges) values (99, 1, 1, 1, 1, '', '1', '', '', '', '', '', 0, 0)`,
		`insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean,
			confidence, tier, result) values (99, 0, 1, 1, '', '', 'rated', 20000, 0, 0, 0, 0, 2, '')`,
	} {
		if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if got := found("?q=flight&minScore=10"); !reflect.DeepEqual(got, flights[:1]) {
		t.Errorf("of a rated agent: %q", got)
	}
	type answer struct {
		Intents struct {
			Nodes  []wire.FoundIntent
			By     string
			Margin *float64
			Unsure bool
		}
	}
	got := data[answer](t,
		ask(t, s, `{ intents(query: "flight", maxPrice: "0.5", first: 5) { by margin unsure nodes { kind
		domain agent agents tier verifiedTier name description method url parameters price terms { price { amount currency model unitParam freeTier networks }
		ways { protocol network asset contract facilitator recipient direct ticket currency unit counts freeTier missing }
		bounty { type rate currency } incentive { type rate currency } } fetchedAt stale score similarity } } }`, nil))
	rest := as[wire.IntentList](t, get(t, s, "/intents?q=flight&maxPrice=0.5"))
	if !reflect.DeepEqual(got.Intents.Nodes, rest.Items) || rest.By != "words" || !rest.Unsure || rest.Margin != nil ||
		got.Intents.By != rest.By || got.Intents.Unsure != rest.Unsure || got.Intents.Margin != nil {
		t.Errorf("GraphQL and REST disagree:\n%+v\n%+v", got.Intents, rest)
	}
	for query, field := range map[string]string{"?maxPrice=-1": "maxPrice", "?minScore=101": "minScore",
		"?tier=x":   "tier",
		"?kind=odd": "kind", "?kind=skill": "q", "?limit=201": "limit", "?q=x&cursor=y": "cursor",
		"?cursor=x": "cursor"} {
		if p := problemOf(t, get(t, s, "/intents"+query)); len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// The list of intents has pages, and a cursor of another filter is refused.
func TestIntentPages(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	var got []string
	for next, more := "", true; more; {
		page := as[wire.IntentList](t, get(t, s, "/intents?limit=1"+next))
		if len(page.Items) != 1 || page.By != "filter" || page.Unsure {
			t.Fatalf("%+v", page)
		}
		got = append(got, *page.Items[0].Domain+" "+page.Items[0].Name)
		if more = page.Next != nil; more {
			cursor := *page.Next
			next = "&cursor=" + url.QueryEscape(cursor)
			if p := problemOf(t, get(t, s, "/intents?limit=1&tier=1&cursor="+
				url.QueryEscape(cursor))); p.Errors[0].Field != "cursor" {
				t.Errorf("%+v", p)
			}
			args := fmt.Sprintf(`{ intents(first: 1, after: %q) { nodes { name } pageInfo { hasNextPage } } }`, cursor)
			if r := ask(t, s, args, nil); len(r.Errors) != 0 {
				t.Errorf("%+v", r.Errors)
			}
		}
	}
	want := []string{"cheap.example book_flight", "cheap.example find_hotel", "dear.example book_flight",
		"dear.example find_hotel"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// found is an IntentFinder that has one answer.
type found manifestdb.FoundIntents

// Find implements answers.IntentFinder.
func (f found) Find(context.Context, manifestdb.IntentFilter) (manifestdb.FoundIntents, error) {
	return manifestdb.FoundIntents(f), nil
}

// What the index of meanings finds is shown alike by REST, GraphQL and the tool, with its scores.
func TestIntentsByMeaning(t *testing.T) {
	t.Parallel()
	agent := repute.AgentID{ChainID: 99, Registry: addr(5), TokenID: *uint256.NewInt(7)}
	s := serve(t, api.Options{DB: open(t, pgtest.New(t)), Tools: mcp.New(mcp.Options{}),
		Intents: found{By: manifestdb.ByMeaning,
			Margin: 0.25, Sure: true, Items: []manifestdb.FoundIntent{{Kind: "tool", Agent: &agent, Agents: 3,
				Name: "get_weather",
				Rank: 0.7, Similarity: 0.6}}}})
	rest := as[wire.IntentList](t, get(t, s, "/intents?q=rain"))
	if i := rest.Items[0]; rest.By != "meaning" || *rest.Margin != 0.25 || rest.Unsure || i.Kind != "tool" ||
		i.Domain != nil ||
		*i.Agent != wire.ID(agent.String()) || i.Agents != 3 || i.Score != 0.7 || *i.Similarity != 0.6 ||
		i.Tier != "none" {
		t.Errorf("%+v", rest)
	}
	var tool wire.IntentList
	if r := connect(t, s).call("repute_find_intents",
		`{"q":"rain","limit":5,"maxPrice":0.5,"tier":2,"minScore":10}`); r.IsError ||
		json.Unmarshal([]byte(said(r)), &tool) != nil || !reflect.DeepEqual(tool, rest) {
		t.Errorf("%s", said(r))
	}
	if r := connect(t, s).call("repute_find_intents", `{"q":" "}`); !strings.Contains(said(r), "q: is empty") {
		t.Errorf("%s", said(r))
	}
	type answer struct {
		Intents struct {
			Nodes  []struct{ Agent, Kind string }
			Margin float64
			Unsure bool
		}
	}
	got := data[answer](t, ask(t, s, `{ intents(query: "rain") { margin unsure nodes { agent kind } } }`, nil)).Intents
	if got.Unsure || got.Margin != 0.25 || got.Nodes[0].Kind != "tool" || got.Nodes[0].Agent != agent.String() {
		t.Errorf("%+v", got)
	}
}

// Lists of agents and search hits show manifests as agent pages do.
func TestManifestInLists(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	page := as[wire.AgentAnswer](t, get(t, s, "/agents/99:1"))
	for _, query := range []string{"", "?q=Ada&fold=false"} {
		list := as[wire.AgentList](t, get(t, s, "/agents"+query))
		if len(list.Items) != 2 {
			t.Fatalf("%s: %+v", query, list)
		}
		for _, a := range list.Items {
			if a.ShortID == "99:1" && !reflect.DeepEqual(a.Manifest, page.Manifest) || a.Manifest == nil {
				t.Errorf("%s: %s has %+v", query, a.ShortID, a.Manifest)
			}
		}
	}
}

// An agent shows its manifest, and a page of agents costs one statement more for all of them.
func TestManifestOfAgents(t *testing.T) {
	t.Parallel()
	db, dbURL := sold(t)
	s := serve(t, api.Options{DB: db})
	a := as[wire.AgentAnswer](t, get(t, s, "/agents/99:1"))
	price := wire.Decimal("5")
	if !reflect.DeepEqual(a.Manifest, &wire.AgentManifest{Domain: "dear.example", Tier: "2", VerifiedTier: "2",
		Intents: 2,
		Price:   &price, How: "wallet", Proven: true}) {
		t.Errorf("%+v", a.Manifest)
	}
	if a := as[wire.AgentAnswer](t, get(t, s, "/agents/99:1?at=1")); a.Manifest != nil {
		t.Errorf("at a block: %+v", a.Manifest)
	}
	proxy := newProxy(t, dbURL)
	s = serve(t, api.Options{DB: open(t, proxy.url)})
	count := func(first int) int64 {
		q := fmt.Sprintf(`{ agents(first: %d) { nodes { id manifest { domain tier verifiedTier intents price how proven } } } }`, first)
		d := data[struct {
			Agents struct {
				Nodes []struct{ Manifest *wire.AgentManifest }
			}
		}](t, ask(t, s, q, nil)).Agents.Nodes
		if len(d) != first || d[first-1].Manifest == nil {
			t.Fatalf("%+v", d)
		}
		return statementsOf(t, s, proxy, q)
	}
	if one, two := count(1), count(2); one != two {
		t.Errorf("%d statements for one agent, %d for two", one, two)
	}
}

// What the operator denies is in no answer, by its domain or by its bytes.
func TestDeniedManifests(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db})
	cheap := as[wire.ManifestAnswer](t, get(t, s, "/manifests/cheap.example"))
	for _, d := range []repute.Denial{{Kind: repute.DenyHost, Value: "dear.example", Reason: "fraud"},
		{Kind: repute.DenySHA256, Value: string(*cheap.SHA256), Reason: "fraud"}} {
		if err := denydb.Deny(t.Context(), db, d, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, domain := range []string{"dear.example", "cheap.example"} {
		if p := problemOf(t, get(t, s, "/manifests/"+domain)); p.Status != http.StatusGone {
			t.Errorf("%s: %+v", domain, p)
		}
	}
	if list := as[wire.ManifestList](t, get(t, s, "/manifests")); len(list.Items) != 0 {
		t.Errorf("listed: %s", domainsOf(list.Items))
	}
	if list := as[wire.IntentList](t, get(t, s, "/intents?q=flight")); len(list.Items) != 0 {
		t.Errorf("found: %+v", list.Items)
	}
	if a := as[wire.AgentAnswer](t, get(t, s, "/agents/99:1")); a.Manifest != nil {
		t.Errorf("of an agent: %+v", a.Manifest)
	}
}
