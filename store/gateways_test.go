package store_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/importdb"
	"repute/store/paydb"
	"repute/store/scoredb"
	"repute/store/trustdb"
)

// viaGateway is a rating that a client wrote, with number idx and a feedback hash.
func viaGateway(agent, idx uint64, client common.Address, hash byte) repute.NewFeedback {
	return repute.NewFeedback{TokenID: token(agent), Client: client, Index: idx, Value: big.NewInt(90), Tag1: "starred",
		FeedbackHash: common.Hash{31: hash}}
}

// ticket is one of a payer for a rating.
func ticket(agent uint64, payer int, hash byte) repute.TicketConsumed {
	return repute.TicketConsumed{TicketID: common.Hash{byte(payer)}, Payer: rpctest.Account(uint64(payer)),
		TokenID:      token(agent),
		FeedbackHash: common.Hash{31: hash}}
}

// noPayer is what a rating of a gateway has that belongs to nobody.
const noPayer = ""

// Whose a rating is that came through a gateway follows from the tickets of its transaction alone.
func TestRatingsOfGateways(t *testing.T) {
	t.Parallel()
	g, other := rpctest.Gateway, rpctest.Account(40)
	for name, c := range map[string]struct {
		events txOf
		payers []any // of the ratings by agent, client and number
	}{
		"ticket first":            {txOf{ticket(0, 7, 1), viaGateway(0, 1, g, 1)}, []any{address(rpctest.Account(7))}},
		"rating first":            {txOf{viaGateway(0, 1, g, 1), ticket(0, 7, 1)}, []any{address(rpctest.Account(7))}},
		"no hash":                 {txOf{ticket(0, 7, 0), viaGateway(0, 1, g, 0)}, []any{address(rpctest.Account(7))}},
		"no ticket":               {txOf{viaGateway(0, 1, g, 1)}, []any{noPayer}},
		"ticket of another hash":  {txOf{ticket(0, 7, 2), viaGateway(0, 1, g, 1)}, []any{noPayer}},
		"ticket of no hash":       {txOf{ticket(0, 7, 0), viaGateway(0, 1, g, 1)}, []any{noPayer}},
		"ticket of another agent": {txOf{ticket(1, 7, 1), viaGateway(0, 1, g, 1)}, []any{noPayer}},
		"ticket of no agent":      {txOf{ticket(99, 7, 1), viaGateway(0, 1, g, 1)}, []any{noPayer}},
		"ticket without payer": {txOf{repute.TicketConsumed{TokenID: token(0)}, viaGateway(0, 1, g, 0)},
			[]any{noPayer}},
		"two tickets, one rating": {txOf{ticket(0, 7, 1), ticket(0, 8, 1), viaGateway(0, 1, g, 1)}, []any{noPayer}},
		"one ticket, two ratings": {txOf{ticket(0, 7, 1), viaGateway(0, 1, g, 1), viaGateway(0, 2, g, 1)},
			[]any{noPayer, noPayer}},
		"two of each, told apart by hash": {txOf{ticket(0, 7, 1), ticket(0, 8, 2), viaGateway(0, 1, g, 2),
			viaGateway(0, 2, g, 1)},
			[]any{address(rpctest.Account(8)), address(rpctest.Account(7))}},
		"two of each, told apart by agent": {txOf{ticket(0, 7, 1), ticket(1, 8, 1), viaGateway(1, 1, g, 1),
			viaGateway(0, 1, g, 1)},
			[]any{address(rpctest.Account(7)), address(rpctest.Account(8))}},
		"ticket without rating":    {txOf{ticket(0, 7, 1)}, nil},
		"rating by another client": {txOf{ticket(0, 7, 1), viaGateway(0, 1, other, 1)}, []any{nil}},
		"beside that of another client": {txOf{viaGateway(0, 1, other, 1), ticket(0, 7, 1), viaGateway(0, 1, g, 1)},
			[]any{nil, address(rpctest.Account(7))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := testDB(t), ctxOf(t)
			ok(t, chaindb.AddChain(ctx, db, testChain(1)))
			l := twoAgents()
			l.extend(c.events)
			ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
			applied := dump(t, ctx, db, 1)
			wantPayers(t, applied, c.payers)
			ok(t, importdb.Reindex(ctx, db, 1, contracts.Read))
			equalDumps(t, "reindexed", applied, dump(t, ctx, db, 1))

			l.fork(firstBlock)
			parent := l.head()
			ok(t, eventdb.Rewind(ctx, db, parent, batchOf(1, parent, l.extend(txOf{viaGateway(0, 1, g, 1)}))))
			wantPayers(t, dump(t, ctx, db, 1), []any{noPayer})
		})
	}
}

