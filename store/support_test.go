package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/eventdb"
	"repute/store/importdb"
)

// failer is what *testing.T and *rapid.T share.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func ok(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// testDB is a store on a fresh database.
func testDB(t testing.TB) *store.DB {
	t.Helper()
	db, _ := testDBAt(t)
	return db
}

func testDBAt(t testing.TB) (*store.DB, string) {
	t.Helper()
	url := pgtest.New(t)
	return openDB(t, url), url
}

func openDB(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(ctxOf(t), url, store.Options{Decode: contracts.Read})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func ctxOf(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func testChain(id uint64) repute.Chain {
	return repute.Chain{
		ID: id, Name: fmt.Sprintf("chain %d", id), Identity: registries.Identity, Reputation: registries.Reputation,
		Validations: []common.Address{registries.Validation}, Gateways: modelGateways, StartBlock: firstBlock,
	}
}

// batchOf puts consecutive blocks behind parent into a batch.
func batchOf(chainID uint64, parent repute.Block, blocks []block) eventdb.Batch {
	b := eventdb.Batch{ChainID: chainID, Parent: parent, To: parent}
	for _, one := range blocks {
		b.Blocks = append(b.Blocks, one.Block)
		b.Records = append(b.Records, one.records...)
		b.To = one.Block
	}
	return b
}

// txOf is one transaction of a hand-written chain.
type txOf []repute.Event

// chainOf mines one block per argument, each holding one transaction.
func chainOf(txs ...txOf) *ledger {
	l := newLedger()
	l.extend(txs...)
	return l
}

func (l *ledger) extend(txs ...txOf) []block {
	from := len(l.blocks)
	for _, events := range txs {
		parent := l.head()
		b := block{Block: repute.Block{Number: parent.Number + 1, Parent: parent.Hash}, after: newState()}
		b.Hash = common.BytesToHash(fmt.Appendf(nil, "%d/%d", b.Number, l.forks))
		b.Time = time.Unix(1_700_000_000+2*int64(b.Number), 0).UTC()
		var out []emitted
		for _, e := range events {
			x := tx{}
			x.emit(e)
			switch e.(type) {
			case repute.ValidationRequest, repute.ValidationResponse:
				x.events[0].contract = registries.Validation
			}
			out = append(out, x.events...)
		}
		b.add(0, out)
		l.blocks = append(l.blocks, b)
	}
	return l.blocks[from:]
}

func dump(t failer, ctx context.Context, db *store.DB, chainID uint64) string {
	t.Helper()
	var b bytes.Buffer
	ok(t, importdb.Dump(ctx, db, &b, chainID))
	checkTotalsOfAgents(t, ctx, db)
	checkHours(t, ctx, db)
	return string(bytes.ReplaceAll(b.Bytes(), fmt.Appendf(nil, `"chain" : %d,`, chainID), []byte(`"chain" : 0,`)))
}

// checkTotalsOfAgents compares the totals of agents that triggers maintain with those of the rows that they add up.
func checkTotalsOfAgents(t failer, ctx context.Context, db *store.DB) {
	t.Helper()
	for _, sql := range []string{
		`select count(*) from agent_sums a full join (
			select chain_id, token_id, tag1, tag2, decimals, sum(n) as n, sum(sum) as sum from sums group by 1, 2, 3, 4, 5) s
			using (chain_id, token_id, tag1, tag2, decimals) where (a.n, a.sum) is distinct from (s.n, s.sum)`,
		`select count(*) from agent_votes a full join (
			select chain_id, token_id, tag1, value, decimals, count(*) as n from votes group by 1, 2, 3, 4, 5) v
			using (chain_id, token_id, tag1, value, decimals) where a.n is distinct from v.n`,
	} {
		var wrong int
		ok(t, db.Pool().QueryRow(ctx, sql).Scan(&wrong))
		if wrong > 0 {
			t.Fatalf("%d totals of agents are wrong: %s", wrong, sql)
		}
	}
}

// row is one line of a dump.
type row map[string]any

func (r row) str(key string) string { s, _ := r[key].(string); return s }
func (r row) num(key string) uint64 { n, _ := r[key].(json.Number).Int64(); return uint64(n) }

// rows parses the lines of one table.
func rows(t failer, dump, table string) (out []row) {
	t.Helper()
	for _, line := range bytes.Split([]byte(dump), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var r row
		ok(t, d.Decode(&r))
		if r.str("table") == table {
			out = append(out, r)
		}
	}
	return out
}

// readChanges reads the feed from since to its end. Transactions of other tests
// on the same server hold the feed back, so it waits for the newest row.
func readChanges(t failer, ctx context.Context, db *store.DB, since string) (all []store.Change) {
	t.Helper()
	newest := newestChange(t, ctx, db)
	for since != newest {
		some, _, err := db.Changes(ctx, since, 97, store.ChangeFilter{})
		ok(t, err)
		if len(some) == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		all = append(all, some...)
		since = some[len(some)-1].Cursor
	}
	return all
}

func newestChange(t failer, ctx context.Context, db *store.DB) (cursor string) {
	t.Helper()
	ok(t, db.Pool().QueryRow(ctx, `
		select coalesce((select xid::text || '-' || seq from changes order by xid desc, seq desc limit 1), '')`).Scan(&cursor))
	return cursor
}
