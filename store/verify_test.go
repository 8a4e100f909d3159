package store_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"repute"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/verifydb"
)

// Reading on from the last id must meet every agent once, also past the places
// where ids get another digit.
func TestAgentsThenPages(t *testing.T) {
	t.Parallel()
	ctx, db := ctxOf(t), testDB(t)
	const agents = 123
	c := chainOf()
	owner := common.Address{1}
	for id := range uint64(agents) {
		c.extend(txOf{repute.Transfer{To: owner, TokenID: *uint256.NewInt(id)}})
	}
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, eventdb.Apply(ctx, db, batchOf(1, repute.Block{Number: firstBlock - 1}, c.blocks)))
	var next repute.TokenID
	for seen := uint64(0); ; {
		page, err := verifydb.AgentsThen(ctx, db, 1, c.head().Number, nil, next, 7)
		ok(t, err)
		for _, a := range page {
			if a.ID != *uint256.NewInt(seen) {
				t.Fatalf("agent %s where %d was due", a.ID.Dec(), seen)
			}
			seen++
		}
		if len(page) == 0 {
			if seen != agents {
				t.Fatalf("%d agents of %d", seen, agents)
			}
			return
		}
		next.AddUint64(&page[len(page)-1].ID, 1)
	}
}
