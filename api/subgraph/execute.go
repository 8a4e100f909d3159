package subgraph

import (
	"context"
	"errors"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"repute/store/subgraphdb"
)

// maxRows is how many entities one query reads. The bytes are bounded by subgraphdb.
const maxRows = 60_000

// plan is one field of the query: entities, _meta, or a part of the introspection. set is nil for what is no entity; id
// is nil for a list.
type plan struct {
	key   string
	field *ast.Field
	group *group
	root  root
	id    any // of one entity
	page  page
	every subgraphdb.Interval // of an aggregation
	set   *selection
	at    block
	allow bool // to show data of a chain whose index has errors
}

// plans returns the fields of the query. Every failure that can be found without the database is noted on the way, and
// the caller reads nothing when there is any. A root without a selection is left out, as graph-node does.
func (o *operation) plans() (out []plan) {
	for _, g := range o.groups("Query", []ast.SelectionSet{o.query.SelectionSet}) {
		p := plan{key: g.key, field: g.first(), group: g, at: o.block(g.first()), allow: o.allowsErrors(g.first())}
		r, known := o.schema.roots[g.first().Name]
		switch {
		case known && empty(g):
			continue
		case known:
			p.root = r
			o.entities(&p)
		case isFixed(g.first().Name):
		default:
			o.unknownField("Query", g.first())
			continue
		}
		out = append(out, p)
	}
	return out
}

// isFixed reports whether a field of Query is no list of entities.
func isFixed(name string) bool {
	return name == "_meta" || name == "__schema" || name == "__type" || name == typename
}

// entities sets which entities a field reads. An id that is null is as one that is missing.
func (o *operation) entities(p *plan) {
	p.set = o.selection(p.root.entity, p.group.sets(), 1)
	if p.root.many {
		if p.page = o.page(p.root.entity, p.field); p.root.entity.Aggregation {
			p.every = o.interval(p.field)
		}
		return
	}
	v, f := o.argument(p.field, "id")
	switch {
	case f != nil:
		o.fail(f)
	case v == nil:
		o.fail(failedAt(p.field.Position, "No value provided for required argument: `id`"))
	default:
		id, f := scalar(p.root.entity.ID(), v)
		if f != nil {
			o.fail(f)
		}
		p.id = id
	}
}

// execution reads what an operation selects from one snapshot. It lives as long as the transaction of the snapshot.
type execution struct {
	*operation
	snapshot *subgraphdb.Snapshot
	left     int // rows that may still be read
}

// run returns the answer of all plans. Plans are executed one after the other, because a transaction has one
// connection. The first error ends the query without data.
func (x *execution) run(ctx context.Context, plans []plan) (*object, error) {
	data := &object{}
	for _, p := range plans {
		if err := p.at.check(x.snapshot); err != nil {
			return nil, err
		}
		v, err := x.field(ctx, p)
		if err != nil {
			return nil, err
		}
		data.set(p.key, v)
	}
	return data, nil
}

// field returns the answer of one plan. An entity that does not exist is null and no error.
func (x *execution) field(ctx context.Context, p plan) (any, error) {
	switch {
	case p.field.Name == typename:
		return "Query", nil
	case p.set == nil:
		return x.static(p)
	}
	q := subgraphdb.Query{Entity: p.root.entity, Where: p.page.where, Order: p.page.order, First: p.page.first,
		Skip: p.page.skip, Series: p.every}
	if p.id != nil {
		q.First, q.Where = 1, subgraphdb.Filter{Field: p.root.entity.ID(), Values: []any{p.id}}
	}
	rows, err := x.read(ctx, q, p.set)
	switch {
	case err != nil:
		return nil, err
	case p.root.many:
		return objects(rows), nil
	case len(rows) == 0:
		return nil, nil
	}
	return rows[0].object, nil
}

// record is an entity as it is answered. parent is the place of the entity's parent among the keys of the statement.
type record struct {
	parent int
	object *object
}

// objects returns what is answered of records.
func objects(records []record) []*object {
	out := make([]*object, len(records))
	for i, r := range records {
		out[i] = r.object
	}
	return out
}

// columns are the columns of a query by field. A field that is selected several times, or for several reasons, is read
// once.
type columns struct {
	list  []*subgraphdb.Field
	place map[*subgraphdb.Field]int
}

// add returns the place of the column of a field.
func (c *columns) add(f *subgraphdb.Field) int {
	i, found := c.place[f]
	if !found {
		i = len(c.list)
		c.list, c.place[f] = append(c.list, f), i
	}
	return i
}

// addAll adds the columns of what is selected of an entity. Fields of inline entities are columns of the same
// statement, and their list is flat.
func (c *columns) addAll(e *subgraphdb.Entity, set *selection) {
	for _, s := range set.fields {
		if s.field == nil {
			continue
		}
		c.add(columnOf(e, s.field))
		if s.inline() {
			c.addAll(s.set.entity, s.set)
		}
	}
}

// inline reports whether the entity that a selected field refers to is read with the row, in one statement: it is in
// the same tables, and nothing but scalars is selected of it.
func (s *selected) inline() bool {
	return s.field.Inline && !slices.ContainsFunc(s.set.fields,
		func(c selected) bool { return c.field != nil && !c.field.Scalar() })
}

// columnOf returns the field that is read for a selected one: for a list of entities that refer back the id.
func columnOf(e *subgraphdb.Entity, f *subgraphdb.Field) *subgraphdb.Field {
	if f.Many() {
		return e.ID()
	}
	return f
}

