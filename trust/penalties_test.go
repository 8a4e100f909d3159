package trust

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/accountable"
	"repute/trust/fixed"
	"repute/trust/rating"
)

// dayOf is a time of the world in which a block takes a day.
func dayOf(block uint64) int64 { return testTime - (60-int64(block))*testDay }

// said is a rating of block n by one of the roots.
func said(root int, value int64, block uint64) rating.Row {
	r := row(root, value, testDay)
	r.Block, r.Time = block, dayOf(block)
	return r
}

// held is a tenure of blocks, of the owner with this number.
func held(from, to uint64, owner int) rating.Tenure {
	t := rating.Tenure{From: from, To: to, Began: dayOf(from - 1), Owner: address(owner)}
	if to < math.MaxUint64 {
		t.Ended = dayOf(to)
	}
	return t
}

// acted is the first transaction of the owner with this number.
func acted(block uint64, owner int) accountable.Action {
	return accountable.Action{Block: block, By: address(owner)}
}

// paidTo lets those of the rows that are in these blocks claim a payment to this address, of the same day.
func paidTo(rows []rating.Row, payee int, blocks ...uint64) []rating.Row {
	for i := range rows {
		if r := &rows[i]; slices.Contains(blocks, r.Block) {
			r.Payee, r.PaidAt = address(payee), r.Time
		}
	}
	return rows
}

// paidAt lets all rows claim payments of one time.
func paidAt(rows []rating.Row, at int64) []rating.Row {
	for i := range rows {
		rows[i].PaidAt = at
	}
	return rows
}

