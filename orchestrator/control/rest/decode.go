package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"repute"
)

// decode reads the body of a request. An unknown field is an error, because it is probably a misspelled one.
// An empty body is an empty object.
func decode(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if json.Valid(body) {
		if err := repute.CheckJSON("", body); err != nil {
			return err
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return repute.Invalid(memberOf(wrong.Field), "is a "+wrong.Value, wanted(wrong.Type))
	case errors.As(err, &wrong):
		return repute.Invalid("body", "is a "+wrong.Value, "a JSON object")
	case err != nil && strings.HasPrefix(err.Error(), unknownField):
		return repute.Invalid(fmt.Sprintf("%.64s", strings.Trim(strings.TrimPrefix(err.Error(), unknownField), `"`)),
			"is no field of this request", knownFields(body, err, into))
	case err != nil:
		return repute.Invalid("body", fmt.Sprintf("cannot be read: %.200s", err),
			"one JSON object with the fields of /openapi.json")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return repute.Invalid("body", "has more after the object", "one JSON object")
	}
	return nil
}

// knownFields lists the fields of a request, for an error about an unknown one. The decoder does not tell
// the place of that field: where it is not in the outer object, the hint names the document.
func knownFields(body []byte, unknown error, into any) string {
	var members map[string]json.RawMessage
	t := reflect.TypeOf(into).Elem()
	name, err := strconv.Unquote(strings.TrimPrefix(unknown.Error(), unknownField))
	if err != nil || json.Unmarshal(body, &members) != nil || members[name] == nil || t.Kind() != reflect.Struct {
		return "the fields of /openapi.json"
	}
	if names := fieldNames(t); len(names) > 0 {
		return "known are " + strings.Join(names, ", ")
	}
	return "the request has no fields"
}

// fieldNames returns the JSON names of the fields of a struct, also of embedded structs.
func fieldNames(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			names = append(names, name)
		}
	}
	return names
}

// unknownField begins encoding/json's error about a field that a struct does not have. The
// package has no type for it.
const unknownField = "json: unknown field "

// wanted returns the kind of JSON that a Go type is decoded from, for error texts.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String:
		return "a string"
	case k >= reflect.Int && k <= reflect.Int64, k >= reflect.Uint && k <= reflect.Uint64:
		return "a whole number of up to " + strconv.Itoa(t.Bits()) + " bits"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return "a list"
	case k == reflect.Struct || k == reflect.Map:
		return "an object"
	}
	return "see the schema in /openapi.json"
}

// memberOf removes the names of embedded structs from the path that encoding/json reports.
func memberOf(path string) string {
	parts := strings.Split(path, ".")
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p != "" && unicode.IsUpper(rune(p[0])) }),
		".")
}
