package rows

import (
	"cmp"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"repute"
	"repute/store/trustdb"
	"repute/trust/rating"
)

// tokenOf returns a token id for tests.
func tokenOf(n uint64) repute.TokenID { return *uint256.NewInt(n) }

// drawTokens draws different token ids in ascending order.
func drawTokens(t *rapid.T, name string, least int) []uint64 {
	out := rapid.SliceOfNDistinct(rapid.Uint64Range(0, 40), least, 12, rapid.ID[uint64]).Draw(t, name)
	slices.Sort(out)
	return out
}

// agentsOf returns agents with these token ids and no ratings.
func agentsOf(tokens []uint64) []agent {
	out := make([]agent, len(tokens))
	for i, token := range tokens {
		out[i] = agent{token: tokenOf(token), from: 1}
	}
	return out
}

// drawRatings draws ratings of one agent in chain order, each at a place of its own after a block.
func drawRatings(t *rapid.T, name string, after uint32) []rating.PackedRow {
	places := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 99), 0, 8, rapid.ID[uint32]).Draw(t, name)
	slices.Sort(places)
	out := make([]rating.PackedRow, len(places))
	for i, place := range places {
		out[i] = rating.PackedRow{Block: after + 1 + place/10, Log: place % 10, Writer: place, Time: 1}
	}
	return out
}

// TestDivide: every rating gets to its agent, in chain order, and an append to the ratings of one agent leaves those of
// the next one alone.
func TestDivide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Store
		agents := agentsOf(drawTokens(t, "tokens", 1))
		var all loaded
		want := make([][]rating.PackedRow, len(agents))
		for i := range agents {
			want[i] = drawRatings(t, "ratings", 0)
			for _, row := range want[i] {
				all.rows, all.agents = append(all.rows, row), append(all.agents, uint32(i))
			}
		}
		order := make([]int, len(all.rows))
		for i := range order {
			order[i] = i
		}
		order = rapid.Permutation(order).Draw(t, "order")
		mixed := loaded{make([]rating.PackedRow, len(order)), make([]uint32, len(order))}
		for to, from := range order {
			mixed.rows[to], mixed.agents[to] = all.rows[from], all.agents[from]
		}
		undated := len(order) > 0 && rapid.Bool().Draw(t, "undated")
		if undated {
			mixed.rows[0].Time = 0
			row := mixed.rows[0]
			at, _ := slices.BinarySearchFunc(want[mixed.agents[0]], row, inChain)
			want[mixed.agents[0]][at].Time = 0
		}
		s.divide(agents, mixed)
		for i := range agents {
			if !slices.Equal(agents[i].ratings, want[i]) {
				t.Fatalf("agent %d has %v, want %v", i, agents[i].ratings, want[i])
			}
			is := slices.ContainsFunc(want[i], func(r rating.PackedRow) bool { return r.Time == 0 })
			if agents[i].undated != is {
				t.Fatalf("agent %d is undated: %t", i, agents[i].undated)
			}
			_ = append(agents[i].ratings, rating.PackedRow{Block: 9999})
		}
		for i := range agents {
			if !slices.Equal(agents[i].ratings, want[i]) {
				t.Fatalf("an append to another agent changed the ratings of agent %d", i)
			}
		}
	})
}

// TestGrowth: an agent's ratings are the earlier ones without those that were revoked, and then the later ones. Readers
// that have the earlier ones do not see a change, however often the agent grows.
func TestGrowth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Store
		s.agents = agentsOf([]uint64{7})
		token := s.agents[0].token
		s.agents[0].ratings = slices.Clip(drawRatings(t, "first", 0))
		s.ratings = len(s.agents[0].ratings)
		model := slices.Clone(s.agents[0].ratings)
		var seen, copies [][]rating.PackedRow
		for round := range rapid.IntRange(1, 6).Draw(t, "rounds") {
			was := s.agents[0].ratings
			seen, copies = append(seen, was), append(copies, slices.Clone(was))
			var gone []trustdb.LogAt
			model = slices.DeleteFunc(model, func(r rating.PackedRow) bool {
				revoked := rapid.IntRange(0, 3).Draw(t, "revoked") == 0
				if revoked {
					gone = append(gone, trustdb.LogAt{Block: uint64(r.Block), LogIndex: r.Log})
				}
				return revoked
			})
			if !s.agents[0].has(gone) {
				t.Fatalf("the agent does not have %v", gone)
			}
			later := drawRatings(t, "later", uint32(100*(round+1)))
			changed := agentsOf([]uint64{7})
			changed[0].ratings = slices.Clip(later)
			s.prepend(changed, []repute.TokenID{token}, map[repute.TokenID][]trustdb.LogAt{token: gone})
			s.merge(changed)
			if model = append(model, later...); !slices.Equal(s.agents[0].ratings, model) {
				t.Fatalf("round %d: %v, want %v", round, s.agents[0].ratings, model)
			}
			if !slices.IsSortedFunc(s.agents[0].ratings, inChain) {
				t.Fatal("they are not in chain order")
			}
			for i := range seen {
				if !slices.Equal(seen[i], copies[i]) {
					t.Fatalf("a reader of round %d sees a change in round %d", i, round)
				}
			}
		}
		if s.reread > s.ratings {
			t.Fatalf("%d of %d ratings left the first list", s.reread, s.ratings)
		}
	})
}