// twoAgents is a chain with the agents 0 and 1.
func twoAgents() *ledger {
	return chainOf(txOf{repute.Transfer{To: rpctest.Account(1), TokenID: token(0)},
		repute.Transfer{To: rpctest.Account(2), TokenID: token(1)}})
}

// wantPayers compares the payers of all ratings, by agent, client and number.
func wantPayers(t *testing.T, dump string, want []any) {
	t.Helper()
	var got []any
	for _, r := range rows(t, dump, "feedback") {
		got = append(got, r["payer"])
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("payers %v, want %v", got, want)
	}
}

// Which gateways are listed is configuration: ratings belong to the raters that the present list gives, as if it had
// always been so. What was not asked for in earlier blocks is a gap from the block on that the list names.
func TestListOfGatewaysChanges(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	l := twoAgents()
	l.extend(txOf{ticket(0, 7, 1), viaGateway(0, 1, rpctest.Gateway, 1)}, txOf{viaGateway(1, 1, rpctest.Gateway, 1)},
		txOf{viaGateway(1, 1, rpctest.Account(9), 1)})
	listed, unlisted := testChain(1), testChain(2)
	unlisted.Gateways = nil
	listed.Gateways = []repute.WatchedContract{{Address: rpctest.Gateway, From: firstBlock + 2}}
	for _, c := range []repute.Chain{listed, unlisted} {
		ok(t, chaindb.AddChain(ctx, db, c))
		ok(t, eventdb.Apply(ctx, db, batchOf(c.ID, l.genesis, l.blocks)))
	}
	with, without := dump(t, ctx, db, 1), dump(t, ctx, db, 2)
	wantPayers(t, with, []any{address(rpctest.Account(7)), nil, noPayer})
	wantPayers(t, without, []any{nil, nil, nil})
	listed.ID, unlisted.ID = 2, 1
	ok(t, chaindb.AddChain(ctx, db, listed))
	ok(t, chaindb.AddChain(ctx, db, unlisted))
	equalDumps(t, "now listed", with, dump(t, ctx, db, 2))
	equalDumps(t, "no longer listed", without, dump(t, ctx, db, 1))
	ok(t, importdb.Reindex(ctx, db, 1, contracts.Read))
	equalDumps(t, "reindexed without", without, dump(t, ctx, db, 1))

	gaps, err := chaindb.DueGaps(ctx, db, 2, 10)
	ok(t, err)
	if len(gaps) != 1 || gaps[0].Kind != repute.KindTicketConsumed ||
		gaps[0].Blocks != (repute.BlockRange{From: firstBlock + 2, To: firstBlock + 3}) {
		t.Errorf("gaps %+v", gaps)
	}
}

// A ticket that is found late gives the rating to its payer, whose payment is looked up again.
func TestTicketsFoundLate(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l := twoAgents()
	l.extend(txOf{ticket(0, 7, 1), viaGateway(0, 1, rpctest.Gateway, 1)})
	late := batchOf(1, l.genesis, l.blocks)
	found := late.Records[2:3]
	late.Records = append(late.Records[:2:2], late.Records[3:]...)
	ok(t, eventdb.Apply(ctx, db, late))
	wantPayers(t, dump(t, ctx, db, 1), []any{noPayer})
	_, err := db.Pool().Exec(ctx, `
		insert into payments (chain_id, token_id, client, idx, payer, payee, pay_chain, tx, state, reason)
		select 1, token_id, client, idx, $1, $1, 1, sha256($1), 'refused', 'no-transaction' from feedback`,
		rpctest.Account(7).Bytes())
	ok(t, err)
	ok(t, importdb.Amend(ctx, db, 1, store.Lease{}, importdb.Amendment{Block: l.blocks[1].Block, Records: found}))
	wantPayers(t, dump(t, ctx, db, 1), []any{address(rpctest.Account(7))})
	var state string
	ok(t, db.Pool().QueryRow(ctx, "select state from payments").Scan(&state))
	if state != "pending" {
		t.Errorf("the payment that was refused for nobody is %s", state)
	}
	ok(t, importdb.Amend(ctx, db, 1, store.Lease{}, importdb.Amendment{Block: l.blocks[1].Block,
		Remove: []types.Log{found[0].Log}}))
	wantPayers(t, dump(t, ctx, db, 1), []any{noPayer})
}

// The raters of whom sources are asked are the payers of gateways, not the gateways; a rating without a payer has none.
func TestRatersBehindGateways(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l := twoAgents()
	l.extend(txOf{ticket(0, 7, 1), viaGateway(0, 1, rpctest.Gateway, 1)}, txOf{viaGateway(1, 1, rpctest.Gateway, 1)},
		txOf{viaGateway(1, 1, rpctest.Account(9), 1)})
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	want := []common.Address{rpctest.Account(7), rpctest.Account(9)}
	slices.SortFunc(want, common.Address.Cmp)
	got, err := trustdb.Raters(ctx, db, 1, l.head().Number, nil)
	ok(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("raters %v, want %v", got, want)
	}
}

