package trust

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// crowded is evidence with ratings by few raters in few blocks, so that bursts, repetitions, and ratings by the agent's
// own addresses are frequent; and the same ratings packed.
func crowded(t *rapid.T, w *world) (single, packed Evidence) {
	single = w.evidence()
	single.Named = append(single.Named, address(3))
	single.Since = 2
	single.Rows = nil
	p := &rating.Packing{}
	writers := rapid.IntRange(2, 30).Draw(t, "raters")
	for i := range writers {
		p.Raters = append(p.Raters, address(i))
	}
	p.Raters = append(p.Raters, single.Owner)
	for i := range p.Raters {
		p.Nodes = append(p.Nodes, w.walk().Graph().Node(p.Raters[i]))
	}
	values := []int64{95, 20, 0, 1000, 5}
	tags := []string{"starred", "quality", "no such tag"}
	for v, value := range values {
		for g, tag := range tags {
			r := row(0, value, 0)
			r.Tag1 = tag
			p.Kinds = append(p.Kinds, rating.PackedKind{Said: w.params.Said(&r), Text: uint32(v*len(tags) + g),
				Via: uint32(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "gateway"))})
		}
	}
	p.Expand = func(of *rating.PackedRow, to *rating.Row) {
		*to = row(0, values[int(of.Kind)/len(tags)], 0)
		to.Tag1, to.Rater, to.Writer = tags[int(of.Kind)%len(tags)], p.Raters[of.Writer], of.Writer+1
		to.Block, to.LogIndex, to.Time, to.Content = uint64(of.Block), of.Log, int64(of.Time), [32]byte{31: byte(of.Content)}
		if via := p.Kinds[of.Kind].Via; via > 0 {
			to.Via = p.Raters[via-1]
		}
	}
	packed = single
	block := uint32(1)
	for i := range rapid.IntRange(1, 60).Draw(t, "ratings") {
		block += uint32(rapid.IntRange(0, 1).Draw(t, "step"))
		one := rating.PackedRow{Writer: rapid.Uint32Range(0, uint32(len(p.Raters)-1)).Draw(t, "rater"), Block: block,
			Log:     uint32(i),
			Kind:    rapid.Uint32Range(0, uint32(len(p.Kinds)-1)).Draw(t, "kind"),
			Content: rapid.Uint32Range(0, 1).Draw(t, "content"),
			Time:    uint32(testTime - rapid.Int64Range(-1, 90).Draw(t, "days")*testDay)}
		if rapid.IntRange(0, 9).Draw(t, "dated") == 0 {
			one.Time = 0
		}
		var r rating.Row
		p.Expand(&one, &r)
		packed.Packed, single.Rows = append(packed.Packed, one), append(single.Rows, r)
	}
	p.Judge(w.params, single.Scales)
	packed.Packing = p
	return single, packed
}

// Packed ratings give the score, the penalties and the identities of the same ratings as single rows, also in memory
// that earlier results leave.
func TestPackedRowsScoreAsSingleOnes(t *testing.T) {
	w := newWorld()
	scorer, alone := NewScorer(w.walk(), w.params), NewScorer(w.walk(), w.params)
	spare := &Result{}
	rapid.Check(t, func(t *rapid.T) {
		single, packed := crowded(t, w)
		want := alone.Score(single)
		if got := scorer.Score(packed); !reflect.DeepEqual(got, want) {
			t.Fatalf("packed: %+v\nwant %+v", got, want)
		}
		if scorer.ScoreInto(spare, packed); !reflect.DeepEqual(*spare, want) {
			t.Fatalf("into a spare result: %+v\nwant %+v", *spare, want)
		}
		if rapid.Bool().Draw(t, "keep") {
			scorer.Keep()
			kept := spare
			spare = &Result{}
			scorer.ScoreInto(spare, Evidence{Agent: packed.Agent, Block: packed.Block, Weights: w.walk()})
			if !reflect.DeepEqual(*kept, want) {
				t.Fatalf("a kept result became %+v\nwant %+v", *kept, want)
			}
		}
		got, expected := scorer.Penalties(packed, &want), alone.Penalties(single, &want)
		if len(got)+len(expected) > 0 && !reflect.DeepEqual(got, expected) {
			t.Fatalf("penalties %+v, want %+v", got, expected)
		}
	})
}

