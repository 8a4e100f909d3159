package web

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCommand bounds a command line that a page offers, in bytes: terminals cut lines at 4,096 bytes.
const maxCommand = 4000

// command returns a command line for POSIX shells, with its arguments quoted where they need it, for readers who copy it.
// Arguments may be foreign texts, such as the ids of steps that a planner chose. It returns "" where the line would be
// longer than maxCommand, and where an argument has characters that terminals act upon or that readers cannot see.
func command(args ...string) string {
	quoted := make([]string, 0, len(args))
	for _, a := range args {
		if !utf8.ValidString(a) || strings.ContainsFunc(a, isHidden) {
			return ""
		}
		quoted = append(quoted, shellQuoted(a))
	}
	line := strings.Join(quoted, " ")
	if len(line) > maxCommand {
		return ""
	}
	return line
}

// isHidden reports whether a character is one that a terminal acts upon, or one that a reader cannot see.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || r == 0x2028 || r == 0x2029
}

// shellQuoted returns a text as one word of a POSIX shell: between single quotes no character but the single quote has a
// meaning.
func shellQuoted(text string) string {
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !isPlain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// isPlain reports whether a character has no meaning in any place of a word of a shell.
func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,", r)
}

// anchor returns a text for ids of elements that depends on a foreign text alone, so that an element keeps its id while
// others before it appear and disappear.
func anchor(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
