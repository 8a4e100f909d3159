package synth

import (
	"bytes"
	"cmp"
	"maps"
	"math/big"
	"slices"
)

// Sums and votes are computed from the ratings, which are ordered by agent, client and index.

// eachAgent passes the live ratings of every agent that has some, agent by agent and client by client.
func (h *History) eachAgent(fn func(token uint32, live []*rating) error) error {
	var live []*rating
	for i := range h.ratings {
		r := &h.ratings[i]
		if r.Revoked == (point{}) {
			live = append(live, r)
		}
		if last := i == len(h.ratings)-1; len(live) > 0 && (last || h.ratings[i+1].Token != r.Token) {
			if err := fn(r.Token, live); err != nil {
				return err
			}
			live = live[:0]
		}
	}
	return nil
}

// ranks numbers the tags in the order of their hashes.
func (h *History) ranks() []int {
	order, ranks := make([]int, len(h.enc.tags)), make([]int, len(h.enc.tags))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(h.enc.tag[a][:], h.enc.tag[b][:]) })
	for i, n := range order {
		ranks[n] = i
	}
	return ranks
}

// sumKey is by what the ratings of one client for one agent are added up, and sum what they add up to.
type sumKey struct {
	tag1, tag2 uint16
	decimals   uint8
}

// sum is exact: values of a key have the same decimals.
type sum struct {
	n     uint64
	total *big.Int
}

// sumRows adds up the live ratings of every client, by tags and decimals.
func sumRows(h *History, yield yieldRow) error {
	rank := h.ranks()
	return h.eachAgent(func(token uint32, live []*rating) error {
		for len(live) > 0 {
			n := slices.IndexFunc(live, func(r *rating) bool { return r.Client != live[0].Client })
			if n < 0 {
				n = len(live)
			}
			if err := h.clientSums(live[:n], rank, yield); err != nil {
				return err
			}
			live = live[n:]
		}
		return nil
	})
}

// clientSums yields the sums of one client of one agent, in the order of the tags' texts.
func (h *History) clientSums(live []*rating, rank []int, yield yieldRow) error {
	sums := map[sumKey]*sum{}
	for _, r := range live {
		key := sumKey{r.Tag1, r.Tag2, r.Decimals}
		s := sums[key]
		if s == nil {
			s = &sum{total: new(big.Int)}
			sums[key] = s
		}
		s.n++
		s.total.Add(s.total, r.Value.big())
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b sumKey) int {
		return cmp.Or(cmp.Compare(rank[a.tag1], rank[b.tag1]), cmp.Compare(rank[a.tag2], rank[b.tag2]),
			cmp.Compare(a.decimals, b.decimals))
	})
	for _, k := range keys {
		if err := yield(id(live[0].Token), live[0].Client.raw(), h.tag(k.tag1), h.tag(k.tag2),
			uint64(k.decimals), sums[k].n, numeric(sums[k].total)); err != nil {
			return err
		}
	}
	return nil
}

// voteRows lists the newest live value of every client per tag.
func voteRows(h *History, yield yieldRow) error {
	rank := h.ranks()
	return h.eachAgent(func(token uint32, live []*rating) error {
		type key struct {
			tag    uint16
			client party
		}
		newest := map[key]*rating{}
		for _, r := range live {
			newest[key{r.Tag1, r.Client}] = r
		}
		votes := slices.SortedFunc(maps.Values(newest), func(a, b *rating) int {
			return cmp.Or(cmp.Compare(rank[a.Tag1], rank[b.Tag1]), compareParties(a.Client, b.Client))
		})
		for _, r := range votes {
			if err := yield(id(token), h.tag(r.Tag1), r.Client.raw(), uint64(r.Index), numeric(r.Value.big()),
				uint64(r.Decimals)); err != nil {
				return err
			}
		}
		return nil
	})
}
