package payments

import (
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/importdb"
	"repute/store/paydb"
	"repute/store/verifydb"
)

func (w *world) sql(text string) {
	w.Helper()
	if _, err := w.db.Pool().Exec(w.Context(), text); err != nil {
		w.Fatal(err)
	}
}

// told counts the changes that tell of payments.
func (w *world) told() (n int) {
	w.Helper()
	if err := w.db.Pool().QueryRow(w.Context(),
		"select count(*) from changes where kind = 'payment.checked'").Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// What goes back after a payment was verified takes it away, by the time the window ends.
func TestRefundIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Window: 3 * time.Hour})
	txs := w.pay(transfer{w.coin, 2, 0, usd(50)}, transfer{w.coin, 3, 0, usd(50)})
	w.rate(2, w.file(2, w.proof(2, 0, txs[0])))
	w.rate(3, w.file(3, w.proof(3, 0, txs[1])))
	w.settle()
	w.sees(2, "verified 50 of 50 USDX")
	w.pay(transfer{w.coin, 0, 2, usd(50)}, transfer{w.coin, 0, 3, usd(1)})
	w.sql("update payments set next_due = now() where next_due is not null")
	w.settle()
	w.sees(2, "refused circular")
	w.sees(3, "verified 49 of 50 USDX")
	if n := w.told(); n != 4 {
		t.Errorf("%d changes, want 2 of verified payments and 2 of what came back", n)
	}
}

// A block that gets another time changes which rating was given first: its payments, and
// those of the ratings that claim the same transfer, are looked at again.
func TestRetimedBlockReordersPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	tx := w.pay(transfer{w.coin, 2, 0, usd(7)})[0]
	w.rate(2, w.file(2, w.proof(2, 0, tx)))
	w.rate(2, w.file(2, w.proof(2, 0, tx)))
	for range 4 {
		w.rate(3)
	}
	w.index()
	var block uint64
	if err := w.db.Pool().QueryRow(t.Context(), "select min(block) from feedback").Scan(&block); err != nil {
		t.Fatal(err)
	}
	headers, err := verifydb.Headers(t.Context(), w.db, w.dn.Chain().ID, []uint64{block})
	if err != nil {
		t.Fatal(err)
	}
	w.sql(fmt.Sprintf("update blocks set time = time + interval '1 hour' where number = %d", block))
	w.settle()
	w.sees(2, "refused used", "verified 7 of 7 USDX")
	if err := importdb.Amend(t.Context(), w.db, w.dn.Chain().ID, store.Lease{},
		importdb.Amendment{Block: headers[block]}); err != nil {
		t.Fatal(err)
	}
	w.sees(2, "pending", "pending")
	w.look()
	w.sees(2, "verified 7 of 7 USDX", "refused used")
	w.sql("do $$ begin assert (select count(*) from changes where kind = 'repaired') > 0; end $$")
}

// A transfer counts for the rating given first, in whatever order files are read.
func TestEarlierRatingTakesItsPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	tx := w.pay(transfer{w.coin, 2, 0, usd(7)})[0]
	w.rate(2, w.file(2, w.proof(2, 0, tx)), w.file(2, w.proof(2, 0, tx)), w.file(2, w.proof(2, 0, tx)))
	for range 4 {
		w.rate(3)
	}
	w.index()
	w.read()
	if n, err := paydb.MatchPayments(t.Context(), w.db, 10); err != nil || n != 1 {
		t.Fatalf("%d files, %v", n, err)
	}
	w.sql("update payments set next_due = now() + interval '1 day' where idx < 3")
	w.look()
	w.sees(2, "pending", "pending", "verified 7 of 7 USDX")
	w.sql("update payments set next_due = now() where idx = 2")
	w.look()
	w.sees(2, "pending", "verified 7 of 7 USDX", "refused used")
	w.sql("update payments set next_due = now() where idx = 1")
	w.look()
	w.sees(2, "verified 7 of 7 USDX", "refused used", "refused used")
	entries, err := paydb.ReadLedger(t.Context(), w.db, repute.AgentID{ChainID: w.dn.Chain().ID})
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, e := range entries {
		told += fmt.Sprintf("%d:%s ", e.Index, e.Paid)
	}
	if want := "3:7 3:0 2:7 2:0 1:7 "; told != want {
		t.Errorf("the ledger tells %s, want %s", told, want)
	}
}

// A transaction that a reorganization took away is no payment, nor one that is not final.
func TestReorgedPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	tx := w.pay(transfer{w.coin, 2, 0, usd(7)})[0]
	if err := w.dn.Reorg(t.Context(), 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := w.dn.DropPool(); err != nil {
		t.Fatal(err)
	}
	w.rate(2, w.file(2, w.proof(2, 0, tx)))
	w.settle()
	w.sees(2, "unavailable not-found")
	w.sql("update payments set next_due = now(), attempts = 11")
	w.look()
	w.sees(2, "refused no-transaction")
}

// An account that the file declares is a payee as the wallet is, if the file cannot change.
func TestDeclaredPayee(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	b := w.dn.Batch()
	b.SetAgentURI(w.dn.Account(0), 0,
		`data:application/json,{"name":"a","services":[{"name":"agentWallet","endpoint":"eip155:31337:`+w.who(4).Hex()+
			`"}]}`)
	w.mine(b)
	txs := w.pay(transfer{w.coin, 2, 4, usd(7)}, transfer{w.coin, 2, 5, usd(7)})
	w.rate(2, w.file(2, w.proof(2, 4, txs[0])), w.file(2, w.proof(2, 5, txs[1])))
	w.settle()
	w.sees(2, "verified 7 of 7 USDX", "refused not-the-payee")
	b = w.dn.Batch()
	b.SetAgentURI(w.dn.Account(0), 0, "")
	b.SetAgentWallet(w.dn.Account(0), 0, w.dn.Account(6))
	w.mine(b)
	txs = w.pay(transfer{w.coin, 2, 4, usd(8)}, transfer{w.coin, 2, 6, usd(9)})
	w.rate(2, w.file(2, w.proof(2, 4, txs[0])), w.file(2, w.proof(2, 6, txs[1])))
	w.settle()
	w.sees(2, "verified 7 of 7 USDX", "refused not-the-payee", "refused not-the-payee", "verified 9 of 9 USDX")
}

// A file that names neither agent nor client is found by way of its rating.
func TestFileWithoutNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	tx := w.pay(transfer{w.coin, 2, 0, usd(7)})[0]
	w.rate(2, `data:application/json,{"value":90,"proofOfPayment":`+w.proof(2, 0, tx)+`}`)
	w.settle()
	w.sees(2, "verified 7 of 7 USDX")
}

func TestBlocksIn(t *testing.T) {
	t.Parallel()
	at := func(n uint64, s int64) repute.Block {
		return repute.Block{Number: n, Time: time.Unix(s, 0), Hash: common.Hash{byte(n)}}
	}
	for _, c := range []struct {
		from, to repute.Block
		want     uint64
	}{
		{at(100, 1000), at(200, 1200), 1801},
		{at(100, 1000), at(100, 1000), 3600},
		{at(100, 1000), at(200, 900), 3600},
	} {
		if n := blocksIn(time.Hour, c.from, c.to); n != c.want {
			t.Errorf("%d blocks, want %d", n, c.want)
		}
	}
}
