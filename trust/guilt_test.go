package trust

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"repute/store"
)

// said is a rating of block n by one of the roots.
func said(root int, value int64, block uint64) Row {
	r := row(root, value, testDay)
	r.Block = block
	return r
}

// guiltOf names who is guilty of an agent, by the number of his address.
func guiltOf(w *world, tenures []Tenure, rows ...Row) (out []int) {
	e := w.evidence(rows...)
	e.Tenures, e.Owner = tenures, tenures[len(tenures)-1].Owner
	s := NewScorer(w.walk(), w.params)
	own := s.Score(e)
	for _, g := range s.Guilt(e, &own) {
		for n := 900; n < 910; n++ {
			if g.Party == address(n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// Whoever had an agent answers for what was said meanwhile, and for nothing else.
func TestGuiltIsOfWhoHadTheAgent(t *testing.T) {
	sold := []Tenure{{From: 10, To: 20, Owner: address(900)}, {From: 21, To: math.MaxUint64, Owner: address(901)}}
	blame := func(blocks ...uint64) (rows []Row) {
		for i, b := range blocks {
			rows = append(rows, said(i, int64(i), b))
		}
		return rows
	}
	praise := func(block uint64) (rows []Row) {
		for i := range 10 {
			rows = append(rows, said(i+10, int64(90+i), block+uint64(i)))
		}
		return rows
	}
	for name, c := range map[string]struct {
		tenures []Tenure
		rows    []Row
		guilty  []int
	}{
		"before the sale":          {sold, blame(11, 12, 13, 14, 15, 16), []int{900}},
		"in the block of the sale": {sold, blame(20, 20, 20, 20, 20, 20), []int{900}},
		"after the sale":           {sold, blame(21, 22, 23, 24, 25, 26), []int{901}},
		"praised since":            {sold, append(blame(11, 12, 13, 14, 15, 16), praise(30)...), []int{900}},
		"of two, of each a little": {sold, blame(18, 19, 21), nil},
		"of a wallet as of an owner": {[]Tenure{{From: 1, To: 20, Owner: address(900), Wallet: address(902)},
			{From: 21, To: math.MaxUint64, Owner: address(900), Wallet: address(903)}}, blame(11, 12, 13, 14, 15, 16), []int{900, 902}},
		"good": {sold, praise(11), nil},
	} {
		if got := guiltOf(newWorld(), c.tenures, c.rows...); !slices.Equal(got, c.guilty) {
			t.Errorf("%s: guilty are %v, want %v", name, got, c.guilty)
		}
	}
}

// Tenures follow each other without a gap: every block but those before the first is in
// one of them.
func TestTenuresFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var holders []store.TrustHolder
		block := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "holders") {
			block += rapid.Uint64Range(1, 9).Draw(t, "blocks")
			holders = append(holders, store.TrustHolder{From: block, Owner: address(900 + rapid.IntRange(0, 2).Draw(t, "owner"))})
		}
		list := tenuresOf(holders)
		next := holders[0].From
		for i, tenure := range list {
			if tenure.From != next || tenure.To < tenure.From || tenure.Owner != holders[i].Owner {
				t.Fatalf("%d: %+v begins not at block %d", i, tenure, next)
			}
			next = tenure.To + 1
		}
		if last := list[len(list)-1].To; last != math.MaxUint64 {
			t.Fatalf("they end at block %d", last)
		}
	})
}

// The worst agent limits, whatever the order they are found in, and none itself.
func TestKinIsTheWorst(t *testing.T) {
	w := newWorld()
	e := w.evidence()
	e.Agent.TokenID.SetUint64(7)
	e.Registrar = address(904)
	guilt := func(token uint64, holder int, score Points) (g store.Guilt) {
		g.TokenID.SetUint64(token)
		g.Party, g.Holder, g.Score, g.High = address(holder), address(holder), score, score+1000
		return g
	}
	list := []store.Guilt{guilt(7, 900, -90_000), guilt(8, 900, -20_000), guilt(9, 904, -30_000), guilt(6, 904, -30_000), guilt(5, 905, -80_000)}
	for range 2 {
		slices.Reverse(list)
		g := Guilty{}
		g.Add(list...)
		kin := g.Kin(&e)
		if got := fmt.Sprintf("%d: agent %s, %s, %s", len(kin), kin[0].Agent.TokenID.Dec(), kin[0].Role, kin[0].Score); got != "1: agent 6, registrar, -30.000" {
			t.Errorf("got %s", got)
		}
	}
}
