package store_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/denydb"
	"repute/store/query"
	"repute/store/searchdb"
)

// standing is what the combined test knows of an agent beside what lists show.
type standing struct {
	doc         *repute.Registration
	scored      bool // has a score, rated or not
	rated, thin bool
	score, tier int
}

// status is the status of its score.
func (s standing) status() repute.Status {
	switch {
	case s.rated:
		return repute.Rated
	case s.thin:
		return repute.Thin
	}
	return repute.Unrated
}

// scoredCatalogue is a chain with one agent a block, of which three in four have a score.
func scoredCatalogue(t *testing.T, db *store.DB, chain uint64, all map[string]standing) {
	t.Helper()
	w := newWorld(chain, 100, 1)
	var docs []*repute.Registration
	for i := range 33 {
		yes := i%2 == 0
		doc := &repute.Registration{Name: []string{"red", "green", "blue"}[i%3] + " robot",
			SupportedTrust: []string{[]string{"reputation", "tee"}[i%2]},
			Services: []repute.Service{{Name: []string{"MCP", "A2A"}[i%2],
				Skills:  []string{[]string{"sing", "dance"}[i/2%2]},
				Domains: []string{"law"}}}}
		if i%4 == 1 {
			doc.X402, doc.Active, doc.Services[0].Domains = &yes, &yes, nil
		}
		if i%3 == 0 {
			doc.Services[0].Endpoint = "https://" + []string{"one.example/x", "api.one.example", "two.example"}[i%4%3]
		}
		if i%7 == 6 {
			doc = nil
		}
		docs = append(docs, doc)
		events := []repute.Event{repute.Transfer{To: person(i % 5), TokenID: tokenID(i)},
			repute.Registered{TokenID: tokenID(i), URI: fmt.Sprintf("https://a.example/%d/%d", chain, i),
				Owner: person(i % 5)}}
		if i%9 == 4 {
			events = append(events, repute.Approval{Owner: person(i % 5), Approved: person(70), TokenID: tokenID(i)})
		}
		if i == 3 { // and takes one of them back
			events = append(events, repute.ApprovalForAll{Owner: person(1), Operator: person(70), Approved: true},
				repute.ApprovalForAll{Owner: person(3), Operator: person(70), Approved: true},
				repute.ApprovalForAll{Owner: person(3), Operator: person(70), Approved: false})
		}
		for n := range i % 6 {
			events = append(events, repute.NewFeedback{TokenID: tokenID(i / 2), Client: person(50 + n),
				Index: uint64(i%2 + 1),
				Value: big.NewInt(1), Tag1: "starred"})
		}
		w.mine(events...)
	}
	w.store(t, db, w.tip().Number)
	readCatalogue(t, db, docs)
	sqlExec(t, db,
		`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links, weights, identities, edges)
		values ($1, 1, 1, 1, 1, '', '1', '', '', '', '', '', 0, 0)`, chain)
	for i, doc := range docs {
		s := standing{doc: doc, scored: i%4 != 3, rated: i%4 < 2, thin: i%4 == 2 && i > 2, score: i*37%200 - 100,
			tier: i % 5}
		if s.scored {
			sqlExec(t, db,
				`insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean, confidence, tier, result)
				values ($1, $2, 1, 1, '', '', $3, $4, 0, 0, 0, 0, $5, '')`, chain, i, s.status(), s.score*1000, s.tier)
		}
		all[w.id(i).Short()] = s
	}
}

// narrowing is a filter and what it selects.
type narrowing struct {
	name  string
	set   func(*searchdb.AgentFilter)
	holds func(repute.Agent, standing) bool
}

