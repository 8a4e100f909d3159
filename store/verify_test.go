package store_test

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"repute"
	"repute/store"
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

// wrongTotals compares all totals of a chain.
func wrongTotals(ctx context.Context, t failer, db *store.DB, chainID uint64) (all []verifydb.WrongTotal) {
	t.Helper()
	for after := (*repute.TokenID)(nil); ; {
		some, next, err := verifydb.WrongTotals(ctx, db, chainID, after, 10)
		ok(t, err)
		if all, after = append(all, some...), next; after == nil {
			return all
		}
	}
}

// A total that was changed behind the index's back is named, and no other one is. That totals of a sound index are
// right is part of TestIndexDoesNotDependOnHistory.
func TestWrongTotalsAreNamed(t *testing.T) {
	t.Parallel()
	ctx, db := ctxOf(t), testDB(t)
	c := chainOf()
	for id := range uint64(2100) { // more than are compared at once
		c.extend(txOf{repute.Transfer{To: common.Address{1}, TokenID: *uint256.NewInt(id)}})
	}
	last := *uint256.NewInt(2099)
	for n := range uint64(3) {
		c.extend(txOf{repute.NewFeedback{TokenID: last, Client: person(int(n)), Index: 1, Value: big.NewInt(int64(n)),
			Tag1: "t"}})
	}
	c.extend(txOf{repute.FeedbackRevoked{TokenID: last, Client: person(0), Index: 1}})
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, eventdb.Apply(ctx, db, batchOf(1, repute.Block{Number: firstBlock - 1}, c.blocks)))
	if wrong := wrongTotals(ctx, t, db, 1); len(wrong) > 0 {
		t.Fatalf("nothing is wrong: %+v", wrong)
	}
	for _, x := range []struct{ table, change, restore string }{
		{"agents", "update agents set revoked = 2 where token_id = 2099",
			"update agents set revoked = 1 where token_id = 2099"},
		{"agents", "update agents set clients = 0 where token_id = 2099",
			"update agents set clients = 2 where token_id = 2099"},
		{"agents", "update agents set validations = 1 where token_id = 5",
			"update agents set validations = 0 where token_id = 5"},
		{"agent_sums", "update agent_sums set sum = sum + 1", "update agent_sums set sum = sum - 1"},
		{"hours", "update hours set net = net + 1 where (series, token_id) = (2, 2099)",
			"update hours set net = net - 1 where token_id = 2099"},
		{"hours", "update hours set began = began + 1 where (series, token_id) = (2, 2099)",
			"update hours set began = began - 1 where token_id = 2099"},
		{"agent_votes", "update agent_votes set n = 2 where value = 1", "update agent_votes set n = 1 where value = 1"},
	} {
		for _, sql := range []string{x.change, x.restore} {
			_, err := db.Pool().Exec(ctx, sql)
			ok(t, err)
			wrong := wrongTotals(ctx, t, db, 1)
			if sql == x.restore && len(wrong) == 0 {
				continue
			}
			if sql == x.restore || len(wrong) != 1 || wrong[0].Table != x.table || wrong[0].Stored == wrong[0].Right {
				t.Errorf("%s: %+v", sql, wrong)
			}
		}
	}
	// Tables that a trigger follows are wrong with their sums.
	for sql, table := range map[string]string{"delete from sums": "sums", "delete from votes": "votes"} {
		_, err := db.Pool().Exec(ctx, sql)
		ok(t, err)
		tables := map[string]bool{}
		for _, w := range wrongTotals(ctx, t, db, 1) {
			tables[w.Table] = true
		}
		if !tables[table] || !tables["agent_"+table] {
			t.Errorf("%s: %v are named", sql, tables)
		}
	}
}
