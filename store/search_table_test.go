package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/synth"
	"repute/store"
	"repute/store/docdb"
	"repute/store/query"
	"repute/store/searchdb"
)

// corpus is a generated crowd of agents, among them those of planted, in order from token 0.
// The rest are documents of a synthetic history and names of random letters.
func corpus(t *testing.T, planted []*repute.Registration) []*repute.Registration {
	t.Helper()
	const crowd = 600
	docs := slices.Clone(planted)
	rng := rand.New(rand.NewPCG(7, 24))
	for i := range crowd {
		if i%3 > 0 {
			var doc repute.Registration
			ok(t, json.Unmarshal([]byte(synth.Document(uint64(i))), &doc))
			docs = append(docs, agentDoc(doc.Name, doc.Description))
			continue
		}
		letters := make([]byte, 6+rng.IntN(7))
		for n := range letters {
			letters[n] = "aeilnorstrantslat"[rng.IntN(17)] // close to trigrams of words that are searched for
		}
		docs = append(docs, agentDoc(string(letters), ""))
	}
	return docs
}

// plantedDocs are what the table's queries look for.
func plantedDocs() []*repute.Registration {
	at := func(endpoint string) repute.Service { return repute.Service{Name: "A2A", Endpoint: endpoint} }
	return []*repute.Registration{
		agentDoc("Price Oracle",
			"feeds for tokens"), // 0
		agentDoc("Oracle of every price there is",
			"price oracle, price oracle"), // 1
		agentDoc("Lingua",
			"will translate contracts between languages"), // 2
		agentDoc("Translator Pro",
			"documents in forty languages"), // 3
		agentDoc("Zyfai", "yield for stablecoins",
			at("https://api.zyf.ai/a2a")), // 4
		agentDoc("Yield Keeper", "of another house",
			at("https://www.zyf.ai/agents/keeper?x=1")), // 5
		agentDoc("Color Optimizer",
			"analyzes behavior of catalogs"), // 6
		agentDoc("Colour Organiser",
			"modelling for theatres and travellers"), // 7
		agentDoc("Gold Price Alerts",
			"sends a message when the market moves"), // 8
		agentDoc("Weather Oracle",
			"rain and wind"), // 9
		agentDoc("Code Reviewer", "reads pull requests",
			repute.Service{Name: "OASF", Skills: []string{"software_engineering/code_review"}}), // 10
		agentDoc("Zürich Guide",
			"cafés and walks"), // 11
		agentDoc("天气预报",
			"每日"), // 12
		agentDoc("Escrow", "holds funds", repute.Service{Name: "agentWallet",
			Endpoint: "eip155:1:0x00000000000000000000000000000000000000Ee"}), // 13
		agentDoc("PriceOracle",
			"in one word"), // 14
		agentDoc("Mailer", "sends letters", repute.Service{Name: "email",
			Endpoint: "mailto:post@letters.example"}), // 15
		agentDoc("Defence Analyst",
			"threat reports"), // 16
		agentDoc("Portfolio Rebalancer",
			"keeps the balance of a portfolio of tokens"), // 17
	}
}

