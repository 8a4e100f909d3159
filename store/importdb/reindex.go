package importdb

import (
	"context"
	"fmt"
	"maps"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/docdb"
	"repute/store/eventdb"
)

// derivedTables are the tables that follow from the events. The order is free: there are no foreign keys between them.
var derivedTables = []string{"pending", "agent_states", "metadata", "operators", "feedback", "responses",
	"validation_requests", "validation_responses", "agents", "sums", "votes", "hours"}

// Reindex rebuilds a chain's histories and current rows from its events, which decode reads again.
// It builds them in tables of its own while readers and the indexer use the current ones. Then one
// transaction that locks the chain adds what was indexed meanwhile and replaces the rows.
// repute.ErrFenced when the chain was rewound meanwhile, repute.ErrHeld while another Reindex or an
// import of the chain runs; nothing is changed then.
//
// A failure before the last transaction leaves nothing behind: temporary tables end with their connection, and so does
// the advisory lock. Readers see the old rows until the last transaction commits, and the new ones after it.
func Reindex(ctx context.Context, db *store.DB, chainID uint64, decode func(types.Log) (repute.Event, error)) error {
	// A connection of its own: temporary tables of the live names hide the live
	// ones from it, and no statement was prepared on it before they did.
	conn, err := pgx.ConnectConfig(ctx, db.Pool().Config().ConnConfig)
	if err != nil {
		return store.Failed("connect to reindex", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	r := reindexer{db: db, conn: conn, decode: decode}
	return store.Failed(fmt.Sprintf("reindex chain %d", chainID), r.run(ctx, chainID))
}

// reindexer is one Reindex: a connection with its temporary tables, and how far it folded. It is used by one goroutine.
type reindexer struct {
	db *store.DB
	// conn is a connection of its own, whose temporary tables hide the real ones of the same names.
	conn *pgx.Conn
	// decode reads a stored log again.
	decode func(types.Log) (repute.Event, error)
	// chain is the row of the chain when the reindex began.
	chain *chaindb.ChainRow
	// schema is the schema of the real tables.
	schema string
	// done is the block up to which events are folded.
	done uint64
}

// run folds all events in chunks and replaces the rows.
func (r *reindexer) run(ctx context.Context, chainID uint64) error {
	if err := r.begin(ctx, chainID); err != nil {
		return err
	}
	for {
		more := false
		err := pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) (err error) {
			if _, err := tx.Exec(ctx, store.PlanByKey); err != nil {
				return err
			}
			more, err = r.fold(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error { return r.swap(ctx, tx) })
}

// begin takes the lock and creates the temporary tables.
func (r *reindexer) begin(ctx context.Context, chainID uint64) error {
	var alone bool
	err := r.conn.QueryRow(ctx, "select current_schema(), pg_try_advisory_lock($1, $2)", rebuildLockClass,
		rebuildLock(chainID)).Scan(&r.schema, &alone)
	if err != nil {
		return err
	}
	if !alone {
		return repute.ErrHeld
	}
	if r.chain, err = chaindb.ScanChainRow(chainID, r.conn.QueryRow(ctx, chaindb.SelectChain, chainID)); err != nil {
		return err
	}
	if _, err := r.conn.Exec(ctx, "set temp_buffers = '128MB'"); err != nil {
		return err
	}
	for _, table := range derivedTables {
		if _, err := r.conn.Exec(ctx, "create temporary table "+table+" (like "+table+" including all)"); err != nil {
			return err
		}
	}
	return nil
}

// rebuildLockClass and rebuildLock form the advisory lock that a writer of a chain's derived rows holds
// while it replaces them.
const rebuildLockClass = 0x62756c64 // "buld"

// rebuildLock returns the second key of that lock.
func rebuildLock(chainID uint64) int32 { return int32(uint32(chainID ^ chainID>>32)) }

// fold folds the next chunk of events and reports whether there was one. A chunk ends with a whole block. done moves on
// before the transaction commits, which is harmless, because a failed commit ends the Reindex.
func (r *reindexer) fold(ctx context.Context, tx pgx.Tx) (bool, error) {
	rows, _ := tx.Query(ctx, chaindb.SelectEvents+`
		where chain_id = $1 and block > $2 and block <= coalesce(
			(select block from events where chain_id = $1 and block > $2 order by block, log_index offset $3 limit 1), $4)
		order by block, log_index`, r.chain.ID, r.done, refoldChunk, int64(^uint64(0)>>1))
	logs, err := pgx.CollectRows(rows, chaindb.ScanEvent)
	if err != nil || len(logs) == 0 {
		return false, err
	}
	records, err := chaindb.DecodeLogs(logs, r.decode)
	if err != nil {
		return false, err
	}
	ids, err := docdb.Intern(ctx, r.db, records)
	if err != nil {
		return false, err
	}
	r.done = records[len(records)-1].Log.BlockNumber
	return true, foldChunks(ctx, tx, r.chain, records, ids, func(*eventdb.Delta) {})
}

// swap folds the events that were indexed meanwhile, under the chain's lock, and replaces the
// current rows. What was indexed since the last fold is few blocks, so that the chain is locked for the time of the
// copy alone.
func (r *reindexer) swap(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, store.PlanByKey); err != nil {
		return err
	}
	if err := store.WaitForLocks(ctx, tx); err != nil {
		return err
	}
	now, err := chaindb.LockChain(ctx, tx, r.chain.ID)
	if err != nil {
		return err
	}
	if now.Reorgs != r.chain.Reorgs {
		return fmt.Errorf("the chain was rewound: %w", repute.ErrFenced)
	}
	if err := r.sameTrust(now); err != nil {
		return err
	}
	for more := true; more; {
		if more, err = r.fold(ctx, tx); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
		return err
	}
	for _, table := range derivedTables {
		live := pgx.Identifier{r.schema, table}.Sanitize()
		if _, err := tx.Exec(ctx, "delete from "+live+" where chain_id = $1", r.chain.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "insert into "+live+" select * from pg_temp."+table); err != nil {
			return err
		}
	}
	repaired := eventdb.ChangeRow{Kind: changedata.KindRepaired, At: chaindb.Point{Block: now.Cursor.Number},
		Data: changedata.Marshal(eventdb.RepairedData{Reason: "reindex"})}
	return eventdb.StoreChanges(ctx, tx, r.chain.ID, []eventdb.ChangeRow{repaired})
}

// sameTrust returns an error when the allow-list of validation contracts or of gateways changed, because
// the new rows count by the old one.
func (r *reindexer) sameTrust(now *chaindb.ChainRow) error {
	if !maps.Equal(now.Trusted, r.chain.Trusted) {
		return fmt.Errorf("the validation contracts changed: %w", repute.ErrFenced)
	}
	if !maps.Equal(now.Gateways, r.chain.Gateways) {
		return fmt.Errorf("the feedback gateways changed: %w", repute.ErrFenced)
	}
	return nil
}
