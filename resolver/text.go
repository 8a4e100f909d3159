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

// storable makes text that strangers wrote fit for databases and logs: valid UTF-8
// without control characters, of at most limit bytes.
func storable(s string, limit int) string {
	// Mapping turns invalid bytes into U+FFFD, which is longer: hence the second cut.
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

// validator keeps an ETag or a date only whole: another text would be sent back to
// a server that never said it.
func validator(s string) string {
	if storable(s, maxShortText) != s {
		return ""
	}
	return s
}