func narrowings(since time.Time) []narrowing {
	yes, owner, none := true, person(2), person(999)
	operator, operated := person(70), person(1)
	doc := func(holds func(*repute.Registration) bool) func(repute.Agent, standing) bool {
		return func(_ repute.Agent, s standing) bool { return s.doc != nil && holds(s.doc) }
	}
	return []narrowing{
		{"nothing", func(*searchdb.AgentFilter) {}, func(repute.Agent, standing) bool { return true }},
		{"text", func(f *searchdb.AgentFilter) { f.Text = "robot" },
			doc(func(*repute.Registration) bool { return true })},
		{"color", func(f *searchdb.AgentFilter) { f.Text = "red robot" },
			doc(func(d *repute.Registration) bool { return d.Name == "red robot" })},
		{"chain", func(f *searchdb.AgentFilter) { f.ChainIDs = []uint64{8} },
			func(a repute.Agent, _ standing) bool { return a.ID.ChainID == 8 }},
		{"owner", func(f *searchdb.AgentFilter) { f.Owner = &owner },
			func(a repute.Agent, _ standing) bool { return a.Owner == owner }},
		{"wallet", func(f *searchdb.AgentFilter) { f.Wallet = &none },
			func(repute.Agent, standing) bool { return false }},
		{"service", func(f *searchdb.AgentFilter) { f.Service = "mcp" },
			doc(func(d *repute.Registration) bool { return d.Services[0].Name == "MCP" })},
		{"skill", func(f *searchdb.AgentFilter) { f.Skill = "sing" },
			doc(func(d *repute.Registration) bool { return d.Services[0].Skills[0] == "sing" })},
		{"domain", func(f *searchdb.AgentFilter) { f.Domain = "law" },
			doc(func(d *repute.Registration) bool { return d.Services[0].Domains != nil })},
		{"trust", func(f *searchdb.AgentFilter) { f.Trust = "tee" },
			doc(func(d *repute.Registration) bool { return d.SupportedTrust[0] == "tee" })},
		{"x402", func(f *searchdb.AgentFilter) { f.X402 = &yes },
			doc(func(d *repute.Registration) bool { return d.X402 != nil && *d.X402 })},
		{"active", func(f *searchdb.AgentFilter) { f.Active = &yes },
			doc(func(d *repute.Registration) bool { return d.Active != nil && *d.Active })},
		{"status", func(f *searchdb.AgentFilter) { f.Status = repute.DocumentPending },
			func(_ repute.Agent, s standing) bool { return s.doc == nil }},
		{"feedback", func(f *searchdb.AgentFilter) { f.MinFeedback = 3 },
			func(a repute.Agent, _ standing) bool { return a.Counts.Feedback >= 3 }},
		{"tag", func(f *searchdb.AgentFilter) { f.Tag = "starred" },
			func(a repute.Agent, _ standing) bool { return a.Counts.Feedback > 0 }},
		{"since", func(f *searchdb.AgentFilter) { f.Registered.Time = since },
			func(a repute.Agent, _ standing) bool { return !a.Registered.Time.Before(since) }},
		{"since block", func(f *searchdb.AgentFilter) { f.ChainIDs, f.Registered.Block = []uint64{8}, 110 },
			func(a repute.Agent, _ standing) bool { return a.ID.ChainID == 8 && a.Registered.Block >= 110 }},
		{"updated", func(f *searchdb.AgentFilter) { f.Updated.Time = since },
			func(a repute.Agent, _ standing) bool { return !a.Updated.Time.Before(since) }},
		{"updated block", func(f *searchdb.AgentFilter) { f.ChainIDs, f.Updated.Block = []uint64{7}, 120 },
			func(a repute.Agent, _ standing) bool { return a.ID.ChainID == 7 && a.Updated.Block >= 120 }},
		{"operator", func(f *searchdb.AgentFilter) { f.Operator = &operator },
			func(a repute.Agent, _ standing) bool { return a.Approved == operator || a.Owner == operated }},
		{"host", func(f *searchdb.AgentFilter) { f.Host = "one.example" },
			doc(func(d *repute.Registration) bool { return strings.Contains(d.Services[0].Endpoint, "one.example") })},
		{"text of operator and host", func(f *searchdb.AgentFilter) {
			f.Text, f.Operator, f.Host, f.Updated.Time = "robot", &operator, "one.example", worldStart
		}, func(a repute.Agent, s standing) bool {
			return s.doc != nil && (a.Approved == operator || a.Owner == operated) &&
				strings.Contains(s.doc.Services[0].Endpoint, "one.example")
		}},
		{"all at once", func(f *searchdb.AgentFilter) {
			f.Text, f.Service, f.MinFeedback, f.Registered.Time, f.Status = "robot", "a2a", 1, worldStart, repute.DocumentOK
		}, func(a repute.Agent, s standing) bool {
			return s.doc != nil && s.doc.Services[0].Name == "A2A" && a.Counts.Feedback > 0
		}},
	}
}

