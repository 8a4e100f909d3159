package x402

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/holiman/uint256"
)

// Amount is an unsigned 256-bit number, such as an amount of a token's smallest units or a time in
// seconds since 1970. Its text form is decimal digits without a sign, a fraction, an exponent or
// leading zeros; in JSON it is a string of them. The zero value is 0.
type Amount struct{ n uint256.Int }

// NewAmount returns an amount of so many units.
func NewAmount(n uint64) (a Amount) {
	a.n.SetUint64(n)
	return a
}

// maxDigits is the length of 2^256 - 1 in decimal digits.
const maxDigits = 78

// UnmarshalText reads decimal digits.
func (a *Amount) UnmarshalText(text []byte) error {
	if len(text) == 0 || len(text) > maxDigits || len(text) > 1 && text[0] == '0' {
		return Refuse(ReasonInvalidPayload, "%.90q is no amount: decimal digits below 2^256 are allowed", text)
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return Refuse(ReasonInvalidPayload, "%.90q is no amount: decimal digits below 2^256 are allowed", text)
		}
	}
	if err := a.n.SetFromDecimal(string(text)); err != nil {
		return Refuse(ReasonInvalidPayload, "%.90q is no amount: it is not below 2^256", text)
	}
	return nil
}

// MarshalText writes decimal digits.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.n.Dec()), nil }

// String returns decimal digits.
func (a Amount) String() string { return a.n.Dec() }

// Big returns a copy as an integer.
func (a Amount) Big() *big.Int { return a.n.ToBig() }

// AmountOf returns the amount of an integer. The error is a *Refusal where it is negative or not
// below 2^256.
func AmountOf(n *big.Int) (a Amount, err error) {
	if n == nil || n.Sign() < 0 || a.n.SetFromBig(n) {
		return Amount{}, Refuse(ReasonInvalidPayload, "%v is no amount: 0 to 2^256 - 1 is allowed", n)
	}
	return a, nil
}

// Cmp returns -1, 0 or 1 where a is less than, equal to or greater than b.
func (a Amount) Cmp(b Amount) int { return a.n.Cmp(&b.n) }

// Uint64 returns the amount, or the greatest value of the type where it is larger.
func (a Amount) Uint64() uint64 {
	if !a.n.IsUint64() {
		return ^uint64(0)
	}
	return a.n.Uint64()
}

// Decimal returns the amount in whole tokens of so many decimals, exactly: 1500000 of 6 decimals
// is 1.5.
func (a Amount) Decimal(decimals uint8) string {
	digits := a.n.Dec()
	if decimals == 0 {
		return digits
	}
	if missing := int(decimals) + 1 - len(digits); missing > 0 {
		digits = fmt.Sprintf("%0*d", missing, 0) + digits
	}
	whole, fraction := digits[:len(digits)-int(decimals)], digits[len(digits)-int(decimals):]
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		return whole
	}
	return whole + "." + fraction
}
