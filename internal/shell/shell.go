// Package shell writes command lines for POSIX shells, for readers who copy them into a terminal.
package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLine bounds a command line, in bytes: terminals cut lines at 4,096 bytes.
const MaxLine = 4000

// Line returns a command line with its arguments quoted where they need it. Arguments may be untrusted texts, such as
// the ids of steps that a planner chose. It returns "" where the line would be longer than MaxLine, and where an
// argument has characters that terminals act upon or that readers cannot see.
func Line(args ...string) string {
	quoted := make([]string, 0, len(args))
	for _, a := range args {
		if !utf8.ValidString(a) || strings.ContainsFunc(a, isHidden) {
			return ""
		}
		quoted = append(quoted, quote(a))
	}
	line := strings.Join(quoted, " ")
	if len(line) > MaxLine {
		return ""
	}
	return line
}

// isHidden reports whether a character is one that a terminal acts upon, or one that a reader cannot see.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || r == 0x2028 || r == 0x2029
}

// quote returns a text as one word of a shell: between single quotes no character but the single quote has a meaning.
func quote(text string) string {
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !isPlain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// isPlain reports whether a character has no meaning in any place of a word of a shell.
func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,", r)
}
