package store_test

import (
	"context"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/paydb"
)

// claims is a chain with ratings by clients 1 to len(perClient), each with so many claims of
// payments that are due, those of lower clients longer.
func claims(t *testing.T, perClient ...int) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{MaxConns: 2})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, chaindb.AddChain(t.Context(), db, newWorld(1, 100, 0).chain))
	sqlExec(t, db, `update chains set cursor_block = 100000, finalized_block = 1000`)
	sqlExec(t, db, `insert into tags (hash, value) values (sha256('x'), 'x')`)
	for i, n := range perClient {
		_, err := db.Pool().Exec(t.Context(), `
			insert into feedback select 1, 0, $1, j, 1 + j, $3, 0, 0, 1, 1, 1, '', '', null, null from generate_series(1,
				$2::integer) j`, client(i), n, i)
		ok(t, err)
	}
	sqlExec(t, db, `
		insert into payments (chain_id, token_id, client, idx, pay_chain, state, payer, payee, tx, next_due)
		select chain_id, token_id, client, idx, 1, 'pending', client, client, sha256(client || idx::text::bytea), now() -
			interval '1 day' + log_index * interval '1 minute'
		from feedback`)
	sqlExec(t, db, "analyze")
	return db
}

func client(i int) []byte { return common.Address{byte(i + 1)}.Bytes() }

// dueOf counts the claims of a page by client.
func dueOf(t *testing.T, db *store.DB, turn *common.Address, limit int) map[byte]int {
	t.Helper()
	list, next, err := paydb.DuePayments(context.Background(), db, 1, *turn, limit)
	ok(t, err)
	*turn = next
	out := map[byte]int{}
	seen := map[uint64]map[byte]bool{}
	for _, c := range list {
		who := c.Rating.Client[0]
		if seen[c.Rating.Index] == nil {
			seen[c.Rating.Index] = map[byte]bool{}
		}
		if seen[c.Rating.Index][who] {
			t.Errorf("claim %d of client %d twice", c.Rating.Index, who)
		}
		seen[c.Rating.Index][who] = true
		out[who]++
	}
	return out
}

// One client's five thousand claims do not hold up another's single one.
func TestDuePaymentsTakeTurns(t *testing.T) {
	t.Parallel()
	db := claims(t, 5000, 1)
	var turn common.Address
	for _, turn = range []common.Address{{}, {1}, {1, 1}, {2}, {200}} { // wherever it begins
		if got := dueOf(t, db, &turn, 20); got[2] != 1 || got[1] != 19 {
			t.Errorf("got %v, want 19 of client 1 and 1 of client 2", got)
		}
	}
	if got := dueOf(t, db, &turn, 1); got[1]+got[2] != 1 {
		t.Errorf("a page of one: %v", got)
	}
	// Who has only claims that are not due, or of ratings that are not final, has no turn.
	sqlExec(t, db, `update payments set next_due = now() + interval '1 hour' where idx > 1`)
	sqlExec(t, db,
		`update feedback set block = 5000 where client = (select client from feedback order by client limit 1)`)
	if got := dueOf(t, db, &turn, 20); len(got) != 1 || got[2] != 1 {
		t.Errorf("got %v, want the one that is due", got)
	}
}

// Of more clients than a page has places the turn comes to each, and to the oldest claims always.
func TestDuePaymentsOfManyClients(t *testing.T) {
	t.Parallel()
	perClient := make([]int, 40)
	for i := range perClient {
		perClient[i] = 20
	}
	db := claims(t, perClient...)
	var turn common.Address
	had := map[byte]bool{}
	for range (len(perClient) + 2) / 3 {
		got := dueOf(t, db, &turn, 6)
		n := 0
		for who, k := range got {
			had[who] = true
			n += k
		}
		if n != 6 || got[1] < 3 {
			t.Fatalf("got %v, want six, at least three of client 1, who waits longest", got)
		}
	}
	if len(had) != len(perClient) {
		t.Errorf("only %d of %d clients had a turn", len(had), len(perClient))
	}
}

// Clients whose claims are not due do not keep the turn from those behind them, however many.
func TestDuePaymentsPassManyWhoWait(t *testing.T) {
	t.Parallel()
	db := claims(t, 50, 1) // of client 2 is due last
	sqlExec(t, db, `
		insert into payments (chain_id, token_id, client, idx, pay_chain, state, payer, payee, tx, next_due)
		select 1, 0, decode('01' || lpad(to_hex(i), 38, '0'), 'hex'), 1, 1, 'pending', '\x00', '\x00',
			sha256(i::text::bytea), now() + interval '1 hour'
		from generate_series(1, 4500) i`)
	var turn common.Address
	for range 4 {
		if dueOf(t, db, &turn, 10)[2] == 1 {
			return
		}
	}
	t.Errorf("client 2 had no turn in four rounds: the turn is at %s", turn)
}
