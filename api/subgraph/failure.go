package subgraph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// SubgraphError is what is wrong with a query, in the words of graph-node, which SDKs decide by.
type SubgraphError struct {
	Message   string             `json:"message"`
	Locations []SubgraphLocation `json:"locations,omitempty"`
}

// SubgraphLocation is a place in the text of the query, from 1.
type SubgraphLocation struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Error returns the message.
func (f *SubgraphError) Error() string { return f.Message }

// failed returns a failure without a place. The words in the format MUST stay those of graph-node, even where they read
// badly.
func failed(format string, args ...any) *SubgraphError {
	return &SubgraphError{Message: fmt.Sprintf(format, args...)}
}

// failedAt returns a failure at a place of the query. at is nil for values of variables.
func failedAt(at *ast.Position, format string, args ...any) *SubgraphError {
	f := failed(format, args...)
	if at != nil {
		f.Locations = []SubgraphLocation{{at.Line, at.Column}}
	}
	return f
}

// tooExpensive refuses a query that is larger than any that SDKs send.
func tooExpensive() *SubgraphError { return failed("query is too expensive") }

// invalidArgument says that a value is of the wrong kind.
func invalidArgument(at *ast.Position, name string, value any) *SubgraphError {
	return failedAt(at, "Invalid value provided for argument `%s`: %s", name, describe(value))
}

// undecodable says that a value does not have the form of its type.
func undecodable(kind, why string) *SubgraphError {
	return failed("Failed to decode `%s` value: `%s`", kind, why)
}

// maxDescribed bounds the text of a value in an error, in bytes.
const maxDescribed = 300

// describe returns a value as errors of graph-node show it. Long texts are cut, because they are the caller's and an
// answer of errors has no other bound.
func describe(v any) string {
	text := strings.ToValidUTF8(describeAll(v, 4), "\uFFFD")
	if len(text) > maxDescribed {
		return strings.ToValidUTF8(text[:maxDescribed], "") + "…"
	}
	return text
}

// describeAll is describe without a bound on the length, to a depth. The form is Rust's Debug format, in which
// graph-node writes values.
func describeAll(v any, depth int) string {
	switch v := v.(type) {
	case nil:
		return "Null"
	case bool:
		return fmt.Sprintf("Boolean(%t)", v)
	case enum:
		return "Enum(" + strconv.Quote(string(v)) + ")"
	case string:
		return "String(" + strconv.Quote(v) + ")"
	case number:
		if strings.ContainsAny(string(v), ".eE") {
			return "Float(" + string(v) + ")"
		}
		return "Int(" + string(v) + ")"
	case []any:
		return "List([" + describeEach(v, depth) + "])"
	case map[string]any:
		return "Object({" + describeMembers(v, depth) + "})"
	}
	return fmt.Sprint(v)
}

// describeEach describes the elements of a list.
func describeEach(list []any, depth int) string {
	if depth == 0 {
		return "…"
	}
	var parts []string
	for _, e := range list[:min(len(list), 10)] {
		parts = append(parts, describeAll(e, depth-1))
	}
	return strings.Join(parts, ", ")
}

// describeMembers describes the members of an object by name.
func describeMembers(object map[string]any, depth int) string {
	if depth == 0 {
		return "…"
	}
	var parts []string
	names := slices.Sorted(maps.Keys(object))
	for _, name := range names[:min(len(names), 10)] {
		parts = append(parts, strconv.Quote(name)+": "+describeAll(object[name], depth-1))
	}
	return strings.Join(parts, ", ")
}