// TestSearchTable asks what people type, and expects the agents that they mean first.
func TestSearchTable(t *testing.T) {
	t.Parallel()
	db := open(t)
	catalogue(t, db, 7, []int{0, 3, 1, 0, 2}, corpus(t, plantedDocs())...)
	for _, c := range []struct {
		q     string
		match searchdb.Match
		top   string // tokens, the first of the answer
		only  bool   // there are no others
	}{
		{"price oracle", searchdb.MatchAll, "0 1 14", true},
		{"Price-Oracle", searchdb.MatchAll, "0", false},
		{"PRICE  ORACLE", searchdb.MatchAll, "0 1 14", true},
		{"priceoracle", searchdb.MatchAll, "14", true},
		{"oracle price", searchdb.MatchAll, "1 0 14", true},
		{"translate", searchdb.MatchAll, "3 2", true},
		{"translator", searchdb.MatchAll, "3 2", true},
		{"transaltor", searchdb.MatchNear, "3", false},
		{"zyf.ai", searchdb.MatchAll, "4 5", true},
		{"zyf", searchdb.MatchAll, "4 5", true},
		{"https://api.zyf.ai/a2a", searchdb.MatchAll, "4", true},
		{"https://zyf.ai/agents/keeper", searchdb.MatchAll, "5 4", true},
		{"http://www.ZYF.ai/agents/keeper/#top", searchdb.MatchAll, "5 4", true},
		{"api.zyf.ai", searchdb.MatchAll, "4", true},
		{"https://a.example/7/9", searchdb.MatchAll, "9", true},
		{"https://nowhere.example/agent", "", "", true},
		{"qqqqqq vvvvvv", "", "", true},
		{"0x00000000000000000000000000000000000000ee", searchdb.MatchAll, "13", true},
		{"eip155:1:0x00000000000000000000000000000000000000EE", searchdb.MatchAll, "13", true},
		{person(17).Hex(), searchdb.MatchAll, "17", true},
		{"letters.example", searchdb.MatchAll, "15", true},
		{"color optimiser", searchdb.MatchAll, "6", true},
		{"colour organizer", searchdb.MatchAll, "7", true},
		{"analyse behaviour", searchdb.MatchAll, "6", true},
		{"modeling theater traveler", searchdb.MatchAll, "7", true},
		{"defense analyst", searchdb.MatchAll, "16", true},
		{"gold price oracle", searchdb.MatchMost, "1 8 0", false},
		{"a price alert for the gold standard", searchdb.MatchMost, "8", true},
		{"weather zzyzx", searchdb.MatchMost, "9", false},
		{"wether", searchdb.MatchNear, "9", false},
		{"code review", searchdb.MatchAll, "10", false},
		{"zurich cafes", searchdb.MatchAll, "11", true},
		{"天气", searchdb.MatchAll, "12", true},
		{"rebalance portfolios", searchdb.MatchMost, "17", true},
		{`"oracle price"`, searchdb.MatchAll, "1", true},
		{"price -oracle", searchdb.MatchAll, "8", false},
	} {
		f := searchdb.AgentFilter{Text: c.q, Limit: 50}
		found, err := searchdb.Agents(t.Context(), db, f)
		ok(t, err)
		var got []string
		for _, a := range found.Items {
			got = append(got, a.ID.TokenID.Dec())
		}
		want := strings.Fields(c.top)
		if found.Match != c.match || len(got) < len(want) || !slices.Equal(got[:len(want)], want) ||
			c.only && len(got) > len(want) {
			t.Errorf("%s: %s %v, want %s %v", c.q, found.Match, got[:min(len(got), 8)], c.match, want)
		}
		checkPagesOf(t, db, f, found)
	}
}

// checkPagesOf reads an answer again in small pages.
func checkPagesOf(t *testing.T, db *store.DB, f searchdb.AgentFilter, whole searchdb.Found) {
	t.Helper()
	var got []string
	for f.Limit = 2; len(got) < len(whole.Items); {
		found, err := searchdb.Agents(t.Context(), db, f)
		ok(t, err)
		if got = append(got, agentIDs(found.Items)...); found.Total != whole.Total || found.Match != whole.Match {
			t.Errorf("%s: %+v %s, in one page %+v %s", f.Text, found.Total, found.Match, whole.Total, whole.Match)
		}
		if f.After = found.Next; f.After == "" {
			break
		}
	}
	if want := agentIDs(whole.Items); !slices.Equal(got[:min(len(got), len(want))], want) {
		t.Errorf("%s: pages give %v, want %v", f.Text, got, want)
	}
}

