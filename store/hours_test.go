package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/importdb"
)

// eventsOfHours is every event that hours count, from the rows that it left: plainly, one row for each.
const eventsOfHours = `
	select 1 as series, chain_id, token_id, registered_block as block, registered_log as log, 1 as began, 0 as ended,
		0::numeric as sum, 0::numeric as net from agents
	union all select 2, chain_id, token_id, block, log_index, 1, 0, value * ('1e-' || decimals)::numeric,
		value * ('1e-' || decimals)::numeric
		from feedback
	union all select 2, chain_id, token_id, revoked_block, revoked_log, 0, 1, 0, -value * ('1e-' || decimals)::numeric
		from feedback where revoked_block is not null
	union all select 3, q.chain_id, q.token_id, q.block, q.log_index, 1, 0, 0, 0
		from validation_requests q join chains c on c.chain_id = q.chain_id and q.contract = any(c.validations)
	union all select 3, q.chain_id, q.token_id, x.block, x.log_index, 0, 1, x.response, 0
		from validation_requests q join chains c on c.chain_id = q.chain_id and q.contract = any(c.validations)
		join validation_responses x on (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)`

// checkHours compares the stored hours with the events added up anew.
func checkHours(t failer, ctx context.Context, db *store.DB) {
	t.Helper()
	dated := `select e.*, e.block * 1000000 + least(e.log, 999999) as place,
			coalesce(floor(extract(epoch from b.time) / 3600), 0)::bigint as hour
		from (` + eventsOfHours + `) e left join blocks b on b.chain_id = e.chain_id and b.number = e.block`
	rows, err := db.Pool().Query(ctx, `
		with events as (`+dated+`), wanted as (
			select chain_id, series, token_id, hour, min(place) as oldest, sum(began) as began, sum(ended) as ended,
				sum(sum) as sum, sum(net) as net from events where series > 1 group by 1, 2, 3, 4
			union all select chain_id, series, -1, hour, min(place), sum(began), sum(ended), sum(sum), sum(net)
				from events group by 1, 2, 4)
		select format('%s: stored %s, not %s', (w.chain_id, w.series, w.token_id, w.hour),
			(h.chain_id, h.series, h.token_id, h.hour, h.oldest, h.began, h.ended, h.sum, h.net),
			(w.oldest, w.began, w.ended, w.sum, w.net))
		from hours h full join wanted w using (chain_id, series, token_id, hour)
		where (h.oldest, h.began, h.ended, h.sum, h.net) is distinct from (w.oldest, w.began, w.ended, w.sum, w.net)`)
	ok(t, err)
	defer rows.Close()
	wrong := ""
	for rows.Next() {
		var line string
		ok(t, rows.Scan(&line))
		wrong += fmt.Sprintln(line)
	}
	ok(t, rows.Err())
	if wrong != "" {
		t.Fatalf("hours differ from their events:\n%s", wrong)
	}
}

// However late the times of blocks are known, or become others, and whichever contracts of validations are trusted,
// the hours are those of the events.
func TestHoursFollowTimes(t *testing.T) {
	db := testDB(t)
	var chains atomic.Uint64
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l := newLedger()
		for range rapid.IntRange(1, 5).Draw(t, "blocks") {
			l.mine(t)
		}
		whole := batchOf(chains.Add(1), l.genesis, l.blocks)
		ok(t, chaindb.AddChain(ctx, db, testChain(whole.ChainID)))
		ok(t, eventdb.Apply(ctx, db, whole))
		want := dump(t, ctx, db, whole.ChainID)

		chain := testChain(chains.Add(1))
		for _, part := range parts(t, whole.Records, 3) {
			for i := range part {
				if rapid.Bool().Draw(t, "undated") {
					part[i].Time = time.Time{}
				}
			}
			_, err := importdb.Import(ctx, db, chain, part, nil, nil)
			ok(t, err)
			dump(t, ctx, db, chain.ID) // compares hours
		}
		covered := []repute.BlockRange{{From: firstBlock, To: whole.To.Number}}
		_, err := importdb.Import(ctx, db, chain, whole.Records, whole.Blocks, covered)
		ok(t, err)
		equalDumps(t, "import", want, dump(t, ctx, db, chain.ID))

		chain.Imported = true
		chain.Validations = rapid.SampledFrom([][]common.Address{nil, {foreignValidation},
			{registries.Validation, foreignValidation}}).Draw(t, "trusted")
		ok(t, chaindb.AddChain(ctx, db, chain))
		dump(t, ctx, db, chain.ID)
		moved := rapid.SampledFrom(l.blocks).Draw(t, "moved").Block
		moved.Time = moved.Time.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "hours")) * time.Hour)
		ok(t, importdb.Amend(ctx, db, chain.ID, store.Lease{}, importdb.Amendment{Block: moved}))
		dump(t, ctx, db, chain.ID)

		last := whole.To
		last.Time = last.Time.Add(5 * time.Hour)
		chain.Imported = false
		ok(t, importdb.Resume(ctx, db, chain, store.Lease{}, last))
		dump(t, ctx, db, chain.ID)
	})
}

// Times of blocks that do not ascend give the hours of their events too.
func TestHoursOfTimesOutOfOrder(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l := twoAgents()
	for index := uint64(1); index <= 4; index++ {
		l.extend(txOf{repute.NewFeedback{TokenID: token(0), Client: rpctest.Account(3), Index: index, Value: values[7],
			Decimals: 2}})
	}
	parent := l.genesis
	for i := range l.blocks {
		l.blocks[i].Time = time.Unix(1_700_000_000+int64(i%2)*36_000, 0).UTC()
		b := batchOf(1, parent, l.blocks[i:i+1])
		ok(t, eventdb.Apply(ctx, db, b))
		dump(t, ctx, db, 1)
		parent = b.To
	}
	l.blocks = l.blocks[:len(l.blocks)-1]
	ok(t, eventdb.Rewind(ctx, db, l.head(), batchOf(1, l.head(), nil)))
	dump(t, ctx, db, 1)
}
