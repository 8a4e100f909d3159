package web

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute/web/graph"
	"repute/web/query"
)

// TestDocumentsAreNamed: each document has one named operation with a sentence above it, has all of its fragments, and
// every fragment is used.
func TestDocumentsAreNamed(t *testing.T) {
	t.Parallel()
	documents, err := query.Read(files)
	if err != nil || len(documents) == 0 {
		t.Fatal(len(documents), err)
	}
	operation := regexp.MustCompile(`(?m)^query ([A-Z]\w*)`)
	names, all := map[string]bool{}, ""
	for file, text := range documents {
		found := operation.FindAllStringSubmatch(text, -1)
		if len(found) != 1 || names[found[0][1]] || !strings.HasPrefix(text, "# ") {
			t.Errorf("%s: %v", file, found)
			continue
		}
		names[found[0][1]] = true
		all += text
	}
	fragments, err := fs.Glob(files, "queries/fragments/*.graphql")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fragments {
		name := strings.TrimSuffix(strings.TrimPrefix(f, "queries/fragments/"), ".graphql")
		if !strings.Contains(all, "fragment "+name+" on ") {
			t.Errorf("%s is not used", f)
		}
	}
}

// TestHeadingsOfRowsHaveTexts: what others wrote may be empty, so a row is never headed by it alone: the template
// "named" says that it is.
func TestHeadingsOfRowsHaveTexts(t *testing.T) {
	t.Parallel()
	alone := regexp.MustCompile(`<th scope="row"[^>]*>(<a [^>]*>)?(<bdi>|\{\{template "say")`)
	named := 0
	err := fs.WalkDir(files, "templates", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		for _, found := range alone.FindAllString(string(text), -1) {
			t.Errorf("%s: %s may be empty", path, found)
		}
		named += strings.Count(string(text), `{{template "named"`)
		return err
	})
	if err != nil || named == 0 {
		t.Fatalf("%d headings of foreign texts: %v", named, err)
	}
	var out strings.Builder
	pages, err := new(site).readTemplates()
	if err != nil {
		t.Fatal(err)
	}
	if err := pages["agent"].ExecuteTemplate(&out, "named", ""); err != nil ||
		out.String() != `<span class="soft">empty</span>` {
		t.Errorf("an empty text is %q: %v", out.String(), err)
	}
}

// TestNeighborhoodsAreBounded: however much there is around a reviewer, a validator or a domain, a graph has no more
// than three hundred nodes, edges between nodes that it has alone, each pair and relation once, and says whether any is
// left out.
func TestNeighborhoodsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hex := rapid.StringMatching(`0x[0-9a-f]{1,3}`)
		agents := make([]neighborAgent, rapid.IntRange(0, 60).Draw(t, "agents"))
		for i := range agents {
			a := &agents[i]
			a.ID, a.Owner = "agent"+hex.Draw(t, "agent"), hex.Draw(t, "owner")
			a.Feedback.PageInfo.HasNextPage = rapid.Bool().Draw(t, "more")
			for range rapid.IntRange(0, 15).Draw(t, "others") {
				a.Feedback.Nodes = append(a.Feedback.Nodes,
					struct{ Client, Decimal, Tag1 string }{hex.Draw(t, "client"), "1", ""})
			}
		}
		self := hex.Draw(t, "self")
		var r reviewerNeighbors
		var v validatorNeighbors
		var d domainNeighbors
		r.Address, v.Address = self, self
		r.Feedback.Nodes = slices.Grow(r.Feedback.Nodes, len(agents))[:len(agents)]
		v.Validations.Nodes = slices.Grow(v.Validations.Nodes, len(agents))[:len(agents)]
		d.Agents.Nodes = slices.Grow(d.Agents.Nodes, len(agents))[:len(agents)]
		for i, a := range agents {
			r.Feedback.Nodes[i].Agent, v.Validations.Nodes[i].Agent, d.Agents.Nodes[i].neighborAgent = a, a, a
		}
		checkNeighborhood(t, aroundReviewer(r), agents, false)
		checkNeighborhood(t, aroundValidator(v), agents, true)
		checkNeighborhood(t, aroundDomain("shop.example", d), agents, true)
	})
}