func scoreNarrowings() []narrowing {
	least, most, tier := repute.Points(-20_000), repute.Points(50_000), 1
	return []narrowing{
		{"any", func(*searchdb.AgentFilter) {}, func(repute.Agent, standing) bool { return true }},
		{"minScore", func(f *searchdb.AgentFilter) { f.Score.MinScore = &least },
			func(_ repute.Agent, s standing) bool { return s.scored && s.rated && s.score >= -20 }},
		{"minScore to maxScore", func(f *searchdb.AgentFilter) { f.Score.MinScore, f.Score.MaxScore = &least, &most },
			func(_ repute.Agent, s standing) bool { return s.scored && s.rated && s.score >= -20 && s.score <= 50 }},
		{"tier", func(f *searchdb.AgentFilter) { f.Score.Tier = &tier },
			func(_ repute.Agent, s standing) bool { return s.scored && s.rated && s.tier == 1 }},
		{"rated", func(f *searchdb.AgentFilter) { f.Score.Status = repute.Rated },
			func(_ repute.Agent, s standing) bool { return s.scored && s.rated }},
		{"thin", func(f *searchdb.AgentFilter) { f.Score.Status = repute.Thin },
			func(_ repute.Agent, s standing) bool { return s.scored && s.thin }},
		{"thin from minScore", func(f *searchdb.AgentFilter) { f.Score.Status, f.Score.MinScore = repute.Thin, &least },
			func(_ repute.Agent, s standing) bool { return s.scored && s.thin && s.score >= -20 }},
		{"unrated", func(f *searchdb.AgentFilter) { f.Score.Status = repute.Unrated },
			func(_ repute.Agent, s standing) bool { return !s.scored || !s.rated && !s.thin }},
		{"unrated of a score",
			func(f *searchdb.AgentFilter) { f.Score.Status, f.Score.MaxScore = repute.Unrated, &most },
			func(repute.Agent, standing) bool { return false }},
	}
}

// TestFiltersTogether asks for every filter with every filter of scores in every order, and compares pages and total
// with a walk over all agents. The directions alternate, so that each filter meets each order in both.
func TestFiltersTogether(t *testing.T) {
	t.Parallel()
	db := open(t)
	all := map[string]standing{}
	scoredCatalogue(t, db, 7, all)
	scoredCatalogue(t, db, 8, all)
	everyone, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Limit: store.MaxPage})
	ok(t, err)
	if len(everyone.Items) != len(all) || everyone.Total != (searchdb.Count{Value: int64(len(all))}) {
		t.Fatalf("%d agents of %+v, want %d", len(everyone.Items), everyone.Total, len(all))
	}
	since := everyone.Items[len(everyone.Items)/4].Registered.Time
	for i, filter := range narrowings(since) {
		for j, scores := range scoreNarrowings() {
			for k, sort := range []string{query.SortID, query.SortFeedback, query.SortUpdated, query.SortScore,
				query.SortRelevance} {
				desc := (i+j+k)%2 == 0
				f := searchdb.AgentFilter{Sort: sort, Desc: desc, Limit: 9, Unfolded: true}
				filter.set(&f)
				scores.set(&f)
				var want []repute.Agent
				for _, a := range everyone.Items {
					if s := all[a.ID.Short()]; filter.holds(a, s) && scores.holds(a, s) &&
						(sort != query.SortScore || s.scored) {
						want = append(want, a)
					}
				}
				checkWalk(t, db, filter.name+", "+scores.name, f, inNaiveOrder(want, all, sort, desc))
				if sort == query.SortID {
					checkFacets(t, db, filter.name+", "+scores.name, f, want)
				}
			}
		}
	}
}