// A gateway that is listed, or no longer, makes another run due; a list that stays as it is does not.
func TestListOfGatewaysMakesARunDue(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	l := twoAgents()
	l.extend(txOf{ticket(0, 7, 1), viaGateway(0, 1, rpctest.Gateway, 1)})
	listed, unlisted := testChain(1), testChain(1)
	unlisted.Gateways = nil
	ok(t, chaindb.AddChain(ctx, db, listed))
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	ok(t, scoredb.AddRun(ctx, db, scoredb.Run{ChainID: 1, Run: 1, Scorer: "test"}))
	marks := func() (late, every int) {
		t.Helper()
		_, err := db.Pool().Exec(ctx, "delete from trust_marks where not late")
		ok(t, err)
		ok(t, db.Pool().QueryRow(ctx, "select count(*), count(*) filter (where every) from trust_marks").Scan(&late,
			&every))
		_, err = db.Pool().Exec(ctx, "delete from trust_marks")
		ok(t, err)
		return late, every
	}
	marks()
	for i, c := range []struct {
		chain repute.Chain
		want  int
	}{{listed, 0}, {unlisted, 1}, {unlisted, 0}, {listed, 1}} {
		ok(t, chaindb.AddChain(ctx, db, c.chain))
		if late, every := marks(); late != c.want || every != c.want {
			t.Errorf("step %d: %d late marks, %d of all agents, want %d", i, late, every, c.want)
		}
	}
}

// The payment of a rating through a gateway is one of its payer, and is looked up again when the payer changes.
func TestPaymentsOfGateways(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	l := twoAgents()
	l.extend(txOf{ticket(0, 7, 1), viaGateway(0, 1, rpctest.Gateway, 1)}, txOf{viaGateway(1, 1, rpctest.Account(9), 1)})
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	run := func(sql string, args ...any) int64 {
		t.Helper()
		tag, err := db.Pool().Exec(ctx, sql, args...)
		ok(t, err)
		return tag.RowsAffected()
	}
	run("update chains set finalized_block = cursor_block")
	file := `insert into payment_files (uri_id, chain_id, token_id, client, payer, payee, pay_chain, tx)
		select uri_id, 1, token_id, $2, $2, $3, 1, sha256($2) from feedback where client = $1`
	run(file, rpctest.Gateway.Bytes(), rpctest.Account(7).Bytes(), rpctest.Account(1).Bytes())
	if n, err := paydb.MatchPayments(ctx, db, 10); err != nil || n != 1 {
		t.Fatalf("%d files, %v", n, err)
	}
	due := func() paydb.Claim {
		t.Helper()
		list, _, err := paydb.DuePayments(ctx, db, 1, common.Address{}, 10)
		ok(t, err)
		if len(list) != 1 || list[0].Rating.Client != rpctest.Gateway {
			t.Fatalf("due: %+v", list)
		}
		return list[0]
	}
	paid := due()
	if paid.Rater != rpctest.Account(7) {
		t.Errorf("rater %s, want the payer", paid.Rater)
	}
	related, err := paydb.ReadRelated(ctx, db, paid, l.head())
	ok(t, err)
	if !slices.Contains(related.Client, rpctest.Account(7)) || slices.Contains(related.Client, rpctest.Gateway) {
		t.Errorf("the client's identity is %v", related.Client)
	}
	settle := func(c paydb.Claim) {
		t.Helper()
		ok(t, paydb.SettlePayment(ctx, db, c, func(func(uint64) bool) paydb.Outcome {
			return paydb.Outcome{State: repute.PaymentRefused, Reason: repute.PaymentAbsent}
		}))
	}
	settle(paid)
	if list, _, err := paydb.DuePayments(ctx, db, 1, common.Address{}, 10); err != nil || len(list) > 0 {
		t.Fatalf("due after it was settled: %+v, %v", list, err)
	}
	unlisted := testChain(1)
	unlisted.Gateways = nil
	ok(t, chaindb.AddChain(ctx, db, unlisted))
	if again := due(); again.Rater != rpctest.Gateway {
		t.Errorf("rater %s, want the gateway, which is not listed now", again.Rater)
	}
	settle(paid) // what was found for the payer does not count for the gateway
	if again := due(); again.Attempts != 0 {
		t.Errorf("%+v", again)
	}
	if n := run("update payment_files set unseen = false where unseen"); n != 1 {
		t.Errorf("%d files are matched again", n)
	}
}