// TestHas: an agent that lacks a revoked rating must be read again, wherever the rating was.
func TestHas(t *testing.T) {
	t.Parallel()
	a := agent{ratings: []rating.PackedRow{{Block: 5, Log: 2}, {Block: 5, Log: 4}, {Block: 9}}}
	for _, at := range []trustdb.LogAt{{Block: 5, LogIndex: 2}, {Block: 5, LogIndex: 4}, {Block: 9}} {
		if !a.has([]trustdb.LogAt{at}) {
			t.Errorf("it has no rating at %+v", at)
		}
	}
	for _, at := range []trustdb.LogAt{{Block: 4, LogIndex: 2}, {Block: 5, LogIndex: 3}, {Block: 5}, {Block: 10},
		{Block: 5 + 1<<32, LogIndex: 2}} {
		if a.has([]trustdb.LogAt{{Block: 9}, at}) {
			t.Errorf("it has a rating at %+v", at)
		}
		if got := a.without([]trustdb.LogAt{at}); !slices.Equal(got, a.ratings) {
			t.Errorf("without one at %+v: %v", at, got)
		}
	}
	if got := (&agent{}).without([]trustdb.LogAt{{Block: 1}}); len(got) != 0 {
		t.Errorf("an agent without ratings: %v", got)
	}
}

// TestMerge: agents that are read again replace those that the store has, and new ones come to their place.
func TestMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		had, read := drawTokens(t, "had", 0), drawTokens(t, "read", 0)
		var s Store
		s.agents = agentsOf(had)
		changed := agentsOf(read)
		for i := range changed {
			changed[i].from = 2
		}
		s.merge(changed)
		want := slices.Clone(had)
		for _, token := range read {
			if !slices.Contains(want, token) {
				want = append(want, token)
			}
		}
		slices.Sort(want)
		if len(s.agents) != len(want) {
			t.Fatalf("%d agents of %v and %v", len(s.agents), had, read)
		}
		for i, a := range s.agents {
			if from := a.from == 2; a.token != tokenOf(want[i]) || from != slices.Contains(read, want[i]) {
				t.Fatalf("place %d of %v and %v has %+v", i, had, read, a)
			}
			if found := s.find(a.token); found != &s.agents[i] {
				t.Fatalf("agent %d is not found", want[i])
			}
		}
	})
}

// TestFindAfter: wherever an agent is expected, the place of a token id is the same.
func TestFindAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tokens := drawTokens(t, "tokens", 0)
		d := data{agents: agentsOf(tokens)}
		token := rapid.Uint64Range(0, 41).Draw(t, "token")
		want, found := slices.BinarySearch(tokens, token)
		expected := rapid.IntRange(0, len(tokens)+2).Draw(t, "expected")
		if got := d.findAfter(expected, tokenOf(token)); got != want {
			t.Fatalf("%d in %v, expected after %d, is at %d, want %d", token, tokens, expected, got, want)
		}
		if at := d.find(tokenOf(token)); (at != nil) != found {
			t.Fatalf("%d in %v: %v", token, tokens, at)
		}
	})
}

// TestOwners: agents are listed owner by owner, in the order of the owners' addresses, each once.
func TestOwners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Store{data: data{numbers: newNumbers()}}
		s.agents = agentsOf(drawTokens(t, "tokens", 0))
		owners := make([]common.Address, len(s.agents))
		for i := range s.agents {
			owners[i] = common.Address{byte(rapid.IntRange(1, 4).Draw(t, "owner"))}
			first := owners[i]
			if rapid.Bool().Draw(t, "moved") {
				first = common.Address{0: 9, 19: byte(i)}
				s.agents[i].subject = &trustdb.Subject{Owner: owners[i]}
				s.numbers.addresses.Add(owners[i])
			}
			s.agents[i].owner = s.numbers.addresses.Add(first)
		}
		order, first := s.byOwner()
		if len(order) != len(owners) || int(first[len(first)-1]) != len(owners) {
			t.Fatalf("%d of %d agents, %v", len(order), len(owners), first)
		}
		var last common.Address
		seen := map[uint32]bool{}
		for n := range len(first) - 1 {
			owner := owners[order[first[n]]]
			if n > 0 && owner.Cmp(last) <= 0 {
				t.Fatalf("%s comes after %s", owner, last)
			}
			last = owner
			for _, i := range order[first[n]:first[n+1]] {
				if owners[i] != owner || seen[i] {
					t.Fatalf("agent %d is listed with owner %s, or twice", i, owner)
				}
				seen[i] = true
			}
		}
	})
}

// TestChainOrder: ratings are ordered by block and then by log, also where the difference exceeds 31 bits.
func TestChainOrder(t *testing.T) {
	t.Parallel()
	draw := rapid.Uint32()
	rapid.Check(t, func(t *rapid.T) {
		a := rating.PackedRow{Block: draw.Draw(t, "block"), Log: draw.Draw(t, "log")}
		b := rating.PackedRow{Block: draw.Draw(t, "other block"), Log: draw.Draw(t, "other log")}
		if rapid.Bool().Draw(t, "same block") {
			b.Block = a.Block
		}
		want := cmp.Compare(uint64(a.Block)<<32|uint64(a.Log), uint64(b.Block)<<32|uint64(b.Log))
		if inChain(a, b) != want || inChain(b, a) != -want {
			t.Fatalf("%+v, %+v: %d", a, b, inChain(a, b))
		}
	})
}
