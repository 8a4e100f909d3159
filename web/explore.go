package web

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"repute"
	"repute/web/query"
)

// exploreRows is how many agents a page of the search has.
const exploreRows = 30

// facet is one value that agents have, with how many have it.
type facet struct {
	Value string
	Count int64
}

// explored is what the search answers.
type explored struct {
	Agents struct {
		Nodes    []agentRow
		PageInfo cursor
		Total    total
		Match    *string
		Facets   struct {
			Services, Skills, Domains, SupportedTrust, Chains, Status, X402, Active []facet
		}
		AsOf []asOf
	}
}

// choice is a facet as the page offers it.
type choice struct {
	facet
	URL    string
	Chosen bool
}

// choices are all values of one filter. Name is its parameter.
type choices struct {
	Name, Title string
	List        []choice
}

// option is a value of a list that a form offers.
type option struct{ Value, Text string }

// sorts are the orders of the search.
func sorts() []option {
	return []option{{"", "best match"}, {"score", "score"}, {"feedback", "number of ratings"},
		{"updated", "last change"},
		{"id", "chain and token"}}
}

// filterOf makes the filter of the search from the parameters of the URL, which are its whole state.
func filterOf(q url.Values) (map[string]any, error) {
	filter := map[string]any{}
	for _, name := range []string{"owner", "wallet", "host", "service", "skill", "domain", "supportedTrust", "tag",
		"status",
		"rating", "registeredSince", "minPrice", "maxPrice"} {
		if v := strings.TrimSpace(q.Get(name)); v != "" {
			filter[name] = v
		}
	}
	for _, name := range []string{"x402", "active"} {
		if v := q.Get(name); v != "" {
			filter[name] = v == "true"
		}
	}
	for _, name := range []string{"minScore", "tier", "chain"} {
		v := strings.TrimSpace(q.Get(name))
		if v == "" {
			continue
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(n) || math.Abs(n) > 1<<53 || name != "minScore" && n != float64(int64(n)) {
			return nil, repute.Invalid(name, "not a number", "e.g. 20")
		}
		if name == "chain" {
			filter["chainIds"] = []int64{int64(n)}
		} else {
			filter[name] = n
		}
	}
	return filter, nil
}

// explore shows the agents that fit words and filters.
func (s *site) explore(ctx context.Context, p *page) (string, error) {
	p.Title = "Explore"
	filter, err := filterOf(p.Query)
	if err != nil {
		return "", err
	}
	sort := p.Query.Get("sort")
	words := strings.TrimSpace(p.Query.Get("q"))
	if sort == "" && words == "" {
		sort = "feedback"
	}
	e, err := ask[explored](ctx, s, p, "explore",
		query.Given(map[string]any{"query": words, "filter": filter, "sort": sort,
			"order": p.Query.Get("order"), "first": exploreRows, "after": p.Query.Get("after")}))
	if err != nil {
		return "", err
	}
	p.Body = struct {
		explored
		Words, Next string
		Sorts       []option
		Facets      []choices
		Filters     []choice
	}{e, words, nextPage(p, e.Agents.PageInfo), sorts(), facetsOf(p, e), chosen(p)}
	return "explore", nil
}

// nextPage returns the URL of the next page of a list; "" at its end.
func nextPage(p *page, c cursor) string {
	if !c.HasNextPage || c.EndCursor == nil {
		return ""
	}
	return p.With("after", *c.EndCursor)
}

// facetsOf are the filters that the page offers, with the values that are left.
func facetsOf(p *page, e explored) []choices {
	f := e.Agents.Facets
	out := []choices{
		{Name: "chain", Title: "Chain", List: offer(p, "chain", f.Chains, 10)},
		{Name: "service", Title: "Service", List: offer(p, "service", f.Services, 8)},
		{Name: "status", Title: "Document", List: offer(p, "status", f.Status, 8)},
		{Name: "supportedTrust", Title: "Trust model", List: offer(p, "supportedTrust", f.SupportedTrust, 8)},
		{Name: "skill", Title: "Skill", List: offer(p, "skill", f.Skills, 8)},
		{Name: "domain", Title: "Domain of knowledge", List: offer(p, "domain", f.Domains, 8)},
		{Name: "x402", Title: "Paid by x402", List: offer(p, "x402", f.X402, 2)},
		{Name: "active", Title: "Says it is active", List: offer(p, "active", f.Active, 2)},
	}
	return slices.DeleteFunc(out, func(c choices) bool { return len(c.List) == 0 })
}

// offer makes links of the most frequent values of a facet. The link of a chosen value removes it.
func offer(p *page, name string, values []facet, most int) []choice {
	var out []choice
	for _, f := range values[:min(most, len(values))] {
		c := choice{facet: f, Chosen: strings.EqualFold(p.Query.Get(name), f.Value), URL: p.With(name, f.Value)}
		if c.Chosen {
			c.URL = p.With(name, "")
		}
		out = append(out, c)
	}
	return out
}

// chosen are the filters of the page, each with the URL of the page without it.
func chosen(p *page) []choice {
	var out []choice
	for _, name := range []string{"chain", "service", "status", "supportedTrust", "skill", "domain", "x402", "active",
		"owner",
		"wallet", "host", "tag", "rating", "tier", "minScore", "minPrice", "maxPrice", "registeredSince"} {
		if v := p.Query.Get(name); v != "" {
			out = append(out, choice{facet: facet{Value: name + ": " + v}, URL: p.With(name, "")})
		}
	}
	return out
}
