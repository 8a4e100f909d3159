package subgraphdb

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute/store"
	"repute/store/chaindb"
)

// maxText is how many characters or bytes of a text a row holds. Registrants choose how long their texts are.
const maxText = "16384"

// Order is what rows are ordered by. Rows with equal values follow by id, in the same direction.
type Order struct {
	// Field is of the entity, or of the entity that Of refers to.
	Field *Field
	// Of is the reference whose field is ordered by; nil for a field of the entity itself.
	Of   *Field
	Desc bool
}

// Query says which rows of an entity are read.
type Query struct {
	Entity *Entity
	// Columns are the fields of the rows: scalars, and references, which are read as keys.
	Columns []*Field
	Where   Filter
	Order   Order
	// Series is the interval of an aggregation.
	Series Interval
	// First and Skip are the page, of each parent where there are parents.
	First, Skip int
	// Limit is the most rows of all parents together.
	Limit int
	// Parents, with Field Of of entity Parent, selects the rows that it refers to for each of the keys: those of the
	// referenced entity for a reference to one, those of Parent for a list. Nil: rows of the whole chain.
	Parents []Value
	Parent  *Entity
	Of      *Field
}

// Interval says how an aggregation is cut into times: by day or by hour, and with the present one or without it.
type Interval struct {
	Day, Current bool
}

// of returns an expression of an aggregation for the interval.
func (i Interval) of(sql string) string {
	seconds := "3600"
	if i.Day {
		seconds = "86400"
	}
	return strings.NewReplacer("@seconds@", seconds, "@all@", strconv.FormatBool(i.Current)).Replace(sql)
}

// Row is one row of a Query.
type Row struct {
	// Parent is the index of the parent, 0 without parents.
	Parent int
	// Cells are the values of the columns: string, bool, int32 or []string, nil for null, and Value for keys. Bytes are in
	// hex with 0x.
	Cells []any
}

// Snapshot is the index of one chain at one moment.
type Snapshot struct {
	Chain chaindb.ChainView
	// Head is the newest indexed block.
	Head   Block
	tx     pgx.Tx
	schema *Schema
	size   int
}

// ErrTooLarge is returned when the rows of a snapshot's queries are larger than an answer may be.
var ErrTooLarge = errors.New("the rows are larger than an answer may be")

// maxSize is how many bytes of values the queries of one snapshot read.
const maxSize = 32 << 20

// TimedOut reports whether a statement took longer than the database allows.
func TimedOut(err error) bool {
	const queryCanceled = "57014"
	var refused *pgconn.PgError
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &refused) && refused.Code == queryCanceled
}

// Block is the header of an indexed block. Hash and Parent are empty and Time is zero where they are not known.
type Block struct {
	Number       int64
	Hash, Parent string
	Time         time.Time
}

// View runs f on a snapshot of a chain. repute.ErrNotFound when the chain is not indexed.
func View(ctx context.Context, db *store.DB, schema *Schema, chain uint64,
	f func(context.Context, *Snapshot) error) error {
	return chaindb.View(ctx, db, "read the subgraph", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.ReadChains(ctx, tx, []uint64{chain})
		if err != nil {
			return err
		}
		if len(chains) == 0 {
			return chaindb.MissingChain(chain)
		}
		s := &Snapshot{Chain: *chains[0], tx: tx, schema: schema}
		b, _, err := chaindb.ReadHeader(ctx, tx, chain, s.Chain.Cursor)
		if err != nil {
			return err
		}
		latest := s.Chain.Latest()
		s.Head = Block{Number: s.Chain.Cursor, Hash: latest.Block.Hash.Hex(), Time: latest.Block.Time}
		if b.Hash == latest.Block.Hash {
			s.Head.Parent = b.Parent.Hex()
		}
		return f(ctx, s)
	})
}