// TestSearchFolds gives one place to near-identical agents of an owner, on every page and
// in every order, and lists them where that is asked for.
func TestSearchFolds(t *testing.T) {
	t.Parallel()
	db := open(t)
	var mine []repute.Event
	docs := map[string]*repute.Registration{}
	w := newWorld(7, 100, 1)
	for i := range 60 {
		owner, name := person(i%3), fmt.Sprintf("Trader %d", i)
		if i%10 == 9 {
			name = "Trader of " + []string{"gold", "silver", "wheat"}[i%3] // differs in a word
		}
		uri := fmt.Sprintf("https://t.example/%d", i)
		docs[uri] = agentDoc(name, fmt.Sprintf("trades tokens, number %d", i),
			repute.Service{Name: "MCP", Endpoint: uri})
		mine = append(mine, repute.Transfer{To: owner, TokenID: tokenID(i)},
			repute.Registered{TokenID: tokenID(i), URI: uri, Owner: owner})
	}
	w.mine(mine...)
	w.store(t, db, w.tip().Number)
	for uri, u := range claim(t, db, "") {
		save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte(uri), Source: "https", FetchedAt: fetched,
			ParserVersion: 1, Registration: docs[uri]})
	}
	for _, sort := range []string{"", query.SortID, query.SortFeedback, query.SortUpdated} {
		f := searchdb.AgentFilter{Text: "trader", Sort: sort, Limit: 2}
		counted := map[common.Address]int64{}
		agents := 0
		for {
			found, err := searchdb.Agents(t.Context(), db, f)
			ok(t, err)
			for i, a := range found.Items {
				agents++
				counted[a.Owner] += 1 + found.Similar[i]
			}
			if found.Total != (searchdb.Count{Value: 6}) {
				t.Errorf("by %q: total %+v, want 6", sort, found.Total)
			}
			if f.After = found.Next; f.After == "" {
				break
			}
		}
		if agents != 6 || counted[person(0)] != 20 || counted[person(1)] != 20 || counted[person(2)] != 20 {
			t.Errorf("by %q: %d agents that stand for %v, want 6 for 20 of each owner", sort, agents, counted)
		}
	}
	owner := person(1)
	found, err := searchdb.Agents(t.Context(), db,
		searchdb.AgentFilter{Text: "trader", Owner: &owner, Unfolded: true, Limit: 50})
	ok(t, err)
	if len(found.Items) != 20 || found.Total.Value != 20 || found.Similar != nil {
		t.Errorf("unfolded: %d of %+v, similar %v", len(found.Items), found.Total, found.Similar)
	}
}

// TestSearchFoldsAcrossChains lets the newest of near-identical agents stand for all where
// the newest come first, whatever the numbers of blocks on their chains are.
func TestSearchFoldsAcrossChains(t *testing.T) {
	t.Parallel()
	db := open(t)
	doc := agentDoc("Trader 1", "trades tokens", repute.Service{Name: "MCP", Endpoint: "https://t.example/mcp"})
	for chain, first := range map[uint64]uint64{7: 100, 8: 100_000} {
		w := newWorld(chain, first, 1)
		w.mine(repute.Transfer{To: person(0), TokenID: tokenID(0)},
			repute.Registered{TokenID: tokenID(0), URI: "https://t.example/a", Owner: person(0)})
		if chain == 7 {
			for range 50 {
				w.mine()
			}
			w.mine(repute.Transfer{To: person(1), TokenID: tokenID(1)},
				repute.Registered{TokenID: tokenID(1), URI: "https://t.example/b", Owner: person(0)})
		}
		w.store(t, db, w.tip().Number)
	}
	for uri, u := range claim(t, db, "") {
		save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte(uri), Source: "https", FetchedAt: fetched,
			ParserVersion: 1, Registration: doc})
	}
	_, err := db.Pool().Exec(t.Context(),
		"update blocks set time = to_timestamp(1700000000 + case chain_id when 7 then number else 0 end)")
	ok(t, err)
	f := searchdb.AgentFilter{Text: "trader", Sort: query.SortUpdated, Desc: true, Unfolded: true, Limit: 10}
	all, err := searchdb.Agents(t.Context(), db, f)
	ok(t, err)
	seen, want := map[common.Address]bool{}, []string(nil)
	for _, a := range all.Items {
		if !seen[a.Owner] {
			want = append(want, a.ID.Short())
		}
		seen[a.Owner] = true
	}
	f.Unfolded = false
	found, err := searchdb.Agents(t.Context(), db, f)
	ok(t, err)
	var got []string
	for _, a := range found.Items {
		got = append(got, a.ID.Short())
	}
	if len(all.Items) != 3 || len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("folded %v, want the first of each owner of the whole list, %v of %d", got, want, len(all.Items))
	}
}

