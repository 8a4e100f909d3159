package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/column"
)

// Change is one row of the outbox: something a user of the index can see. Rows of one chain are in the order in which
// they became true, except that a repair speaks of earlier blocks.
type Change struct {
	Cursor   string // opaque; pass it as since to continue after this row
	ChainID  uint64
	Kind     string // e.g. feedback.given; retracted undoes another row
	Block    uint64
	LogIndex uint64
	TokenID  *repute.TokenID // nil when no single agent is concerned
	Data     json.RawMessage // the state after the change
	Retracts string          // cursor of the change this one undoes, "" when none
	At       time.Time       // when the index learned it, by the database's clock
}

// ChangeCursor is a position in the feed: the transaction of a change, then its number within it.
type ChangeCursor struct {
	XID uint64
	Seq int64
}

// String returns the cursor as readers of the feed get it.
func (c ChangeCursor) String() string { return fmt.Sprintf("%d-%d", c.XID, c.Seq) }

// Before reports whether c comes before d in the feed.
func (c ChangeCursor) Before(d ChangeCursor) bool {
	return c.XID < d.XID || c.XID == d.XID && c.Seq < d.Seq
}

// ParseChangeCursor parses the text that String returns, and returns repute.ErrInvalid for any other one. The zero
// cursor is the position before the first change and has no text.
func ParseChangeCursor(s string) (c ChangeCursor, err error) {
	xid, seq, ok := strings.Cut(s, "-")
	if c.XID, err = strconv.ParseUint(xid, 10, 64); err == nil {
		c.Seq, err = strconv.ParseInt(seq, 10, 64)
	}
	if !ok || err != nil || c.String() != s {
		return ChangeCursor{}, repute.Invalid("since", "not a cursor of the change feed",
			"the cursor of a change you read, or none to start at the oldest kept")
	}
	return c, nil
}

// ChangeFilter selects changes of the feed. The zero value selects all.
type ChangeFilter struct {
	ChainID uint64          // 0: of every chain
	TokenID *repute.TokenID // of one agent of ChainID; nil: of all, and those that concern no single agent
	Kinds   []string        // empty: all kinds
	// Final leaves out what a reorganization could still undo, and what one undid: the changes are those of final
	// blocks, and none is retracted later. Provisional scores are left out, because they never become final. A chain
	// that makes no block final holds the changes after its own.
	Final bool
}

// Selects reports whether the filter selects a change, apart from Final.
func (f *ChangeFilter) Selects(c *Change) bool {
	return (f.ChainID == 0 || f.ChainID == c.ChainID) &&
		(f.TokenID == nil || c.TokenID != nil && *f.TokenID == *c.TokenID) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, c.Kind))
}

// changeWindow is how many changes one call of Changes looks at: a filter that selects little costs no more.
const changeWindow = 5000

// Changes returns up to limit changes after the cursor since that f selects; an empty since is the oldest change that
// is kept. next is where to continue. It may be later than the last change returned, also where none is, and equals
// since when nothing follows yet.
//
// A change is returned once every transaction that began writing before its own has ended. So a reader that continues
// from next misses nothing, even changes that commit late, and no change is returned while an older write is open.
//
// repute.ErrInvalid for a malformed since, repute.ErrGone when the change it names is no longer kept: changes after it
// may be lost, and the reader must read the state again.
func (db *DB) Changes(ctx context.Context, since string, limit int, f ChangeFilter) (list []Change, next string,
	err error) {
	var after ChangeCursor
	if since != "" {
		if after, err = ParseChangeCursor(since); err != nil {
			return nil, "", err
		}
		if err := db.changeKept(ctx, after); err != nil {
			return nil, "", err
		}
	}
	window := limit
	if f.ChainID != 0 || len(f.Kinds) > 0 {
		window = changeWindow
	}
	rows, err := db.readers.Query(ctx, `
		with looked as materialized (
			select c.*, u.xid as undone_xid,
				$7 and exists (select from chains h where h.chain_id = c.chain_id
					and c.block > least(h.finalized_block, h.cursor_block)) as open,
				$7 and (c.kind in ('retracted', 'rewound') or c.kind = 'score.changed' and c.data->>'mode' = 'provisional'
					or exists (select from changes r
						where r.chain_id = c.chain_id and r.block = c.block and r.retracts = c.seq)) as undone
			from changes c left join changes u on u.seq = c.retracts
			where c.xid < pg_snapshot_xmin(pg_current_snapshot()) and (c.xid, c.seq) > ($1::text::xid8, $2::bigint)
			order by c.xid, c.seq limit $8),
		held as (
			select xid, seq from looked where open and not undone and ($4::bigint = 0 or chain_id = $4)
			order by xid, seq limit 1),
		seen as (
			select *, ($4 = 0 or chain_id = $4) and ($5::numeric is null or token_id = $5)
				and (coalesce(cardinality($6::text[]), 0) = 0 or kind = any($6)) and not undone as selected
			from looked l where not exists (select from held h where (l.xid, l.seq) >= (h.xid, h.seq))),
		last as (select xid, seq from seen order by xid desc, seq desc limit 1)
		select s.xid::text, s.seq, s.chain_id, s.kind, s.block, s.log_index, s.token_id, s.data, s.created_at,
			coalesce(s.undone_xid::text || '-' || s.retracts, ''), s.selected
		from seen s cross join last where s.selected or s.seq = last.seq
		order by s.xid, s.seq limit $3`, strconv.FormatUint(after.XID, 10), after.Seq, limit, int64(f.ChainID),
		(*column.TokenNum)(f.TokenID), f.Kinds, f.Final, window)
	if err != nil {
		return nil, "", Failed("read changes", err)
	}
	defer rows.Close()
	next = since
	for rows.Next() {
		c, at, selected, err := scanChange(rows)
		if err != nil {
			return nil, "", Failed("read changes", err)
		}
		if next, after = c.Cursor, at; selected {
			list = append(list, c)
		}
	}
	db.writes.told(after)
	return list, next, Failed("read changes", rows.Err())
}