// Read returns the rows of a query: parent by parent in the order of the query.
func (s *Snapshot) Read(ctx context.Context, q Query) ([]Row, error) {
	b := &builder{schema: s.schema, chain: s.Chain.ID, args: []any{int64(s.Chain.ID)}}
	rows, err := s.tx.Query(ctx, b.statement(q), b.args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Row, error) {
		for _, raw := range row.RawValues() {
			s.size += len(raw)
		}
		if s.size > maxSize {
			return Row{}, ErrTooLarge
		}
		values, err := row.Values()
		if err != nil {
			return Row{}, err
		}
		return scan(q.Columns, values)
	})
}

// statement returns the text of the statement of a query.
func (b *builder) statement(q Query) string {
	columns, names := []string{}, []string{}
	for _, c := range q.Columns {
		for _, sql := range b.columns(q.Entity, c) {
			names = append(names, fmt.Sprintf("c%d", len(columns)))
			columns = append(columns, at(sql, 0)+" as "+names[len(columns)])
		}
	}
	switch {
	case q.Parents == nil && q.Skip > 0 && len(q.Entity.ID().Key) > 0:
		return b.deepPage(q, columns, names)
	case q.Parents == nil:
		return "select " + strings.Join(append([]string{"1::bigint"}, columns...), ", ") + b.page(q, "")
	}
	key := q.Of.Key
	if q.Of.Many() {
		key = q.Parent.Key.columns()
	}
	parts, arrays, refers := b.parents(q, key)
	from := "unnest(" + strings.Join(arrays, ", ") + ") with ordinality as k(" + strings.Join(append(parts, "n"), ", ") + ")"
	if len(key) == 0 {
		from = "(values (1::bigint)) as k(n)"
	}
	inner := "select " + strings.Join(append(columns, "null"), ", ") + b.page(q, refers)
	return "select k.n, " + strings.Join(append(prefixed("y.", names), "y.r"), ", ") + " from " + from +
		" cross join lateral (select z.*, row_number() over () as r from (" + inner + ") z) y order by k.n, y.r limit " +
		b.arg(q.Limit) + "::bigint"
}

// deepPage returns the statement of a page that skips rows. It finds the keys of the page first, because Postgres computes
// the columns of the skipped rows too.
func (b *builder) deepPage(q Query, columns, names []string) string {
	keys, refers := []string{}, ""
	for i, sql := range q.Entity.ID().Key {
		name := fmt.Sprintf("k%d", i)
		keys = append(keys, at(sql, 0)+" as "+name)
		refers += " and " + at(sql, 0) + " = k." + name
	}
	return "select " + strings.Join(append([]string{"1::bigint"}, prefixed("y.", names)...), ", ") +
		" from (select z.*, row_number() over () as r from (select " + strings.Join(keys, ", ") + b.page(q, "") + ") z) k" +
		" cross join lateral (select " + strings.Join(append(columns, "null"), ", ") + " from " + at(q.Entity.From, 0) + " where " +
		at(q.Entity.Where, 0) + refers + " limit 1) y order by k.r"
}

// prefixed puts a prefix before each name.
func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}

// parents adds the keys of the parents as arrays and returns the names of their parts, the arrays, and the condition that
// a row belongs to a parent.
func (b *builder) parents(q Query, key []string) (names, arrays []string, refers string) {
	forms, theirs := b.schema.Entity(q.Of.To).Key, q.Entity.Key.columns()
	if q.Of.Many() {
		forms = q.Parent.Key
		if q.Of.Back == "" {
			return nil, nil, ""
		}
		theirs = q.Entity.Field(q.Of.Back).Key
	}
	for i := range key {
		names = append(names, fmt.Sprintf("k%d", i))
		arrays = append(arrays, b.column(forms.Parts[i].Form, q.Parents, i))
		refers += " and " + at(theirs[i], 0) + " = k." + names[i]
	}
	return names, arrays, refers
}

// page returns the SQL of the rows of a query from its tables on.
func (b *builder) page(q Query, refers string) string {
	direction := " asc"
	if q.Order.Desc {
		direction = " desc"
	}
	order := b.orderOf(q.Entity, q.Entity.ID(), 0) + direction
	if f := q.Order.Field; f != nil && (f != q.Entity.ID() || q.Order.Of != nil) {
		order = b.order(q) + direction + ", " + order
	}
	return " from " + at(q.Series.of(q.Entity.From), 0) + " where " + at(q.Series.of(q.Entity.Where), 0) + refers + " and " +
		b.condition(q.Entity, 0, &q.Where) + " order by " + order +
		" limit " + b.arg(q.First) + "::bigint offset " + b.arg(q.Skip) + "::bigint"
}