// TestSearchByPlace finds hosts by their own labels and not by paths, and a URI by its very
// characters.
func TestSearchByPlace(t *testing.T) {
	t.Parallel()
	db := open(t)
	w := newWorld(7, 100, 1)
	const uri = "https://a.example/Agents/QmAbC.json"
	w.mine(repute.Transfer{To: person(0), TokenID: tokenID(0)},
		repute.Registered{TokenID: tokenID(0), URI: uri, Owner: person(0)})
	w.store(t, db, w.tip().Number)
	for _, u := range claim(t, db, "") {
		save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte(uri), Source: "https", FetchedAt: fetched,
			ParserVersion: 1,
			Registration: agentDoc("Zed", "",
				repute.Service{Name: "A2A", Endpoint: "https://x.com/.well-known/agent-card.json"})})
	}
	for text, want := range map[string]int{uri: 1, strings.ToLower(uri): 0, "x.com": 1, "com": 0, "agent card": 0,
		"well known": 0} {
		found, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Text: text, Limit: 10})
		ok(t, err)
		if len(found.Items) != want {
			t.Errorf("%s: %d agents (%s), want %d", text, len(found.Items), found.Match, want)
		}
	}
}

// TestSearchDoesNotFoldOthers keeps agents apart that differ in more than numbers.
func TestSearchDoesNotFoldOthers(t *testing.T) {
	t.Parallel()
	db := open(t)
	w := newWorld(7, 100, 1)
	docs := map[string]*repute.Registration{}
	var events []repute.Event
	for i, d := range []struct{ name, host string }{{"GPT4 Trader", "a.example"}, {"Claude3 Trader", "a.example"},
		{"GPT4 Trader", "b.example"}, {"GPT5 Trader", "a.example"}} {
		uri := fmt.Sprintf("https://t.example/%d", i)
		docs[uri] = agentDoc(d.name, "trades tokens",
			repute.Service{Name: "MCP", Endpoint: "https://" + d.host + "/mcp"})
		events = append(events, repute.Transfer{To: person(0), TokenID: tokenID(i)},
			repute.Registered{TokenID: tokenID(i), URI: uri, Owner: person(0)})
	}
	w.mine(events...)
	w.store(t, db, w.tip().Number)
	for uri, u := range claim(t, db, "") {
		save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte(uri), Source: "https", FetchedAt: fetched,
			ParserVersion: 1, Registration: docs[uri]})
	}
	found, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Text: "trader", Limit: 10})
	ok(t, err)
	if len(found.Items) != 3 { // of GPT4 and GPT5 at one host one stands for both
		t.Errorf("%d agents, similar %v", len(found.Items), found.Similar)
	}
}

// TestSearchKeepsItsWords falls back to fewer words where no agent has all of them, and not
// because an order leaves out those that do.
func TestSearchKeepsItsWords(t *testing.T) {
	t.Parallel()
	db := open(t)
	w := newWorld(7, 100, 1)
	w.mine(repute.Transfer{To: person(0), TokenID: tokenID(0)},
		repute.Registered{TokenID: tokenID(0), URI: "https://t.example/a", Owner: person(0)})
	w.store(t, db, w.tip().Number)
	for uri, u := range claim(t, db, "") {
		save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte(uri), Source: "https", FetchedAt: fetched,
			ParserVersion: 1, Registration: agentDoc("robot words", "")})
	}
	found, err := searchdb.Agents(t.Context(), db,
		searchdb.AgentFilter{Text: "robot words", Sort: query.SortScore, Limit: 10})
	if ok(t, err); len(found.Items) != 0 || found.Match != searchdb.MatchAll {
		t.Errorf("%d agents by %s", len(found.Items), found.Match)
	}
}
