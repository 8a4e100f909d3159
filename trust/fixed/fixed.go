// Package fixed does the arithmetic of scores without floating point.
//
// A Fixed is a whole number of units of 2^-32. Sums are exact. Products, quotients, roots and
// logarithms are rounded toward zero and use integer instructions only, so that every machine
// computes the same bits and a score can be replayed. A product or quotient that does
// not fit becomes the largest number of its sign; sums are not checked.
package fixed

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
)

// Fixed is a number in units of 2^-32. All amounts that a score is computed from are Fixed.
type Fixed int64

// One is the number 1.
const One Fixed = 1 << 32

// Int returns the whole number n, |n| < 2^31.
func Int(n int) Fixed { return Fixed(n) << 32 }

// Ratio returns a/b, b > 0.
func Ratio(a, b int64) Fixed { return Fixed(a).Scaled(int64(One), b) }

// Mul returns a*b toward zero, the largest number where it does not fit.
func (a Fixed) Mul(b Fixed) Fixed {
	hi, lo := bits.Mul64(Magnitude(int64(a)), Magnitude(int64(b)))
	if hi >= 1<<31 {
		return (1<<63 - 1) * (1 | (a^b)>>63)
	}
	return Fixed(hi<<32|lo>>32) * (1 | (a^b)>>63)
}

// Div returns a/b toward zero, b not 0, the largest number where it does not fit.
func (a Fixed) Div(b Fixed) Fixed {
	n, d := Magnitude(int64(a)), Magnitude(int64(b))
	if n>>32 >= d {
		return (1<<63 - 1) * (1 | (a^b)>>63)
	}
	q, _ := bits.Div64(n>>32, n<<32, d)
	return Fixed(min(q, 1<<63-1)) * (1 | (a^b)>>63)
}

// Scaled returns a*num/den toward zero, the largest number where it does not fit.
func (a Fixed) Scaled(num, den int64) Fixed {
	negative := (a < 0) != (num < 0) != (den < 0)
	hi, lo := bits.Mul64(Magnitude(int64(a)), Magnitude(num))
	d := Magnitude(den)
	const most = 1<<63 - 1
	q := uint64(most)
	if hi < d {
		q, _ = bits.Div64(hi, lo, d)
		q = min(q, most)
	}
	if negative {
		return -Fixed(q)
	}
	return Fixed(q)
}

// Magnitude returns the absolute value, also of the smallest number, which has no positive int64.
func Magnitude(n int64) uint64 {
	sign := n >> 63
	return uint64((n ^ sign) - sign)
}

// Sqrt returns the square root, rounded toward zero; 0 for negative numbers.
func (a Fixed) Sqrt() Fixed {
	if a <= 0 {
		return 0
	}
	// The root of a*2^32, which has two words: near it by a float, which may be off by
	// one and is set right.
	hi, lo := uint64(a)>>32, uint64(a)<<32
	root := uint64(math.Sqrt(float64(a)) * (1 << 16))
	for exceeds(root, hi, lo) {
		root--
	}
	for !exceeds(root+1, hi, lo) {
		root++
	}
	return Fixed(root)
}

// exceeds reports whether a square is above a number of two words.
func exceeds(root, hi, lo uint64) bool {
	h, l := bits.Mul64(root, root)
	return h > hi || h == hi && l > lo
}

// Log2 returns the binary logarithm of a number above 0, to 2^-32.
func (a Fixed) Log2() Fixed {
	whole := 63 - bits.LeadingZeros64(uint64(a))
	m := uint64(a) << (63 - whole) // mantissa in [1, 2), 63 bits after the point
	var part Fixed
	for range 32 {
		hi, _ := bits.Mul64(m, m) // squared: 62 bits after the point
		bit := hi >> 63
		part = part<<1 | Fixed(bit)
		m = hi << (1 ^ bit)
	}
	return Int(whole-32) + part
}

// Log2Whole returns the binary logarithm of a whole number above 0.
func Log2Whole(n uint64) Fixed {
	shift := max(0, bits.Len64(n)-31)
	return Int(shift) + Fixed(n>>shift<<32).Log2()
}

// halves holds 2^(-2^-k) for k = 1 to 32, in units of 2^-63, rounded to nearest.
var halves = [32]uint64{
	0x5a827999fcef3242, 0x6ba27e656b4eb57a, 0x75606373ee921c97, 0x7a92be8a92436616,
	0x7d41d96db915019d, 0x7e9f06067a4360ba, 0x7f4f08ae3dc7c426, 0x7fa765aca88f6453,
	0x7fd3ab290e46d769, 0x7fe9d3a8e07bf086, 0x7ff4e9597bed93ab, 0x7ffa748dff8dc61f,
	0x7ffd3a3f50020332, 0x7ffe9d1dbc0a75aa, 0x7fff4e8e6306ed59, 0x7fffa74712c3cdfd,
	0x7fffd3a381b1fa29, 0x7fffe9d1beed018a, 0x7ffff4e8defb81d7, 0x7ffffa746f5f012f,
	0x7ffffd3a37a7d0a8, 0x7ffffe9d1bd1fc58, 0x7fffff4e8de8832d, 0x7fffffa746f422d7,
	0x7fffffd3a37a09bb, 0x7fffffe9d1bd02f2, 0x7ffffff4e8de80fe, 0x7ffffffa746f4060,
	0x7ffffffd3a37a028, 0x7ffffffe9d1bd012, 0x7fffffff4e8de809, 0x7fffffffa746f404,
}

// Powers is a table of 2^-a by the four bytes of a's fraction, in units of 2^-63. Scoring asks for
// millions of powers, and four multiplications are faster than 32.
type Powers [4][256]uint64

// NewPowers computes the table.
func NewPowers() *Powers {
	p := &Powers{}
	for at := range p {
		for b := range p[at] {
			m := uint64(1) << 63
			for bit := range 8 {
				if b&(0x80>>bit) != 0 {
					m = mul63(m, halves[at*8+bit])
				}
			}
			p[at][b] = m
		}
	}
	return p
}

// mul63 returns the product of two numbers in units of 2^-63, rounded down to an even number of units.
func mul63(a, b uint64) uint64 {
	hi, _ := bits.Mul64(a, b)
	return hi << 1
}

// Exp2Neg returns 2^-a for a that is not negative; 0 where it is less than a unit.
func (p *Powers) Exp2Neg(a Fixed) Fixed {
	whole := uint64(a) >> 32
	if whole >= 33 {
		return 0
	}
	m := mul63(p[0][uint8(a>>24)], p[1][uint8(a>>16)])
	m = mul63(m, mul63(p[2][uint8(a>>8)], p[3][uint8(a)]))
	return Fixed(m >> 31 >> whole)
}

// Parse reads a decimal number such as 0.05 or -1, |n| < 2^31, with at most nine digits
// after the point; the value is rounded toward zero.
func Parse(s string) (Fixed, error) {
	digits, negative := strings.CutPrefix(s, "-")
	whole, part, _ := strings.Cut(digits, ".")
	w, err := strconv.ParseUint(whole, 10, 31)
	if err != nil || len(part) > 9 {
		return 0, fmt.Errorf("%q is no decimal number with up to nine digits after the point", s)
	}
	f, err := strconv.ParseUint((part + "000000000")[:9], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no decimal number", s)
	}
	out := Fixed(w)<<32 + Fixed(f<<32/1e9)
	if negative {
		out = -out
	}
	return out, nil
}

// UnmarshalJSON reads a JSON number without an exponent.
func (a *Fixed) UnmarshalJSON(b []byte) (err error) {
	if b[0] == '"' {
		return &json.UnmarshalTypeError{Value: "string", Type: reflect.TypeFor[Fixed]()}
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*a, err = Parse(n.String())
	return err
}

// Decimal returns the number with exactly so many digits after the point, at most nine,
// rounded to nearest, halves away from zero.
func (a Fixed) Decimal(digits int) string {
	scale := int64(1)
	for range digits {
		scale *= 10
	}
	n := a.Round(scale)
	sign := ""
	if n < 0 {
		sign = "-"
	}
	m := Magnitude(n)
	if digits == 0 {
		return sign + strconv.FormatUint(m, 10)
	}
	return fmt.Sprintf("%s%d.%0*d", sign, m/uint64(scale), digits, m%uint64(scale))
}

// Round returns a*scale to the nearest whole number, halves away from zero.
func (a Fixed) Round(scale int64) int64 {
	hi, lo := bits.Mul64(Magnitude(int64(a)), uint64(scale))
	lo, carry := bits.Add64(lo, 1<<31, 0)
	n := int64((hi+carry)<<32 | lo>>32)
	if a < 0 {
		return -n
	}
	return n
}

// MarshalJSON writes a number with six digits after the point.
func (a Fixed) MarshalJSON() ([]byte, error) { return []byte(a.Decimal(6)), nil }

// Clamp returns a, but at least low and at most 1.
func Clamp(a, low Fixed) Fixed { return max(low, min(One, a)) }
