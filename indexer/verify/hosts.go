package verify

import (
	"slices"

	"repute/indexer/node"
)

// othersThan returns the witnesses of other hosts than that of one witness.
func (v *Verifier) othersThan(by *node.Node) []*node.Node {
	return slices.DeleteFunc(slices.Clone(v.witnesses()), func(n *node.Node) bool { return n.Host() == by.Host() })
}

// hosts returns how many hosts some witnesses are of.
func hosts(nodes []*node.Node) int {
	seen := map[string]bool{}
	for _, n := range nodes {
		seen[n.Host()] = true
	}
	return len(seen)
}

// apart returns the witnesses with the first one of each host in front, so that the first few
// are of as many hosts as there are.
func apart(nodes []*node.Node) []*node.Node {
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
