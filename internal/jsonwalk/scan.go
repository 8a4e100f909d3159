package jsonwalk

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Lexical is what can be seen without understanding the document.
type Lexical struct {
	Depth      int // levels of objects and arrays
	Surrogates int // halves without their other half
	NULs       int
}

// Scan looks at the text once. It does not assume valid JSON: the depth has to be known before a parser may recurse.
func Scan(b []byte) Lexical { return scan(b, nil) }

// scan looks at the text, and makes an index of it where one is given.
func scan(b []byte, x *Index) Lexical {
	var lex Lexical
	escaped := bytes.IndexByte(b, '\\') >= 0
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end := stringEnd(b, i)
			if escaped {
				lex.escapes(b[i+1 : end])
			}
			i = end - 1
		case '{', '[':
			depth++
			lex.Depth = max(lex.Depth, depth)
			x.push(i)
		case '}', ']':
			depth--
			x.pop(i)
		}
	}
	return lex
}

// escapes judges the escape sequences of one string.
func (lex *Lexical) escapes(b []byte) {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return
		}
		b = b[i:]
		b = b[min(len(b), 1+lex.escape(b)):]
	}
}

// escape judges the escape sequence that b starts with and returns how many more bytes it takes.
func (lex *Lexical) escape(b []byte) int {
	r, ok := unicodeEscape(b)
	switch {
	case !ok:
		return 1
	case r == 0:
		lex.NULs++
	case utf16.IsSurrogate(r):
		if low, ok := unicodeEscape(b[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 11
		}
		lex.Surrogates++
	}
	return 5
}

// unicodeEscape decodes a \uXXXX escape at the start of b; false when there is none.
func unicodeEscape(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// IsWide reports whether text has two or four bytes a character, by its byte order mark or by the zero bytes among its
// first two characters.
func IsWide(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) ||
		bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")) {
		return true
	}
	first := bytes.Trim(b[:min(len(b), 4)], "\x00")
	return len(first) > 0 && len(first) < min(len(b), 4) && bytes.IndexByte([]byte("{[\"<"), first[0]) >= 0
}