// checkNeighborhood checks a neighborhood against the agents that it was made of.
func checkNeighborhood(t *rapid.T, n *neighborhood, agents []neighborAgent, owners bool) {
	g := n.Graph
	if len(g.Nodes) > graph.MaxNodes {
		t.Fatalf("%d nodes", len(g.Nodes))
	}
	joined := map[[3]string]bool{}
	for _, e := range g.Edges {
		key := [3]string{e.From, e.To, e.Relation}
		if g.Node(e.From) == nil || g.Node(e.To) == nil || joined[key] || e.Relation == "owns" && !owners {
			t.Fatalf("edge %v", e)
		}
		joined[key] = true
	}
	wanted, cut := map[string]bool{n.Name: true}, map[string]bool{}
	first := map[string]neighborAgent{}
	for _, a := range agents {
		if _, known := first[a.ID]; !known {
			first[a.ID] = a
		}
	}
	for id, a := range first {
		if g.Node(id) == nil {
			t.Fatalf("agent %s is left out", id)
		}
		wanted[id] = true
		if cut[id] = a.Feedback.PageInfo.HasNextPage; owners {
			wanted[a.Owner] = true
		}
		for _, r := range a.Feedback.Nodes {
			wanted[r.Client] = true
		}
	}
	missing := 0
	for id := range wanted {
		if g.Node(id) == nil {
			missing++
		}
	}
	if (missing > 0) != g.Full || missing > 0 && len(g.Nodes) != graph.MaxNodes ||
		missing == 0 && len(g.Nodes) != len(wanted) {
		t.Fatalf("%d of %d nodes are missing; the graph says %v", missing, len(wanted), g.Full)
	}
	more := int64(0)
	for _, has := range cut {
		if has {
			more++
		}
	}
	if n.Unfollowed != more {
		t.Fatalf("%d agents have more ratings, %d are said to", more, n.Unfollowed)
	}
	checkDrawn(t, g)
}

// checkDrawn checks what a script gets: nodes at places that are apart from the middle, and no pair of nodes twice.
func checkDrawn(t *rapid.T, g *graph.Graph) {
	text, err := g.JSON()
	var drawn struct {
		Nodes []struct {
			Kind string
			X, Y float64
		}
		Edges []struct{ From, To string }
	}
	if err = cmp.Or(err, json.Unmarshal([]byte(text), &drawn)); err != nil || len(drawn.Nodes) != len(g.Nodes) {
		t.Fatalf("%v: %s", err, text)
	}
	pairs := map[[2]string]bool{}
	for _, e := range drawn.Edges {
		if pair := [2]string{e.From, e.To}; pairs[pair] {
			t.Fatalf("%v is drawn twice", pair)
		} else {
			pairs[pair] = true
		}
	}
	for i, n := range drawn.Nodes {
		if atMiddle := n.X == 0 && n.Y == 0; atMiddle != (i == 0) || (n.Kind == "self") != (i == 0) {
			t.Fatalf("node %d: %+v", i, n)
		}
	}
}

// TestDomainsConfirm: a domain confirms an agent by its own file; a file of a host below it names that host, which may
// be somebody else's.
func TestDomainsConfirm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ domain, verdict, want string }{{"shop.example", "proven", "confirmed"},
		{"api.shop.example", "proven", "confirmed by api.shop.example"}, {"shop.example", "refused", "not confirmed"},
		{"shop.example", "unavailable", "not confirmed"}, {"myshop.example", "proven", "not confirmed"},
		{"example", "proven", "not confirmed"}} {
		if got := confirmed("shop.example", []struct{ Domain, Verdict string }{{c.domain, c.verdict}}); got != c.want {
			t.Errorf("%s %s: %s", c.domain, c.verdict, got)
		}
	}
}
