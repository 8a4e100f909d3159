package format

import "strconv"

// Part returns which part of a limit is used, from 0 to 1.
func Part(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return min(1, max(0, used/limit))
}

// PartOf is Part of decimal numbers; -1 without a limit.
func PartOf(used, limit *string) float64 {
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
	return Part(of(OrElse(used, "0")), of(*limit))
}

// Limit writes a limit, and says where there is none.
func Limit(text *string, write func(string) string) string {
	if text == nil {
		return "no limit"
	}
	return write(*text)
}
