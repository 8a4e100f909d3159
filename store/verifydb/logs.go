package verifydb

import (
	"context"
	"errors"
	"math"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// AbsentAgents compares the agents that are stored as registered at a block with count, the number
// of agents that the registry reports there. It returns up to limit absent ids below count, for each
// of them the blocks between which it must have been registered, and the number of stored agents.
// Its cost depends on the stored rows, not on count.
func AbsentAgents(ctx context.Context, db *store.DB, chainID, block, count uint64, limit int) (ids []uint64,
	where []repute.BlockRange, stored uint64, err error) {
	err = chaindb.View(ctx, db, "count agents", func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select count(*) from agents where chain_id = $1 and registered_block <= $2`, chainID,
			block).Scan(&stored)
		if err != nil || stored == count {
			return err
		}
		rows, _ := tx.Query(ctx, `
			select missing::bigint, since, until from (
				select from_id, to_id, since, until from (
					select coalesce(lag(token_id) over w, -1) + 1 from_id, token_id - 1 to_id,
						coalesce(lag(registered_block) over w, 0) since, registered_block until
					from agents where chain_id = $1 and registered_block <= $2 and token_id < $3::numeric
					window w as (order by token_id)
				) between_ids where from_id <= to_id
				union all
				select coalesce(newest.token_id, -1) + 1, $3::numeric - 1, coalesce(newest.registered_block, 0), $2
				from (values (1)) one left join lateral (select token_id, registered_block from agents
					where chain_id = $1 and registered_block <= $2 and token_id < $3::numeric order by token_id desc limit 1)
						newest on true
				where coalesce(newest.token_id, -1) + 1 < $3::numeric
				order by from_id limit $4
			) holes cross join lateral generate_series(from_id, least(to_id, from_id + $4 - 1)) missing
			order by missing limit $4`,
			chainID, block, count, limit)
		var id, from, to uint64
		_, err = pgx.ForEachRow(rows, []any{&id, &from, &to}, func() error {
			ids, where = append(ids, id), append(where, repute.BlockRange{From: from, To: max(from, to)})
			return nil
		})
		return err
	})
	return ids, where, stored, err
}

// Logs returns the stored logs of a range of blocks in order. It stops at the end of the block in
// which limit is reached and returns that block.
func Logs(ctx context.Context, db *store.DB, chainID uint64, r repute.BlockRange, limit int) (logs []types.Log,
	to uint64, err error) {
	to = r.To
	err = chaindb.View(ctx, db, "read logs to verify", func(ctx context.Context, tx pgx.Tx) error {
		var last *uint64
		err := tx.QueryRow(ctx,
			`select max(block) from (select block from events where chain_id = $1 and block between $2 and $3
			order by block, log_index limit $4) e having count(*) = $4`, chainID, r.From, r.To, limit).Scan(&last)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if last != nil {
			to = *last
		}
		rows, _ := tx.Query(ctx,
			chaindb.SelectEvents+`where chain_id = $1 and block between $2 and $3 order by block, log_index`, chainID,
			r.From,
			to)
		logs, err = pgx.CollectRows(rows, chaindb.ScanEvent)
		return err
	})
	return logs, to, err
}

// Headers returns the stored headers of blocks by number, those whose hash is known; time and
// parent are zero where they are unknown. repute.ErrUnavailable when Postgres does not answer.
func Headers(ctx context.Context, db *store.DB, chainID uint64, numbers []uint64) (map[uint64]repute.Block, error) {
	out := make(map[uint64]repute.Block, len(numbers))
	rows, _ := db.Readers().Query(ctx,
		`select number, hash, parent, time from blocks where chain_id = $1 and number = any($2) and hash <> ''`,
		chainID,
		numbers)
	blocks, err := pgx.CollectRows(rows,
		func(row pgx.CollectableRow) (repute.Block, error) { return chaindb.ScanBlock(row) })
	for _, b := range blocks {
		out[b.Number] = b
	}
	return out, store.Failed("read headers", err)
}

// UnknownLogs returns those of the logs that are not stored as they are: nothing or another log is
// stored at their position.
func UnknownLogs(ctx context.Context, db *store.DB, chainID uint64, logs []types.Log) (unknown []types.Log, err error) {
	at := make([]chaindb.Point, len(logs))
	for i := range logs {
		at[i] = chaindb.Point{Block: logs[i].BlockNumber, Log: uint32(min(logs[i].Index, math.MaxInt32))}
	}
	err = chaindb.View(ctx, db, "find logs", func(ctx context.Context, tx pgx.Tx) error {
		stored, err := chaindb.StoredLogs(ctx, tx, chainID, at)
		if err != nil {
			return err
		}
		for i := range logs {
			if s := stored[at[i]]; s == nil || !chaindb.SameLog(s, &logs[i]) {
				unknown = append(unknown, logs[i])
			}
		}
		return nil
	})
	return unknown, err
}

// Waiting is a stored event that has no effect because another one is missing.
type Waiting struct {
	Log    types.Log
	Reason string
	Kind   repute.EventKind // of what it waits for
}

// WaitingEvents returns events that wait for a missing one, the oldest first.
func WaitingEvents(ctx context.Context, db *store.DB, chainID uint64, limit int) ([]Waiting, error) {
	rows, _ := db.Readers().Query(ctx, `
		select e.*, p.reason from (select * from pending p where p.chain_id = $1 and p.`+chaindb.Waiting+` and not p.`+chaindb.Undecoded+` order by p.block, p.log_index limit $2) p
		cross join lateral (`+chaindb.SelectEvents+`where chain_id = $1 and block = p.block and log_index = p.log_index offset 0) e
		order by p.block, p.log_index`, chainID, limit)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Waiting, err error) {
		w.Log, err = chaindb.ScanEvent(firstColumns{row, &w.Reason})
		w.Kind = chaindb.MissingKind(w.Reason)
		return w, err
	})
	return out, store.Failed("waiting events", err)
}

// firstColumns passes the first columns of a row to a scanner and keeps the last one.
type firstColumns struct {
	pgx.CollectableRow
	last any
}

// Scan scans the first columns into into, and the last one into the value kept apart.
func (r firstColumns) Scan(into ...any) error { return r.CollectableRow.Scan(append(into, r.last)...) }
