package importdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/docdb"
	"repute/store/eventdb"
)

// ImportResult says what an import or a repair did.
type ImportResult struct {
	Events     int            // new logs stored
	Duplicates int            // logs that were stored already
	Agents     int            // agents the chain has afterwards
	Applied    map[string]int // new logs that took effect, by event name
	Waiting    map[string]int // new logs that wait for a missing one or contradict a stored one, by event name
	Pending    int            // such logs of the whole chain afterwards
}

// Import merges recorded logs into an imported chain, all or nothing, in any
// order. Logs that are stored already are passed over; repute.ErrConflict when
// another log is stored at the same place, another block under the same number,
// or when the chain is followed. A log older than the newest stored one is put
// in its place and the agents it names are rebuilt from their events, which
// needs Options.Decode; events that waited for it take effect then.
//
// Blocks bring the times of blocks where they are known; a block named by a
// record alone is stored without. Covered are the ranges whose logs are all
// there but for the gaps; it may be empty. More gaps than a chain may have are
// ErrGapsFull.
func Import(ctx context.Context, db *store.DB, c repute.Chain, records []repute.Record, blocks []repute.Block, covered []repute.BlockRange, gaps ...chaindb.Gap) (ImportResult, error) {
	c.Imported = true
	records, err := sortRecords(records)
	if err != nil {
		return ImportResult{}, err
	}
	ids, err := docdb.Intern(ctx, db, records)
	if err != nil {
		return ImportResult{}, err
	}
	var result ImportResult
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("import chain %d", c.ID), func(tx pgx.Tx) error {
		if err := store.WaitForLocks(ctx, tx); err != nil {
			return err
		}
		if err := chaindb.InsertChain(ctx, tx, c); err != nil {
			return err
		}
		m, err := beginMerge(ctx, db, tx, c.ID, store.Lease{}, ids)
		if err != nil {
			return err
		}
		if err := m.sameTimes(ctx, records, blocks); err != nil {
			return err
		}
		if err := m.merge(ctx, records, blocks); err != nil {
			return err
		}
		if err := chaindb.WidenGaps(ctx, tx, c.ID, gaps); err != nil {
			return err
		}
		for _, r := range covered {
			if err := eventdb.Cover(ctx, tx, c.ID, r); err != nil {
				return err
			}
		}
		if err := m.advance(ctx, covered); err != nil {
			return err
		}
		result, err = m.finish(ctx, "import")
		return err
	})
	return result, err
}

// Repair puts late logs of a followed chain in their place, at or below its
// cursor, like Import does for imported ones. Their blocks must be given unless
// they are stored. repute.ErrFenced when the lease is lost.
func Repair(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, records []repute.Record, blocks []repute.Block) (ImportResult, error) {
	records, err := sortRecords(records)
	if err != nil {
		return ImportResult{}, err
	}
	ids, err := docdb.Intern(ctx, db, records)
	if err != nil {
		return ImportResult{}, err
	}
	var result ImportResult
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("repair chain %d", chainID), func(tx pgx.Tx) error {
		m, err := beginMerge(ctx, db, tx, chainID, l, ids)
		if err != nil {
			return err
		}
		if n := len(records); n > 0 && records[n-1].Log.BlockNumber > m.chain.Cursor.Number {
			return repute.Invalid("records", "lie above the cursor", "what is newer belongs to Apply")
		}
		if err := m.merge(ctx, records, blocks); err != nil {
			return err
		}
		result, err = m.finish(ctx, "repair")
		return err
	})
	return result, err
}