// read returns the entities of a query with all that is selected of them. It calls itself once for each selected
// reference and not for each row, so that the number of statements depends on the query alone. One row more than
// allowed is asked for, which tells an answer of exactly the limit from one beyond it. fill is called for fields in
// their order in the query, which is the order of the members.
func (x *execution) read(ctx context.Context, q subgraphdb.Query, set *selection) ([]record, error) {
	c := columns{place: map[*subgraphdb.Field]int{}}
	c.addAll(q.Entity, set)
	q.Columns, q.Limit = c.list, x.left+1
	rows, err := x.snapshot.Read(ctx, q)
	if err != nil {
		return nil, err
	}
	if x.left -= len(rows); x.left < 0 {
		return nil, tooMany()
	}
	out := make([]record, len(rows))
	for i, row := range rows {
		out[i] = record{row.Parent, newObject(len(set.fields))}
	}
	for _, s := range set.fields {
		if err := x.fill(ctx, q.Entity, s, c, rows, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tooMany refuses a query whose answer has too many entities.
func tooMany() *SubgraphError {
	return failed("query potentially returns `%d` entities or more and thereby exceeds the limit of `%d` entities. "+
		"Possible solutions are reducing the depth of the query, querying fewer relationships or using `first` to return "+
		"smaller collections", maxRows+1, maxRows)
}

// fill sets one selected field of all records.
func (x *execution) fill(ctx context.Context, e *subgraphdb.Entity, s selected, c columns, rows []subgraphdb.Row,
	out []record) error {
	if s.field == nil {
		for i := range out {
			out[i].object.set(s.key, e.Name)
		}
		return nil
	}
	place := c.place[columnOf(e, s.field)]
	if s.field.Scalar() {
		for i := range out {
			out[i].object.set(s.key, x.shown(e, rows[i].Cells[place]))
		}
		return nil
	}
	if s.inline() {
		x.fillInline(s, c, rows, out)
		return nil
	}
	return x.children(ctx, e, s, place, rows, out)
}

// fillInline sets a field whose entity is read with the rows.
func (x *execution) fillInline(s selected, c columns, rows []subgraphdb.Row, out []record) {
	for i, row := range rows {
		if row.Cells[c.place[s.field]] == nil {
			out[i].object.set(s.key, nil)
			continue
		}
		child := newObject(len(s.set.fields))
		for _, f := range s.set.fields {
			if f.field == nil {
				child.set(f.key, s.set.entity.Name)
				continue
			}
			child.set(f.key, x.shown(s.set.entity, row.Cells[c.place[f.field]]))
		}
		out[i].object.set(s.key, child)
	}
}

// shown returns a cell as it is answered.
func (x *execution) shown(e *subgraphdb.Entity, cell any) any {
	if key, isKey := cell.(subgraphdb.Value); isKey {
		return e.Key.Format(x.snapshot.Chain.ID, key)
	}
	return cell
}

// children reads the entities that a field of the rows refers to with one statement and sets them. Several rows may
// refer to one entity, which is then read once, and its object is part of several answers: objects MUST NOT be changed
// after read. Keys are compared by their ids.
func (x *execution) children(ctx context.Context, e *subgraphdb.Entity, s selected, place int, rows []subgraphdb.Row,
	out []record) error {
	to := x.schema.table.Entity(s.field.To)
	of := to.Key
	if s.field.Many() {
		of = e.Key
	}
	var keys []subgraphdb.Value
	places := map[string]int{} // of keys by id
	for _, row := range rows {
		if key, found := row.Cells[place].(subgraphdb.Value); found {
			id := of.Format(x.snapshot.Chain.ID, key)
			if _, known := places[id]; !known {
				places[id], keys = len(keys), append(keys, key)
			}
		}
	}
	byParent, err := x.byParent(ctx, e, s, to, keys)
	if err != nil {
		return err
	}
	for i, row := range rows {
		var found []record
		if key, present := row.Cells[place].(subgraphdb.Value); present {
			found = byParent[places[of.Format(x.snapshot.Chain.ID, key)]]
		}
		switch {
		case s.field.Many():
			out[i].object.set(s.key, objects(found))
		case len(found) == 0:
			out[i].object.set(s.key, nil)
		default:
			out[i].object.set(s.key, found[0].object)
		}
	}
	return nil
}

// byParent returns the entities that a field refers to by the place of their parent among keys. First and Skip count
// for each parent. A reference to one entity has neither filter nor order.
func (x *execution) byParent(ctx context.Context, e *subgraphdb.Entity, s selected, to *subgraphdb.Entity,
	keys []subgraphdb.Value) (map[int][]record, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	q := subgraphdb.Query{Entity: to, First: 1, Parents: keys, Parent: e, Of: s.field}
	if s.field.Many() {
		q.First, q.Skip, q.Where, q.Order = s.page.first, s.page.skip, s.page.where, s.page.order
	}
	records, err := x.read(ctx, q, s.set)
	if err != nil {
		return nil, err
	}
	out := map[int][]record{}
	for _, r := range records {
		out[r.parent] = append(out[r.parent], r)
	}
	return out, nil
}

// failureOf returns the failure that an error of the database is to the caller of a query; nil for an error that is not
// the query's. A failure of a query that is only known while it is read has status 200 too.
func failureOf(err error) *SubgraphError {
	var f *SubgraphError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, subgraphdb.ErrTooLarge):
		return failed("query is too expensive: the entities of the answer are too large, use a smaller `first`")
	case subgraphdb.TimedOut(err):
		return failed("Query timed out")
	}
	return nil
}
