package subgraph_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// typeName is a type as introspection shows it.
type typeName struct {
	Kind, Name string
	OfType     *typeName
}

// String returns the type as SDL writes it.
func (t *typeName) String() string {
	switch t.Kind {
	case "NON_NULL":
		return t.OfType.String() + "!"
	case "LIST":
		return "[" + t.OfType.String() + "]"
	}
	return t.Name
}

// member is a field, an argument or a member of an input.
type member struct {
	Name         string
	Type         *typeName
	DefaultValue *string
	Args         []member
}

// typeInfo is a type with what it has.
type typeInfo struct {
	typeName
	Fields, InputFields []member
	EnumValues          []struct{ Name string }
}

// introspection is the query that GraphQL tools send.
const introspection = `query IntrospectionQuery { __schema { queryType { name } mutationType { name } subscriptionType { name }
	types { ...FullType } directives { name description locations args { ...InputValue } } } }
	fragment FullType on __Type { kind name description fields(includeDeprecated: true) { name description
	args { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason } inputFields { ...InputValue }
	interfaces { ...TypeRef } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
	possibleTypes { ...TypeRef } }
	fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue }
	fragment TypeRef on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }`

// typesOf returns the types of the schema by name.
func typesOf(t testing.TB, s *server) map[string]typeInfo {
	t.Helper()
	answer := answered[struct {
		Schema struct{ Types []typeInfo } `json:"__schema"`
	}](t, s.ask(introspection, nil))
	out := map[string]typeInfo{}
	for _, one := range answer.Schema.Types {
		out[one.Name] = one
	}
	return out
}

// TestIntrospection: the schema is complete, and some types are those of the subgraph.
func TestIntrospection(t *testing.T) {
	t.Parallel()
	s := serve(t, story(t).db)
	all := typesOf(t, s)
	for _, one := range []struct{ of, field, want string }{
		{"Agent", "id", "ID!"}, {"Agent", "operators", "[Bytes!]!"},
		{"Agent", "registrationFile", "AgentRegistrationFile"},
		{"Agent", "feedback", "[Feedback!]!"}, {"Feedback", "value", "BigDecimal!"},
		{"Feedback", "feedbackHash", "Bytes"},
		{"Validation", "status", "ValidationStatus!"}, {"Query", "agent", "Agent"}, {"Query", "agents", "[Agent!]!"},
		{"Query", "_meta", "_Meta_"}, {"Query", "agentMetadata_collection", "[AgentMetadata!]!"},
		{"AgentRegistrationFile", "mcpTools", "[String!]!"}, {"_Meta_", "block", "_Block_!"},
	} {
		if got := fieldOf(all[one.of].Fields, one.field); got != one.want {
			t.Errorf("%s.%s: %s, not %s", one.of, one.field, got, one.want)
		}
	}
	for field, want := range map[string]string{"agent": "String", "agent_in": "[String!]", "agent_": "Agent_filter",
		"value_gte": "BigDecimal", "tag1_not_starts_with_nocase": "String", "or": "[Feedback_filter]",
		"_change_block": "BlockChangedFilter", "isRevoked_in": "[Boolean!]", "responses_": "FeedbackResponse_filter"} {
		if got := fieldOf(all["Feedback_filter"].InputFields, field); got != want {
			t.Errorf("Feedback_filter.%s: %s, not %s", field, got, want)
		}
	}
	for name, one := range all {
		for _, f := range one.Fields {
			base := strings.Trim(f.Type.String(), "[]!")
			if _, found := all[base]; !found {
				t.Errorf("%s.%s: type %s is unknown", name, f.Name, base)
			}
		}
	}
	single := s.ask(`{ __type(name: "OrderDirection") { name kind enumValues { name } } none: __type(name: "X") { name } __typename }`, nil)
	if string(single) != `{"data":{"__type":{"name":"OrderDirection","kind":"ENUM","enumValues":[{"name":"asc"},{"name":"desc"}]},"none":null,"__typename":"Query"}}` {
		t.Error(string(single))
	}
	loop := "{ __schema { types " + strings.Repeat("{ inputFields { type ", 12) + "{ name }" +
		strings.Repeat("}}", 12) + "}}"
	if m := refused(t, s.ask(loop, nil)); m[0] != "query is too expensive" {
		t.Error(m)
	}
}

