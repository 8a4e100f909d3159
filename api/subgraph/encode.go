package subgraph

import (
	"encoding/json"
	"strconv"
)

// object is a JSON object whose members keep the order of the query, which GraphQL requires and a map does not. Keys
// are not compared: groups makes each key once.
type object struct {
	keys   []string
	values []any
}

// newObject returns an object without members that has room for some.
func newObject(members int) *object {
	return &object{keys: make([]string, 0, members), values: make([]any, 0, members)}
}

// set adds a member.
func (o *object) set(key string, v any) {
	o.keys, o.values = append(o.keys, key), append(o.values, v)
}

// appendValue appends a value of an answer as JSON: nil, bool, int32, int, string, a list, or an object. Other types
// are written as null; the tests compare the answers of all fields. Encoding by hand needs no reflection.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case int32:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case string:
		return appendText(b, v)
	case []string:
		return appendList(b, v)
	case []any:
		return appendList(b, v)
	case []*object:
		return appendList(b, v)
	case *object:
		if v != nil {
			return v.append(b)
		}
	}
	return append(b, "null"...)
}

// appendList appends a list as JSON.
func appendList[T any](b []byte, list []T) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, v)
	}
	return append(b, ']')
}

// append appends an object as JSON.
func (o *object) append(b []byte) []byte {
	b = append(b, '{')
	for i, key := range o.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, key), ':')
		b = appendValue(b, o.values[i])
	}
	return append(b, '}')
}

// appendText appends a text as JSON. Most texts are ASCII that needs no escapes. The set of characters that need
// json.Marshal includes those that it escapes for HTML, so that the result is the same as its own.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // a text is always JSON
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
