package apibench

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/store"
	"repute/store/eventdb"
)

// writer adds blocks to the index, as the product's indexer does once it has their logs. There is one at a time: each
// continues at the newest block that it found.
type writer struct {
	db     *store.DB
	tip    repute.Block // newest block that is committed
	agents int
	index  uint64 // of the newest rating by the writer's client
}

// newWriter continues at the newest block.
func newWriter(ctx context.Context, db *store.DB, agents int) (*writer, error) {
	b, err := tip(ctx, db)
	return &writer{db: db, tip: b, agents: agents}, err
}

// batchBlocks is how many blocks the writer commits at once: as many as an indexer that is behind.
const batchBlocks = 50

// write commits n blocks of ratings, each of an agent of its own.
func (w *writer) write(ctx context.Context, n int) error {
	batch := eventdb.Batch{ChainID: chainID, Parent: w.tip}
	for range n {
		b := after(w.tip)
		batch.Blocks = append(batch.Blocks, b)
		for i := range perBlock {
			w.index++
			batch.Records = append(batch.Records, repute.Record{Time: b.Time,
				Log: types.Log{Address: chain().Reputation, Topics: []common.Hash{{1}}, BlockNumber: b.Number,
					BlockHash: b.Hash,
					Index:     uint(i), TxHash: common.BytesToHash(fmt.Appendf(nil, "transaction %d", w.index))},
				Event: repute.NewFeedback{TokenID: w.agent(), Client: w.client(), Index: 1, Value: big.NewInt(50),
					Tag1: "tag1",
					Tag2: "tag2", Endpoint: "https://bench.example"}})
		}
		w.tip, batch.To = b, b
	}
	if err := eventdb.Apply(ctx, w.db, batch); err != nil {
		return fmt.Errorf("write blocks: %w", err)
	}
	return nil
}

// agent returns the agent of the newest rating.
func (w *writer) agent() (id repute.TokenID) {
	id.SetUint64(1 + w.index*7919%uint64(max(w.agents-1, 1)))
	return id
}

// client returns the client of the newest rating, who gives no other one.
func (w *writer) client() common.Address {
	return common.BigToAddress(new(big.Int).SetUint64(1<<40 + w.index))
}

// pace writes for a time, and returns the events per second. A batch that was begun is finished: the time is the one
// that it took, not span.
func (w *writer) pace(ctx context.Context, span time.Duration) (perSecond float64, err error) {
	start, events := time.Now(), 0
	for time.Since(start) < span {
		if err := w.write(ctx, batchBlocks); err != nil {
			return 0, err
		}
		events += batchBlocks * perBlock
	}
	return float64(events) / time.Since(start).Seconds(), nil
}
