package hourdb

import (
	"cmp"
	"context"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/pgcopy"
)

// Series is a kind of events that hours count.
type Series int16

// The series, as column series has them. Registrations are counted for the whole chain alone.
const (
	Registrations Series = 1 + iota
	Ratings              // and their revocations
	Validations          // of contracts on the allow-list, and their answers
)

// Whole is the token id of the rows of the whole chain.
const Whole = "-1"

// hourAt returns the hour of a time in seconds since 1970; 0 is also the hour of blocks without a time.
func hourAt(seconds int64) int64 { return seconds / 3600 }

// logs is how many positions a block has in a place. Logs beyond them share the last one.
const logs = 1_000_000

// placeAt returns the position of a log as a number that ascends with it.
func placeAt(block uint64, log uint32) int64 { return int64(block)*logs + int64(min(log, logs-1)) }

// Hours adds up events by hour. It is not safe for concurrent use.
type Hours struct {
	of   map[uint64]int64 // hours of blocks; 0 of others
	rows map[key]*row
	// last is the hour after which no row is stored.
	last int64
}

// key identifies a row; the token of a row of the whole chain is zero.
type key struct {
	series Series
	whole  bool
	token  repute.TokenID
	hour   int64
}

// row is what is added to a row.
type row struct {
	key
	oldest       int64
	began, ended int64
	sum, net     decimal
}

// Of returns empty Hours for events in blocks. blocks MUST contain every block with a time; events of others count in
// hour 0. last is the newest stored block: Write inserts hours after it with COPY, which fails if a row is there.
// Where last has no time, Write adds all rows with an upsert.
func Of(blocks []repute.Block, last repute.Block) *Hours {
	h := newHours(len(blocks))
	if !last.Time.IsZero() {
		h.last = hourAt(last.Time.Unix())
	}
	for i := range blocks {
		if !blocks[i].Time.IsZero() {
			h.of[blocks[i].Number] = hourAt(blocks[i].Time.Unix())
		}
	}
	return h
}

// newHours returns empty Hours for a number of blocks, with stored events in any hour.
func newHours(blocks int) *Hours {
	return &Hours{of: make(map[uint64]int64, blocks), rows: map[key]*row{}, last: math.MaxInt64}
}

// Load returns empty Hours for events in stored blocks.
func Load(ctx context.Context, tx pgx.Tx, chainID uint64, numbers []uint64) (*Hours, error) {
	h := newHours(len(numbers))
	rows, _ := tx.Query(ctx, `
		select b.number, `+hourOfBlock+` from unnest($2::bigint[]) u(n)
		cross join lateral (select * from blocks where chain_id = $1 and number = u.n offset 0) b`, chainID, numbers)
	var number uint64
	var hour int64
	_, err := pgx.ForEachRow(rows, []any{&number, &hour}, func() error {
		h.of[number] = hour
		return nil
	})
	return h, store.Failed("read times of blocks", err)
}

// Event is something that happened to an agent.
type Event struct {
	Series Series
	Token  repute.TokenID
	Block  uint64
	Log    uint32
	// Ended says that it is a revocation or an answer.
	Ended bool
	// Value is what a rating, a revoked rating or an answer says, in units of 10 to the power of minus Decimals; nil
	// for other events.
	Value    *big.Int
	Decimals uint8
}

// Add counts an event.
func (h *Hours) Add(e Event) {
	k := key{series: e.Series, whole: true, hour: h.of[e.Block]}
	h.row(k).add(&e)
	if e.Series != Registrations {
		k.whole, k.token = false, e.Token
		h.row(k).add(&e)
	}
}

// row returns the row of a key.
func (h *Hours) row(k key) *row {
	r := h.rows[k]
	if r == nil {
		r = &row{key: k}
		h.rows[k] = r
	}
	return r
}

// add counts an event. The sum of ratings keeps revoked ones, from the net sum they are taken out.
func (r *row) add(e *Event) {
	if place := placeAt(e.Block, e.Log); r.began+r.ended == 0 || place < r.oldest {
		r.oldest = place
	}
	if e.Ended {
		r.ended++
	} else {
		r.began++
	}
	switch {
	case e.Value == nil:
	case e.Series == Ratings && e.Ended:
		r.net.add(new(big.Int).Neg(e.Value), e.Decimals)
	case e.Series == Ratings:
		r.net.add(e.Value, e.Decimals)
		r.sum.add(e.Value, e.Decimals)
	default:
		r.sum.add(e.Value, e.Decimals)
	}
}

