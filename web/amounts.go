package web

import (
	"math/big"
	"strconv"
	"strings"
	"time"
)

// wei writes an amount of a chain's native coin in a unit that people read: wei, gwei or whole coins of 10^18 wei. What
// is no number is shown as it is.
func wei(text string) string {
	n, isNumber := new(big.Int).SetString(text, 10)
	if !isNumber || n.Sign() < 0 {
		return clean(text, shortText)
	}
	switch digits := len(n.String()); {
	case digits <= 7:
		return count(n.Int64()) + " wei"
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
		whole = count(n)
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// dollars writes an amount of US dollars.
func dollars(text string) string { return clean(text, shortText) + " US dollars" }

// millis writes a duration of milliseconds; one that is below zero is unknown.
func millis(ms int64) string {
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

// part returns used of a limit, from 0 to 1.
func part(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return min(1, max(0, used/limit))
}

// partOf returns the part of a limit that is used, of decimal numbers; -1 without a limit.
func partOf(used, limit *string) float64 {
	if limit == nil {
		return -1
	}
	of := func(text string) float64 {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0
		}
		return f
	}
	return part(of(orElse(used, "0")), of(*limit))
}

// orNone writes a limit, and says where there is none.
func orNone(text *string, write func(string) string) string {
	if text == nil {
		return "no limit"
	}
	return write(*text)
}

// valueOf returns the number that p points to, 0 for nil.
func valueOf(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
