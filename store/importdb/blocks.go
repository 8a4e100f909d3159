package importdb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/hourdb"
)

// storeBlocks adds headers and completes stored ones. Headers that are given take precedence over what logs say of
// their block, and stored values over both; only missing ones are filled in. Two different hashes are
// repute.ErrConflict. The hours of blocks that get a time are counted again.
func (m *merge) storeBlocks(ctx context.Context, records []repute.Record, blocks []repute.Block) error {
	known := make(map[uint64]repute.Block, len(blocks))
	for _, b := range blocks {
		known[b.Number] = b
	}
	for i := range records {
		l := &records[i].Log
		b := known[l.BlockNumber]
		if b.Hash != (common.Hash{}) && l.BlockHash != (common.Hash{}) && b.Hash != l.BlockHash {
			return repute.Conflict("block %d is %s and %s", l.BlockNumber, b.Hash, l.BlockHash)
		}
		b.Number = l.BlockNumber
		if b.Hash == (common.Hash{}) {
			b.Hash = l.BlockHash
		}
		if b.Time.IsZero() {
			b.Time = records[i].Time
		}
		known[b.Number] = b
	}
	numbers, hashes, parents, times := chaindb.BlockArrays(slices.Collect(maps.Values(known)))
	var clash *uint64
	err := m.tx.QueryRow(ctx, `
		select min(u.n) from unnest($2::bigint[], $3::bytea[]) u(n, h)
		cross join lateral (select hash from blocks where chain_id = $1 and number = u.n offset 0) b
		where b.hash <> '' and u.h <> '' and b.hash <> u.h`,
		m.chain.ID, numbers, hashes).Scan(&clash)
	if err != nil {
		return store.Failed("compare blocks", err)
	}
	if clash != nil {
		return repute.Conflict("block %d is known with another hash", *clash)
	}
	insert := func() error {
		_, err := m.tx.Exec(ctx, `
			insert into blocks as b (chain_id, number, hash, parent, time)
			select $1, * from unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::timestamptz[])
			on conflict (chain_id, number) do update set time = coalesce(b.time, excluded.time),
				hash = case when b.hash = '' then excluded.hash else b.hash end,
				parent = case when b.parent = '' then excluded.parent else b.parent end`,
			m.chain.ID, numbers, hashes, parents, times)
		return store.Failed("store blocks", err)
	}
	undated, err := m.undated(ctx, numbers, times)
	if err != nil {
		return err
	}
	return hourdb.Retime(ctx, m.tx, m.chain.ID, undated, insert)
}

// undated returns the stored blocks without a time that get one.
func (m *merge) undated(ctx context.Context, numbers []uint64, times []*time.Time) ([]uint64, error) {
	rows, _ := m.tx.Query(ctx, `
		select u.n from unnest($2::bigint[], $3::timestamptz[]) u(n, t)
		cross join lateral (select from blocks where chain_id = $1 and number = u.n and time is null offset 0) b
		where u.t is not null`, m.chain.ID, numbers, times)
	found, err := pgx.CollectRows(rows, pgx.RowTo[uint64])
	return found, store.Failed("find blocks without a time", err)
}

// sameTimes refuses times that differ from those of stored blocks, because one of the two is wrong. A time of a record
// counts like that of a header. Unknown times agree with all. repute.ErrConflict names the lowest block.
func (m *merge) sameTimes(ctx context.Context, records []repute.Record, blocks []repute.Block) error {
	said := make(map[uint64]repute.Block, len(blocks))
	for i := range records {
		n := records[i].Log.BlockNumber
		said[n] = repute.Block{Number: n, Time: records[i].Time}
	}
	for _, b := range blocks {
		if !b.Time.IsZero() {
			said[b.Number] = b
		}
	}
	numbers, _, _, times := chaindb.BlockArrays(slices.Collect(maps.Values(said)))
	var clash *uint64
	err := m.tx.QueryRow(ctx, `
		select min(u.n) from unnest($2::bigint[], $3::timestamptz[]) u(n, t)
		cross join lateral (select time from blocks where chain_id = $1 and number = u.n offset 0) b where b.time <> u.t`,
		m.chain.ID, numbers, times).Scan(&clash)
	if err == nil && clash != nil {
		return repute.Conflict("block %d is known with another time: one of the two is wrong, and repute verify tells which is stored", *clash)
	}
	return store.Failed("compare times", err)
}
