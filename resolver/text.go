package resolver

import (
	"strings"
	"unicode/utf8"
)

const (
	maxHostText  = 260     // a DNS name and a port
	maxURLText   = 8 << 10 // FinalURL
	maxShortText = 256     // media types and validators
	maxErrorText = 1 << 10
)

// storable makes untrusted text fit for databases and logs: valid UTF-8 without control characters, of at most limit
// bytes.
func storable(s string, limit int) string {
	// Mapping replaces invalid bytes by U+FFFD, which is longer; therefore the text is cut again.
	return cut(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, cut(s, limit)), limit)
}

// cut shortens to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// validator returns an ETag or a date only if it is complete: a cut one would not match.
func validator(s string) string {
	if storable(s, maxShortText) != s {
		return ""
	}
	return s
}
