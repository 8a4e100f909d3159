package httpapi

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"repute"
)

// TestCheckValue: what the schema of a parameter does not allow is refused with its name and what is allowed.
func TestCheckValue(t *testing.T) {
	t.Parallel()
	least, most := 1.0, 200.0
	limit := &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}
	sort := &huma.Schema{Type: huma.TypeString, Enum: []any{"id", "score"}}
	flag := &huma.Schema{Type: huma.TypeBoolean}
	address := &huma.Schema{Type: huma.TypeString, Pattern: "^0x"}
	for _, s := range []*huma.Schema{limit, sort, flag, address} {
		s.PrecomputeMessages()
	}
	for _, c := range []struct {
		schema  *huma.Schema
		text    string
		allowed string // "" when the text is valid
	}{
		{limit, "1", ""}, {limit, "200", ""}, {limit, "0", "1 to 200"}, {limit, "201", "1 to 200"},
		{limit, "ten", "1 to 200"},
		{limit, "1.5", "1 to 200"}, {limit, "NaN", "1 to 200"}, {limit, "null", "1 to 200"}, {limit, "[1]", "1 to 200"},
		{sort, "id", ""}, {sort, "name", "id, score"}, {flag, "1", ""}, {flag, "false", ""},
		{flag, "yes", "true or false"},
		{address, "anything", ""},
	} {
		err := checkValue(&huma.Param{Name: "p", Schema: c.schema}, c.text)
		var wrong *repute.InputError
		if c.allowed == "" && err != nil || c.allowed != "" && (!errors.As(err, &wrong) || wrong.Field != "p" ||
			wrong.Hint != c.allowed || strings.Contains(wrong.Reason, "such")) {
			t.Errorf("%q: %v, want %q", c.text, err, c.allowed)
		}
	}
}

// TestCheckBody: the first wrong member of a body is named by its path.
func TestCheckBody(t *testing.T) {
	t.Parallel()
	type limits struct {
		Gas int `json:"gas,omitempty" minimum:"1"`
	}
	type body struct {
		Slug   string `json:"slug" pattern:"^[a-z]+$"`
		Limits limits `json:"limits,omitempty"`
	}
	r := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schema := r.Schema(reflect.TypeFor[body](), true, "")
	for text, field := range map[string]string{`{"slug":"a"}`: "", `{}`: "slug: is missing", `{"slug":"A"}`: "slug: ",
		`{"slug":"a","limits":{"gas":0}}`: "limits.gas: ", `[]`: "body: ", `{`: "body: "} {
		err := CheckBody(r, schema, []byte(text))
		if (err == nil) != (field == "") || err != nil && (!errors.Is(err, repute.ErrInvalid) ||
			!strings.HasPrefix(err.Error(), field)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
