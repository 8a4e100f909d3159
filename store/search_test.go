package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/query"
	"repute/store/searchdb"
)

// catalogue is a chain whose agents have these documents, in order, and as many
// ratings as ratings says.
func catalogue(t *testing.T, db *store.DB, chain uint64, ratings []int, docs ...*repute.Registration) *world {
	t.Helper()
	w := newWorld(chain, 100, 1)
	var events []repute.Event
	for i := range docs {
		events = append(events, repute.Transfer{To: person(i), TokenID: tokenID(i)},
			repute.Registered{TokenID: tokenID(i), URI: fmt.Sprintf("https://a.example/%d/%d", chain, i),
				Owner: person(i)})
		for n := range ratings[i%len(ratings)] {
			events = append(events, repute.NewFeedback{TokenID: tokenID(i), Client: person(50 + n), Index: 1,
				Value: big.NewInt(1), Tag1: "starred"})
		}
	}
	w.mine(events...)
	w.store(t, db, w.tip().Number)
	readCatalogue(t, db, docs)
	return w
}

// readCatalogue reads the documents of the newest catalogue.
func readCatalogue(t *testing.T, db *store.DB, docs []*repute.Registration) {
	t.Helper()
	for due := claim(t, db, ""); len(due) > 0; due = claim(t, db, "") {
		for uri, u := range due {
			var c, i int
			_, err := fmt.Sscanf(uri, "https://a.example/%d/%d", &c, &i)
			ok(t, err)
			if docs[i] != nil {
				save(t, db, docdb.FetchResult{URIID: u.ID, Body: fmt.Appendf(nil, "%d %d", c, i), Source: "https",
					FetchedAt:     fetched,
					ParserVersion: 1, Registration: docs[i]})
			}
		}
	}
}

func search(t *testing.T, db *store.DB, f searchdb.AgentFilter) (searchdb.Found, string) {
	t.Helper()
	f.Limit = cmp.Or(f.Limit, 50)
	if f.Sort == "" {
		f.Sort, f.Desc = query.SortRelevance, true
	}
	found, err := searchdb.Agents(context.Background(), db, f)
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	return found, shortIDs(found.Items)
}

func shortIDs(agents []repute.Agent) string {
	var ids []string
	for _, a := range agents {
		ids = append(ids, a.ID.Short())
	}
	return strings.Join(ids, " ")
}

func agentDoc(name, description string, services ...repute.Service) *repute.Registration {
	return &repute.Registration{Name: name, Description: description, Services: services}
}

