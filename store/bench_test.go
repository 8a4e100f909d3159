package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// The tables that a batch fills.
var written = []string{"tags", "uris", "blocks", "events", "agent_states", "metadata", "feedback", "responses",
	"agents", "sums", "votes"}

// BenchmarkApply writes recorded-like batches and reports the rate, and the rate
// as a share of what a plain COPY of the same final rows into the same tables,
// indexes included, reaches.
func BenchmarkApply(b *testing.B) {
	const size, batches = 5000, 12
	var apply, plain time.Duration
	for range b.N {
		b.StopTimer()
		db, copied := testDB(b), testDB(b)
		ctx := ctxOf(b)
		ok(b, chaindb.AddChain(ctx, db, testChain(1)))
		all := traffic(size, batches)
		b.StartTimer()
		start := time.Now()
		for _, batch := range all {
			ok(b, eventdb.Apply(ctx, db, batch))
		}
		apply += time.Since(start)
		b.StopTimer()
		took, _ := copyAll(b, ctx, db, copied)
		plain += took
	}
	b.ReportMetric(float64(b.N*size*batches)/apply.Seconds(), "records/s")
	b.ReportMetric(100*plain.Seconds()/apply.Seconds(), "%ofCOPY")
}

// traffic is a history of one chain as measured on mainnets: some registrations,
// mostly first ratings, now and then a second one, a response or a revocation.
func traffic(size, batches int) (out []eventdb.Batch) {
	rnd := rand.New(rand.NewSource(7))
	parent := repute.Block{Number: firstBlock - 1}
	given := map[mPair]uint64{}
	agents := uint64(0)
	for range batches {
		var blocks []block
		for n := 0; n < size; {
			b := block{Block: repute.Block{Number: parent.Number + 1, Parent: parent.Hash,
				Time: time.Unix(1_700_000_000, 0)}}
			binary.BigEndian.PutUint64(b.Hash[:], b.Number)
			var events []emitted
			for len(events) < 50 {
				x := tx{}
				if agents == 0 || rnd.Intn(20) == 0 {
					owner := rpctest.Account(rnd.Uint64())
					x.emit(repute.Transfer{To: owner, TokenID: token(agents)})
					x.emit(repute.Registered{TokenID: token(agents), Owner: owner,
						URI: fmt.Sprintf("https://agents.example/%d", agents)})
					x.emit(repute.MetadataSet{TokenID: token(agents), Key: "agentWallet", Value: owner.Bytes()})
					agents++
				} else {
					key := mPair{uint64(rnd.Int63n(int64(agents))), rpctest.Account(uint64(rnd.Intn(2000)))}
					given[key]++
					x.emit(repute.NewFeedback{TokenID: token(key.token), Client: key.client, Index: given[key],
						Value:    big.NewInt(rnd.Int63n(10000)),
						Decimals: 2, Tag1: words[rnd.Intn(3)], Tag2: "task", Endpoint: "https://a.example",
						FeedbackHash: common.Hash{1}})
					if rnd.Intn(100) == 0 {
						x.emit(repute.FeedbackRevoked{TokenID: token(key.token), Client: key.client, Index: given[key]})
					}
				}
				events = append(events, x.events...)
			}
			b.add(0, events)
			n += len(events)
			blocks, parent = append(blocks, b), b.Block
		}
		batch := batchOf(1, blocks[0].parentBlock(), blocks)
		batch.Backfill = true
		out = append(out, batch)
	}
	return out
}

func (b *block) parentBlock() repute.Block { return repute.Block{Number: b.Number - 1, Hash: b.Parent} }

// copyAll copies the filled tables from one database to another and tells how
// long the writing took, by the clock and of the server's processor.
func copyAll(b *testing.B, ctx context.Context, from, to *store.DB) (total, cpu time.Duration) {
	b.Helper()
	conns := [2]*pgx.Conn{}
	for i, db := range []*store.DB{from, to} {
		var err error
		conns[i], err = pgx.ConnectConfig(ctx, db.Pool().Config().ConnConfig)
		ok(b, err)
		defer conns[i].Close(ctx)
	}
	for _, table := range written {
		var rows bytes.Buffer
		_, err := conns[0].PgConn().CopyTo(ctx, &rows, "copy "+table+" to stdout binary")
		ok(b, err)
		start := time.Now()
		_, err = conns[1].PgConn().CopyFrom(ctx, &rows, "copy "+table+" from stdin binary")
		ok(b, err)
		total += time.Since(start)
	}
	return total, backendCPU(b, ctx, to)
}
