package store

import (
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// AddressBytes is an address as a column holds it: empty for none.
func AddressBytes(a common.Address) []byte {
	if a == (common.Address{}) {
		return []byte{}
	}
	return a[:]
}

// HashBytes is a hash as a column holds it: empty for zero.
func HashBytes(h common.Hash) []byte {
	if h == (common.Hash{}) {
		return []byte{}
	}
	return h[:]
}

// NumericArray is a numeric[] parameter, as text.
func NumericArray[T any](items []T, dec func(*T) string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(dec(&items[i]))
	}
	b.WriteByte('}')
	return b.String()
}

// TokenArray is a numeric[] parameter of token ids.
func TokenArray(ids []repute.TokenID) string {
	return NumericArray(ids, func(id *repute.TokenID) string { return id.Dec() })
}
