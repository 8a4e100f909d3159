package web

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// TestGraphIsBounded: however much a reviewer rated, a graph has no more than three hundred nodes, and edges between
// nodes that it has alone.
func TestGraphIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := neighbors{Address: "self"}
		hex := rapid.StringMatching(`0x[0-9a-f]{1,3}`)
		for range rapid.IntRange(0, 60).Draw(t, "agents") {
			row := n.Feedback.Nodes
			row = append(row, struct {
				Decimal, Tag1 string
				Agent         struct {
					ID, ShortID string
					Name        *string
					Feedback    struct {
						Nodes []struct{ Client, Decimal, Tag1 string }
					}
				}
			}{})
			last := &row[len(row)-1]
			last.Agent.ID = "agent" + hex.Draw(t, "agent")
			for range rapid.IntRange(0, 15).Draw(t, "others") {
				last.Agent.Feedback.Nodes = append(last.Agent.Feedback.Nodes, struct{ Client, Decimal, Tag1 string }{hex.Draw(t, "client"), "1", ""})
			}
			n.Feedback.Nodes = row
		}
		g := graphOf(n)
		if len(g.Nodes) > maxNodes {
			t.Fatalf("%d nodes", len(g.Nodes))
		}
		pairs := map[[2]string]bool{}
		for _, e := range g.Edges {
			if g.Node(e.From) == nil || g.Node(e.To) == nil || pairs[[2]string{e.From, e.To}] {
				t.Fatalf("edge %v", e)
			}
			pairs[[2]string{e.From, e.To}] = true
		}
		if _, err := g.JSON(); err != nil {
			t.Fatal(err)
		}
	})
}