// checkFacets compares the numbers of agents by chain and by status of their documents.
func checkFacets(t *testing.T, db *store.DB, name string, f searchdb.AgentFilter, want []repute.Agent) {
	t.Helper()
	facets, err := searchdb.SearchFacets(context.Background(), db, f, "")
	ok(t, err)
	counted := map[string]int64{}
	for _, facet := range slices.Concat(facets.Chains, facets.Status) {
		counted[facet.Value] = facet.Count
	}
	naive := map[string]int64{}
	for _, a := range want {
		naive[strconv.FormatUint(a.ID.ChainID, 10)]++
		naive[string(a.Document.Status)]++
	}
	if facets.Total != (searchdb.Count{Value: int64(len(want))}) || !maps.Equal(counted, naive) {
		t.Errorf("%s: %+v and %v, want %v", name, facets.Total, counted, naive)
	}
}

// Every state of a document selects the agents that have it, and no other.
func TestEachDocumentState(t *testing.T) {
	t.Parallel()
	db := open(t)
	docs := make([]*repute.Registration, 12)
	for i := range 4 {
		docs[i] = agentDoc("robot", "")
	}
	catalogue(t, db, 7, []int{0}, docs...)
	for _, change := range []struct {
		agent int
		set   string
	}{{2, "dead = true, reason = 'not_found'"}, {4, "dead = true, reason = 'not_found'"}, {5, "dead = true"},
		{6, "reason = 'tls'"},
		{7, "reason = 'tls'"}, {8, "uri = ''"}, {9, "uri = '', dead = true, reason = 'empty'"}} {
		sqlExec(t, db, "update uris set "+change.set+" where id = (select uri_id from agents where token_id = $1)",
			change.agent)
	}
	for _, table := range []string{"searchable", "parses"} {
		sqlExec(t, db,
			"update "+table+
				" set errors = 2 where sha256 = (select u.sha256 from uris u join agents on uri_id = id where token_id = 1)")
	}
	ok(t, denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenyAgent, Value: "7:3", Reason: "malware"}, false))
	ok(t, denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenyAgent, Value: "7:7", Reason: "malware"}, false))
	for status, want := range map[repute.DocumentStatus]string{repute.DocumentOK: "7:0 7:2",
		repute.DocumentInvalid: "7:1",
		repute.DocumentDead:    "7:4 7:5", repute.DocumentFailed: "7:6", repute.DocumentNone: "7:8 7:9",
		repute.DocumentDenied: "7:3 7:7", repute.DocumentPending: "7:10 7:11"} {
		found, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{Status: status, Limit: 20})
		ok(t, err)
		if got := strings.Join(agentIDs(found.Items), " "); got != want {
			t.Errorf("%s: found %s, want %s", status, got, want)
		}
		checkFacets(t, db, string(status), searchdb.AgentFilter{Status: status}, found.Items)
	}
}

func inNaiveOrder(agents []repute.Agent, all map[string]standing, sort string, desc bool) []repute.Agent {
	slices.SortFunc(agents, func(a, b repute.Agent) int {
		by := 0
		switch sort {
		case query.SortFeedback, query.SortRelevance:
			by = cmp.Compare(a.Counts.Feedback, b.Counts.Feedback)
		case query.SortUpdated:
			by = a.Updated.Time.Compare(b.Updated.Time)
		case query.SortScore:
			by = cmp.Compare(all[a.ID.Short()].score, all[b.ID.Short()].score)
		}
		by = cmp.Or(by, cmp.Compare(a.ID.ChainID, b.ID.ChainID), a.ID.TokenID.Cmp(&b.ID.TokenID))
		if desc {
			return -by
		}
		return by
	})
	return agents
}

// checkWalk walks the pages of a list.
func checkWalk(t *testing.T, db *store.DB, name string, f searchdb.AgentFilter, want []repute.Agent) {
	t.Helper()
	var got []string
	for {
		found, err := searchdb.Agents(context.Background(), db, f)
		ok(t, err)
		got = append(got, agentIDs(found.Items)...)
		if found.Total != (searchdb.Count{Value: int64(len(want))}) {
			t.Errorf("%s by %s, desc %v: total %+v, want %d", name, f.Sort, f.Desc, found.Total, len(want))
		}
		if f.After = found.Next; f.After == "" {
			break
		}
	}
	if strings.Join(got, " ") != shortIDs(want) {
		t.Errorf("%s by %s, desc %v:\n got %v\nwant %s", name, f.Sort, f.Desc, got, shortIDs(want))
	}
}
