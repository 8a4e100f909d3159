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
	canonical, err := CanonicalJSON(raw)
	if err != nil {
		return common.Hash{}, err
	}
	return crypto.Keccak256Hash(canonical), nil
}

// CanonicalJSON is the canonical form of JSON (RFC 8785). repute.ErrInvalid as for HashJSON.
func CanonicalJSON(raw json.RawMessage) (json.RawMessage, error) {
	v := jsontext.Value(raw).Clone()
	if err := v.Canonicalize(); err != nil {
		return nil, fmt.Errorf("JSON without a canonical form: %w", repute.ErrInvalid)
	}
	return json.RawMessage(v), nil
}

// HashBody is HashJSON, and keccak256 of the bytes where they have no canonical form.
func HashBody(body []byte) common.Hash {
	if sum, err := HashJSON(body); err == nil {
		return sum
	}
	return crypto.Keccak256Hash(body)
}
