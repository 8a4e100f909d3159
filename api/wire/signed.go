package wire

import (
	"github.com/danielgtaylor/huma/v2"

	"repute/trust/statement"
)

// SignedScore is a statement as package statement writes it.
type SignedScore struct{ statement.Signed }

// Schema returns an object with any members: package statement defines the JSON.
func (SignedScore) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}
