package subgraph

import (
	"github.com/vektah/gqlparser/v2/ast"

	"repute/store/subgraphdb"
)

// typename is the field that every type has.
const typename = "__typename"

// group is what a selection has under one key of the answer: fields of one name, whose selections are merged (GraphQL,
// section 6.3.2). Arguments of later fields are ignored and not compared.
type group struct {
	key    string
	fields []*ast.Field
}

// first returns the field whose arguments count.
func (g *group) first() *ast.Field { return g.fields[0] }

// sets returns the selections of all fields.
func (g *group) sets() (out []ast.SelectionSet) {
	for _, f := range g.fields {
		out = append(out, f.SelectionSet)
	}
	return out
}

// groups returns the fields that selections have on a type, with fragments put in and without what directives skip. A
// field with the key of another one that has a different name is left out, without the error that validation would
// give.
func (o *operation) groups(typeName string, sets []ast.SelectionSet) []*group {
	c := collector{operation: o, typeName: typeName, byKey: map[string]*group{}}
	for _, set := range sets {
		c.collect(set)
	}
	return c.groups
}

// collector collects the fields of selections in the order in which they are written. It shares the counts and failures
// of the operation.
type collector struct {
	*operation
	typeName string
	groups   []*group
	byKey    map[string]*group
}

// collect adds the fields of a selection. A fragment that contains itself ends at maxFields, which is why every
// selection counts and not fields alone.
func (c *collector) collect(set ast.SelectionSet) {
	for _, s := range set {
		if c.fields++; c.fields > maxFields {
			if c.fields == maxFields+1 {
				c.fail(tooExpensive())
			}
			return
		}
		switch s := s.(type) {
		case *ast.Field:
			if c.included(s.Directives) {
				c.add(s)
			}
		case *ast.InlineFragment:
			if c.included(s.Directives) && (s.TypeCondition == "" || s.TypeCondition == c.typeName) {
				c.collect(s.SelectionSet)
			}
		case *ast.FragmentSpread:
			c.spread(s)
		}
	}
}

// spread adds the fields of a fragment with a name. A fragment on another type adds nothing and is no error.
func (c *collector) spread(s *ast.FragmentSpread) {
	def := c.fragments.ForName(s.Name)
	switch {
	case !c.included(s.Directives):
	case def == nil:
		c.fail(failed("fragment `%s` is not defined", s.Name))
	case def.TypeCondition == c.typeName:
		c.collect(def.SelectionSet)
	}
}

// add adds a field.
func (c *collector) add(f *ast.Field) {
	g := c.byKey[f.Alias]
	if g == nil {
		g = &group{key: f.Alias}
		c.byKey[f.Alias], c.groups = g, append(c.groups, g)
	}
	if len(g.fields) == 0 || g.first().Name == f.Name {
		g.fields = append(g.fields, f)
	}
}

// included reports whether directives leave a selection in. A condition that is neither true nor false leaves the
// selection in.
func (o *operation) included(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if a := d.Arguments.ForName("if"); a != nil && (d.Name == "skip" || d.Name == "include") {
			v, _, _ := o.value(a.Value, maxNesting)
			if v == (d.Name == "skip") {
				return false
			}
		}
	}
	return true
}

// fail notes a failure. All that a query has are in its answer. At most 20 are kept, or a query of wrong fields would
// have an answer larger than itself.
func (o *operation) fail(f *SubgraphError) {
	if len(o.failures) < 20 {
		o.failures = append(o.failures, f)
	}
}

// unknownField notes that a type has no such field.
func (o *operation) unknownField(typeName string, f *ast.Field) {
	o.fail(failedAt(f.Position, "Type `%s` has no field `%s`", typeName, f.Name))
}

// selection is what a query selects of an entity. Fields are in the order of their first occurrence.
type selection struct {
	entity *subgraphdb.Entity
	fields []selected
}

// selected is one field of a selection.
type selected struct {
	key   string
	field *subgraphdb.Field // nil for __typename
	set   *selection        // of entities
	page  page              // of lists of entities
}

// selection returns what selections have of an entity. Selections of scalars are ignored, and references without one
// are left out, as graph-node does. Every selection of entities counts as a read, also one that is read inline. Beyond
// a bound the selection is empty and the failure is noted once.
func (o *operation) selection(e *subgraphdb.Entity, sets []ast.SelectionSet, depth int) *selection {
	out := &selection{entity: e}
	if o.reads++; depth > maxDepth {
		o.fail(failed("query has a depth that exceeds the limit of `%d`", maxDepth))
		return out
	}
	if o.reads == maxReads+1 {
		o.fail(tooExpensive())
	}
	if o.reads > maxReads {
		return out
	}
	for _, g := range o.groups(e.Name, sets) {
		if field, ok := o.selected(e, g, depth); ok {
			out.fields = append(out.fields, field)
		}
	}
	return out
}

// selected returns one field of a selection. ok is false where it is left out. Arguments of a reference to one entity
// are ignored.
func (o *operation) selected(e *subgraphdb.Entity, g *group, depth int) (s selected, ok bool) {
	s.key = g.key
	if g.first().Name == typename {
		return s, true
	}
	if s.field = e.Field(g.first().Name); s.field == nil {
		o.unknownField(e.Name, g.first())
		return s, false
	}
	if s.field.Scalar() {
		return s, true
	}
	if empty(g) {
		return s, false
	}
	to := o.schema.table.Entity(s.field.To)
	if s.set = o.selection(to, g.sets(), depth+1); s.field.Many() {
		s.page = o.page(to, g.first())
	}
	return s, true
}

// empty reports whether fields of an entity have no selection.
func empty(g *group) bool {
	for _, f := range g.fields {
		if len(f.SelectionSet) > 0 {
			return false
		}
	}
	return true
}
