package agentjson

import (
	"bytes"
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// Decimal is an exact amount of zero or more in plain notation: no exponent, no needless zeros ("0.5", "12"). "" stands
// for no amount.
type Decimal string

// Bounds of numbers, in digits. They cover every token's smallest unit and keep a short text such as 1e999999999 from
// becoming a long one.
const (
	maxWhole    = 30
	maxFraction = 30
)

// Cmp compares two amounts: -1, 0 or 1. No amount is less than zero.
//
// It compares texts: without needless zeros a longer whole part is the larger one, and fractions compare from the
// left as words do. No amount ("") MUST be told apart from "0" by the caller.
func (d Decimal) Cmp(other Decimal) int {
	a, aFraction, _ := strings.Cut(string(d), ".")
	b, bFraction, _ := strings.Cut(string(other), ".")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b), strings.Compare(aFraction, bFraction))
}

// rat returns the amount as a fraction; zero for none.
// It is for sums of shares; amounts are compared by Cmp, which allocates nothing.
func (d Decimal) rat() *big.Rat {
	r, ok := new(big.Rat).SetString(string(d))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// number is what became of the text of a JSON number.
type number int

const (
	numberOK       number = iota
	numberNegative        // less than zero
	numberBounds          // more digits than an amount has
)

// parseDecimal reads the text of a JSON number, which MUST be valid.
//
// The exponent is bounded before digits are written, so that the work is that of the text's length. "-0" is zero and
// no negative number.
func parseDecimal(raw []byte) (Decimal, number) {
	text, negative := bytes.CutPrefix(raw, []byte("-"))
	exponent := 0
	if i := bytes.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.Atoi(string(text[i+1:]))
		if err != nil || e > 1000 || e < -1000 {
			e = 1000 // out of bounds, but for a zero
		}
		text, exponent = text[:i], e
	}
	whole, fraction, _ := bytes.Cut(text, []byte("."))
	digits := string(whole) + string(fraction)
	trimmed := strings.TrimLeft(digits, "0")
	point := len(whole) + exponent - (len(digits) - len(trimmed)) // digits before the point
	trimmed = strings.TrimRight(trimmed, "0")
	switch {
	case trimmed == "":
		return "0", numberOK
	case negative:
		return "", numberNegative
	case point > maxWhole || len(trimmed)-point > maxFraction:
		return "", numberBounds
	case point <= 0:
		return Decimal("0." + strings.Repeat("0", -point) + trimmed), numberOK
	case point >= len(trimmed):
		return Decimal(trimmed + strings.Repeat("0", point-len(trimmed))), numberOK
	}
	return Decimal(trimmed[:point] + "." + trimmed[point:]), numberOK
}

// parseCount reads a JSON number that is an integer of zero or more, also as 1.0 or 1e2.
// The bound of 2^53 is that of integers which every JSON reader keeps.
func parseCount(raw []byte) (uint64, bool) {
	d, state := parseDecimal(raw)
	n, err := strconv.ParseUint(string(d), 10, 53)
	return n, state == numberOK && err == nil
}