// penalizedOf names the identities that an agent penalizes, by the number of their address.
func penalizedOf(w *world, e Evidence) (out []int) {
	e.Owner = e.Tenures[len(e.Tenures)-1].Owner
	s := NewScorer(w.walk(), w.params)
	own := s.Score(e)
	for _, g := range s.Penalties(e, &own) {
		for n := 900; n < 999; n++ {
			if g.Identity == address(n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// An identity that had an agent and used it is accountable for the ratings meanwhile and
// shortly after, and no other is.
func TestPenaltiesOfWhoHadTheAgent(t *testing.T) {
	const last = math.MaxUint64
	sold := []rating.Tenure{held(10, 20, 900), held(21, last, 901)}
	blame := func(blocks ...uint64) (rows []rating.Row) {
		for i, b := range blocks {
			rows = append(rows, said(i, int64(i), b))
		}
		return rows
	}
	praise := func(block uint64) (rows []rating.Row) {
		for i := range 10 {
			rows = append(rows, said(i+10, int64(90+i), block+uint64(i)))
		}
		return rows
	}
	wallets := []rating.Tenure{held(1, 20, 900), held(21, last, 900)}
	wallets[0].Wallet, wallets[1].Wallet = address(902), address(903)
	split := []rating.Tenure{held(10, 12, 900), held(13, 14, 901), held(15, 16, 902), held(17, 18, 903),
		held(19, last, 900)}
	soon := held(11, last, 901)
	soon.Began = dayOf(9) + rating.HandoverSeconds
	signed := []rating.Tenure{sold[0], sold[1], held(25, last, 901)}
	signed[1].To, signed[1].Ended, signed[2].Wallet = 24, dayOf(24), address(904)
	for name, c := range map[string]struct {
		tenures   []rating.Tenure
		acts      []accountable.Action
		rows      []rating.Row
		penalized []int
	}{
		"before the sale":          {sold, nil, blame(11, 12, 13, 14, 15, 16), []int{900}},
		"in the block of the sale": {sold, nil, blame(20, 20, 20, 20, 20, 20), []int{900}},
		"soon after the sale":      {sold, nil, blame(21, 22, 23, 24, 25, 26), []int{900}},
		"soon after, of who acts": {sold, []accountable.Action{acted(22, 901)},
			blame(21, 22, 23, 24, 25, 26, 27, 27, 27), []int{901}},
		"before the new owner acts": {sold, []accountable.Action{acted(27, 901)},
			blame(21, 22, 23, 24, 25, 26, 27, 28, 28, 28, 28, 28, 28), []int{900, 901}},
		"long after the sale": {sold, nil, blame(28, 29, 30, 31, 32, 33), nil},
		"long after, of who acted": {sold, []accountable.Action{acted(25, 901)}, blame(28, 29, 30, 31, 32, 33),
			[]int{901}},
		"before the sale, of who acts": {sold, []accountable.Action{acted(30, 901)}, blame(11, 12, 13, 14, 15, 16),
			[]int{900, 901}},
		"of a wallet that signs": {signed, nil, blame(28, 29, 30, 31, 32, 33), []int{901, 904}},
		"praised since": {sold, nil, append(blame(11, 12, 13, 14, 15, 16), praise(40)...),
			[]int{900}},
		"of two, of each a little": {sold, nil, blame(18, 19, 29), nil},
		"split, and back":          {split, nil, blame(11, 12, 13, 14, 15, 16, 17, 18), []int{900}},
		"handed on at once, bad since": {[]rating.Tenure{held(10, 10, 900), soon}, nil, blame(11, 12, 13, 14, 15, 16),
			nil},
		"handed on at once, of who acted": {[]rating.Tenure{held(10, 10, 900), soon},
			[]accountable.Action{acted(9, 900), acted(11, 901)}, blame(12, 13, 14, 15, 16, 17), []int{901}},
		"handed on at once, and back": {[]rating.Tenure{held(10, 10, 900),
			{From: 11, To: 20, Began: soon.Began, Ended: dayOf(20), Owner: address(901)}, held(21, last, 900)}, nil,
			blame(28, 29, 30, 31, 32, 33), []int{900}},
		"of a wallet as of an owner": {wallets, nil, blame(11, 12, 13, 14, 15, 16), []int{900, 902}},
		"a gift before the words, and passed on": {[]rating.Tenure{sold[0], held(21, 22, 901),
			held(23, last, 902)}, nil,
			blame(21, 22, 22, 22, 23, 24), []int{900}},
		"good": {sold, nil, praise(11), nil},
		"handed on at once, of who was paid": {[]rating.Tenure{held(10, 10, 900), soon}, nil,
			paidTo(blame(11, 12, 13, 14, 15, 16), 901, 11, 12), []int{901}},
		"of who was paid by one": {[]rating.Tenure{held(10, 10, 900), soon}, nil,
			paidTo(blame(11, 12, 13, 14, 15, 16), 901, 11),
			nil},
		"of another payee": {[]rating.Tenure{held(10, 10, 900), soon}, nil,
			paidTo(blame(11, 12, 13, 14, 15, 16), 902, 11, 12),
			nil},
		"before the sale, of who was paid since": {sold, nil, paidTo(blame(11, 12, 13, 14, 15, 16, 27, 27), 901, 27),
			[]int{900}},
		"long after the sale, paid before": {sold, nil,
			paidAt(paidTo(blame(28, 29, 30, 31, 32, 33), 900, 28, 29, 30, 31, 32,
				33), dayOf(15)), []int{900}},
	} {
		w := newWorld()
		e := w.evidence(c.rows...)
		e.Registrar, e.Tenures, e.Actions, e.Since = c.tenures[0].Owner, c.tenures, c.acts, rating.PresentSince(c.tenures, w.walk().Graph())
		if got := penalizedOf(w, e); !slices.Equal(got, c.penalized) {
			t.Errorf("%s: penalized are %v, want %v", name, got, c.penalized)
		}
	}
}

// The worst agent limits, whatever the order they are found in, and none itself.
func TestWorstRelatedAgentLimits(t *testing.T) {
	w := newWorld()
	e := w.evidence()
	e.Agent.TokenID.SetUint64(7)
	e.Registrar = address(904)
	penalty := func(token uint64, holder int, score Points) (g repute.Penalty) {
		g.TokenID.SetUint64(token)
		g.Identity, g.Holder, g.Score, g.High = address(holder), address(holder), score, score+1000
		return g
	}
	list := []repute.Penalty{penalty(7, 900, -90_000), penalty(8, 900, -20_000), penalty(9, 904, -30_000),
		penalty(6, 904, -30_000), penalty(5, 905, -80_000)}
	for range 2 {
		slices.Reverse(list)
		g := Penalties{}
		g.Add(list...)
		related := g.Related(&e, w.params, func(common.Address) int { return 0 })
		if got := fmt.Sprintf("%d: agent %s, %s, %s", len(related), related[0].Agent.TokenID.Dec(), related[0].Role,
			related[0].Score); got != "1: agent 6, registrar, -30.000" {
			t.Errorf("got %s", got)
		}
	}
}

// One bad agent among many limits the others little, one of few entirely.
func TestPenaltiesAreShared(t *testing.T) {
	w := newWorld()
	for _, c := range []struct {
		bad, known int
		share      float64
	}{{1, 0, 1}, {1, 4, 1}, {1, 5, 0.8}, {2, 8, 1}, {1, 400, 0.01}, {3, 1, 1}} {
		g := Penalties{}
		for i := range c.bad {
			x := repute.Penalty{Identity: address(900), Holder: address(900), Score: -40_000, High: -30_000}
			x.TokenID.SetUint64(uint64(8 + i))
			g.Add(x)
		}
		e := w.evidence(rows(0, 20, 100)...)
		free := Score(e, w.params)
		e.Related = g.Related(&e, w.params, func(common.Address) int { return c.known })
		r := Score(e, w.params)
		loss := c.share * float64(free.Mean+40_000)
		if got := float64(free.Mean - r.Score); got < loss-100 || got > loss+100 || (r.Tier == 0) != (c.share == 1) {
			t.Errorf("%d of %d: %s of %s, tier %d, loss should be %.0f", c.bad, c.known, r.Score, free.Mean,
				r.Tier, loss)
		}
	}
}

// The other agents of an identity are limited as long as the bad one is surely bad, whatever their age, and a limit
// that takes next to nothing is not told.
func TestGuardKnowsNoAge(t *testing.T) {
	w := newWorld()
	var old []rating.Row
	for i := range 20 {
		old = append(old, row(i, 100, 300*testDay), row(20+i, 100, 0))
	}
	e := w.evidence(old...)
	e.Related = []RelatedAgent{{Score: -40_000, High: -30_000, Share: fixed.One}}
	if r := Score(e, w.params); r.Score != -40_000 || r.Guard == nil {
		t.Errorf("rated for 300 days: %s", r.Score)
	}
	e.Related[0].Share = fixed.Ratio(1, 1000)
	if r := Score(e, w.params); r.Guard != nil || r.Score != r.Mean {
		t.Errorf("a thousandth: %s of %s, %+v", r.Score, r.Mean, r.Guard)
	}
	e.Related[0].Share, e.Related[0].High = fixed.One, -5_000 // not surely bad any more
	if r := Score(e, w.params); r.Guard != nil {
		t.Errorf("by one that is not surely bad: %+v", r.Guard)
	}
}
