package intent

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMultiply compares products of eight vectors at once with those of one after the other, for
// all values that a stored vector may have.
func TestMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.SampledFrom([]int{1, 3, 512, maxDim}).Draw(t, "dim")
		value := rapid.OneOf(rapid.Int8(), rapid.SampledFrom([]int8{-128, 127}))
		fill := rapid.SliceOfN(value, 16, 16)
		repeat := func(name string) []int8 {
			some := fill.Draw(t, name)
			values := make([]int8, dim)
			for i := range values {
				values[i] = some[i%len(some)]
			}
			return values
		}
		query := Vector{Scale: 1, Values: repeat("query")}
		r, want := rows{dim: dim}, make([]float32, 11)
		best, allowed := make([]float32, 11), make([]bool, 11)
		for slot := range want {
			v := Vector{Scale: 1, Values: repeat("vector")}
			r.put(int32(slot), v)
			product := 0
			for i := range v.Values {
				product += int(v.Values[i]) * int(query.Values[i])
			}
			if allowed[slot] = slot%3 != 0; allowed[slot] {
				want[slot] = float32(product)
			}
			best[slot] = -1e9
			if !allowed[slot] {
				best[slot] = 0
			}
		}
		r.similarities(query, allowed, best)
		for slot := range want {
			if best[slot] != want[slot] {
				t.Fatalf("slot %d: %v instead of %v", slot, best[slot], want[slot])
			}
		}
	})
}

// TestRowsAreReused stores and frees rows: no block is added while one is free.
func TestRowsAreReused(t *testing.T) {
	r := rows{dim: 2}
	for round := range 50 {
		var taken []int32
		for slot := range int32(perBlock) {
			taken = append(taken, r.put(slot, Vector{Scale: 1, Values: []int8{int8(round), -1}}))
		}
		for _, row := range taken {
			r.remove(row)
		}
	}
	if len(r.blocks) != 1 || len(r.free) != perBlock {
		t.Errorf("%d blocks, %d free rows", len(r.blocks), len(r.free))
	}
}
