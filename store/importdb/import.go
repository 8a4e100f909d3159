package importdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/eventdb"
	"repute/store/paydb"
)

// ImportResult is the outcome of an import or a repair.
type ImportResult struct {
	Events     int            // new logs stored
	Duplicates int            // logs that were stored already
	Agents     int            // agents the chain has afterwards
	Applied    map[string]int // new logs that took effect, by event name
	Waiting    map[string]int // new logs that wait for a missing one or contradict a stored one, by event name
	// Pending counts all events of the chain without effect afterwards.
	Pending int
}

// Import merges recorded logs, in any order, into an imported chain; all or none are stored. Logs
// that are stored already are skipped. repute.ErrConflict when another log is stored at the same
// position, another block under the same number, or when the chain is followed. A log older than
// the newest stored one is inserted at its position, and the agents it names are rebuilt from their
// events, which needs Options.Decode. Events that waited for it take effect then.
//
// blocks are headers with times where they are known; the block of a record without header is
// stored without time. covered are the ranges whose logs are complete but for the gaps; it may be
// empty. chaindb.ErrGapsFull when there are more gaps than a chain may have.
//
// The steps have an order: the chain is created first, so that it can be locked; times are compared before anything is
// written; gaps are widened before ranges are covered, so that no reader takes a range with a gap for complete; and the
// cursor is moved last.
func Import(ctx context.Context, db *store.DB, c repute.Chain, records []repute.Record, blocks []repute.Block,
	covered []repute.BlockRange, gaps ...chaindb.Gap) (ImportResult, error) {
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

// Repair inserts late logs of a followed chain at or below its cursor, as Import does for imported
// chains. Their blocks must be given unless they are stored. repute.ErrFenced when the lease is
// lost. It moves neither the cursor nor the covered ranges: the caller closes the gap that it filled.
func Repair(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, records []repute.Record,
	blocks []repute.Block) (ImportResult, error) {
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

// sortRecords returns the records in order, each position once. Different logs at one position are
// a conflict.
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

// conflictAt returns the error for two different logs at one position.
func conflictAt(l *types.Log) error {
	return repute.Conflict("another log is known at block %d log %d", l.BlockNumber, l.Index)
}

// merge is one import or repair in its transaction. It lives as long as its transaction.
type merge struct {
	db    *store.DB
	tx    pgx.Tx
	chain *chaindb.ChainRow
	ids   docdb.Interned
	// late says that a record belongs before a stored one.
	late bool
	// agents are the agents that were rebuilt.
	agents []repute.TokenID
	// fresh are the records that this merge stores.
	fresh []repute.Record
	// waits holds the positions of folded events that have no effect.
	waits  map[chaindb.Point]bool
	result ImportResult
}

// beginMerge locks the chain and returns a merge into it. The lock on the chain's row keeps the indexer away until the
// transaction ends, and the advisory lock a Reindex, which holds it for longer than a transaction. It is tried and not
// waited for: repute.ErrHeld tells the caller to try again later.
func beginMerge(ctx context.Context, db *store.DB, tx pgx.Tx, chainID uint64, l store.Lease,
	ids docdb.Interned) (*merge, error) {
	c, err := eventdb.BeginWrite(ctx, tx, chainID, l)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
		return nil, err
	}
	var alone bool
	err = tx.QueryRow(ctx, "select pg_try_advisory_xact_lock($1, $2)", rebuildLockClass,
		rebuildLock(chainID)).Scan(&alone)
	if err != nil {
		return nil, err
	}
	if !alone {
		return nil, fmt.Errorf("the chain is being rebuilt: %w", repute.ErrHeld)
	}
	return &merge{db: db, tx: tx, chain: c, ids: ids, waits: map[chaindb.Point]bool{}}, nil
}

// merge stores new records and folds them: on top of the current state when all are newer than the
// stored events, otherwise by rebuilding the affected agents. Records count as late from the block of the newest stored
// event on, because an event of the same block may come before it.
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

// note remembers which of the folded records wait for a missing one.
func (m *merge) note(d *eventdb.Delta) {
	for _, p := range d.Pending {
		m.waits[p.At] = true
	}
}

// newestEvent returns the block of the newest stored event; any is false when there is none.
func (m *merge) newestEvent(ctx context.Context) (block uint64, any bool, err error) {
	err = m.tx.QueryRow(ctx, `select block from events where chain_id = $1 order by block desc, log_index desc limit 1`,
		m.chain.ID).Scan(&block)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return block, err == nil, store.Failed("newest event", err)
}

// unknown returns the records that are not stored. It returns repute.ErrConflict when another log
// is stored at the position of one.
func (m *merge) unknown(ctx context.Context, records []repute.Record) ([]repute.Record, error) {
	at := make([]chaindb.Point, len(records))
	for i := range records {
		at[i] = chaindb.PointOf(&records[i].Log)
	}
	stored, err := chaindb.StoredLogs(ctx, m.tx, m.chain.ID, at)
	if err != nil {
		return nil, store.Failed("find stored logs", err)
	}
	fresh := make([]repute.Record, 0, len(records)-len(stored))
	for i := range records {
		switch s := stored[at[i]]; {
		case s == nil:
			fresh = append(fresh, records[i])
		case !chaindb.SameLog(s, &records[i].Log):
			return nil, conflictAt(s)
		}
	}
	return fresh, nil
}

// rebuild computes histories and current rows of the affected agents again from all their events. What contested adds
// MUST be known before forget, which deletes the rows that it reads.
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
	m.agents = sortedTokens(touched)
	if err := forget(ctx, m.tx, m.chain.ID, m.agents, operators); err != nil {
		return err
	}
	if err := m.refold(ctx, operators); err != nil {
		return err
	}
	return m.reopenPayments(ctx)
}

