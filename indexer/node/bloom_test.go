package node

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"
)

// The remembered bits are those of go-ethereum's blooms, for values seen once and again.
func TestBloomBitsAreThoseOfTheBloom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bits := bloomBits{}
		values := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), common.HashLength, common.HashLength), 1, 40).Draw(t,
			"values")
		var bloom types.Bloom
		for _, v := range values[:len(values)/2] {
			bloom.Add(v)
		}
		for range 2 {
			for _, v := range values {
				if got, want := bits.has(&bloom, v), bloom.Test(v); got != want {
					t.Fatalf("%x: %t, go-ethereum says %t", v, got, want)
				}
			}
		}
	})
}

// Address and each topic count.
func TestNamedWantsAddressAndTopics(t *testing.T) {
	t.Parallel()
	l := types.Log{Address: common.Address{1}, Topics: []common.Hash{{2}, {3}}}
	var bloom types.Bloom
	for i, value := range [][]byte{l.Address[:], l.Topics[0][:], l.Topics[1][:]} {
		if Named(&bloom, &l) {
			t.Errorf("named by %d of 3 values", i)
		}
		bloom.Add(value)
	}
	if !Named(&bloom, &l) {
		t.Error("not named by all")
	}
}
