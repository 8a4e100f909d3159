package subgraph

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"repute/store/subgraphdb"
)

// maxDigits bounds the digits of a number; those of the chain have at most 78.
const maxDigits = 200

// scalar returns a value for the comparison with a field: nil, bool, []byte for Bytes, else string. Values have the
// forms that graph-node accepts: numbers as texts too, ids as numbers, enums with quotes. References are compared by
// the id, which is a text. A text with invalid UTF-8 or a zero byte cannot be in the database: the first is replaced,
// the second refused.
func scalar(f *subgraphdb.Field, v any) (any, *SubgraphError) {
	kind := f.Type
	if f.To != "" {
		kind = subgraphdb.String
	}
	b, isBool := v.(bool)
	text, isText := textOf(v), isText(v)
	switch _, isNumber := v.(number); {
	case v == nil:
		return nil, nil
	case kind == subgraphdb.Boolean:
		if !isBool {
			return nil, undecodable("Boolean", describe(v))
		}
		return b, nil
	case !isText:
		return nil, undecodable(string(kind), describe(v))
	case kind == subgraphdb.Bytes && !isNumber:
		return bytesOf(text)
	case kind == subgraphdb.Bytes:
		return nil, undecodable("Bytes", describe(v))
	case slices.Contains([]subgraphdb.Type{subgraphdb.BigInt, subgraphdb.Int, subgraphdb.Int8, subgraphdb.Timestamp},
		kind):
		return checked(kind, text, isInteger, "invalid digit found in string")
	case kind == subgraphdb.BigDecimal:
		return checked(kind, text, isDecimal, "invalid decimal")
	case kind == subgraphdb.Status && !slices.Contains(subgraphdb.StatusValues(), text):
		return nil, undecodable(string(kind), describe(v))
	case strings.ContainsRune(text, 0):
		return nil, undecodable(string(kind), "a zero byte is in no text")
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// isText reports whether textOf has a text for a value.
func isText(v any) bool {
	switch v.(type) {
	case number, enum, string:
		return true
	}
	return false
}

// checked returns the text of a number that has a form.
func checked(kind subgraphdb.Type, text string, form func(string) bool, why string) (any, *SubgraphError) {
	if len(text) > maxDigits || !form(text) {
		return nil, undecodable(string(kind), why)
	}
	return text, nil
}

// isInteger reports whether a text is an integer. A sign may be a plus, as Rust parses it.
func isInteger(s string) bool { return isDigits(unsigned(s)) }

// unsigned returns a text without the sign that it may begin with.
func unsigned(s string) string {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:]
	}
	return s
}

// isDecimal reports whether a text is a number, with a fraction and an exponent of up to three digits at most.
func isDecimal(s string) bool {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exponent := s[i+1:]; len(strings.TrimLeft(exponent, "+-")) > 3 || !isInteger(exponent) {
			return false
		}
		s = s[:i]
	}
	whole, fraction, _ := strings.Cut(unsigned(s), ".")
	return isDigits(whole + fraction)
}

// isDigits reports whether a text consists of digits.
func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// bytesOf returns bytes from hex, with 0x or without, in any case. The position in the error counts bytes.
func bytesOf(text string) (any, *SubgraphError) {
	digits := strings.TrimPrefix(text, "0x")
	b, err := hex.DecodeString(digits)
	if err == nil {
		return b, nil
	}
	if i := strings.IndexFunc(digits,
		func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }); i >= 0 {
		return nil, undecodable("Bytes", fmt.Sprintf("Invalid character %q at position %d", []rune(digits[i:])[0], i))
	}
	return nil, undecodable("Bytes", "Odd number of digits")
}
