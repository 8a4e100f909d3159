package witness

import (
	"slices"

	"repute/indexer/node"
)

// OthersThan returns the endpoints of other hosts than that of by.
func (s *Set) OthersThan(by *node.Node) []*node.Node {
	return slices.DeleteFunc(slices.Clone(s.nodes()), func(n *node.Node) bool { return n.Host() == by.Host() })
}

// Hosts returns the number of hosts that serve some endpoints.
func Hosts(nodes []*node.Node) int {
	seen := map[string]bool{}
	for _, n := range nodes {
		seen[n.Host()] = true
	}
	return len(seen)
}

// Apart returns the endpoints with the first one of each host in front, so that the first few are
// of as many hosts as possible.
func Apart(nodes []*node.Node) []*node.Node {
	var first, others []*node.Node
	seen := map[string]bool{}
	for _, n := range nodes {
		if seen[n.Host()] {
			others = append(others, n)
		} else {
			first = append(first, n)
		}
		seen[n.Host()] = true
	}
	return append(first, others...)
}
