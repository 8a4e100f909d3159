package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/contracts"
	"repute/internal/synth"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// BenchmarkApplyHistory stores a generated history in batches of several sizes,
// without a node, and compares as BenchmarkApply does. The history is kept between
// runs under the user's cache.
func BenchmarkApplyHistory(b *testing.B) {
	const events = 300_000
	h := generated(b, events)
	for _, size := range []int{5_000, 20_000, 50_000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			batches := historyBatches(b, h, size)
			var apply, plain, applyCPU, plainCPU time.Duration
			for range b.N {
				b.StopTimer()
				db, copied := testDB(b), testDB(b)
				ctx := ctxOf(b)
				ok(b, chaindb.AddChain(ctx, db, synth.Chain()))
				b.StartTimer()
				start := time.Now()
				for _, batch := range batches {
					ok(b, eventdb.Apply(ctx, db, batch))
				}
				apply += time.Since(start)
				b.StopTimer()
				applyCPU += backendCPU(b, ctx, db)
				took, cpu := copyAll(b, ctx, db, copied)
				plain += took
				plainCPU += cpu
			}
			b.ReportMetric(applyCPU.Seconds(), "s-cpu")
			b.ReportMetric(100*plainCPU.Seconds()/applyCPU.Seconds(), "%ofCOPY-cpu")
			b.ReportMetric(float64(b.N*events)/apply.Seconds(), "records/s")
			b.ReportMetric(100*plain.Seconds()/apply.Seconds(), "%ofCOPY")
		})
	}
}

func generated(b *testing.B, events int) *synth.History {
	dir, err := os.UserCacheDir()
	ok(b, err)
	h, err := synth.Open(context.Background(), filepath.Join(dir, "repute", "bench"),
		synth.Spec{Shape: synth.Base, Seed: 8004, Events: events})
	ok(b, err)
	b.Cleanup(func() { ok(b, h.Close()) })
	return h
}

// historyBatches divides a history into batches of whole blocks.
func historyBatches(b *testing.B, h *synth.History, size int) (out []eventdb.Batch) {
	parent := repute.Block{Number: synth.Chain().StartBlock - 1}
	batch := eventdb.Batch{ChainID: synth.Chain().ID, Parent: parent, Backfill: true}
	for number := parent.Number + 1; number <= h.LastEvent(); number++ {
		header, hash, err := h.Header(number)
		ok(b, err)
		logs, err := h.Logs(number)
		ok(b, err)
		batch.To = repute.Block{Number: number, Hash: hash, Parent: header.ParentHash,
			Time: time.Unix(int64(header.Time), 0).UTC()}
		if len(logs) > 0 {
			batch.Blocks = append(batch.Blocks, batch.To)
		}
		for _, l := range logs {
			e, err := contracts.Decode(*l)
			ok(b, err)
			batch.Records = append(batch.Records, repute.Record{Log: *l, Time: batch.To.Time, Event: e})
		}
		if len(batch.Records) >= size || number == h.LastEvent() {
			out = append(out, batch)
			batch = eventdb.Batch{ChainID: synth.Chain().ID, Parent: batch.To, Backfill: true}
		}
	}
	return out
}

// backendCPU is the processor time that the server's sessions of a database have
// used, which a busy machine does not change as it changes the clock's. It is 0
// where the server runs elsewhere or the system does not tell.
func backendCPU(b *testing.B, ctx context.Context, db *store.DB) (total time.Duration) {
	b.Helper()
	rows, err := db.Pool().Query(ctx, "select pid from pg_stat_activity where datname = current_database()")
	ok(b, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	ok(b, err)
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(after)
		const utime, stime, tick = 11, 12, 10 * time.Millisecond
		for _, i := range []int{utime, stime} {
			n, err := strconv.Atoi(fields[i])
			ok(b, err)
			total += time.Duration(n) * tick
		}
	}
	return total
}
