package store_test

import (
	"testing"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/importdb"
)

// What a process remembers of its last batch does not outlive the write of
// another one, nor its own of another kind.
func TestOthersWritesAreSeen(t *testing.T) {
	t.Parallel()
	a, url := testDBAt(t)
	b, ctx := openDB(t, url), ctxOf(t)
	client := rpctest.Account(3)
	rating := func(index uint64) txOf {
		return txOf{repute.NewFeedback{TokenID: token(0), Client: client, Index: index, Value: values[7], Decimals: 2,
			Tag1: "quality"}}
	}
	l := smallChain() // ends with the client's first rating
	l.extend(rating(2), rating(3), txOf{repute.FeedbackRevoked{TokenID: token(0), Client: client, Index: 1}}, rating(4))
	for _, id := range []uint64{1, 2} {
		ok(t, chaindb.AddChain(ctx, a, testChain(id)))
	}
	ok(t, eventdb.Apply(ctx, a, batchOf(2, l.genesis, l.blocks)))

	ok(t, eventdb.Apply(ctx, a, batchOf(1, l.genesis, l.blocks[:3])))
	lossy := batchOf(1, l.blocks[2].Block, l.blocks[3:4])
	late := lossy.Records
	lossy.Records = nil
	ok(t, eventdb.Apply(ctx, a, lossy))
	_, err := importdb.Repair(ctx, b, 1, store.Lease{}, late, lossy.Blocks)
	ok(t, err)
	ok(t, eventdb.Apply(ctx, a, batchOf(1, l.blocks[3].Block, l.blocks[4:5])))
	ok(t, eventdb.Rewind(ctx, b, l.blocks[2].Block, batchOf(1, l.blocks[2].Block, l.blocks[3:5])))
	ok(t, eventdb.Apply(ctx, a, batchOf(1, l.blocks[4].Block, l.blocks[5:])))
	equalDumps(t, "with others", dump(t, ctx, a, 2), dump(t, ctx, a, 1))
}
