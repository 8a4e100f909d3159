package subgraphdb

import (
	"strconv"
	"strings"
)

// Type is the GraphQL type of a scalar field, or of the elements of a list.
type Type string

// Types of scalar fields, as graph-node names them.
const (
	ID         Type = "ID"
	String     Type = "String"
	Bytes      Type = "Bytes"
	BigInt     Type = "BigInt"
	BigDecimal Type = "BigDecimal"
	Int        Type = "Int"
	Int8       Type = "Int8"
	Timestamp  Type = "Timestamp" // in microseconds
	Boolean    Type = "Boolean"
	Status     Type = "ValidationStatus"
)

// StatusValues returns the values of the enum Status.
func StatusValues() []string { return []string{"PENDING", "COMPLETED", "EXPIRED"} }

// Entity is a type of the subgraph: what its rows are, and its fields.
//
// Expressions of SQL in an Entity and its fields write the alias of a table in braces, such as {a}.token_id. Each use
// of the entity in a statement puts a number in place of the closing brace, so that an entity can be nested in itself.
// $1 is the chain.
type Entity struct {
	// Name is the name of the GraphQL type.
	Name string
	// Key is what the id consists of.
	Key Key
	// From is the list of tables. Joins other than the first table are by unique keys, so that Postgres leaves out
	// those that no field needs.
	From string
	// Where is the condition of the rows, that of the chain among them.
	Where string
	// Aggregation says that the rows are sums by hour or day: From, Rows and Where have @hours@ for the length, and
	// @all@ for whether the hour or day that is not over is shown.
	Aggregation bool
	// Rows, unless it is empty, are the rows of From without the fields that are sums, which cost less to find: a page
	// that depends on no sum is found among them, by the columns RowKey. From has @some@ for a condition on the rows of
	// hours h.
	Rows   string
	RowKey []string
	// Changed is the block of the last change, for the filter _change_block; of an aggregation the start.
	Changed string
	// Fields are in the order of the GraphQL type; the first one is the id.
	Fields []Field
}

// Field is a field of an entity: a scalar, a list of scalars, a reference to one entity, or a list of entities that
// refer back.
type Field struct {
	// Name is the name of the GraphQL field.
	Name string
	// Type is the type of a scalar or of the elements of a list; empty for entities.
	Type Type
	// List says that the value is a list. A list of scalars is a jsonb array of texts.
	List bool
	// Nullable says that the value may be null.
	Nullable bool
	// SQL is the value of a scalar.
	SQL string
	// Raw says that SQL is a bytea that holds a text, because texts of the chain may be no UTF-8. The elements of such
	// a list are in hex.
	Raw bool
	// Block is the number of the block at whose time the value is, for times. Rows are ordered by it instead of SQL,
	// because it ascends with the time and has an index in the large tables.
	Block string
	// From and Until are columns with an index that Block is never below and never above, where Block has no index
	// itself.
	From, Until string
	// Every is the SQL of token_id and block of all rows, where it costs less to compute Block of all rows at once than
	// of many one by one; empty where Block is a column.
	Every string
	// Hour is the column of the hour of a time, which has an index; empty for other fields.
	Hour string
	// Sum says that the field is a sum of an aggregation.
	Sum bool
	// Order holds what rows are ordered by instead of SQL and Block; nil for none. It is empty where all rows have the
	// same value.
	Order []string
	// To is the name of the entity that the field refers to; empty for scalars.
	To string
	// Key is the key of the one entity that the field refers to, an expression for each part. A null part means that
	// there is none.
	Key []string
	// Exists is the condition that there is the entity, for lists in which many rows are looked at; empty for a Key
	// without null parts.
	Exists string
	// Inline says that the tables of To, with the same aliases, are among those of this entity and have the one row, so
	// that a condition on To needs no subquery.
	Inline bool
	// Back is the field of To that refers to this entity, for a list of entities; empty when all of the chain belong to
	// it.
	Back string

	of *Entity // that has the field
	// services takes the value of a row from the services of a registration file, in place of SQL; nil for other
	// fields.
	services func([]service) any
}

// Scalar reports whether the field is a scalar or a list of scalars.
func (f *Field) Scalar() bool { return f.To == "" }

// One reports whether the field refers to one entity.
func (f *Field) One() bool { return f.To != "" && !f.List }

// Many reports whether the field is a list of entities.
func (f *Field) Many() bool { return f.To != "" && f.List }

// Field returns the field of a name, nil when there is none.
func (e *Entity) Field(name string) *Field {
	for i := range e.Fields {
		if e.Fields[i].Name == name {
			return &e.Fields[i]
		}
	}
	return nil
}

// ID returns the field with the id.
func (e *Entity) ID() *Field { return &e.Fields[0] }

// Schema is the table of all entities by name.
type Schema struct {
	entities []*Entity
	byName   map[string]*Entity
}

// Entities returns the entities of the subgraph.
func Entities() *Schema {
	s := &Schema{byName: map[string]*Entity{}}
	states := []Entity{agent(), feedback(), feedbackResponse(), validation(), agentMetadata(), protocol(),
		registrationFile(), feedbackFile(), agentStats(), globalStats()}
	for _, e := range append(states, series()...) {
		s.entities = append(s.entities, &e)
		s.byName[e.Name] = &e
		for i := range e.Fields {
			e.Fields[i].of = &e
		}
		if e.Fields[0].Type == ID {
			e.Fields[0].Key = e.Key.columns()
		}
	}
	return s
}

// All returns the entities in their order.
func (s *Schema) All() []*Entity { return s.entities }

// Entity returns the entity of a name, nil when there is none.
func (s *Schema) Entity(name string) *Entity { return s.byName[name] }

// at returns an expression for the use of an entity at a level of nesting of a statement.
func at(sql string, level int) string {
	return strings.NewReplacer("{", "", "}", strconv.Itoa(level)).Replace(sql)
}