func TestSearchText(t *testing.T) {
	t.Parallel()
	db := open(t)
	skilled := repute.Service{Name: "OASF", Skills: []string{"natural_language_processing/summarization"},
		Domains: []string{"Finance/Banking"}}
	catalogue(t, db, 7, []int{0, 3, 1},
		agentDoc("Weather Oracle", "tells of rain", repute.Service{Name: "MCP"}),      // 0
		agentDoc("Rain man", "answers about the weather everywhere"),                  // 1
		agentDoc("Summaries", "reads papers", skilled),                                // 2
		agentDoc("WeatherBot", "forecasting agents for everyone"),                     // 3
		agentDoc("100% discount_finder", "<script>alert(1)</script> \u0000 earns 5%"), // 4
		agentDoc("天气预报机器人", "中文"),                                                     // 5
		agentDoc("weather", "exactly"),                                                // 6
		agentDoc("The Who", "and so on"),                                              // 7
		nil,                                                                           // 8: not fetched
		agentDoc("Tutor for AI", "teaches"),                                           // 9
	)
	for _, c := range []struct{ text, want string }{
		{"weather", "7:6 7:0 7:3 7:1"}, // the name itself, a word of the name, a part of it, the description
		{"WEATHER  oracle", "7:0"},
		{`"weather oracle"`, "7:0"},
		{`"oracle weather"`, ""},
		{"oracle weather", "7:0"},
		{"weather -oracle", "7:6 7:1"},
		{"oracle or summaries", "7:2 7:0"},
		{"forecast", "7:3"},                                         // another form of the word
		{"summarization", "7:2"},                                    // a part of a skill's path
		{"natural language", "7:2"},                                 //
		{"banking", "7:2"},                                          //
		{"mcp", "7:0"},                                              //
		{"wether", "7:6 7:0"},                                       // misspelled
		{"100%", "7:4"},                                             // no pattern
		{"discount_finder", "7:4"},                                  //
		{"dis_ount", ""},                                            //
		{"<script>alert", "7:4"},                                    //
		{"天气预报", "7:5"},                                             //
		{"the who", "7:7"},                                          // nothing but stop words
		{"nothing such as this", ""},                                //
		{"AI", "7:9"},                                               // whole words only, not the middle of rain
		{"of", ""}, {"天气", "7:5"}, {"AG", ""}, {"ai 天气", "7:5 7:9"}, // one word of two, none has both
		{`'); drop table agents; --`, ""},
		{`weather & | ! ( ) : *`, "7:6 7:0 7:3 7:1"},
		{`\weather\`, "7:6 7:0 7:3 7:1"},
	} {
		if found, got := search(t, db, searchdb.AgentFilter{Text: c.text}); got != c.want ||
			found.Total.Value != int64(len(strings.Fields(c.want))) {
			t.Errorf("%s: found %q of %+v, want %q", c.text, got, found.Total, c.want)
		}
	}
}

// A list asks for all of its values; a value with a comma in it is no list.
func TestSearchLists(t *testing.T) {
	t.Parallel()
	db := open(t)
	both := repute.Service{Name: "MCP", Skills: []string{"sing", "dance", "sing, dance and act"},
		Domains: []string{"finance/markets"}}
	catalogue(t, db, 7, []int{0}, agentDoc("a", "", both, repute.Service{Name: "A2A"}), agentDoc("b", "", both),
		agentDoc("c", "", repute.Service{Name: "A2A", Skills: []string{"dance"}}))
	for _, c := range []struct {
		f    searchdb.AgentFilter
		want string
	}{
		{searchdb.AgentFilter{Service: "mcp"}, "7:1 7:0"}, {searchdb.AgentFilter{Service: "mcp,A2A"}, "7:0"},
		{searchdb.AgentFilter{Service: "a2a, MCP"}, "7:0"},
		{searchdb.AgentFilter{Service: "mcp,web"}, ""}, {searchdb.AgentFilter{Skill: "sing,dance"}, "7:1 7:0"},
		{searchdb.AgentFilter{Skill: "Sing, dance and act"}, "7:1 7:0"},
		{searchdb.AgentFilter{Skill: "dance", Service: "a2a,a2a"}, "7:2 7:0"},
		{searchdb.AgentFilter{Domain: "finance"}, ""}, {searchdb.AgentFilter{Domain: "Finance/Markets"}, "7:1 7:0"},
	} {
		found, got := search(t, db, c.f)
		facets, err := searchdb.SearchFacets(t.Context(), db, c.f, "")
		ok(t, err)
		if got != c.want || facets.Total != found.Total {
			t.Errorf("%+v: found %q of %+v, want %q", c.f, got, facets.Total, c.want)
		}
	}
	for _, list := range []string{"mcp,", ",", "mcp,,a2a", " ", "1,2,3,4,5,6,7,8,9"} {
		refused(t, db, "service", searchdb.AgentFilter{Service: list, Limit: 10})
	}
	var input *repute.InputError
	_, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Status: "fine", Limit: 1})
	if !errors.As(err, &input) || input.Hint != "one of none, pending, ok, invalid, failed, dead, denied" {
		t.Errorf("of no state: %v", err)
	}
}

func TestSearchRefuses(t *testing.T) {
	t.Parallel()
	db := open(t)
	cases := map[string]searchdb.AgentFilter{
		"q":           {Text: "a"},
		"status":      {Status: "fine"},
		"minFeedback": {MinFeedback: -1},
		"service":     {Service: strings.Repeat("x", 101)},
		"skill":       {Skill: "a\x00b"},
		"cursor":      {After: "AAAA"},
		"limit":       {Limit: 201},
	}
	for field, f := range cases {
		if f.Limit == 0 {
			f.Limit = 10
		}
		refused(t, db, field, f)
	}
	for _, text := range []string{"a b c", "%%%%", "\x00\x01abc", "\xff\xfeabc", strings.Repeat("weather ", 2048), "  ",
		"-- \" \"", "a b c d e f g h word"} {
		refused(t, db, "q", searchdb.AgentFilter{Text: text, Limit: 10})
	}
	if _, err := searchdb.Agents(context.Background(), db,
		searchdb.AgentFilter{ChainIDs: []uint64{5}, Limit: 1}); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("of a chain that is not there: %v", err)
	}
}

func refused(t *testing.T, db *store.DB, field string, f searchdb.AgentFilter) {
	t.Helper()
	var input *repute.InputError
	if _, err := searchdb.Agents(context.Background(), db, f); !errors.As(err, &input) || input.Field != field ||
		input.Hint == "" {
		t.Errorf("%+v: %v, want an error of %s", f, err, field)
	}
}

// A search follows the document: of the agent's current URI, as last fetched.
func TestSearchFollowsDocuments(t *testing.T) {
	t.Parallel()
	db := open(t)
	w := catalogue(t, db, 7, []int{0}, agentDoc("alpha", ""), agentDoc("omega", ""))
	uri := "https://a.example/new"
	w.mine(repute.URIUpdated{TokenID: tokenID(0), URI: uri, UpdatedBy: person(0)})
	w.store(t, db, w.tip().Number)
	if _, got := search(t, db, searchdb.AgentFilter{Text: "alpha"}); got != "" {
		t.Errorf("found by the document of an earlier uri: %s", got)
	}
	u := claim(t, db, "")[uri]
	for _, name := range []string{"gamma", "delta"} {
		save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte(name), Source: "https", FetchedAt: fetched,
			ParserVersion: 1, Registration: agentDoc(name, "")})
		if _, got := search(t, db, searchdb.AgentFilter{Text: name}); got != "7:0" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, got := search(t, db, searchdb.AgentFilter{Text: "gamma"}); got != "" {
		t.Errorf("found by an earlier version: %s", got)
	}
	save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte("delta"), Source: "https", FetchedAt: fetched,
		ParserVersion: 2, Registration: agentDoc("epsilon", "")})
	if _, got := search(t, db, searchdb.AgentFilter{Text: "epsilon"}); got != "7:0" {
		t.Errorf("after a better parser: %s", got)
	}
}

// TestFillSearch makes the search rows of documents that an older program stored.
func TestFillSearch(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := openDB(t, url)
	docs := make([]*repute.Registration, 230)
	for i := range docs {
		docs[i] = agentDoc(fmt.Sprintf("robot%d", i), "")
	}
	catalogue(t, db, 7, []int{0}, docs...)
	sqlExec(t, db, "delete from searchable where name < 'robot3'")
	sqlExec(t, db, "update searchable set form = 0, name = 'old'")
	ok(t, searchdb.FillSearch(t.Context(), db))
	if found, _ := search(t, db, searchdb.AgentFilter{Text: "robot"}); found.Total.Value != 230 {
		t.Errorf("%d found after the fill, want 230", found.Total.Value)
	}
}

// one agent of a made-up crowd, as the test computes it.
type member struct {
	id       repute.AgentID
	doc      *repute.Registration
	ratings  int64
	document repute.DocumentStatus
}

// TestSearchFilters compares every kind of filter with the plainest computation.
func TestSearchFilters(t *testing.T) {
	t.Parallel()
	db := open(t)
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	var all []member
	for _, chain := range []uint64{7, 8} {
		var docs []*repute.Registration
		ratings := []int{0, 2, 0, 1, 5}
		for i := range 40 {
			yes := i%2 == 0
			doc := &repute.Registration{Name: pick("red", "green") + " robot",
				SupportedTrust: []string{pick("reputation", "tee")},
				Services: []repute.Service{{Name: pick("MCP", "A2A", "web"), Skills: []string{pick("Sing", "dance")},
					Domains: []string{pick("law", "art")}}}}
			if i%3 == 0 {
				doc.X402, doc.Active = &yes, &yes
			}
			if i%7 == 6 {
				doc = nil
			}
			docs = append(docs, doc)
		}
		w := catalogue(t, db, chain, ratings, docs...)
		for i, doc := range docs {
			m := member{w.id(i), doc, int64(ratings[i%len(ratings)]), repute.DocumentOK}
			if doc == nil {
				m.document = repute.DocumentPending
			}
			all = append(all, m)
		}
	}
	for range 60 {
		checkSearch(t, db, rng, all, pick)
	}
}

// checkSearch walks the pages of a random filter.
func checkSearch(t *testing.T, db *store.DB, rng *rand.Rand, all []member, pick func(...string) string) {
	t.Helper()
	yes := rng.IntN(2) == 0
	f := searchdb.AgentFilter{
		Text: pick("", "", "red", "robot"), Service: pick("", "", "mcp", "MCP"), Skill: pick("", "", "sing"),
		Domain: pick("", "", "", "Law"),
		Trust:  pick("", "", "", "tee"), MinFeedback: int64(rng.IntN(3)),
		Status: repute.DocumentStatus(pick("", "", "ok", "pending")),
		Tag:    pick("", "", "", "starred"), Limit: 1 + rng.IntN(9), Unfolded: true,
	}
	if rng.IntN(4) == 0 {
		f.X402 = &yes
	}
	if rng.IntN(4) == 0 {
		f.ChainIDs = []uint64{8}
	}
	var want []member
	for _, m := range all {
		if m.matches(f) {
			want = append(want, m)
		}
	}
	slices.SortFunc(want, func(a, b member) int {
		return cmp.Or(cmp.Compare(b.ratings, a.ratings), cmp.Compare(b.id.ChainID, a.id.ChainID),
			b.id.TokenID.Cmp(&a.id.TokenID))
	})
	var got, expected []string
	for _, m := range want {
		expected = append(expected, m.id.Short())
	}
	facets, err := searchdb.SearchFacets(context.Background(), db, f, "")
	ok(t, err)
	for {
		found, ids := search(t, db, f)
		got = append(got, strings.Fields(ids)...)
		if found.Total != (searchdb.Count{Value: int64(len(want))}) || facets.Total != found.Total {
			t.Errorf("%+v: total %+v and %+v, want %d", f, found.Total, facets.Total, len(want))
		}
		if f.After = found.Next; f.After == "" {
			break
		}
	}
	if !slices.Equal(got, expected) {
		t.Errorf("%+v: found %v, want %v", f, got, expected)
	}
	if got, want := sumOf(facets.Services), countOf(want, func(m member) bool { return m.doc != nil }); got != want {
		t.Errorf("%+v: %d services counted, want %d", f, got, want)
	}
	if got := sumOf(facets.Chains); got != int64(len(want)) || sumOf(facets.Status) != got {
		t.Errorf("%+v: chains %v, status %v", f, facets.Chains, facets.Status)
	}
}

func (m member) matches(f searchdb.AgentFilter) bool {
	if len(f.ChainIDs) > 0 && !slices.Contains(f.ChainIDs, m.id.ChainID) || m.ratings < f.MinFeedback ||
		f.Tag != "" && m.ratings == 0 || f.Status != "" && f.Status != m.document {
		return false
	}
	if m.doc == nil {
		return f.Text == "" && f.Service == "" && f.Skill == "" && f.Domain == "" && f.Trust == "" && f.X402 == nil
	}
	s := m.doc.Services[0]
	same := func(want, value string) bool { return want == "" || strings.EqualFold(want, value) }
	return strings.Contains(m.doc.Name, f.Text) && same(f.Service, s.Name) && same(f.Skill, s.Skills[0]) &&
		same(f.Domain, s.Domains[0]) &&
		same(f.Trust, m.doc.SupportedTrust[0]) && (f.X402 == nil || m.doc.X402 != nil && *m.doc.X402 == *f.X402)
}

func sumOf(facets []searchdb.Facet) (n int64) {
	for _, f := range facets {
		n += f.Count
	}
	return n
}

func countOf(all []member, is func(member) bool) (n int64) {
	for _, m := range all {
		if is(m) {
			n++
		}
	}
	return n
}

func TestSearchFacets(t *testing.T) {
	t.Parallel()
	db := open(t)
	doc := func(name string, service ...string) *repute.Registration {
		return agentDoc(name, "", repute.Service{Name: service[0], Skills: service[1:]})
	}
	paid, no := doc("robot", "A2A"), false
	paid.X402, paid.Active = new(bool), &no
	*paid.X402 = true
	catalogue(t, db, 7, []int{0}, doc("robot", "MCP", "sing"), doc("robot", "mcp", "Sing", "dance"), paid, nil)
	got, err := searchdb.SearchFacets(context.Background(), db, searchdb.AgentFilter{}, "")
	ok(t, err)
	want := searchdb.Facets{
		Total: searchdb.Count{Value: 4}, Services: []searchdb.Facet{{Value: "mcp", Count: 2}, {Value: "a2a", Count: 1}},
		Skills: []searchdb.Facet{{Value: "sing", Count: 2}, {Value: "dance", Count: 1}},
		X402:   []searchdb.Facet{{Value: "true", Count: 1}}, Active: []searchdb.Facet{{Value: "false", Count: 1}},
		Chains: []searchdb.Facet{{Value: "7", Count: 4}},
		Status: []searchdb.Facet{{Value: "ok", Count: 3}, {Value: "pending", Count: 1}}, AsOf: got.AsOf,
	}
	if !reflect.DeepEqual(got, want) || len(got.AsOf) != 1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A long document is found by its head, and never makes a key that is too long.
func TestSearchBounds(t *testing.T) {
	t.Parallel()
	db := open(t)
	long := strings.Repeat("x", 400<<10)
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprint("skill", i, long[:i%200])
	}
	catalogue(t, db, 7, []int{0},
		agentDoc("head "+long, strings.Repeat("filler ", 2000)+"needle "+strings.Repeat("filler ", 500)+" lost",
			repute.Service{Name: long, Skills: many, Domains: many}),
		agentDoc(strings.Repeat("é\x00", 5000), "\xf0\x28 \u0000 broken"))
	for text, want := range map[string]string{"head": "7:0", "skill3": "7:0", "needle": "", "broken": "7:1"} {
		if _, got := search(t, db, searchdb.AgentFilter{Text: text}); got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
	var bytes int
	ok(t, db.Pool().QueryRow(t.Context(),
		"select max(octet_length(name) + octet_length(words)) from searchable").Scan(&bytes))
	if bytes > 200+512 {
		t.Errorf("%d bytes are indexed for parts of words", bytes)
	}
}

// Nobody waits for a search that reads too much.
func TestSearchTimeout(t *testing.T) {
	t.Parallel()
	db := hasty(t)
	catalogue(t, db, 7, []int{0}, agentDoc("robot", ""))
	tx, err := db.Pool().Begin(t.Context())
	ok(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), "lock table searchable in access exclusive mode")
	ok(t, err)
	start := time.Now()
	_, err = searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Text: "robot", Limit: 1})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

// What the operator denies is neither found nor counted by its content.
func TestSearchHidesDenied(t *testing.T) {
	t.Parallel()
	db := open(t)
	catalogue(t, db, 7, []int{0}, agentDoc("robot one", "", repute.Service{Name: "MCP"}),
		agentDoc("robot two", "", repute.Service{Name: "A2A"}))
	ok(t, denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenyAgent, Value: "7:0", Reason: "malware"}, false))
	for _, c := range []struct {
		f    searchdb.AgentFilter
		want string
	}{
		{searchdb.AgentFilter{Text: "robot"}, "7:1"}, {searchdb.AgentFilter{Service: "mcp"}, ""},
		{searchdb.AgentFilter{Status: repute.DocumentDenied}, "7:0"},
		{searchdb.AgentFilter{Status: repute.DocumentOK}, "7:1"}, {searchdb.AgentFilter{}, "7:1 7:0"},
	} {
		if _, got := search(t, db, c.f); got != c.want {
			t.Errorf("%+v: found %q, want %q", c.f, got, c.want)
		}
	}
	facets, err := searchdb.SearchFacets(t.Context(), db, searchdb.AgentFilter{}, "")
	ok(t, err)
	if !slices.Equal(facets.Services, []searchdb.Facet{{Value: "a2a", Count: 1}}) ||
		!slices.Equal(facets.Status, []searchdb.Facet{{Value: "denied", Count: 1}, {Value: "ok", Count: 1}}) {
		t.Errorf("%+v", facets)
	}
}
