package importdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/eventdb"
	"repute/store/hourdb"
)

// refoldChunk is how many events are folded at a time; more only where one block has more.
const refoldChunk = 5000

// foldChunks folds ordered records in chunks of whole blocks into the histories and current rows
// that tx sees, without changes for the feed.
func foldChunks(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, records []repute.Record, ids docdb.Interned,
	each func(*eventdb.Delta)) error {
	for len(records) > 0 {
		n := wholeBlocks(records, refoldChunk)
		d, err := eventdb.FoldRecords(ctx, tx, c, records[:n], ids)
		if err != nil {
			return err
		}
		if err := d.Write(ctx, tx, c.ID); err != nil {
			return err
		}
		each(d)
		records = records[n:]
	}
	return nil
}

// wholeBlocks returns the length of the shortest prefix of at least n records that does not split a
// block.
func wholeBlocks(records []repute.Record, n int) int {
	if n >= len(records) {
		return len(records)
	}
	for n < len(records) && records[n].Log.BlockNumber == records[n-1].Log.BlockNumber {
		n++
	}
	return n
}

// forget deletes histories and current rows of agents, and with operators all operator spans of the
// chain. Events, blocks and cursor stay. Answers are deleted before the requests by which they are found. Rows of
// pending that name no agent stay.
func forget(ctx context.Context, tx pgx.Tx, chainID uint64, agents []repute.TokenID, operators bool) error {
	ids := column.TokenArray(agents)
	if err := hourdb.Forget(ctx, tx, chainID, ids); err != nil {
		return err
	}
	var b pgx.Batch
	b.Queue(`delete from validation_responses `+eventdb.WhereAnswerOfAgent("true"), chainID, ids)
	for _, table := range []string{"validation_requests", "agent_states", "metadata", "feedback", "responses", "agents",
		"sums", "votes"} {
		b.Queue("delete from "+table+" "+eventdb.WhereAgent(table, "true"), chainID, ids)
	}
	b.Queue("delete from pending where chain_id = $1 and token_id = any($2::numeric[])", chainID, ids)
	if operators {
		b.Queue("delete from operators where chain_id = $1", chainID)
	}
	return store.Failed("forget agents", tx.SendBatch(ctx, &b).Close())
}