// decimal is a number in units of 10 to the power of minus scale.
type decimal struct {
	n     big.Int
	scale uint8
}

// add adds a value in units of 10 to the power of minus scale.
func (d *decimal) add(value *big.Int, scale uint8) {
	if scale > d.scale {
		d.n.Mul(&d.n, powerOfTen(scale-d.scale))
		d.scale = scale
	}
	if scale < d.scale {
		value = new(big.Int).Mul(value, powerOfTen(d.scale-scale))
	}
	d.n.Add(&d.n, value)
}

// powerOfTen returns 10 to the power of n.
func powerOfTen(n uint8) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// text returns the number as Postgres reads it.
func (d *decimal) text() string {
	if d.scale == 0 {
		return d.n.String()
	}
	return d.n.String() + "e-" + strconv.Itoa(int(d.scale))
}

// Write adds the events to the stored hours: new rows with COPY, others by adding to what may be stored.
func (h *Hours) Write(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	rows := h.sorted()
	added := pgcopy.New("hours", "chain_id, series, token_id, hour, oldest, began, ended, sum, net")
	var known []*row
	for _, r := range rows {
		if r.hour > h.last {
			r.encode(added, chainID)
		} else {
			known = append(known, r)
		}
	}
	if err := addRows(ctx, tx, chainID, known); err != nil {
		return err
	}
	return added.Send(ctx, tx)
}

// encode appends a row to those that are new.
func (r *row) encode(c *pgcopy.Buffer, chainID uint64) {
	c.Row(chainID)
	c.Int16(int16(r.series))
	if r.whole {
		c.Integer(big.NewInt(-1))
	} else {
		c.Token(&r.token)
	}
	c.Int64(r.hour)
	c.Int64(r.oldest)
	c.Int64(r.began)
	c.Int64(r.ended)
	c.Decimal(&r.sum.n, r.sum.scale)
	c.Decimal(&r.net.n, r.net.scale)
}

// addRows adds rows to those that may be stored.
func addRows(ctx context.Context, tx pgx.Tx, chainID uint64, rows []*row) error {
	if len(rows) == 0 {
		return nil
	}
	series := make([]int16, len(rows))
	hours, oldest := make([]int64, len(rows)), make([]int64, len(rows))
	began, ended := make([]int64, len(rows)), make([]int64, len(rows))
	for i, r := range rows {
		series[i], hours[i], oldest[i], began[i], ended[i] = int16(r.series), r.hour, r.oldest, r.began, r.ended
	}
	_, err := tx.Exec(ctx, insert+`
		select $1::bigint, * from unnest($2::smallint[], $3::numeric[], $4::bigint[], $5::bigint[], $6::bigint[],
			$7::bigint[], $8::numeric[], $9::numeric[])`+addTo, chainID, series,
		column.NumericArray(rows, func(r **row) string { return (*r).tokenText() }), hours, oldest, began, ended,
		column.NumericArray(rows, func(r **row) string { return (*r).sum.text() }),
		column.NumericArray(rows, func(r **row) string { return (*r).net.text() }))
	return store.Failed("add to hours", err)
}

// insert and addTo are the SQL around a query that adds rows to those that are stored.
const (
	insert = `insert into hours as h (chain_id, series, token_id, hour, oldest, began, ended, sum, net)`
	addTo  = `
		on conflict (chain_id, series, token_id, hour) do update set oldest = least(h.oldest, excluded.oldest),
			began = h.began + excluded.began, ended = h.ended + excluded.ended, sum = h.sum + excluded.sum,
			net = h.net + excluded.net`
)

// sorted returns the rows in the order of their key, so that neighboring rows go to the same pages.
func (h *Hours) sorted() []*row {
	rows := make([]*row, 0, len(h.rows))
	for _, r := range h.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(a.series, b.series), a.token.Cmp(&b.token), cmp.Compare(a.hour, b.hour))
	})
	return rows
}

// tokenText returns the token id as column token_id has it.
func (k *key) tokenText() string {
	if k.whole {
		return Whole
	}
	return k.token.Dec()
}
