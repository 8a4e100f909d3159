package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
)

// Text is a string or a whole number, whichever a caller has at hand: an agent's id may
// be 22 or "8453:22". Numbers are kept as they are written, of any size.
type Text string

// Schema says both.
func (Text) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeInteger}}}
}

// UnmarshalJSON takes both.
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

// number describes json.Number, which the library takes for a text although it is written
// as a number.
type number struct{}

// Schema says so.
func (number) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }
