// Package graph builds a graph of at most MaxNodes agents, addresses and domains around one of them, and gives each a
// place. A script draws it and a table lists it, so that a reader without the script has the same.
//
// Nodes are added in the order of their importance, because a full graph leaves out what comes later, and says so
// (Full). Places follow from the kinds and the order alone: the same neighborhood looks the same each time.
package graph

import (
	"encoding/json"
	"fmt"
	"math"
)

// MaxNodes bounds the nodes of a graph.
const MaxNodes = 300

// Kind is what a node is, which decides its color and its place.
type Kind string

// Kinds of nodes.
const (
	Self     Kind = "self"     // what the graph is about, in the middle
	Agent    Kind = "agent"    // around it
	Owner    Kind = "owner"    // around the agents
	Reviewer Kind = "reviewer" // around the owners
)

// Node is an address, an agent or a domain, with its place.
type Node struct {
	ID     string  `json:"id"`
	Label  string  `json:"label"`
	Kind   Kind    `json:"kind"`
	URL    string  `json:"url"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Degree int     `json:"degree"`
}

// Edge is a relation of one node to another.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Relation is a phrase with a verb, such as rated or owns.
	Relation string `json:"-"`
	Value    string `json:"-"`
	Tag      string `json:"-"`
}

// Graph is the neighborhood of a node. Make one with New.
type Graph struct {
	Nodes []*Node
	Edges []Edge
	// Full reports whether a node was left out because there were too many.
	Full bool

	known  map[string]*Node
	joined map[edgeKey]bool
}

// edgeKey identifies an edge: there is one for each relation of two nodes.
type edgeKey struct{ from, to, relation string }

// New returns a graph of one node, which it is about.
func New(self Node) *Graph {
	g := &Graph{known: map[string]*Node{}, joined: map[edgeKey]bool{}}
	self.Kind = Self
	g.Add(self)
	return g
}

// Add returns the node of an id, a new one unless there are too many; nil then.
func (g *Graph) Add(n Node) *Node {
	if found, known := g.known[n.ID]; known {
		return found
	}
	if len(g.Nodes) >= MaxNodes {
		g.Full = true
		return nil
	}
	g.known[n.ID] = &n
	g.Nodes = append(g.Nodes, &n)
	return &n
}

// Join adds an edge, the first of each pair and relation, and none from or to a node that was left out.
func (g *Graph) Join(from, to *Node, relation, value, tag string) {
	if from == nil || to == nil {
		return
	}
	key := edgeKey{from.ID, to.ID, relation}
	if g.joined[key] {
		return
	}
	g.joined[key] = true
	from.Degree++
	to.Degree++
	g.Edges = append(g.Edges, Edge{from.ID, to.ID, relation, value, tag})
}

// Node returns a node by its id; nil where the graph has none.
func (g *Graph) Node(id string) *Node { return g.known[id] }

// Place puts the nodes of each kind on a ring around the first node, which the graph describes.
func (g *Graph) Place() {
	for kind, radius := range map[Kind]float64{Agent: 1, Owner: 1.6, Reviewer: 2.2} {
		var ring []*Node
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

// JSON returns what a script draws: each pair of nodes is joined once.
func (g *Graph) JSON() (string, error) {
	drawn := struct {
		Nodes []*Node `json:"nodes"`
		Edges []Edge  `json:"edges"`
	}{g.Nodes, []Edge{}}
	pairs := map[[2]string]bool{}
	for _, e := range g.Edges {
		if pair := [2]string{e.From, e.To}; !pairs[pair] {
			pairs[pair] = true
			drawn.Edges = append(drawn.Edges, e)
		}
	}
	raw, err := json.Marshal(drawn)
	if err != nil {
		return "", fmt.Errorf("graph: %w", err)
	}
	return string(raw), nil
}
