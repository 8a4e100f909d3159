package cli

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible returns text that cannot act on a terminal: control characters and marks that turn
// the writing direction become U+FFFD.
func Visible(s string) string { return visible(s, "") }

// VisibleLines is Visible for a text of several lines, which stay, and so do tabs.
func VisibleLines(s string) string { return visible(s, "\n\t") }

// visible replaces all characters that are not graphic, but for those that are kept.
func visible(s, kept string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || strings.ContainsRune(kept, r) {
			return r
		}
		return '\ufffd'
	}, s)
}

// Count returns a number with its noun, in the plural unless it is one.
func Count[T ~int | ~int64 | ~uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
