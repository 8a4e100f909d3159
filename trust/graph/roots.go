package graph

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// RootsAt are the roots of a set that pass trust on at a block's time: those that have not
// expired and are no reviewed writers. Each address stands once.
func RootsAt(set []repute.TrustRoot, at time.Time) []flow.Root {
	heaviest := map[common.Address]uint64{}
	for _, r := range set {
		if r.Class == "" && (r.Expires.IsZero() || at.Before(r.Expires)) {
			heaviest[r.Address] = max(heaviest[r.Address], r.Weight)
		}
	}
	roots := make([]flow.Root, 0, len(heaviest))
	for a, w := range heaviest {
		roots = append(roots, flow.Root{Address: a, Weight: fixed.Ratio(int64(w), repute.RootUnit)})
	}
	slices.SortFunc(roots, func(a, b flow.Root) int { return a.Address.Cmp(b.Address) })
	return roots
}

// LinksOf puts stored links into the terms of a graph.
func LinksOf(stored []repute.TrustLink) []Link {
	links := make([]Link, len(stored))
	for i, l := range stored {
		links[i] = Link{l.A, l.B}
	}
	return links
}

// Link makes two addresses one identity, by evidence from outside the chain.
type Link struct{ A, B common.Address }
