package store

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
)

// refoldChunk is how many events are folded at a time, more only where one block
// has more.
const refoldChunk = 5000

// selectEvents are the columns that scanEvent reads.
const selectEvents = `select block, log_index, tx_index, address, tx_hash, topics, data from events `

// scanEvent restores a stored log; the block's hash is not restored.
func scanEvent(row pgx.CollectableRow) (l types.Log, err error) {
	var address, tx, topics []byte
	var data []byte
	if err := row.Scan(&l.BlockNumber, &l.Index, &l.TxIndex, &address, &tx, &topics, &data); err != nil {
		return l, err
	}
	l.Address, l.TxHash, l.Data = common.BytesToAddress(address), common.BytesToHash(tx), data
	l.Topics = topicsOf(topics)
	return l, nil
}

// decodeLogs gives logs their meaning again. What was stored once must decode.
func decodeLogs(logs []types.Log, decode func(types.Log) (repute.Event, error)) ([]repute.Record, error) {
	records := make([]repute.Record, len(logs))
	for i, l := range logs {
		e, err := decode(l)
		if err != nil {
			return nil, fmt.Errorf("decode log %d of block %d: %w", l.Index, l.BlockNumber, err)
		}
		records[i] = repute.Record{Log: l, Event: e}
	}
	return records, nil
}

// foldChunks folds records, in order and in chunks of whole blocks, into the
// histories and current rows that tx sees. It is quiet: no changes.
func foldChunks(ctx context.Context, tx pgx.Tx, c *chainRow, records []repute.Record, ids interned, each func(*delta)) error {
	for len(records) > 0 {
		n := wholeBlocks(records, refoldChunk)
		d, err := foldRecords(ctx, tx, c, records[:n], ids)
		if err != nil {
			return err
		}
		if err := d.write(ctx, tx, c.id); err != nil {
			return err
		}
		each(d)
		records = records[n:]
	}
	return nil
}

// wholeBlocks is the length of the shortest prefix of at least n records that
// does not split a block.
func wholeBlocks(records []repute.Record, n int) int {
	if n >= len(records) {
		return len(records)
	}
	for n < len(records) && records[n].Log.BlockNumber == records[n-1].Log.BlockNumber {
		n++
	}
	return n
}

// forget removes histories and current rows of agents, and where operators is
// set all operator spans of the chain. Events, blocks and cursor stay.
func forget(ctx context.Context, tx pgx.Tx, chainID uint64, agents []repute.TokenID, operators bool) error {
	var b pgx.Batch
	ids := tokenArray(agents)
	b.Queue(`delete from validation_responses `+whereAnswerOfAgent("true"), chainID, ids)
	for _, table := range []string{"validation_requests", "agent_states", "metadata", "feedback", "responses", "agents", "sums", "votes"} {
		b.Queue("delete from "+table+" "+whereAgent(table, "true"), chainID, ids)
	}
	b.Queue("delete from pending where chain_id = $1 and token_id = any($2::numeric[])", chainID, ids)
	if operators {
		b.Queue("delete from operators where chain_id = $1", chainID)
	}
	return failed("forget agents", tx.SendBatch(ctx, &b).Close())
}
