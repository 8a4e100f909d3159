package cli

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible keeps strangers' text from acting on a terminal: control characters and
// what turns the writing direction become visible marks.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return '\ufffd'
		}
		return r
	}, s)
}

// Count is a number with its noun.
func Count[T ~int | ~int64 | ~uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
