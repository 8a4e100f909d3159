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

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute/store"
	"repute/store/chaindb"
)

// maxText is how many characters or bytes of a text a row holds. Registrants choose how long their texts are.
const (
	maxText       = "16384"
	maxCharacters = 16384
)

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
	// Columns are the fields of the rows: scalars, and references, which are read as keys. Scalars of an entity that an
	// Inline field of Entity refers to may be among them: they mean nothing in rows in which that field is nil.
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

// hours returns the length of the interval.
func (i Interval) hours() int64 {
	if i.Day {
		return 24
	}
	return 1
}

// of returns an expression of an aggregation for the interval, for the rows of hours that meet a condition.
func (i Interval) of(sql, some string) string {
	return strings.NewReplacer("@hours@", strconv.FormatInt(i.hours(), 10), "@all@", strconv.FormatBool(i.Current),
		"@some@", some).Replace(sql)
}

// Row is one row of a Query.
type Row struct {
	// Parent is the index of the parent, 0 without parents.
	Parent int
	// Cells are the values of the columns: string, bool, int32 or []string, nil for null, and Value for keys. Bytes are
	// in hex with 0x.
	Cells []any
}

// Snapshot is the index of one chain at one moment.
type Snapshot struct {
	Chain chaindb.ChainView
	// Head is the newest indexed block.
	Head   Block
	db     *store.DB
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
		chains, err := chaindb.AskedChains(ctx, tx, []uint64{chain})
		if err != nil {
			return err
		}
		if err := setPlanning(ctx, tx); err != nil {
			return err
		}
		s := &Snapshot{Chain: *chains[0], db: db, tx: tx, schema: schema}
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

// setPlanning sets how Postgres plans the statements of a snapshot. Each is planned for its own values, because the
// plan for a page depends on how many rows are skipped and on how many rows a condition leaves. Compiling a statement
// takes longer than running it. Sorts of whole chains need more memory than the usual 4 MB.
func setPlanning(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select set_config(name, value, true) from (values
		('plan_cache_mode', 'force_custom_plan'), ('jit', 'off'), ('work_mem', '32MB')) v(name, value)`)
	return err
}

// Read returns the rows of a query: parent by parent in the order of the query.
func (s *Snapshot) Read(ctx context.Context, q Query) ([]Row, error) {
	firstBlocks, err := s.firstBlocks(ctx, &q.Where)
	if err != nil {
		return nil, err
	}
	b := &builder{schema: s.schema, chain: s.Chain.ID, args: []any{int64(s.Chain.ID)}, firstBlocks: firstBlocks}
	unused := *b
	if q.hasPlaces() && q.Skip > 0 {
		var none bool
		if b.from, none, err = s.placeBefore(ctx, unused, q); err != nil || none {
			return nil, err
		}
	}
	rows, blocks, err := s.read(ctx, b, q)
	if err == nil && q.hasPlaces() {
		s.keepPlace(unused, q, blocks)
	}
	return rows, err
}

// read runs the statement of a query and returns its rows, with the block of each where it has places.
func (s *Snapshot) read(ctx context.Context, b *builder, q Query) (list []Row, blocks []int64, err error) {
	rows, _ := s.tx.Query(ctx, b.statement(q), b.args...)
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Row, error) {
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
		if q.hasPlaces() {
			blocks = append(blocks, values[len(values)-1].(int64))
		}
		return scan(q.Columns, values)
	})
	return list, blocks, err
}

// scan turns the values of a statement into a row.
func scan(columns []*Field, values []any) (Row, error) {
	row := Row{Parent: int(values[0].(int64)) - 1}
	values = values[1:]
	var shared *servicesCell
	for _, c := range columns {
		used, err := 1, error(nil)
		var cell any
		switch {
		case c.Key != nil:
			cell, used = scanKey(values[:len(c.Key)]), len(c.Key)
		case c.services == nil:
			cell, err = c.cell(values[0])
		case shared == nil:
			var first servicesCell
			if first, err = decodeServices(values[0]); err == nil {
				shared = &first
				cell, err = shared.cell(c)
			}
		default:
			used = 0
			cell, err = shared.cell(c)
		}
		if err != nil {
			return row, fmt.Errorf("%s: %w", c.Name, err)
		}
		row.Cells, values = append(row.Cells, cell), values[used:]
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
		return hexutil.Encode(v), nil
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
	if list == "[]" {
		return out, nil
	}
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
