package jsonrpc

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// Values that nodes encode as hex are read directly from the quoted string. The rules are those of
// go-ethereum's hexutil: a prefix 0x, quantities without leading zeros, "" for an empty value of
// variable length. An escape sequence is no hex digit.

var (
	errNoString = errors.New("not a string")
	errNoPrefix = errors.New("hex string without 0x prefix")
	errOddHex   = errors.New("hex string of odd length")
	errQuantity = errors.New("not a hex number")
)

// digits strips quotes and prefix; ok is false for the empty string.
func digits(quoted []byte) (text []byte, ok bool, err error) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return nil, false, errNoString
	}
	text = quoted[1 : len(quoted)-1]
	switch {
	case len(text) == 0:
		return nil, false, nil
	case len(text) < 2 || text[0] != '0' || text[1]|0x20 != 'x':
		return nil, false, errNoPrefix
	}
	return text[2:], true, nil
}

// readFixed fills dst, whose length the text must have.
func readFixed(dst, quoted []byte) error {
	text, _, err := digits(quoted)
	if err != nil {
		return err
	}
	if len(text) != 2*len(dst) {
		return fmt.Errorf("%d hex digits, want %d", len(text), 2*len(dst))
	}
	_, err = hex.Decode(dst, text)
	return err
}

// readQuantity reads a number.
func readQuantity(quoted []byte) (uint64, error) {
	text, ok, err := digits(quoted)
	if err != nil || !ok {
		return 0, err
	}
	if len(text) == 0 || len(text) > 16 || len(text) > 1 && text[0] == '0' {
		return 0, errQuantity
	}
	n := uint64(0)
	for _, c := range text {
		d := nibble(c)
		if d > 15 {
			return 0, errQuantity
		}
		n = n<<4 | uint64(d)
	}
	return n, nil
}

// nibble returns the value of a hexadecimal digit; math.MaxUint8 for another character.
func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return math.MaxUint8
}

// slab allocates pieces of larger allocations: most logs have a few hundred bytes, and one
// allocation each would be half the cost of reading them. A piece keeps at most one slab alive.
type slab[T any] struct{ free []T }

// slabBytes is about the size of a slab; larger pieces are allocated on their own.
const slabBytes = 32 << 10

// take returns n zero values; size is the size of one value in bytes.
func (s *slab[T]) take(n, size int) []T {
	if n*size > slabBytes/4 {
		return make([]T, n)
	}
	if n > len(s.free) {
		s.free = make([]T, slabBytes/size)
	}
	piece := s.free[:n:n]
	s.free = s.free[n:]
	return piece
}
