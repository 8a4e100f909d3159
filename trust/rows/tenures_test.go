package rows

import (
	"math"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/store/trustdb"
)

// Tenures follow each other without a gap: every block but those before the first is in
// one of them.
func TestTenuresFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var holders []trustdb.Holder
		block := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "holders") {
			block += rapid.Uint64Range(1, 9).Draw(t, "blocks")
			holders = append(holders,
				trustdb.Holder{From: block, Owner: common.Address{byte(1 + rapid.IntRange(0, 2).Draw(t, "owner"))}})
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
