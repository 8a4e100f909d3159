package subgraph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
)

// Bounds of a query. Those of SDKs and dashboards have about 60 fields, 4 levels and 1,000 ids.
const (
	// maxTokens bounds the text of a query.
	maxTokens = 60_000
	// maxFields bounds the fields of a query, after its fragments are put in.
	maxFields = 5_000
	// maxDepth bounds how deep entities nest.
	maxDepth = 10
	// maxReads bounds the entities and lists that a query selects. Each is read with at most three statements: one that
	// looks up the blocks of times, one that finds the places of a list, and one that reads the rows.
	maxReads = 100
	// maxConditions bounds the conditions of all filters of a query, and maxValues their values.
	maxConditions = 1_000
	maxValues     = 20_000
	// maxNesting bounds how deep filters and values nest.
	maxNesting = 32
)

// number is a number as it is written in a query or in variables. It keeps the digits, because a float would round
// amounts in wei.
type number string

// enum is a name in a query that is no text. Quoted and bare names are mostly accepted alike; the type only matters in
// errors.
type enum string

// operation is the one query of a document with the values of its variables. It is made for one request and used by one
// goroutine. failures are those that were found before anything is read.
type operation struct {
	schema    *schema
	query     *ast.OperationDefinition
	fragments ast.FragmentDefinitionList
	variables map[string]any
	failures  []*SubgraphError
	// fields, reads, conditions and values count what is bounded.
	fields, reads, conditions, values int
}

// request is the body of a request.
type request struct {
	Query     string         `json:"query"`
	Variables map[string]any `json:"variables"`
}

// readRequest reads the body of a request. Numbers stay as they are written. What follows the JSON value is an error.
// Unknown members are ignored, as SDKs send extensions.
func readRequest(body []byte) (r request, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&r); err != nil {
		return r, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("more than one value")
	}
	return r, nil
}

// parse reads the operation of a request. operationName is ignored: with several operations the document is refused
// even if it names one.
func (s *schema) parse(r request) (*operation, *SubgraphError) {
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: r.Query}, maxTokens)
	if err != nil {
		return nil, syntaxFailure(err)
	}
	switch {
	case len(doc.Operations) == 0:
		return nil, failed("The query is empty")
	case len(doc.Operations) > 1:
		return nil, failed("Operation name required")
	case doc.Operations[0].Operation == ast.Mutation:
		return nil, failed("Not supported: Mutations are not supported")
	case doc.Operations[0].Operation == ast.Subscription:
		return nil, failed("Not supported: Subscriptions are not supported")
	}
	o := &operation{schema: s, query: doc.Operations[0], fragments: doc.Fragments, variables: map[string]any{}}
	return o, o.setVariables(r.Variables)
}

// syntaxFailure returns what the parser says. Its words are the parser's and not those of graph-node, which no SDK
// compares.
func syntaxFailure(err error) *SubgraphError {
	var syntax *gqlerror.Error
	if !errors.As(err, &syntax) {
		return failed("%s", err)
	}
	f := failed("%s", syntax.Message)
	for _, l := range syntax.Locations {
		f.Locations = append(f.Locations, SubgraphLocation{l.Line, l.Column})
	}
	return f
}

// setVariables takes the values of the declared variables. The declared types are not compared with the places of use,
// as graph-node does not: SDKs declare ids as String. A variable that is given and not declared is ignored. One that is
// declared and neither given nor set by default has no entry, which differs from null: an argument with it counts as
// absent.
func (o *operation) setVariables(given map[string]any) *SubgraphError {
	for _, def := range o.query.VariableDefinitions {
		value, found := given[def.Variable]
		switch {
		case found && value != nil:
			v, ok := fromJSON(value, maxNesting)
			if !ok {
				return tooExpensive()
			}
			o.variables[def.Variable] = v
		case !found && def.DefaultValue != nil:
			v, _, f := o.value(def.DefaultValue, maxNesting)
			if f != nil {
				return f
			}
			o.variables[def.Variable] = v
		case def.Type != nil && def.Type.NonNull:
			return failedAt(def.Position, "No value provided for required variable `%s`", def.Variable)
		case found:
			o.variables[def.Variable] = nil
		}
	}
	return nil
}

// fromJSON returns a value of variables like one of the query. ok is false when it nests too deep. What is no list,
// object or number is of the same type in both.
func fromJSON(v any, depth int) (out any, ok bool) {
	if depth == 0 {
		return nil, false
	}
	switch v := v.(type) {
	case json.Number:
		return number(v), true
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			if list[i], ok = fromJSON(e, depth-1); !ok {
				return nil, false
			}
		}
		return list, true
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, e := range v {
			if object[name], ok = fromJSON(e, depth-1); !ok {
				return nil, false
			}
		}
		return object, true
	}
	return v, true
}

// value returns a value of the query: nil, bool, string, number, enum, a list or a map. present is false for a variable
// without a value.
func (o *operation) value(v *ast.Value, depth int) (out any, present bool, f *SubgraphError) {
	if v == nil || depth == 0 {
		return nil, false, tooExpensive()
	}
	switch v.Kind {
	case ast.Variable:
		out, present = o.variables[v.Raw]
		return out, present, nil
	case ast.IntValue, ast.FloatValue:
		return number(v.Raw), true, nil
	case ast.StringValue, ast.BlockValue:
		return v.Raw, true, nil
	case ast.BooleanValue:
		return v.Raw == "true", true, nil
	case ast.EnumValue:
		return enum(v.Raw), true, nil
	case ast.ListValue:
		return o.list(v, depth)
	case ast.ObjectValue:
		return o.object(v, depth)
	}
	return nil, true, nil
}

// list returns the elements of a list of the query. A variable without a value is null.
func (o *operation) list(v *ast.Value, depth int) (any, bool, *SubgraphError) {
	out := make([]any, 0, len(v.Children))
	for _, c := range v.Children {
		e, _, f := o.value(c.Value, depth-1)
		if f != nil {
			return nil, false, f
		}
		out = append(out, e)
	}
	return out, true, nil
}

// object returns an object of the query, without members whose variable has no value.
func (o *operation) object(v *ast.Value, depth int) (any, bool, *SubgraphError) {
	out := make(map[string]any, len(v.Children))
	for _, c := range v.Children {
		e, present, f := o.value(c.Value, depth-1)
		if f != nil {
			return nil, false, f
		}
		if present {
			out[c.Name] = e
		}
	}
	return out, true, nil
}

// argument returns the value of an argument of a field, nil when it is not given. A variable without a value is as an
// argument that is not given.
func (o *operation) argument(field *ast.Field, name string) (v any, f *SubgraphError) {
	if a := field.Arguments.ForName(name); a != nil {
		v, _, f = o.value(a.Value, maxNesting)
	}
	return v, f
}
