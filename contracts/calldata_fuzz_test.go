package contracts

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"repute"
)

// FuzzFunction reads texts of functions and calldata of them. No text or calldata breaks the reader; a text is read
// again as the same function; and calldata that is accepted has exactly one length, with every word inside of it.
func FuzzFunction(f *testing.F) {
	for _, text := range []string{"transfer(address to, uint256 amount)", "a()",
		"fill((address token, uint8[2] legs)[] o, bytes d)", "a(string s, (bytes, int8)[2][] p)",
		"a(bytes4[3] b, bool)", "a((uint256[],string)[1] x)", "a((((uint8))))"} {
		f.Add(text, bytes.Repeat([]byte{0}, 64))
		f.Add(text, slices.Concat(bytes.Repeat([]byte{0}, 31), []byte{32}, bytes.Repeat([]byte{0}, 32)))
	}
	f.Fuzz(func(t *testing.T, text string, arguments []byte) {
		function, err := ParseFunction(text)
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) || len(err.Error()) > 1000 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseFunction(function.Text)
		if err != nil || again.Signature != function.Signature || again.Selector != function.Selector {
			t.Fatalf("%q is read as %q and then as %+v: %v", text, function.Text, again, err)
		}
		data := append(function.Selector[:], arguments...)
		decoded, err := function.Decode(data)
		if err != nil {
			if !errors.Is(err, ErrEncoding) {
				t.Fatalf("%q %x: %v", text, data, err)
			}
			return
		}
		for _, a := range decoded.List() {
			if a.At != 0 && (a.At < 4 || a.At+wordSize > len(data) || (a.At-4)%wordSize != 0) {
				t.Fatalf("%q %x: %+v is outside", text, data, a)
			}
		}
		decoded.Values()
		for _, other := range [][]byte{append(slices.Clone(data), 0), append(slices.Clone(data), make([]byte, 32)...),
			data[:len(data)-1]} {
			if _, err := function.Decode(other); !errors.Is(err, ErrEncoding) {
				t.Fatalf("%q: %x and %x are both accepted: %v", text, data, other, err)
			}
		}
	})
}