// sortRecords gives the records in order, each position once.
func sortRecords(records []repute.Record) ([]repute.Record, error) {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b repute.Record) int {
		return cmp.Or(cmp.Compare(a.Log.BlockNumber, b.Log.BlockNumber), cmp.Compare(a.Log.Index, b.Log.Index))
	})
	out := records[:0]
	for _, r := range records {
		if err := eventdb.Placed(&r.Log); err != nil {
			return nil, err
		}
		if n := len(out); n > 0 && out[n-1].Log.BlockNumber == r.Log.BlockNumber && out[n-1].Log.Index == r.Log.Index {
			if !chaindb.SameLog(&out[n-1].Log, &r.Log) {
				return nil, conflictAt(&r.Log)
			}
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

func conflictAt(l *types.Log) error {
	return repute.Conflict("another log is known at block %d log %d", l.BlockNumber, l.Index)
}

// merge is one import or repair within its transaction.
type merge struct {
	db     *store.DB
	tx     pgx.Tx
	chain  *chaindb.ChainRow
	ids    docdb.Interned
	late   bool                   // something had to go before what was stored
	agents []repute.TokenID       // rebuilt
	fresh  []repute.Record        // stored by this merge
	waits  map[chaindb.Point]bool // positions without effect, of what was folded
	result ImportResult
}

func beginMerge(ctx context.Context, db *store.DB, tx pgx.Tx, chainID uint64, l store.Lease, ids docdb.Interned) (*merge, error) {
	c, err := eventdb.BeginWrite(ctx, tx, chainID, l)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
		return nil, err
	}
	var alone bool
	err = tx.QueryRow(ctx, "select pg_try_advisory_xact_lock($1, $2)", rebuildLockClass, rebuildLock(chainID)).Scan(&alone)
	if err != nil {
		return nil, err
	}
	if !alone {
		return nil, fmt.Errorf("the chain is being rebuilt: %w", repute.ErrHeld)
	}
	return &merge{db: db, tx: tx, chain: c, ids: ids, waits: map[chaindb.Point]bool{}}, nil
}

// merge stores what is new and folds it: on top when it is all newer than what
// was stored, else by rebuilding the agents concerned.
func (m *merge) merge(ctx context.Context, records []repute.Record, blocks []repute.Block) error {
	if err := m.storeBlocks(ctx, records, blocks); err != nil {
		return err
	}
	newest, any, err := m.newestEvent(ctx)
	if err != nil {
		return err
	}
	if m.fresh, err = m.unknown(ctx, records); err != nil {
		return err
	}
	m.result.Events, m.result.Duplicates = len(m.fresh), len(records)-len(m.fresh)
	if len(m.fresh) == 0 {
		return nil
	}
	if err := eventdb.EncodeEvents(m.chain.ID, m.fresh).Send(ctx, m.tx); err != nil {
		return err
	}
	m.late = any && m.fresh[0].Log.BlockNumber <= newest
	if m.late {
		return m.rebuild(ctx)
	}
	return foldChunks(ctx, m.tx, m.chain, m.fresh, m.ids, m.note)
}

func (m *merge) note(d *eventdb.Delta) {
	for _, p := range d.Pending {
		m.waits[p.At] = true
	}
}

// storeBlocks adds headers and fills in what stored ones lack.
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
	_, err = m.tx.Exec(ctx, `
		insert into blocks as b (chain_id, number, hash, parent, time)
		select $1, * from unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::timestamptz[])
		on conflict (chain_id, number) do update set time = coalesce(b.time, excluded.time),
			hash = case when b.hash = '' then excluded.hash else b.hash end,
			parent = case when b.parent = '' then excluded.parent else b.parent end`,
		m.chain.ID, numbers, hashes, parents, times)
	return store.Failed("store blocks", err)
}

// sameTimes refuses times of stored blocks that are not the stored ones: one of the two
// is wrong.
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

// newestEvent is the block of the newest stored event.
func (m *merge) newestEvent(ctx context.Context) (block uint64, any bool, err error) {
	err = m.tx.QueryRow(ctx, `select block from events where chain_id = $1 order by block desc, log_index desc limit 1`, m.chain.ID).Scan(&block)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return block, err == nil, store.Failed("newest event", err)
}