// NewestChange returns the cursor of the newest change that Changes returns, "" when there is none.
func (db *DB) NewestChange(ctx context.Context) (cursor string, err error) {
	err = db.readers.QueryRow(ctx, `
		select coalesce((select xid::text || '-' || seq from changes
			where xid < pg_snapshot_xmin(pg_current_snapshot()) order by xid desc, seq desc limit 1), '')`).Scan(&cursor)
	return cursor, Failed("newest change", err)
}

// scanChange reads a row of the statement in Changes, its place, and whether the filter selects it.
func scanChange(row pgx.Rows) (c Change, at ChangeCursor, selected bool, err error) {
	var xid string
	var token *column.TokenNum
	if err := row.Scan(&xid, &at.Seq, &c.ChainID, &c.Kind, &c.Block, &c.LogIndex, &token, &c.Data,
		(*column.Time)(&c.At), &c.Retracts, &selected); err != nil {
		return c, at, false, err
	}
	at.XID, err = strconv.ParseUint(xid, 10, 64)
	c.Cursor, c.TokenID = at.String(), (*repute.TokenID)(token)
	return c, at, selected, err
}

// changeKept returns repute.ErrGone when the change that a reader saw last was pruned. Pruning removes the oldest
// changes first, so if this one exists, all later ones do.
func (db *DB) changeKept(ctx context.Context, at ChangeCursor) error {
	var kept bool
	var oldest *string
	err := db.readers.QueryRow(ctx, `
		select exists (select from changes where seq = $2 and xid = $1::text::xid8),
			(select xid::text || '-' || seq from changes order by xid, seq limit 1)`,
		strconv.FormatUint(at.XID, 10), at.Seq).Scan(&kept, &oldest)
	if err != nil {
		return Failed("find change", err)
	}
	if kept {
		return nil
	}
	if oldest == nil {
		return fmt.Errorf("no changes are kept: %w", repute.ErrGone)
	}
	return fmt.Errorf("the oldest change kept is %s: %w", *oldest, repute.ErrGone)
}

// PruneChanges deletes changes older than olderThan and returns how many. It keeps the newest change, because readers
// wait at its cursor.
func (db *DB) PruneChanges(ctx context.Context, olderThan time.Duration) (int64, error) {
	var xid string
	var seq int64
	err := db.pool.QueryRow(ctx, `
		select xid::text, seq from (
			(select xid, seq, 0 as late from changes where created_at >= now() - $1::interval order by xid, seq limit 1)
			union all (select xid, seq, 1 from changes order by xid desc, seq desc limit 1)) k
		order by late limit 1`, olderThan).Scan(&xid, &seq)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, Failed("prune changes", err)
	}
	const most = 10_000 // of one statement
	for n := int64(0); ; {
		tag, err := db.pool.Exec(ctx, `
			delete from changes where (xid, seq) in (
				select xid, seq from changes where (xid, seq) < ($1::text::xid8, $2::bigint) order by xid, seq limit $3)`, xid, seq, most)
		if n += tag.RowsAffected(); err != nil || tag.RowsAffected() < most {
			return n, Failed("prune changes", err)
		}
	}
}
