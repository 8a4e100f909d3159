package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute/api"
	"repute/api/batch"
	"repute/api/wire"
	"repute/internal/httpapi"
)

// A comparison shows of each agent what its own routes show, and every difference is one that the numbers have.
func TestCompareEqualsSingleAnswers(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	rapid.Check(t, func(r *rapid.T) {
		agents := rapid.SliceOfNDistinct(rapid.IntRange(0, scoredAgents-1), 2, 5, rapid.ID[int]).Draw(r, "agents")
		var ids []string
		for _, n := range agents {
			ids = append(ids, fmt.Sprintf("%d:%d", scoredChain, n))
		}
		got := as[batch.Comparison](t, get(t, s, "/compare?ids="+strings.Join(ids, ",")))
		if len(got.Agents) != len(agents) || len(got.AsOf) != 1 {
			r.Fatalf("%+v", got)
		}
		statuses := map[string]bool{}
		for i, c := range got.Agents {
			one := as[batch.ReputationAnswer](t, get(t, s, scoredPath(agents[i], "")))
			if string(c.ShortID) != ids[i] || c.Standing != one.Standing || c.Sentence != one.Sentence ||
				c.Reviewers != one.Counts.Clients || c.Ratings != one.Counts.Feedback || len(c.Tags) != len(one.Tags) {
				r.Errorf("%s: %+v\nwant %+v", ids[i], c, one)
			}
			for _, g := range one.Gates {
				lacks := slices.ContainsFunc(c.Lacks, func(l wire.Gate) bool { return l.ID == g.ID })
				if g.Direction == "admits" && lacks == g.Passed ||
					g.Direction != "admits" && slices.Contains(c.KeptOut, g.ID) != g.Passed {
					r.Errorf("%s, gate %s: %+v", ids[i], g.ID, c)
				}
			}
			statuses[c.Status] = true
		}
		for _, d := range got.Differences {
			if d.Sentence == "" || d.Best != nil &&
				!slices.ContainsFunc(got.Agents, func(c batch.ComparedAgent) bool { return c.Agent == *d.Best }) {
				r.Errorf("%+v", d)
			}
		}
		if differs := slices.ContainsFunc(got.Differences,
			func(d batch.Difference) bool { return d.What == "status" }); differs != (len(statuses) > 1) {
			r.Errorf("statuses %v: %+v", statuses, got.Differences)
		}
	})
}

// Services, prices and manifests are compared where they are known.
func TestComparePrices(t *testing.T) {
	t.Parallel()
	db, _ := sold(t)
	s := serve(t, api.Options{DB: db}, unlimited())
	r := get(t, s, "/compare?ids=99:0,99:1")
	got := as[batch.Comparison](t, r)
	if a := got.Agents[0]; a.Manifest == nil || a.Manifest.Domain != "cheap.example" || len(a.Prices) != 2 ||
		*a.Prices[0].Price != "0.1" || a.Prices[1].Price != nil || *a.Name != "Ada" || len(a.Services) != 1 {
		t.Errorf("%+v", a)
	}
	i := slices.IndexFunc(got.Differences, func(d batch.Difference) bool { return d.What == "price" })
	if i < 0 || *got.Differences[i].Best != got.Agents[0].Agent ||
		got.Differences[i].Sentence != `99:0 asks 0.1 USD for its cheapest intent, "book_flight"; 99:1 asks 5 USD for its cheapest intent, "book_flight"` {
		t.Errorf("%+v", got.Differences)
	}
	if again := get(t, s, "/compare?ids=99:0,99:1", "If-None-Match",
		r.header.Get("ETag")); again.status != http.StatusNotModified {
		t.Errorf("status %d with the ETag", again.status)
	}
	graph := data[struct{ Compare batch.Comparison }](t, ask(t, s, `query($ids: [ID!]!) { compare(ids: $ids) {
		agents { agent shortId name score low high confidence status tier sentence reason reviewers ratings
			tags { tag count } lacks { id lacks { what have need } } keptOut services { name endpoint version } x402Support
			manifest { domain tier verifiedTier intents price how proven } prices { intent price networks } }
		differences { what best sentence } asOf { chainId block } } }`, map[string]any{"ids": []string{"99:0", "99:1"}})).Compare
	mine, _ := json.Marshal(graph.Differences)
	theirs, _ := json.Marshal(got.Differences)
	if string(mine) != string(theirs) || len(graph.Agents) != 2 || graph.Agents[1].Manifest.Domain != "dear.example" ||
		*graph.Agents[1].Prices[0].Price != "5" || graph.Agents[0].Sentence != got.Agents[0].Sentence {
		t.Errorf("%s, REST %s", mine, theirs)
	}
	for path, field := range map[string]string{
		"/compare":                                       "ids",
		"/compare?ids=":                                  "ids",
		"/compare?ids=99:0":                              "ids",
		"/compare?ids=99:0,99:0":                         "ids",
		"/compare?ids=1,2,3,4,5,6":                       "ids",
		"/compare?ids=99:0,":                             "id",
		"/compare?ids=99:0,%00":                          "id",
		"/compare?ids=99:0,x%27--":                       "id",
		"/compare?ids=99:0,99:1&at=5":                    "at",
		"/compare?ids=99:0&ids=99:1":                     "ids",
		"/compare?ids=99:0," + strings.Repeat("9", 8000): "id",
	} {
		if p := problemOf(t, get(t, s, path)); p.Status != http.StatusBadRequest || len(p.Errors) != 1 ||
			p.Errors[0].Field != field {
			t.Errorf("%.60s: %+v", path, p)
		}
	}
	if p := problemOf(t, get(t, s, "/compare?ids=99:0,99:7")); p.Status != http.StatusNotFound || p.Hint == "" {
		t.Errorf("%+v", p)
	}
}