// unknown are the records that are not stored yet; a stored log at the place of
// another one is a conflict.
func (m *merge) unknown(ctx context.Context, records []repute.Record) ([]repute.Record, error) {
	blocks, logs := make([]uint64, len(records)), make([]uint32, len(records))
	at := make(map[chaindb.Point]*repute.Record, len(records))
	for i := range records {
		blocks[i], logs[i] = records[i].Log.BlockNumber, uint32(records[i].Log.Index)
		at[chaindb.Point{Block: blocks[i], Log: logs[i]}] = &records[i]
	}
	rows, err := m.tx.Query(ctx, `
		select e.* from unnest($2::bigint[], $3::integer[]) u(b, l) cross join lateral (
			`+chaindb.SelectEvents+`where chain_id = $1 and block = u.b and log_index = u.l offset 0) e`, m.chain.ID, blocks, logs)
	if err != nil {
		return nil, store.Failed("find stored logs", err)
	}
	stored, err := pgx.CollectRows(rows, chaindb.ScanEvent)
	if err != nil {
		return nil, store.Failed("find stored logs", err)
	}
	for i := range stored {
		p := chaindb.PointOf(&stored[i])
		if !chaindb.SameLog(&stored[i], &at[p].Log) {
			return nil, conflictAt(&stored[i])
		}
		delete(at, p)
	}
	fresh := make([]repute.Record, 0, len(at))
	for i := range records {
		if at[chaindb.Point{Block: blocks[i], Log: logs[i]}] != nil {
			fresh = append(fresh, records[i])
		}
	}
	return fresh, nil
}

// rebuild makes the agents that the new logs touch anew from all their events.
func (m *merge) rebuild(ctx context.Context) error {
	if m.db.Options().Decode == nil {
		return errors.New("merging late logs needs Options.Decode")
	}
	operators := false
	touched := map[repute.TokenID]bool{}
	for i := range m.fresh {
		if id, ok := repute.AgentOf(m.fresh[i].Event); ok {
			touched[id] = true
		}
		_, isOperator := m.fresh[i].Event.(repute.ApprovalForAll)
		operators = operators || isOperator
	}
	if err := m.contested(ctx, touched); err != nil {
		return err
	}
	m.agents = slices.Collect(maps.Keys(touched))
	slices.SortFunc(m.agents, func(a, b repute.TokenID) int { return a.Cmp(&b) })
	if err := forget(ctx, m.tx, m.chain.ID, m.agents, operators); err != nil {
		return err
	}
	return m.refold(ctx, operators)
}

// contested adds the agents that a new validation request concerns though it
// names another: the one whose request of the same contract and hash it may
// displace, and those of events that had no effect for want of it. The third
// topic of requests and responses alike is the hash.
func (m *merge) contested(ctx context.Context, touched map[repute.TokenID]bool) error {
	var contracts, hashes [][]byte
	for i := range m.fresh {
		l := &m.fresh[i].Log
		if q, ok := m.fresh[i].Event.(repute.ValidationRequest); ok {
			contracts, hashes = append(contracts, l.Address.Bytes()), append(hashes, q.RequestHash.Bytes())
		}
	}
	rows, err := m.tx.Query(ctx, `
		select r.token_id::text from unnest($2::bytea[], $3::bytea[]) u(c, h) cross join lateral (
			select token_id from validation_requests where chain_id = $1 and contract = u.c and request_hash = u.h offset 0) r
		union
		select p.token_id::text from pending p cross join lateral (
			select * from events where chain_id = $1 and block = p.block and log_index = p.log_index offset 0) e
		join unnest($2::bytea[], $3::bytea[]) u(c, h) on e.address = u.c and substring(e.topics from 97 for 32) = u.h
		where p.chain_id = $1 and e.kind = any($4)`,
		m.chain.ID, contracts, hashes, []int16{int16(repute.KindValidationRequest), int16(repute.KindValidationResponse)})
	if err != nil {
		return store.Failed("find contested requests", err)
	}
	var token string
	_, err = pgx.ForEachRow(rows, []any{&token}, func() error {
		var id repute.TokenID
		err := id.SetFromDecimal(token)
		touched[id] = true
		return err
	})
	return store.Failed("find contested requests", err)
}

// refold folds the stored events of the touched agents, through a server-side
// cursor so that they need not fit in memory.
func (m *merge) refold(ctx context.Context, operators bool) error {
	_, err := m.tx.Exec(ctx, `declare late no scroll cursor for `+chaindb.SelectEvents+`
		where chain_id = $1 and (token_id = any($2::numeric[]) or $3 and kind = $4) order by block, log_index`,
		m.chain.ID, store.TokenArray(m.agents), operators, repute.KindApprovalForAll)
	if err != nil {
		return store.Failed("read events", err)
	}
	var held []repute.Record // of a block that may go on in the next fetch
	for {
		logs, err := m.fetchLate(ctx)
		if err != nil {
			return store.Failed("read events", err)
		}
		records, err := chaindb.DecodeLogs(logs, m.db.Options().Decode)
		if err != nil {
			return err
		}
		last := len(records) == 0
		records = append(held, records...)
		held = nil
		if !last {
			records, held = splitLastBlock(records)
		}
		ids, err := docdb.Intern(ctx, m.db, records)
		if err != nil {
			return err
		}
		if err := foldChunks(ctx, m.tx, m.chain, records, ids, m.note); err != nil {
			return err
		}
		if last {
			_, err := m.tx.Exec(ctx, "close late")
			return store.Failed("read events", err)
		}
	}
}