// An account of packed ratings, to which later ratings are added as single rows, gives the score of all of them.
func TestAccountOfPackedRowsGrows(t *testing.T) {
	w := newWorld()
	scorer := NewScorer(w.walk(), w.params)
	grown, removed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		single, packed := crowded(t, w)
		if rapid.IntRange(0, 3).Draw(t,
			"undated") > 0 { // with ratings of the future or without a time no account is continued
			for i := range packed.Packed {
				if at := int64(packed.Packed[i].Time); at == 0 || at > testTime {
					packed.Packed[i].Time, single.Rows[i].Time = testTime-1, testTime-1
				}
			}
		}
		cut := rapid.IntRange(1, len(packed.Packed)).Draw(t, "cut")
		for cut < len(packed.Packed) && packed.Packed[cut].Block == packed.Packed[cut-1].Block {
			cut++
		}
		first, later := single, single
		first.Rows, later.Rows = single.Rows[:cut], single.Rows[cut:]
		packed.Packed = packed.Packed[:cut]
		want, account := scorer.NewAccount(&first), scorer.NewAccount(&packed)
		if lenOf(account) != lenOf(want) || account.IsOpen() != want.IsOpen() ||
			account.Continues(&later) != want.Continues(&later) {
			t.Fatalf("%d rows, open %v, want %d, %v", lenOf(account), account.IsOpen(), lenOf(want), want.IsOpen())
		}
		if got, want := scorer.ScoreAccount(account, packed), scorer.Score(first); !reflect.DeepEqual(got, want) {
			t.Fatalf("packed: %+v\nwant %+v", got, want)
		}
		if !account.Continues(&later) || len(later.Rows) == 0 {
			return
		}
		grown++
		for _, r := range later.Rows { // one block after the other
			one := later
			if one.Rows = []rating.Row{r}; !account.Continues(&one) {
				return
			}
			account.Add(&one)
			first.Rows = append(first.Rows[:len(first.Rows):len(first.Rows)], r)
			if gone := revocable(t, first.Rows); gone >= 0 && rapid.Bool().Draw(t, "revoke") {
				if !account.Remove(&one, first.Rows[gone:gone+1]) {
					return
				}
				first.Rows = slices.Concat(first.Rows[:gone], first.Rows[gone+1:])
				removed++
			}
			if got, want := scorer.ScoreAccount(account, later), scorer.Score(first); !reflect.DeepEqual(got, want) {
				t.Fatalf("after a later rating: %+v\nwant %+v", got, want)
			}
		}
	})
	if grown == 0 || removed == 0 {
		t.Errorf("%d accounts were continued, %d ratings were removed", grown, removed)
	}
}

// Packed ratings make the graph, the scales and the coverage of the same ratings as single rows.
func TestPackedRowsMakeTheGraphOfSingleOnes(t *testing.T) {
	w := newWorld()
	roots := []flow.Root{{Address: address(0), Weight: 1 << 32}, {Address: address(1), Weight: 1 << 32}}
	rapid.Check(t, func(t *rapid.T) {
		single, packed := crowded(t, w)
		var known flow.Addresses
		for _, a := range packed.Packing.Raters {
			known.Add(a)
		}
		owners := []uint32{known.Add(address(100)), known.Add(address(101))}
		one := graph.NewReader(w.evidence().Block, roots, nil, w.params)
		two := graph.NewReaderOf(&known, w.evidence().Block, roots, nil, w.params)
		var agents []graph.PackedAgent
		half := len(packed.Packed) / 2
		for i, rows := range [][]rating.PackedRow{packed.Packed[:half], packed.Packed[half:]} {
			token, owner := repute.TokenID{uint64(i)}, address(100+i)
			one.Agent(token, 2, owner, owner)
			two.Owner(owners[i])
			agents = append(agents, graph.PackedAgent{Owner: owners[i], Since: 2, Rows: rows})
		}
		for i, r := range single.Rows {
			token := repute.TokenID{0}
			if i >= half {
				token = repute.TokenID{1}
			}
			one.Survey(token, r)
		}
		for i := range single.Rows {
			token := repute.TokenID{uint64(0)}
			if i >= half {
				token = repute.TokenID{1}
			}
			one.Measure(token, single.Rows[i])
		}
		one.Settle()
		two.Pack(packed.Packing)
		for _, r := range single.Rows {
			two.Survey(repute.TokenID{}, r)
		}
		for _, r := range single.Rows {
			two.Measure(repute.TokenID{}, r)
		}
		two.Settle()
		for i, r := range single.Rows {
			token := repute.TokenID{0}
			if i >= half {
				token = repute.TokenID{1}
			}
			one.Rating(token, r)
		}
		two.PackedOwners(len(agents), func(i int, use func(*graph.PackedAgent)) { use(&agents[i]) })
		first, second := one.Build().Walk(roots, w.params.Walk), two.Build().Walk(roots, w.params.Walk)
		packed.Packing.Nodes = nil
		for _, a := range packed.Packing.Raters {
			packed.Packing.Nodes = append(packed.Packing.Nodes, second.Graph().Node(a))
		}
		want, _ := one.Coverage(first)
		got, _ := two.Coverage(second)
		if first.Sum() != second.Sum() || !reflect.DeepEqual(got, want) ||
			!reflect.DeepEqual(one.Scales(), two.Scales()) {
			t.Fatalf("other weights or scales, or coverage %+v, want %+v", got, want)
		}
	})
}
