package hourdb

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Sums are exact, whatever the decimals of their values and in whatever order they come.
func TestSumsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sum decimal
		want := new(big.Rat)
		for range rapid.IntRange(0, 8).Draw(t, "values") {
			value := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "value"))
			if rapid.Bool().Draw(t, "negative") {
				value.Neg(value)
			}
			before, scale := new(big.Int).Set(value), rapid.Uint8Range(0, 18).Draw(t, "scale")
			sum.add(value, scale)
			if value.Cmp(before) != 0 {
				t.Fatalf("%s became %s", before, value)
			}
			want.Add(want, new(big.Rat).SetFrac(before, powerOfTen(scale)))
		}
		got, isNumber := new(big.Rat).SetString(sum.text())
		if !isNumber || got.Cmp(want) != 0 {
			t.Fatalf("the sum is %s, not %s", sum.text(), want)
		}
	})
}

// Hours keep the order of logs, and a row the place of its oldest event.
func TestRowsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := row{}
		var began, ended int64
		oldest := int64(-1)
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			e := Event{Series: Ratings, Block: rapid.Uint64Range(0, 3).Draw(t, "block"),
				Log: rapid.Uint32().Draw(t, "log"), Ended: rapid.Bool().Draw(t, "ended"), Value: big.NewInt(3)}
			r.add(&e)
			if e.Ended {
				ended++
			} else {
				began++
			}
			if at := placeAt(e.Block, e.Log); oldest < 0 || at < oldest {
				oldest = at
			}
			if placeAt(e.Block, e.Log) >= placeAt(e.Block+1, 0) {
				t.Fatalf("log %d of block %d comes after the next block", e.Log, e.Block)
			}
		}
		if r.began != began || r.ended != ended || r.oldest != oldest {
			t.Fatalf("%d began, %d ended, the oldest at %d; not %d, %d and %d", r.began, r.ended, r.oldest, began,
				ended, oldest)
		}
		if r.sum.n.Int64() != 3*began || r.net.n.Int64() != 3*(began-ended) {
			t.Fatalf("sum %s and net %s of %d ratings and %d revocations", r.sum.text(), r.net.text(), began, ended)
		}
	})
}