// A badge shows the score, may be cached, and says so where there is no such agent.
func TestBadge(t *testing.T) {
	t.Parallel()
	s, _ := scoredWorld(t, httpapi.Limits{Rate: -1})
	for n := range scoredAgents {
		one := as[batch.ReputationAnswer](t, get(t, s, scoredPath(n, "")))
		want := map[string]string{"rated": fmt.Sprintf("%.1f · tier %d", one.Score, one.Tier),
			"thin": fmt.Sprintf("%.1f · thin", one.Score), "unrated": "unrated"}[one.Status]
		r := get(t, s, fmt.Sprintf("/agents/%d:%d/badge.svg", scoredChain, n))
		if r.status != http.StatusOK || !strings.Contains(string(r.body), ">"+want+" · stale<") ||
			!strings.Contains(string(r.body), ">trust<") ||
			r.header.Get("Content-Type") != "image/svg+xml" || r.header.Get("Cache-Control") != "public, max-age=300" ||
			r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d: %d %v\n%s\nwant %s", n, r.status, r.header, r.body, want)
		}
		if again := get(t, s, fmt.Sprintf("/agents/%d/%d/badge.svg", scoredChain, n), "If-None-Match",
			r.header.Get("ETag")); again.status != http.StatusNotModified {
			t.Errorf("status %d with the ETag", again.status)
		}
	}
	for _, path := range []string{"/agents/31337:99/badge.svg", "/agents/5:1/badge.svg"} {
		if r := get(t, s, path); r.status != http.StatusNotFound || !strings.Contains(string(r.body), ">unknown<") ||
			r.header.Get("Content-Type") != "image/svg+xml" {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	label := `"><script>alert(1)</script>`
	if r := get(t, s, "/agents/31337:1/badge.svg"+query("label", label)); r.status != http.StatusOK ||
		strings.Contains(string(r.body), "<script") ||
		!strings.Contains(string(r.body), "&lt;script&gt;") {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, bad := range []string{"label=", "label=a%00", "label=%ff", "label=" + strings.Repeat("x", 41),
		"label=" + strings.Repeat("x", 8000),
		"label=a&label=b", "style=flat"} {
		if p := problemOf(t, get(t, s, "/agents/31337:1/badge.svg?"+bad)); p.Status != http.StatusBadRequest ||
			p.Errors[0].Field != strings.Split(bad, "=")[0] {
			t.Errorf("%.40s: %+v", bad, p)
		}
	}
	if p := problemOf(t, get(t, s, "/agents/x/badge.svg")); p.Status != http.StatusBadRequest {
		t.Errorf("%+v", p)
	}
}