// sortedTokens returns the token ids of a set in ascending order.
func sortedTokens(set map[repute.TokenID]bool) []repute.TokenID {
	return slices.SortedFunc(maps.Keys(set), func(a, b repute.TokenID) int { return a.Cmp(&b) })
}

// reopenPayments schedules the payments of ratings to which late tickets may give another payer.
func (m *merge) reopenPayments(ctx context.Context) error {
	var blocks []uint64
	for i := range m.fresh {
		if _, isTicket := m.fresh[i].Event.(repute.TicketConsumed); isTicket {
			blocks = append(blocks, m.fresh[i].Log.BlockNumber)
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	return store.Failed("look at payments again",
		paydb.ReopenRatings(ctx, m.tx, m.chain.ID, m.chain.GatewayBytes(), blocks))
}

// contested adds agents that a new validation request affects although it names another agent: the
// agent whose request with the same contract and hash it may displace, and the agents of events
// that waited for it. The hash is the third topic of requests and responses.
func (m *merge) contested(ctx context.Context, touched map[repute.TokenID]bool) error {
	var contracts, hashes [][]byte
	for i := range m.fresh {
		l := &m.fresh[i].Log
		if q, ok := m.fresh[i].Event.(repute.ValidationRequest); ok {
			contracts, hashes = append(contracts, l.Address.Bytes()), append(hashes, q.RequestHash.Bytes())
		}
	}
	rows, _ := m.tx.Query(ctx, `
		select r.token_id from unnest($2::bytea[], $3::bytea[]) u(c, h) cross join lateral (
			select token_id from validation_requests where chain_id = $1 and contract = u.c and request_hash = u.h offset 0) r
		union
		select p.token_id from pending p cross join lateral (
			select * from events where chain_id = $1 and block = p.block and log_index = p.log_index offset 0) e
		join unnest($2::bytea[], $3::bytea[]) u(c, h) on e.address = u.c and substring(e.topics from 97 for 32) = u.h
		where p.chain_id = $1 and e.kind = any($4)`,
		m.chain.ID, contracts, hashes, []int16{int16(repute.KindValidationRequest),
			int16(repute.KindValidationResponse)})
	contested, err := pgx.CollectRows(rows, column.ScanToken)
	for _, id := range contested {
		touched[id] = true
	}
	return store.Failed("find contested requests", err)
}

// refold folds the stored events of the affected agents. It reads them through a server-side
// cursor, so that they need not fit in memory. The last block of a fetch is held back until the next one shows that it
// is complete, because folding needs whole blocks. Texts are interned on another connection, which the open cursor does
// not disturb.
func (m *merge) refold(ctx context.Context, operators bool) error {
	_, err := m.tx.Exec(ctx, `declare late no scroll cursor for `+chaindb.SelectEvents+`
		where chain_id = $1 and (token_id = any($2::numeric[]) or $3 and kind = $4) order by block, log_index`,
		m.chain.ID, column.TokenArray(m.agents), operators, repute.KindApprovalForAll)
	if err != nil {
		return store.Failed("read events", err)
	}
	var held []repute.Record // of a block that may continue in the next fetch
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

// fetchLate reads the next stored events from the cursor; none at the end.
func (m *merge) fetchLate(ctx context.Context) ([]types.Log, error) {
	rows, _ := m.tx.Query(ctx, fmt.Sprintf("fetch %d from late", refoldChunk))
	return pgx.CollectRows(rows, chaindb.ScanEvent)
}

// splitLastBlock splits records into those of whole blocks and those of the last block, which may
// be incomplete.
func splitLastBlock(records []repute.Record) (whole, last []repute.Record) {
	n := len(records)
	for n > 0 && records[n-1].Log.BlockNumber == records[len(records)-1].Log.BlockNumber {
		n--
	}
	return records[:n:n], records[n:]
}

// advance moves the cursor of an imported chain to its newest known block. It never moves back.
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
