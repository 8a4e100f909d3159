package paydb_test

import (
	"context"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/paydb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// exec executes statements that return nothing.
func exec(t *testing.T, db *store.DB, sql string) {
	t.Helper()
	_, err := db.Pool().Exec(t.Context(), sql)
	ok(t, err)
}

// coin is the coin in which all is paid.
var coin = repute.Stablecoin{ChainID: 1, Address: common.Address{0xc0}, Symbol: "USDC", Decimals: 6}

// claimed is a chain with a final rating of agent 0 by each of clients 1 and 2, in blocks 10 and 20, whose files claim
// the same transaction.
func claimed(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	ok(t, chaindb.AddChain(t.Context(), db, repute.Chain{ID: 1, Name: "chain", Identity: common.Address{1},
		Reputation: common.Address{2}, StartBlock: 1}))
	exec(t, db, `
		update chains set cursor_block = 1000, finalized_block = 900;
		insert into tags (hash, value) values (sha256('x'), 'x');
		insert into blocks (chain_id, number, hash, parent, time)
		select 1, n, sha256(n::text::bytea), '', to_timestamp(n) from unnest(array[10, 20, 500]) n;
		insert into feedback select 1, 0, decode(repeat('0' || c, 20), 'hex'), 1, 10 * c, c, 0, 0, 1, 1, 1, '', '', null, null
			from unnest(array[1, 2]) c;
		insert into payments (chain_id, token_id, client, idx, pay_chain, state, payer, payee, tx, next_due)
		select chain_id, token_id, client, idx, 1, 'pending', client, decode(repeat('0a', 20), 'hex'), sha256('tx'), now()
		from feedback`)
	return db
}

// due returns the claims that are due, by the first byte of their clients.
func due(t *testing.T, db *store.DB) map[byte]paydb.Claim {
	t.Helper()
	list, _, err := paydb.DuePayments(t.Context(), db, 1, common.Address{}, 10)
	ok(t, err)
	out := map[byte]paydb.Claim{}
	for _, c := range list {
		out[c.Rating.Client[0]] = c
	}
	return out
}

// paid is the outcome of a claim that is verified by one log.
func paid(log uint64) paydb.Outcome {
	return paydb.Outcome{State: repute.PaymentVerified, Coin: coin, Paid: 250_000, Time: time.Unix(500, 0),
		Transfer: repute.TokenTransfer{Block: 500, LogIndex: log, Amount: big.NewInt(250_000)}}
}

// settle settles a claim, and returns whether an earlier rating has the log 5.
func settle(t *testing.T, db *store.DB, c paydb.Claim, o paydb.Outcome) (taken bool) {
	t.Helper()
	ok(t, paydb.SettlePayment(t.Context(), db, c, func(has func(uint64) bool) paydb.Outcome {
		taken = has(5)
		return o
	}))
	return taken
}

// ledger returns the amounts that were found, with the first byte of their clients.
func ledger(t *testing.T, db *store.DB) (out [][2]int64) {
	t.Helper()
	list, err := paydb.ReadLedger(t.Context(), db, repute.AgentID{ChainID: 1})
	ok(t, err)
	for _, e := range list {
		out = append(out, [2]int64{int64(e.Client[0]), int64(e.Paid)})
	}
	return out
}

// One transfer counts for the earlier rating, in whatever order the claims are settled; the later one is looked up
// again, and the ledger says what counted when.
func TestOneTransferCountsOnce(t *testing.T) {
	t.Parallel()
	db := claimed(t)
	claims := due(t, db)
	if len(claims) != 2 {
		t.Fatalf("due: %+v", claims)
	}
	if settle(t, db, claims[2], paid(5)) {
		t.Error("the later rating was told that an earlier one has the log")
	}
	if settle(t, db, claims[1], paid(5)) {
		t.Error("the earlier rating was told that an earlier one has the log")
	}
	again := due(t, db)
	if len(again) != 1 || again[2].State != repute.PaymentPending {
		t.Errorf("to be looked up again: %+v", again)
	}
	if want := [][2]int64{{2, 250_000}, {1, 250_000}, {2, 0}}; !sameSet(ledger(t, db), want) {
		t.Errorf("ledger %v, want %v in any order of the last two", ledger(t, db), want)
	}
	if !settle(t, db, again[2], paydb.Outcome{State: repute.PaymentRefused, Reason: repute.PaymentNone}) {
		t.Error("the later rating was not told that the log is taken")
	}
	if n := len(ledger(t, db)); n != 3 || len(due(t, db)) != 0 {
		t.Errorf("%d entries after a refusal, due %+v", n, due(t, db))
	}
}

// sameSet reports whether two lists have the same items.
func sameSet(a, b [][2]int64) bool {
	return len(a) == len(b) && !slices.ContainsFunc(b, func(e [2]int64) bool { return !slices.Contains(a, e) })
}

// A claim that changed while it was looked up stays as it is: what was found is not about what it says now.
func TestChangedClaimStays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another payer":       "update payments set payer = decode(repeat('0b', 20), 'hex')",
		"another payee":       "update payments set payee = decode(repeat('0b', 20), 'hex')",
		"another transaction": "update payments set tx = sha256('other')",
		"another rater":       "update feedback set payer = decode(repeat('0b', 20), 'hex')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := claimed(t)
			claims := due(t, db)
			exec(t, db, change)
			settle(t, db, claims[1], paid(5))
			if now := due(t, db); len(now) != 2 || now[1].State != repute.PaymentPending {
				t.Errorf("due %+v", now)
			}
			if entries := ledger(t, db); entries != nil {
				t.Errorf("ledger %v", entries)
			}
		})
	}
}

// A lookup that learned nothing is counted and made again later; the state stays.
func TestPostponed(t *testing.T) {
	t.Parallel()
	db := claimed(t)
	settle(t, db, due(t, db)[1], paydb.Outcome{Next: time.Hour})
	if now := due(t, db); len(now) != 1 {
		t.Errorf("due: %+v", now)
	}
	exec(t, db, "update payments set next_due = now() where next_due > now()")
	if now := due(t, db); now[1].Attempts != 1 || now[1].State != repute.PaymentPending || now[2].Attempts != 0 {
		t.Errorf("later: %+v", now)
	}
}

// A payment from the payee back to the client, within a month, is among those around another one.
func TestPaymentsAround(t *testing.T) {
	t.Parallel()
	db := claimed(t)
	claims := due(t, db)
	settle(t, db, claims[2], paid(7))
	exec(t, db, `update payments set payer = decode(repeat('0a', 20), 'hex'), payee = decode(repeat('01', 20), 'hex')
		where state = 'verified'`)
	for at, want := range map[time.Time]int{time.Unix(500, 0): 1, time.Unix(500, 0).Add(29 * 24 * time.Hour): 1,
		time.Unix(500, 0).Add(31 * 24 * time.Hour): 0} {
		r, err := paydb.ReadRelated(t.Context(), db, claims[1], repute.Block{Number: 600, Time: at})
		ok(t, err)
		if len(r.Around) != want {
			t.Fatalf("at %s: %+v", at, r.Around)
		}
		if want == 0 {
			continue
		}
		if got := r.Around[0]; got.Block != 500 || got.LogIndex != 7 || got.Token != coin.Address ||
			got.From != claims[1].To || got.To != claims[1].Rating.Client || got.Amount.Int64() != 250_000 {
			t.Errorf("at %s: %+v", at, got)
		}
	}
}