func (m *merge) fetchLate(ctx context.Context) ([]types.Log, error) {
	rows, err := m.tx.Query(ctx, fmt.Sprintf("fetch %d from late", refoldChunk))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, chaindb.ScanEvent)
}

// splitLastBlock parts records into whole blocks and the last block.
func splitLastBlock(records []repute.Record) (whole, last []repute.Record) {
	n := len(records)
	for n > 0 && records[n-1].Log.BlockNumber == records[len(records)-1].Log.BlockNumber {
		n--
	}
	return records[:n:n], records[n:]
}

// advance moves an imported chain's cursor to the newest block it knows of.
func (m *merge) advance(ctx context.Context, covered []repute.BlockRange) error {
	to := m.chain.Cursor.Number
	for _, r := range covered {
		to = max(to, r.To)
	}
	if n := len(m.fresh); n > 0 {
		to = max(to, m.fresh[n-1].Log.BlockNumber)
	}
	_, err := m.tx.Exec(ctx, `
		update chains set cursor_block = $2,
			cursor_hash = coalesce((select hash from blocks where chain_id = $1 and number = $2), ''),
			cursor_time = (select time from blocks where chain_id = $1 and number = $2)
		where chain_id = $1`, m.chain.ID, to)
	return store.Failed("advance", err)
}

// finish tells readers of the feed and counts.
func (m *merge) finish(ctx context.Context, reason string) (ImportResult, error) {
	if err := eventdb.StoreChanges(ctx, m.tx, m.chain.ID, m.changes(reason)); err != nil {
		return ImportResult{}, err
	}
	m.result.Applied, m.result.Waiting = map[string]int{}, map[string]int{}
	for i := range m.fresh {
		l := &m.fresh[i].Log
		if name := m.fresh[i].Event.Kind().String(); m.waits[chaindb.PointOf(l)] {
			m.result.Waiting[name]++
		} else {
			m.result.Applied[name]++
		}
	}
	err := m.tx.QueryRow(ctx, `
		select (select count(*) from agents where chain_id = $1), (select count(*) from pending where chain_id = $1)`,
		m.chain.ID).Scan(&m.result.Agents, &m.result.Pending)
	return m.result, store.Failed("count", err)
}

// changes says which agents were rebuilt, and in a row that names none that events
// of no agent came late. An import above everything stored is a backfill.
func (m *merge) changes(reason string) []eventdb.ChangeRow {
	if len(m.fresh) == 0 {
		return nil
	}
	from, to := m.fresh[0].Log.BlockNumber, m.fresh[len(m.fresh)-1].Log.BlockNumber
	if !m.late && reason == "import" {
		return []eventdb.ChangeRow{eventdb.Backfilled(from, to)}
	}
	agents := make(map[repute.TokenID]bool, len(m.agents))
	for _, id := range m.agents {
		agents[id] = true
	}
	at, data := chaindb.Point{Block: max(to, m.chain.Cursor.Number)}, store.Marshal(eventdb.RepairedData{Reason: reason})
	var rows []eventdb.ChangeRow
	for i := range m.fresh {
		if id, ok := repute.AgentOf(m.fresh[i].Event); ok {
			agents[id] = true
		} else if len(rows) == 0 {
			rows = append(rows, eventdb.ChangeRow{Kind: store.KindRepaired, At: at, Data: data})
		}
	}
	touched := slices.Collect(maps.Keys(agents))
	slices.SortFunc(touched, func(a, b repute.TokenID) int { return a.Cmp(&b) })
	for i := range touched {
		rows = append(rows, eventdb.ChangeRow{Kind: store.KindRepaired, At: at, ID: &touched[i], Data: data})
	}
	return rows
}
