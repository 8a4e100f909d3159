package subgraphdb

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// A page begins with the skipping of the rows before it, which soon costs more than the page. SDKs read a whole chain
// in pages by skip, and each page would skip what all pages before it skipped. So the place where a page ends is kept
// for a short time, and the next page begins there. A page far behind all known places has the places of all rows
// found, at regular distances.

const (
	// manySkipped is from how many skipped rows on the places of all rows are found.
	manySkipped = 10_000
	// placeEvery is the distance of places, in rows.
	placeEvery = 1_000
	// placesKept is how many lists have places, and placesMost how many a list has.
	placesKept, placesMost = 64, 10_000
	// placesFresh is how long a place is used. It belongs to one newest block of the chain. What is written without a
	// new block does not end it: documents that are read, filled gaps and imports may move any number of rows, and
	// pages may then lack rows or repeat them until the place is old. The change feed would tell, but it grows with
	// each document that is read, so that hardly a place would be used.
	placesFresh = 30 * time.Second
)

// place is where row number Row, from 0, of a list is that is ordered by a block: Before rows are in blocks before its
// own, Block.
type place struct {
	Row, Block, Before int64
	found              time.Time
}

// placeKey is a hash of the statement of a list, of its parameters and of the newest block.
type placeKey [sha256.Size]byte

// placeKeyOf returns the key of a list. Parameters are written as Go writes their values, which is exact for numbers
// and for texts of any bytes and has no line ends, so that different lists have different keys.
func placeKeyOf(head Block, args []any, sql string) placeKey {
	return sha256.Sum256(fmt.Appendf(nil, "%d %q\n%#v\n%s", head.Number, head.Hash, args, sql))
}

// places are the known places of lists.
type places struct {
	mu    sync.Mutex
	lists map[placeKey][]place
}

// before returns the last place at or before a row; nil where there is none that is fresh.
func (p *places) before(key placeKey, row int64) (found *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.lists[key] {
		if one.Row <= row && (found == nil || one.Row > found.Row) && time.Since(one.found) < placesFresh {
			found = &one
		}
	}
	return found
}

// add keeps places of a list, in place of lists without fresh places or of any other one.
func (p *places) add(key placeKey, list ...place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range list {
		list[i].found = now
	}
	old := func(one place) bool { return now.Sub(one.found) >= placesFresh }
	for other, l := range p.lists {
		l = slices.DeleteFunc(l, old)
		if p.lists[other] = l; len(l) == 0 || len(p.lists) >= placesKept && other != key {
			delete(p.lists, other)
		}
	}
	all := append(p.lists[key], list...)
	p.lists[key] = all[max(0, len(all)-placesMost):]
}

// hasPlaces reports whether rows of a query have places: those in the order of a block that has an index.
func (q *Query) hasPlaces() bool {
	f := q.Order.Field
	return q.Parents == nil && q.Order.Of == nil && f != nil && f.Block != "" && f.From == "" && f.Every == "" &&
		!f.Nullable &&
		len(q.Entity.ID().Key) > 0
}

// knownPlaces returns the places of a database, and what the places of a query are kept by.
func (s *Snapshot) knownPlaces(b builder, q Query) (*places, placeKey) {
	sql := b.placesOf(q)
	return store.Kept(s.db, func() *places { return &places{lists: map[placeKey][]place{}} }),
		placeKeyOf(s.Head, b.args, sql)
}

// placeBefore returns the last place at or before the first row of the page of a query. It is nil when the rows before
// the page are skipped one by one; none reports that there is no such row.
func (s *Snapshot) placeBefore(ctx context.Context, b builder, q Query) (p *place, none bool, err error) {
	known, key := s.knownPlaces(b, q)
	p = known.before(key, int64(q.Skip))
	if p != nil && int64(q.Skip)-p.Row < manySkipped || q.Skip < manySkipped {
		return p, false, nil
	}
	sql := b.placesOf(q)
	rows, _ := s.tx.Query(ctx, sql, b.args...)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p place, err error) {
		return p, row.Scan(&p.Row, &p.Block, &p.Before)
	})
	if err != nil {
		return nil, false, err
	}
	known.add(key, list...)
	p = known.before(key, int64(q.Skip))
	return p, p == nil, nil
}

// keepPlace keeps the place where a page ends whose rows are in blocks.
func (s *Snapshot) keepPlace(b builder, q Query, blocks []int64) {
	if len(blocks) < q.First {
		return // no page follows
	}
	last, same := blocks[len(blocks)-1], 0
	for same < len(blocks) && blocks[len(blocks)-1-same] == last {
		same++
	}
	if same == len(blocks) {
		return // its first row may be on an earlier page
	}
	known, key := s.knownPlaces(b, q)
	end := int64(q.Skip + len(blocks))
	known.add(key, place{Row: end, Block: last, Before: end - int64(same)})
}

// placesOf returns the statement of the places of the rows of a query.
func (b *builder) placesOf(q Query) string {
	block := at(q.Order.Field.Block, 0)
	return fmt.Sprintf(`select n - 1, block, before from (
		select %s as block, row_number() over w as n, rank() over w - 1 as before%s window w as (order by %s)) x
		where n %% %d = 1 order by n limit %d`, block, b.rows(q, ""), directed([]string{block}, q.Order.Desc), placeEvery, placesMost)
}

// behind returns the SQL of the condition, after others, that a row is at a place of a list or behind it.
func (b *builder) behind(q Query, p place) string {
	sign := ">="
	if q.Order.Desc {
		sign = "<="
	}
	return " and " + at(q.Order.Field.Block, 0) + " " + sign + " " + b.arg(p.Block) + "::bigint"
}
