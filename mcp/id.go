package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
)

// Text is a string or a whole number: an agent's id may be 22 or "8453:22". Numbers of any size
// keep their digits. Models write ids as numbers although the schema of REST says text.
type Text string

// Schema returns a schema that allows both.
func (Text) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeInteger}}}
}

// UnmarshalJSON accepts both.
func (t *Text) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, (*string)(t))
	}
	for _, c := range bytes.TrimPrefix(raw, []byte("-")) {
		if c < '0' || c > '9' {
			return fmt.Errorf("%.80q is neither text nor a whole number", raw)
		}
	}
	*t = Text(raw)
	return nil
}

// number describes json.Number, which the library treats as a text although it is written as a
// number.
type number struct{}

// Schema returns the schema of a number.
func (number) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }
