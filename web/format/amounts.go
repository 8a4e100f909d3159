package format

import (
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Wei writes an amount of a chain's native coin in a unit that people read: wei, gwei or whole coins of 10^18 wei. What
// is no number is shown as it is.
func Wei(text string) string {
	n, isNumber := new(big.Int).SetString(text, 10)
	if !isNumber || n.Sign() < 0 {
		return Short(text)
	}
	switch digits := len(n.String()); {
	case digits <= 7:
		return Count(n.Int64()) + " wei"
	case digits <= 15:
		return decimals(n, 9) + " gwei"
	}
	return decimals(n, 18) + " coins"
}

// decimals writes n of units of 10^-places with up to six digits after the point.
func decimals(n *big.Int, places int) string {
	text := n.String()
	if len(text) <= places {
		text = strings.Repeat("0", places-len(text)+1) + text
	}
	whole, fraction := text[:len(text)-places], text[len(text)-places:]
	fraction = strings.TrimRight(fraction[:6], "0")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
		whole = Count(n)
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// Dollars writes an amount of US dollars.
func Dollars(text string) string { return Short(text) + " US dollars" }

// Millis writes a duration of milliseconds; one that is below zero is unknown.
func Millis(ms int64) string {
	switch {
	case ms < 0:
		return "unknown"
	case ms < 1000:
		return strconv.FormatInt(ms, 10) + " ms"
	case ms < 120_000:
		return strconv.FormatFloat(float64(ms)/1000, 'f', 1, 64) + " s"
	}
	return span(int64(time.Duration(ms) * time.Millisecond / time.Second))
}
