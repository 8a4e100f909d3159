package capability

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"repute"
)

// maxProblems bounds what is listed of one document.
const maxProblems = 20

// Mismatch is returned for a document that its schema does not allow.
type Mismatch struct {
	// Problems are at most 20, each with the JSON pointer of the wrong value as its Field.
	Problems []*repute.InputError
	More     int // how many others there are
}

// Error lists the problems.
func (m *Mismatch) Error() string {
	texts := make([]string, 0, len(m.Problems)+1)
	for _, p := range m.Problems {
		texts = append(texts, p.Error())
	}
	if m.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", m.More))
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns repute.ErrInvalid.
func (m *Mismatch) Unwrap() error { return repute.ErrInvalid }

// problems lists the places where a document fails, without those that only contain them.
func problems(field string, failed *jsonschema.ValidationError) error {
	m := &Mismatch{}
	m.add(field, failed, message.NewPrinter(language.English))
	return m
}

// add lists the causes of a failure: a failure that has causes says only that they are there.
func (m *Mismatch) add(field string, e *jsonschema.ValidationError, p *message.Printer) {
	for _, c := range e.Causes {
		m.add(field, c, p)
	}
	switch {
	case len(e.Causes) > 0:
	case len(m.Problems) == maxProblems:
		m.More++
	default:
		m.Problems = append(m.Problems, problem(field, e, p))
	}
}

// problem describes one wrong value. It quotes the schema, never the value.
func problem(field string, e *jsonschema.ValidationError, p *message.Printer) *repute.InputError {
	var pointer strings.Builder
	for _, part := range e.InstanceLocation {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
		if pointer.Len() > maxPointer {
			break
		}
	}
	reason, hint := explain(e.ErrorKind)
	if reason == "" {
		reason, hint = e.ErrorKind.LocalizedString(p), "a value that the schema allows"
	}
	return &repute.InputError{Field: field + cut(pointer.String(), maxPointer), Reason: cut(reason, maxReason),
		Hint: cut(hint, maxReason)}
}

// explain tells what is wrong and what is allowed for the kinds whose own text quotes the value, or
// names no correction. Other kinds give empty texts.
func explain(k jsonschema.ErrorKind) (reason, hint string) {
	switch k := k.(type) {
	case *kind.Type:
		return "is of type " + k.Got, strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "is none of the allowed values", list(k.Want)
	case *kind.Const:
		return "is not the allowed value", list([]any{k.Want})
	case *kind.Format:
		return "is no " + k.Want, "a text of format " + k.Want
	case *kind.Pattern:
		return "does not match the pattern", k.Want
	case *kind.Required:
		return quoted(k.Missing, "is missing", "are missing"), "add what the schema requires"
	case *kind.AdditionalProperties:
		return quoted(k.Properties, "is not a member", "are not members"), "remove or rename it"
	case *kind.PropertyNames:
		return "has a member whose name is not allowed", "the names that the schema allows"
	case *kind.FalseSchema:
		return "is not allowed here", "remove it"
	}
	return "", ""
}

// quoted returns a sentence about members of an object. The names are cut if they are long, because a
// caller may have chosen them.
func quoted(names []string, one, several string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(name)
	}
	if len(names) > 1 {
		one = several
	}
	return cut(strings.Join(texts, ", "), maxReason) + " " + one
}

// list shows allowed values of a schema.
func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf("%v", v)
	}
	return strings.Join(texts, ", ")
}

// Bounds of the JSON pointers and of the other texts in errors, in bytes: callers may have chosen them.
const (
	maxPointer = 200
	maxReason  = 160
)

// cut bounds a text of an error.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
