package subgraph

import (
	"maps"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// introspect returns __schema: the types of the API. Types and directives are sorted by name, so that equal queries
// have equal answers.
func (s *schema) introspect() *static {
	var types []any
	for _, name := range slices.Sorted(maps.Keys(s.types.Types)) {
		types = append(types, s.definition(s.types.Types[name]))
	}
	var directives []any
	for _, name := range slices.Sorted(maps.Keys(s.types.Directives)) {
		directives = append(directives, s.directive(s.types.Directives[name]))
	}
	return &static{"__Schema", map[string]any{"description": nil, "types": types,
		"queryType": s.definition(s.types.Query), "mutationType": nil, "subscriptionType": nil,
		"directives": directives}}
}

// introspectType returns __type; nil for a type that does not exist. The result is a nil pointer and not a nil
// interface, which pick knows.
func (s *schema) introspectType(name string) *static {
	if def := s.types.Types[name]; def != nil {
		return s.definition(def)
	}
	return nil
}

// typeBase returns the members of a type that has none of them. Every type has all members, because GraphQL wants null
// where a kind has no such member.
func typeBase(kind ast.DefinitionKind) map[string]any {
	return map[string]any{"kind": string(kind), "name": nil, "description": nil, "specifiedByURL": nil, "fields": nil,
		"interfaces": nil, "possibleTypes": nil, "enumValues": nil, "inputFields": nil, "ofType": nil, "isOneOf": nil}
}

// definition returns a type by its definition. Members that lead to other types are functions: types refer to each
// other in circles.
func (s *schema) definition(def *ast.Definition) *static {
	members := typeBase(def.Kind)
	members["name"], members["description"] = def.Name, textOrNull(def.Description)
	switch def.Kind {
	case ast.Object:
		members["interfaces"] = []any{}
		members["fields"] = func() any { return s.fields(def.Fields) }
	case ast.InputObject:
		members["isOneOf"] = false
		members["inputFields"] = func() any { return s.inputFields(def.Fields) }
	case ast.Enum:
		members["enumValues"] = func() any { return enumValues(def.EnumValues) }
	}
	return &static{"__Type", members}
}

// reference returns a type as a field has it.
func (s *schema) reference(t *ast.Type) *static {
	switch {
	case t.NonNull:
		inner := *t
		inner.NonNull = false
		return s.wrapper("NON_NULL", &inner)
	case t.Elem != nil:
		return s.wrapper("LIST", t.Elem)
	}
	return s.definition(s.types.Types[t.NamedType])
}

// wrapper returns a type around another one.
func (s *schema) wrapper(kind ast.DefinitionKind, of *ast.Type) *static {
	members := typeBase(kind)
	members["ofType"] = func() any { return s.reference(of) }
	return &static{"__Type", members}
}

// fields returns the fields of a type, without those of the introspection.
func (s *schema) fields(list ast.FieldList) any {
	out := []any{}
	for _, f := range list {
		if len(f.Name) > 2 && f.Name[:2] == "__" {
			continue
		}
		out = append(out, &static{"__Field", map[string]any{"name": f.Name, "description": textOrNull(f.Description),
			"args": func() any { return s.arguments(f.Arguments) }, "type": func() any { return s.reference(f.Type) },
			"isDeprecated": false, "deprecationReason": nil}})
	}
	return out
}

// inputFields returns the members of an input.
func (s *schema) inputFields(list ast.FieldList) any {
	out := []any{}
	for _, f := range list {
		out = append(out, s.input(f.Name, f.Description, f.Type, f.DefaultValue))
	}
	return out
}

// arguments returns the arguments of a field or a directive.
func (s *schema) arguments(list ast.ArgumentDefinitionList) any {
	out := []any{}
	for _, a := range list {
		out = append(out, s.input(a.Name, a.Description, a.Type, a.DefaultValue))
	}
	return out
}

// input returns an argument or a member of an input.
func (s *schema) input(name, description string, t *ast.Type, fallback *ast.Value) *static {
	var value any
	if fallback != nil {
		value = fallback.String()
	}
	return &static{"__InputValue", map[string]any{"name": name, "description": textOrNull(description),
		"type": func() any { return s.reference(t) }, "defaultValue": value, "isDeprecated": false,
		"deprecationReason": nil}}
}

// enumValues returns the values of an enum.
func enumValues(list ast.EnumValueList) any {
	out := []any{}
	for _, v := range list {
		out = append(out, &static{"__EnumValue",
			map[string]any{"name": v.Name, "description": textOrNull(v.Description),
				"isDeprecated": false, "deprecationReason": nil}})
	}
	return out
}

// directive returns a directive.
func (s *schema) directive(d *ast.DirectiveDefinition) *static {
	locations := []any{}
	for _, l := range d.Locations {
		locations = append(locations, string(l))
	}
	return &static{"__Directive", map[string]any{"name": d.Name, "description": textOrNull(d.Description),
		"locations": locations, "args": func() any { return s.arguments(d.Arguments) }, "isRepeatable": d.IsRepeatable}}
}

// textOrNull returns nil for an empty text.
func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
