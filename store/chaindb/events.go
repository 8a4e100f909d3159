package chaindb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Point is the position of a log on a chain.
type Point struct {
	Block uint64
	Log   uint32
}

// PointOf returns the position of a log.
func PointOf(l *types.Log) Point { return Point{Block: l.BlockNumber, Log: uint32(l.Index)} }

// Why a stored event has no effect. The first group waits for an event that is
// missing, the second contradicts what is known. Logs that cannot be read wait
// with their UndecodedReason.
const (
	// WaitsForAgent: the mint of the agent is missing.
	WaitsForAgent = "unknown_agent"
	// WaitsForIndex: an earlier rating of the same client for the agent is missing.
	WaitsForIndex = "index_gap"
	// WaitsForFeedback: the rating that is revoked or answered is missing.
	WaitsForFeedback = "unknown_feedback"
	// WaitsForRequest: the validation request that is answered is missing.
	WaitsForRequest = "unknown_request"

	// IgnoredForeign: the request is unknown, and its contract is not on the allow-list.
	IgnoredForeign = "foreign_request"
)

// WalletKey is the metadata key that the registry reserves for the agent's wallet.
const WalletKey = "agentWallet"

// SameLog reports whether two logs have the same content: address, transaction, topics and data.
func SameLog(a, b *types.Log) bool {
	return a.Address == b.Address && a.TxHash == b.TxHash && slices.Equal(a.Topics, b.Topics) &&
		bytes.Equal(a.Data, b.Data)
}

// BlockArrays returns the columns of blocks as array parameters.
func BlockArrays(blocks []repute.Block) (numbers []uint64, hashes, parents [][]byte, times []*time.Time) {
	for i := range blocks {
		numbers = append(numbers, blocks[i].Number)
		hashes, parents = append(hashes, column.HashBytes(blocks[i].Hash)), append(parents,
			column.HashBytes(blocks[i].Parent))
		times = append(times, column.MaybeTime(blocks[i].Time))
	}
	return numbers, hashes, parents, times
}

// SelectEvents is the list of columns that ScanEvent reads.
const SelectEvents = `select block, log_index, tx_index, address, tx_hash, topics, data from events `

// ScanEvent reads a stored log. The hash of its block is not restored.
func ScanEvent(row pgx.CollectableRow) (l types.Log, err error) {
	var topics []byte
	err = row.Scan(&l.BlockNumber, &l.Index, &l.TxIndex, (*column.Address)(&l.Address), (*column.Hash)(&l.TxHash),
		&topics, &l.Data)
	l.Topics = TopicsOf(topics)
	return l, err
}

// StoredLogs returns what is stored at positions of a chain; a position without a log is absent.
func StoredLogs(ctx context.Context, q store.Querier, chainID uint64, at []Point) (map[Point]*types.Log, error) {
	blocks, logs := make([]uint64, len(at)), make([]uint32, len(at))
	for i, p := range at {
		blocks[i], logs[i] = p.Block, p.Log
	}
	rows, _ := q.Query(ctx, `
		select e.* from unnest($2::bigint[], $3::integer[]) u(b, l) cross join lateral (
			`+SelectEvents+`where chain_id = $1 and block = u.b and log_index = u.l offset 0) e`, chainID, blocks, logs)
	list, err := pgx.CollectRows(rows, ScanEvent)
	stored := make(map[Point]*types.Log, len(list))
	for i := range list {
		stored[PointOf(&list[i])] = &list[i]
	}
	return stored, err
}

// DecodeLogs decodes stored logs. A stored log that does not decode is an error.
func DecodeLogs(logs []types.Log, decode func(types.Log) (repute.Event, error)) ([]repute.Record, error) {
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

// TopicsOf splits stored topics, which follow each other without a separator.
func TopicsOf(raw []byte) (topics []common.Hash) {
	for ; len(raw) >= common.HashLength; raw = raw[common.HashLength:] {
		topics = append(topics, common.BytesToHash(raw[:common.HashLength]))
	}
	return topics
}
