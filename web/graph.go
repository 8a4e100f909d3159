package web

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"repute/web/format"
)

// maxNodes bounds the nodes of a graph.
const maxNodes = 300

// node is an address or an agent in a graph, with its place.
type node struct {
	ID     string  `json:"id"`
	Label  string  `json:"label"`
	Kind   string  `json:"kind"` // self, agent or reviewer
	URL    string  `json:"url"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Degree int     `json:"degree"`
}

// edge is the newest rating that a reviewer gave an agent.
type edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Value string `json:"-"`
	Tag   string `json:"-"`
}

// graph is the neighborhood of a reviewer.
type graph struct {
	Nodes []*node `json:"nodes"`
	Edges []edge  `json:"edges"`

	known map[string]*node
}

// add returns the node of an id, a new one unless there are too many; nil then.
func (g *graph) add(n node) *node {
	if found, known := g.known[n.ID]; known {
		return found
	}
	if len(g.Nodes) >= maxNodes {
		return nil
	}
	g.known[n.ID] = &n
	g.Nodes = append(g.Nodes, &n)
	return &n
}

// join adds an edge, the newest of each pair.
func (g *graph) join(from, to *node, value, tag string) {
	if from == nil || to == nil ||
		slices.ContainsFunc(g.Edges, func(e edge) bool { return e.From == from.ID && e.To == to.ID }) {
		return
	}
	from.Degree++
	to.Degree++
	g.Edges = append(g.Edges, edge{from.ID, to.ID, value, tag})
}

// place puts the reviewer in the middle, its agents around it, and others around these.
func (g *graph) place() {
	for kind, radius := range map[string]float64{"agent": 1, "reviewer": 2.2} {
		var ring []*node
		for _, n := range g.Nodes {
			if n.Kind == kind {
				ring = append(ring, n)
			}
		}
		for i, n := range ring {
			angle := 2 * math.Pi * float64(i) / float64(len(ring))
			n.X, n.Y = math.Round(1000*radius*math.Cos(angle))/1000, math.Round(1000*radius*math.Sin(angle))/1000
		}
	}
}

// JSON returns what a script draws.
func (g *graph) JSON() (string, error) {
	raw, err := json.Marshal(g)
	if err != nil {
		return "", fmt.Errorf("graph: %w", err)
	}
	return string(raw), nil
}

// Node returns a node by its id.
func (g *graph) Node(id string) *node { return g.known[id] }

// neighbors are the agents that a reviewer rated last, each with its newest ratings.
type neighbors struct {
	Address  string
	Feedback struct {
		Nodes []struct {
			Decimal, Tag1 string
			Agent         struct {
				ID, ShortID string
				Name        *string
				Feedback    struct {
					Nodes []struct{ Client, Decimal, Tag1 string }
				}
			}
		}
	}
}

// graphOf returns the graph of a reviewer: its edges lead to the agents that it rated, and those of other reviewers to the
// same agents.
func graphOf(n neighbors) *graph {
	g := &graph{known: map[string]*node{}}
	self := g.add(node{ID: n.Address, Label: format.Shorten(n.Address), Kind: "self", URL: prefix + "/reviewer/" + n.Address})
	for _, f := range n.Feedback.Nodes {
		a := g.add(node{ID: f.Agent.ID, Label: format.Clean(format.OrElse(f.Agent.Name, f.Agent.ShortID), 30), Kind: "agent",
			URL: prefix + "/agent/" + f.Agent.ShortID})
		g.join(self, a, f.Decimal, f.Tag1)
	}
	for _, f := range n.Feedback.Nodes {
		for _, r := range f.Agent.Feedback.Nodes {
			from := g.add(node{ID: r.Client, Label: format.Shorten(r.Client), Kind: "reviewer", URL: prefix + "/reviewer/" + r.Client})
			g.join(from, g.known[f.Agent.ID], r.Decimal, r.Tag1)
		}
	}
	g.place()
	return g
}

// neighborhood shows the agents that a reviewer rated, and their other raters.
func (s *site) neighborhood(ctx context.Context, p *page) (string, error) {
	p.Title = "Neighborhood of " + format.Shorten(format.Short(p.ID))
	n, err := ask[struct{ Client neighbors }](ctx, s, p, "neighbors", map[string]any{"address": p.ID})
	if err != nil {
		return "", err
	}
	p.Scripts = []string{"graphology.min.js", "sigma.min.js", "graph.js"}
	p.Body = struct {
		Address string
		Graph   *graph
	}{n.Client.Address, graphOf(n.Client)}
	return "graph", nil
}