// order returns the SQL of what a query orders by.
func (b *builder) order(q Query) string {
	of := q.Order.Of
	if of == nil {
		return b.orderOf(q.Entity, q.Order.Field, 0)
	}
	to := b.schema.Entity(of.To)
	if of.Inline {
		return "case when " + at(of.Key[len(of.Key)-1], 0) + " is not null then " + b.orderOf(to, q.Order.Field, 0) + " end"
	}
	return "(select " + b.orderOf(to, q.Order.Field, 1) + " from " + at(to.From, 1) + " where " + at(to.Where, 1) +
		b.refers(q.Entity, 0, of, 1) + ")" + q.Order.Field.collation()
}

// orderOf returns the SQL of what orders rows of an entity by a field.
func (b *builder) orderOf(e *Entity, f *Field, level int) string {
	switch {
	case f.Key != nil && f.To == "":
		return e.Key.id(f.Key, level) + collateC
	case f.Key != nil:
		return b.schema.Entity(f.To).Key.id(f.Key, level) + collateC
	case f.Order != "":
		return "(" + at(f.Order, level) + ")"
	}
	return "(" + at(f.SQL, level) + ")" + f.collation()
}

// collation returns the collation of a field that is a text: that of its bytes.
func (f *Field) collation() string {
	if f.List || f.Key != nil && f.To == "" {
		return ""
	}
	return f.kind().collate
}

// columns returns the SQL of what is read of a field of entity e.
func (b *builder) columns(e *Entity, f *Field) (out []string) {
	key := e.Key
	if f.To != "" {
		key = b.schema.Entity(f.To).Key
	}
	for i, sql := range f.Key {
		if key.Parts[i].Form == FormNumber {
			sql = "(" + sql + ")::text"
		}
		out = append(out, sql)
	}
	if f.Key != nil {
		return out
	}
	x := "(" + f.SQL + ")"
	switch {
	case f.List, f.Type == BigInt, f.Type == Int8, f.Type == Timestamp, f.Type == Status:
		x += "::text"
	case f.Type == BigDecimal:
		x = "trim_scale(" + x + ")::text"
	case f.Raw:
		x = "substring(" + x + " for " + maxText + ")"
	case f.Type == String:
		x = "left(" + x + ", " + maxText + ")"
	}
	return []string{x}
}

// scan turns the values of a statement into a row.
func scan(columns []*Field, values []any) (Row, error) {
	row := Row{Parent: int(values[0].(int64)) - 1}
	values = values[1:]
	for _, c := range columns {
		if c.Key != nil {
			row.Cells = append(row.Cells, scanKey(values[:len(c.Key)]))
			values = values[len(c.Key):]
			continue
		}
		cell, err := c.cell(values[0])
		if err != nil {
			return row, fmt.Errorf("%s: %w", c.Name, err)
		}
		row.Cells, values = append(row.Cells, cell), values[1:]
	}
	return row, nil
}

// scanKey returns a key, nil when a part is absent.
func scanKey(parts []any) any {
	key := Value{}
	for _, p := range parts {
		if p == nil {
			return nil
		}
		key = append(key, p)
	}
	return key
}

// cell returns the value of a scalar.
func (f *Field) cell(v any) (any, error) {
	switch v := v.(type) {
	case []byte:
		if f.Raw {
			return text(v), nil
		}
		return hexText(v), nil
	case string:
		if f.List {
			return f.elements(v)
		}
	}
	return v, nil
}

// elements returns the elements of a list.
func (f *Field) elements(list string) (any, error) {
	out := []string{}
	if err := json.Unmarshal([]byte(list), &out); err != nil || !f.Raw {
		return out, err
	}
	for i, e := range out {
		b, err := hex.DecodeString(e)
		if err != nil {
			return nil, err
		}
		out[i] = text(b)
	}
	return out, nil
}
