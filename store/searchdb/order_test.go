package searchdb

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/holiman/uint256"
	"pgregory.net/rapid"
)

// drawStreams draws agents of several chains, each chain in the order of its statement.
func drawStreams(t *rapid.T, desc bool) map[uint64][]agentEntry {
	streams := map[uint64][]agentEntry{}
	for _, chain := range []uint64{1, 5, 9} {
		var list []agentEntry
		for token, key := range rapid.SliceOfN(rapid.Int64Range(0, 3), 0, 8).Draw(t, fmt.Sprint("chain ", chain)) {
			e := agentEntry{key: key}
			e.id.ChainID, e.id.TokenID = chain, *uint256.NewInt(uint64(token))
			e.pos = agentPos{Key: key, Token: e.id.TokenID.Dec()}
			list = append(list, e)
		}
		slices.SortFunc(list, func(a, b agentEntry) int { return inOrderOf(a, b, desc) })
		streams[chain] = list
	}
	return streams
}

// inOrderOf compares agents by key, chain and token.
func inOrderOf(a, b agentEntry, desc bool) int {
	order := cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.id.ChainID, b.id.ChainID), a.id.TokenID.Cmp(&b.id.TokenID))
	if desc {
		return -order
	}
	return order
}

// A reader who follows the cursors sees every agent once, in one order over all chains, whatever the size of the page.
func TestPagesMergeChains(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		desc, limit := rapid.Bool().Draw(t, "desc"), rapid.IntRange(1, 5).Draw(t, "limit")
		all := drawStreams(t, desc)
		var want, got []agentEntry
		for _, list := range all {
			want = append(want, list...)
		}
		slices.SortFunc(want, func(a, b agentEntry) int { return inOrderOf(a, b, desc) })
		var from map[uint64]agentPos
		for more := true; more; {
			next := map[uint64][]agentEntry{} // what the statement returns: one more than the page of each chain
			for chain, list := range all {
				if p, begun := from[chain]; begun {
					at := slices.IndexFunc(list, func(e agentEntry) bool { return e.pos == p })
					list = list[at+1:]
				}
				next[chain] = list[:min(len(list), limit+1)]
			}
			var page []agentEntry
			page, from, more = mergeStreams(next, limit, desc, from)
			if len(page) > limit || more && len(page) < limit {
				t.Fatalf("a page of %d has %d agents, more %t", limit, len(page), more)
			}
			got = append(got, page...)
		}
		if !slices.EqualFunc(got, want, func(a, b agentEntry) bool { return a.id == b.id }) {
			t.Fatalf("pages have %v, not %v", got, want)
		}
	})
}
