package subgraph

import (
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"repute/store/subgraphdb"
)

// schema is the API: what can be asked, made from the table of entities. It is made once and is not changed.
type schema struct {
	table *subgraphdb.Schema
	roots map[string]root
	// filters and orders are by entity and name.
	filters map[*subgraphdb.Entity]map[string]filterField
	orders  map[*subgraphdb.Entity]map[string]subgraphdb.Order
	types   *ast.Schema // for introspection
}

// root is a field of Query: one entity by id, or a list. Aggregations have lists only.
type root struct {
	entity *subgraphdb.Entity
	many   bool
}

// filterField is a member of a filter: a comparison, or a condition on the entities that the field refers to.
type filterField struct {
	name  string
	field *subgraphdb.Field
	op    subgraphdb.Op
	child bool
}

// newSchema makes the API of the entities. The SDL is parsed again for introspection only, which also checks that it is
// valid.
func newSchema() (*schema, error) {
	s := &schema{table: subgraphdb.Entities(), roots: map[string]root{},
		filters: map[*subgraphdb.Entity]map[string]filterField{},
		orders:  map[*subgraphdb.Entity]map[string]subgraphdb.Order{}}
	for _, e := range s.table.All() {
		if !e.Aggregation {
			s.roots[singular(e.Name)] = root{e, false}
		}
		for _, name := range append(aliases(e.Name), plural(e.Name)) {
			s.roots[name] = root{e, true}
		}
		s.filters[e] = map[string]filterField{}
		for _, f := range filterFields(e) {
			s.filters[e][f.name] = f
		}
		s.orders[e] = map[string]subgraphdb.Order{}
		for _, name := range s.orderNames(e) {
			s.orders[e][name] = s.orderOf(e, name)
		}
	}
	types, err := gqlparser.LoadSchema(&ast.Source{Name: "subgraph", Input: s.sdl()})
	if err != nil {
		return nil, fmt.Errorf("schema of the subgraph: %w", err)
	}
	s.types = types
	return s, nil
}

// singular returns the query field of one entity of a type.
func singular(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// plural returns the query field of entities of a type. A name that is its own plural gets a suffix.
func plural(name string) string {
	if strings.HasSuffix(name, "Stats") || strings.HasSuffix(name, "Metadata") {
		return singular(name) + "_collection"
	}
	return singular(name) + "s"
}

// aliases returns other names of plural, which SDKs try first and examples have.
func aliases(name string) []string {
	switch name {
	case "AgentMetadata":
		return []string{"agentMetadatas"}
	case "ProtocolAgentStats", "ProtocolFeedbackStats":
		return []string{singular(name)}
	}
	return nil
}

// filterFields returns the members of an entity's filter, but for _change_block, and and or. Equality has the name of
// the field alone.
func filterFields(e *subgraphdb.Entity) (out []filterField) {
	for i := range e.Fields {
		f := &e.Fields[i]
		for _, op := range operators(f) {
			name := f.Name
			if op != subgraphdb.Equal {
				name += "_" + string(op)
			}
			out = append(out, filterField{name, f, op, false})
		}
		if f.To != "" {
			out = append(out, filterField{f.Name + "_", f, "", true})
		}
	}
	return out
}

// operators returns the operators of a field, as graph-node has them for its type.
func operators(f *subgraphdb.Field) []subgraphdb.Op {
	equality := []subgraphdb.Op{subgraphdb.Equal, subgraphdb.Not}
	order := []subgraphdb.Op{subgraphdb.Greater, subgraphdb.Less, subgraphdb.GreaterEqual, subgraphdb.LessEqual}
	sets := []subgraphdb.Op{subgraphdb.In, subgraphdb.NotIn}
	contains := []subgraphdb.Op{subgraphdb.Contains, subgraphdb.NotContains}
	nocase := []subgraphdb.Op{subgraphdb.ContainsNoCase, subgraphdb.NotContainsNoCase}
	ends := []subgraphdb.Op{subgraphdb.StartsWith, subgraphdb.StartsNoCase, subgraphdb.NotStartsWith,
		subgraphdb.NotStartsNoCase, subgraphdb.EndsWith, subgraphdb.EndsNoCase, subgraphdb.NotEndsWith,
		subgraphdb.NotEndsNoCase}
	join := func(groups ...[]subgraphdb.Op) (all []subgraphdb.Op) {
		for _, g := range groups {
			all = append(all, g...)
		}
		return all
	}
	switch {
	case f.Many():
		return nil
	case f.List && f.Type == subgraphdb.String:
		return join(equality, contains, nocase)
	case f.List:
		return join(equality, contains)
	case f.One(), f.Type == subgraphdb.String:
		return join(equality, order, sets, contains, nocase, ends)
	case f.Type == subgraphdb.Bytes:
		return join(equality, order, sets, contains)
	case f.Type == subgraphdb.Boolean, f.Type == subgraphdb.Status:
		return join(equality, sets)
	}
	return join(equality, order, sets)
}

// orderNames returns what entities can be ordered by: their fields, and the scalars of entities that they refer to.
// Lists and references back can be named too, as in graph-node, where they order nothing.
func (s *schema) orderNames(e *subgraphdb.Entity) (names []string) {
	for i := range e.Fields {
		f := &e.Fields[i]
		names = append(names, f.Name)
		if !f.One() {
			continue
		}
		for _, sub := range s.table.Entity(f.To).Fields {
			if sub.Scalar() && !sub.List {
				names = append(names, f.Name+"__"+sub.Name)
			}
		}
	}
	return names
}

// orderOf returns the order of a name; the zero one, which is by id, where a list is no order.
func (s *schema) orderOf(e *subgraphdb.Entity, name string) subgraphdb.Order {
	own, sub, nested := strings.Cut(name, "__")
	f := e.Field(own)
	switch {
	case nested:
		return subgraphdb.Order{Of: f, Field: s.table.Entity(f.To).Field(sub)}
	case f.List:
		return subgraphdb.Order{}
	}
	return subgraphdb.Order{Field: f}
}

// order returns the order that a query names. Besides those of graph-node it knows scalars of an entity that is part of
// the other one, such as the name of an agent, by which SDKs order too.
func (s *schema) order(e *subgraphdb.Entity, name string) (subgraphdb.Order, bool) {
	if o, found := s.orders[e][name]; found {
		return o, true
	}
	for i := range e.Fields {
		if f := &e.Fields[i]; f.Inline {
			if o, found := s.orders[e][f.Name+"__"+name]; found {
				return o, true
			}
		}
	}
	return subgraphdb.Order{}, false
}
