package subgraph

import (
	"fmt"
	"strings"

	"repute/store/subgraphdb"
)

// fixedTypes are the types of graph-node that do not follow from entities. The descriptions are graph-node's own.
const fixedTypes = `
"""Marks the type as an entity"""
directive @entity on OBJECT
"""A field that other entities refer back by"""
directive @derivedFrom(field: String) on FIELD_DEFINITION
scalar BigDecimal
scalar BigInt
scalar Bytes
scalar Int8
scalar Timestamp
input BlockChangedFilter { number_gte: Int! }
input Block_height { hash: Bytes number: Int number_gte: Int }
enum OrderDirection { asc desc }
enum Aggregation_interval { hour day }
enum Aggregation_current {
  """Exclude the current, partially filled bucket from the response"""
  exclude
  """Include the current, partially filled bucket in the response"""
  include
}
enum _SubgraphErrorPolicy_ {
  """Data will be returned even if the subgraph has indexing errors"""
  allow
  """If the subgraph has indexing errors, data will be omitted. The default."""
  deny
}
type _Block_ {
  """The hash of the block"""
  hash: Bytes
  """The block number"""
  number: Int!
  """Integer representation of the timestamp stored in blocks for the chain"""
  timestamp: Int
  """The hash of the parent block"""
  parentHash: Bytes
}
"""The type for the top-level _meta field"""
type _Meta_ {
  """Information about a specific subgraph block"""
  block: _Block_!
  """The deployment ID"""
  deployment: String!
  """If true, the subgraph encountered indexing errors at some past block"""
  hasIndexingErrors: Boolean!
}
`

// sdl returns the schema of the API.
func (s *schema) sdl() string {
	var b strings.Builder
	b.WriteString(fixedTypes)
	fmt.Fprintf(&b, "enum %s { %s }\n", subgraphdb.Status, strings.Join(subgraphdb.StatusValues(), " "))
	for _, e := range s.table.All() {
		s.writeType(&b, e)
		s.writeFilter(&b, e)
		fmt.Fprintf(&b, "enum %s_orderBy { %s }\n", e.Name, strings.Join(s.orderNames(e), " "))
	}
	s.writeQuery(&b)
	return b.String()
}

// listArguments are the arguments of a list of entities. The defaults repeat defaultFirst.
func listArguments(entity string) string {
	return fmt.Sprintf("skip: Int = 0, first: Int = 100, orderBy: %[1]s_orderBy, orderDirection: OrderDirection, where: %[1]s_filter",
		entity)
}

// typeOf returns the type of a field.
func typeOf(f *subgraphdb.Field) string {
	name := string(f.Type)
	if f.To != "" {
		name = f.To
	}
	if f.List {
		name = "[" + name + "!]"
	}
	if f.Nullable {
		return name
	}
	return name + "!"
}

// writeType writes the type of an entity. Fields are in the order of the table.
func (s *schema) writeType(b *strings.Builder, e *subgraphdb.Entity) {
	fmt.Fprintf(b, "type %s {\n", e.Name)
	for i := range e.Fields {
		f := &e.Fields[i]
		arguments := ""
		if f.Many() {
			arguments = "(" + listArguments(f.To) + ")"
		}
		fmt.Fprintf(b, "  %s%s: %s\n", f.Name, arguments, typeOf(f))
	}
	b.WriteString("}\n")
}

// writeFilter writes the filter of an entity.
func (s *schema) writeFilter(b *strings.Builder, e *subgraphdb.Entity) {
	fmt.Fprintf(b, "input %s_filter {\n", e.Name)
	for _, f := range filterFields(e) {
		fmt.Fprintf(b, "  %s: %s\n", f.name, f.inputType())
	}
	fmt.Fprintf(b, "  _change_block: BlockChangedFilter\n  and: [%[1]s_filter]\n  or: [%[1]s_filter]\n}\n", e.Name)
}

// inputType returns the type of the value of a comparison.
func (f filterField) inputType() string {
	switch {
	case f.child:
		return f.field.To + "_filter"
	case f.field.One() && (f.op == subgraphdb.In || f.op == subgraphdb.NotIn):
		return "[String!]"
	case f.field.One():
		return "String"
	case f.field.List, f.op == subgraphdb.In, f.op == subgraphdb.NotIn:
		return "[" + string(f.field.Type) + "!]"
	}
	return string(f.field.Type)
}

// writeQuery writes the query fields. Aliases are written after the proper name of a list.
func (s *schema) writeQuery(b *strings.Builder) {
	const view = "block: Block_height, subgraphError: _SubgraphErrorPolicy_! = deny"
	b.WriteString("type Query {\n")
	for _, e := range s.table.All() {
		more := view
		if e.Aggregation {
			more = "interval: Aggregation_interval!, current: Aggregation_current, " + view
		} else {
			fmt.Fprintf(b, "  %s(id: ID!, %s): %s\n", singular(e.Name), view, e.Name)
		}
		for _, name := range append([]string{plural(e.Name)}, aliases(e.Name)...) {
			fmt.Fprintf(b, "  %s(%s, %s): [%s!]!\n", name, listArguments(e.Name), more, e.Name)
		}
	}
	b.WriteString("  \"\"\"Access to subgraph metadata\"\"\"\n  _meta(block: Block_height): _Meta_\n}\nschema { query: Query }\n")
}
