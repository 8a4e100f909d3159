package column

import (
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// AddressBytes returns an address as a column holds it: empty for the zero address.
func AddressBytes(a common.Address) []byte {
	if a == (common.Address{}) {
		return []byte{}
	}
	return a[:]
}

// HashBytes returns a hash as a column holds it: empty for the zero hash.
func HashBytes(h common.Hash) []byte {
	if h == (common.Hash{}) {
		return []byte{}
	}
	return h[:]
}

// NumericArray returns a numeric[] parameter as text; dec returns the decimal digits of an item.
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

// TokenArray returns token ids as a numeric[] parameter.
func TokenArray(ids []repute.TokenID) string {
	return NumericArray(ids, func(id *repute.TokenID) string { return id.Dec() })
}
