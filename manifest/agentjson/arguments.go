package agentjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
)

// ParameterTypes are the types that a parameter can have.
func ParameterTypes() []string {
	return []string{"string", "integer", "number", "boolean", "array", "object"}
}

// TypeOf returns the type of a JSON value as parameters name it; "" for null and for what is no JSON.
// A number with a point or an exponent is a number even where its value is whole, as 1.0 is.
func TypeOf(raw json.RawMessage) string {
	if !json.Valid(raw) {
		return ""
	}
	switch jsonwalk.Type(raw) {
	case "a string":
		return "string"
	case "a boolean":
		return "boolean"
	case "an array":
		return "array"
	case "an object":
		return "object"
	case "null":
		return ""
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}
	return "integer"
}

// Argument reads the text that a person wrote for a parameter as its type wants it. repute.ErrInvalid names the
// parameter where the intent has none of that name, or the text is no value of its type.
// A value of the type string is taken as it is, with its spaces; for any other type the text is JSON.
func (in *Intent) Argument(name, text string) (json.RawMessage, error) {
	p, err := in.parameter(name)
	if err != nil {
		return nil, err
	}
	raw := json.RawMessage(strings.TrimSpace(text))
	if p.Type == "string" {
		if raw, err = json.Marshal(text); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return raw, p.check(raw)
}

// CheckArguments reports whether arguments are what the intent takes: every required parameter is there, values have
// their types and are among the allowed ones, and nothing is there that the manifest does not name. The error joins all
// that is wrong; each is a repute.ErrInvalid.
//
// It is called before a request is sent or paid for, so that a mistake costs nothing. The errors are in the order of
// the arguments' names, and missing ones follow in the order of the manifest.
func (in *Intent) CheckArguments(arguments map[string]json.RawMessage) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		p, err := in.parameter(name)
		if err == nil {
			err = p.check(arguments[name])
		}
		wrong = append(wrong, err)
	}
	for _, p := range in.Parameters {
		if _, given := arguments[p.Name]; p.Required && !given {
			wrong = append(wrong, repute.Invalid("param "+jsonwalk.Cut(p.Name, maxQuotedValue), "is missing",
				"the intent requires a value of type "+p.Type))
		}
	}
	return errors.Join(wrong...)
}

// parameter returns the parameter of a name.
func (in *Intent) parameter(name string) (*Parameter, error) {
	names := make([]string, 0, len(in.Parameters))
	for i := range in.Parameters {
		if in.Parameters[i].Name == name {
			return &in.Parameters[i], nil
		}
		names = append(names, in.Parameters[i].Name)
	}
	allowed := "the intent takes no parameters"
	if len(names) > 0 {
		allowed = jsonwalk.Cut("one of "+strings.Join(names, ", "), maxShort)
	}
	return nil, repute.Invalid("param "+strconv.Quote(jsonwalk.Cut(name, maxQuotedValue)), "is not in the manifest",
		allowed)
}

// check refuses a value of another type, or one that is not allowed. A whole number is a number, too. Parameters
// without a type that is known take any value.
func (p *Parameter) check(raw json.RawMessage) error {
	field := "param " + jsonwalk.Cut(p.Name, maxQuotedValue)
	got := TypeOf(raw)
	if p.Type != "" && got != p.Type && (p.Type != "number" || got != "integer") || got == "" {
		return repute.Invalid(field, fmt.Sprintf("%.*q is of the wrong type", maxQuotedValue, raw),
			"a value of type "+p.Type)
	}
	if len(p.Enum) == 0 ||
		slices.ContainsFunc(p.Enum, func(allowed json.RawMessage) bool { return sameValue(allowed, raw) }) {
		return nil
	}
	texts := make([]string, len(p.Enum))
	for i, allowed := range p.Enum {
		texts[i] = string(allowed)
	}
	return repute.Invalid(field, fmt.Sprintf("%.*q is not allowed", maxQuotedValue, raw),
		jsonwalk.Cut("one of "+strings.Join(texts, ", "), maxShort))
}

// sameValue reports whether two JSON texts have the same value. Numbers are compared as written: 1 is not 1.0.
func sameValue(a, b json.RawMessage) bool {
	x, errX := valueOf(a)
	y, errY := valueOf(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// valueOf decodes a JSON text, with numbers as written.
func valueOf(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