// fieldOf returns the type of a member.
func fieldOf(list []member, name string) string {
	for _, f := range list {
		if f.Name == name {
			return f.Type.String()
		}
	}
	return "none"
}

// TestEverything asks for each field, each order and each filter that the schema has.
func TestEverything(t *testing.T) {
	t.Parallel()
	l := story(t)
	s := serve(t, l.db)
	all := typesOf(t, s)
	lists := 0
	for _, root := range all["Query"].Fields {
		of := root.Type.String()
		if !strings.HasPrefix(of, "[") {
			continue
		}
		lists++
		entity := strings.Trim(of, "[]!")
		fields := selectAll(all, entity, 2)
		arguments := "first: 100"
		if fieldOf(root.Args, "interval") != "none" {
			arguments = "interval: hour, current: include"
		}
		rows := answered[map[string][]any](t,
			s.ask(fmt.Sprintf("{ %s(%s) { %s } }", root.Name, arguments, fields), nil))[root.Name]
		if len(rows) == 0 {
			t.Errorf("%s: none", root.Name)
		}
		var orders, filters []string
		for _, by := range all[entity+"_orderBy"].EnumValues {
			for _, direction := range []string{"asc", "desc"} {
				orders = append(orders, fmt.Sprintf("%s(%s, orderBy: %s, orderDirection: %s) { id }", root.Name,
					arguments, by.Name, direction))
			}
		}
		for _, f := range all[entity+"_filter"].InputFields {
			filters = append(filters, fmt.Sprintf("%s(%s, where: {%s: %s}) { id }", root.Name, arguments, f.Name,
				sample(f.Type.String())))
		}
		for name, n := range s.askAll(orders) {
			if n != len(rows) {
				t.Errorf("%s: %d of %d", name, n, len(rows))
			}
		}
		s.askAll(filters)
	}
	if lists < 20 {
		t.Errorf("%d lists", lists)
	}
}

// askAll runs lists, many in one query, and returns how many entities each has.
func (s *server) askAll(lists []string) map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for batch := range slices.Chunk(lists, 50) {
		var q strings.Builder
		for i, one := range batch {
			fmt.Fprintf(&q, "a%d: %s ", i, one)
		}
		for key, rows := range answered[map[string][]any](s.t, s.ask("{ "+q.String()+"}", nil)) {
			i, err := strconv.Atoi(key[1:])
			if err != nil {
				s.t.Fatal(err)
			}
			out[batch[i]] = len(rows)
		}
	}
	return out
}

// selectAll is the selection of all fields of a type, to a depth.
func selectAll(all map[string]typeInfo, entity string, depth int) string {
	var out []string
	for _, f := range all[entity].Fields {
		base := strings.Trim(f.Type.String(), "[]!")
		switch {
		case all[base].Kind != "OBJECT":
			out = append(out, f.Name)
		case depth > 0:
			out = append(out, f.Name+" { "+selectAll(all, base, depth-1)+" }")
		}
	}
	return strings.Join(out, " ")
}

// sample is a value of a type.
func sample(of string) string {
	if inner, isList := strings.CutPrefix(of, "["); isList {
		return "[" + sample(strings.Trim(inner, "]!")) + "]"
	}
	switch of {
	case "BigInt", "BigDecimal", "Int", "Int8", "Timestamp":
		return "1"
	case "Boolean":
		return "true"
	case "Bytes":
		return `"0x00"`
	case "ValidationStatus":
		return "COMPLETED"
	case "BlockChangedFilter":
		return "{number_gte: 1}"
	case "String", "ID":
		return `"8453:1"`
	}
	return "{}"
}
