package importdb

import (
	"testing"

	"pgregory.net/rapid"

	"repute"
)

// drawRecords draws records in the order of their blocks.
func drawRecords(t *rapid.T) []repute.Record {
	var records []repute.Record
	block := uint64(0)
	for _, ahead := range rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 40).Draw(t, "blocks") {
		block += ahead
		var r repute.Record
		r.Log.BlockNumber, r.Log.Index = block, uint(len(records))
		records = append(records, r)
	}
	return records
}

// Chunks and fetches may be of any size: no block is divided between two folds, no record is lost and none comes twice.
func TestBlocksAreFoldedWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := drawRecords(t)
		fetch, chunk := rapid.IntRange(1, 7).Draw(t, "fetch"), rapid.IntRange(1, 7).Draw(t, "chunk")
		var folded []repute.Record
		fold := func(records []repute.Record) {
			for len(records) > 0 {
				n := wholeBlocks(records, chunk)
				if len(folded) > 0 && folded[len(folded)-1].Log.BlockNumber == records[0].Log.BlockNumber {
					t.Fatalf("block %d is divided", records[0].Log.BlockNumber)
				}
				folded, records = append(folded, records[:n]...), records[n:]
			}
		}
		var held []repute.Record
		for rest := all; len(rest) > 0; {
			n := min(fetch, len(rest))
			var whole []repute.Record
			whole, held = splitLastBlock(append(held, rest[:n]...))
			rest = rest[n:]
			fold(whole)
		}
		fold(held)
		if len(folded) != len(all) {
			t.Fatalf("%d of %d records are folded", len(folded), len(all))
		}
		for i := range all {
			if folded[i].Log.Index != all[i].Log.Index {
				t.Fatalf("record %d is folded in place of %d", folded[i].Log.Index, i)
			}
		}
	})
}
