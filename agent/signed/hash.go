package signed

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/go-json-experiment/json/jsontext"

	"repute"
)

// HashJSON is keccak256 of the canonical form of JSON (RFC 8785). repute.ErrInvalid where it has
// none: the text is no JSON, or an object names a member twice.
func HashJSON(raw json.RawMessage) (common.Hash, error) {
	v := jsontext.Value(raw).Clone()
	if err := v.Canonicalize(); err != nil {
		return common.Hash{}, fmt.Errorf("JSON without a canonical form: %w", repute.ErrInvalid)
	}
	return crypto.Keccak256Hash(v), nil
}

// HashBody is HashJSON, and keccak256 of the bytes where they have no canonical form.
func HashBody(body []byte) common.Hash {
	if sum, err := HashJSON(body); err == nil {
		return sum
	}
	return crypto.Keccak256Hash(body)
}
