package wire

import (
	"github.com/danielgtaylor/huma/v2"

	"repute/trust/statement"
)

// SignedScore is a statement as package statement writes it.
type SignedScore struct{ statement.Signed }

// Schema keeps the schema from being guessed out of Go's fields.
func (SignedScore) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}
