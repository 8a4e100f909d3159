package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deep a document may nest. Registrations need five levels.
const MaxDepth = 64

// trim removes what may stand around a document.
func (r *reader) trim(b []byte) []byte {
	if plain, ok := bytes.CutPrefix(b, []byte("\xef\xbb\xbf")); ok {
		r.add(CodeBOM, "", "starts with a byte order mark")
		b = plain
	}
	return bytes.TrimSpace(b)
}

// isObject tells whether the bytes are one JSON object that is safe to descend
// into, and reports what they are otherwise.
func (r *reader) isObject(b []byte) bool {
	switch {
	case len(b) == 0:
		r.add(CodeEmpty, "", "the document is empty")
		return false
	case isWide(b):
		r.add(CodeUTF16, "", "the document is UTF-16 or UTF-32 text")
		return false
	case b[0] == '<':
		r.add(CodeHTML, "", "the document is HTML or XML")
		return false
	case scan(b).depth > MaxDepth:
		r.add(CodeTooDeep, "", "nested deeper than %d levels", MaxDepth)
		return false
	}
	if !json.Valid(b) {
		r.add(CodeNotJSON, "", "%s", syntaxError(b))
		return false
	}
	if b[0] != '{' {
		r.add(CodeNotObject, "", "the document is %s, not an object", jsonType(b))
		return false
	}
	return true
}

// isWide tells of text with two or four bytes a character, by its byte order mark or by
// the zero bytes among its first two characters.
func isWide(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) ||
		bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")) {
		return true
	}
	first := bytes.Trim(b[:min(len(b), 4)], "\x00")
	return len(first) > 0 && len(first) < min(len(b), 4) && bytes.IndexByte([]byte("{[\"<"), first[0]) >= 0
}

// syntaxError says what is wrong with text that is no JSON, and where.
func syntaxError(b []byte) string {
	var value json.RawMessage
	err := json.Unmarshal(b, &value)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Sprint(err)
	}
	before := b[:min(int64(len(b)), max(syntax.Offset-1, 0))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("%s at line %d, column %d", err, line, column)
}

// text reports what is wrong with the document as text.
func (r *reader) text(b []byte) {
	lex := scan(b)
	if lex.surrogates > 0 {
		r.add(CodeSurrogate, "", "%d half surrogate pairs", lex.surrogates)
	}
	if lex.nuls > 0 {
		r.add(CodeNUL, "", "%d NUL characters", lex.nuls)
	}
	if !utf8.Valid(b) {
		r.add(CodeInvalidUTF8, "", "invalid UTF-8")
	}
	r.duplicates(b, nil)
}

// lexical is what can be seen without understanding the document.
type lexical struct {
	depth      int
	surrogates int // halves without their other half
	nuls       int
}

// scan looks at every byte once. It must not assume valid JSON: the depth has to be
// known before a parser may recurse.
func scan(b []byte) lexical {
	var lex lexical
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i += lex.escape(b[i:])
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			lex.depth = max(lex.depth, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return lex
}

// escape judges the escape b starts with and says how many more bytes it takes.
func (lex *lexical) escape(b []byte) int {
	r, ok := unicodeEscape(b)
	switch {
	case !ok:
		return 1
	case r == 0:
		lex.nuls++
	case utf16.IsSurrogate(r):
		if low, ok := unicodeEscape(b[6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 11
		}
		lex.surrogates++
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

// duplicates reports repeated members. The text is valid JSON of bounded depth. The
// path is joined only when it is needed, and nothing is looked for once there is no
// room to tell of it: joined on the way or for every repetition, a long name above
// many values would cost the square of the document.
func (r *reader) duplicates(b []byte, path []string) {
	var seen map[string]bool
	c := cursor{text: b}
	for i := 0; !r.full() && c.next(); i++ {
		at := path
		switch {
		case c.isObject:
			name := c.name()
			at = append(path, name)
			if seen[name] {
				r.add(CodeDuplicate, join(at), "repeated; the last one counts")
			}
			if seen == nil {
				seen = map[string]bool{}
			}
			seen[name] = true
		case holdsMore(c.value):
			at = append(path, strconv.Itoa(i))
		}
		if holdsMore(c.value) {
			r.duplicates(c.value, at)
		}
	}
}

// holdsMore reports whether a JSON value is an object or a list. The value MUST NOT be empty.
func holdsMore(value []byte) bool { return value[0] == '{' || value[0] == '[' }

// join returns a path as a JSON pointer. Names are cut, because a stranger chose them.
func join(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteString("/" + pointer(cut(token, maxShort)))
	}
	return b.String()
}

// membersOf opens a JSON object; nil for anything else. A repeated name keeps its
// first place and its last value.
func membersOf(raw json.RawMessage) []member {
	if jsonType(raw) != "an object" {
		return nil
	}
	members := []member{}
	at := map[string]int{}
	c := cursor{text: raw}
	for c.next() {
		name := c.name()
		if i, again := at[name]; again {
			members[i].raw = c.value
			continue
		}
		at[name] = len(members)
		members = append(members, member{name: name, raw: c.value})
	}
	return members
}

// elementsOf opens a JSON array; nil for anything else.
func elementsOf(raw json.RawMessage) []json.RawMessage {
	if jsonType(raw) != "an array" {
		return nil
	}
	list := []json.RawMessage{}
	c := cursor{text: raw}
	for c.next() {
		list = append(list, c.value)
	}
	return list
}

// jsonType names the type of a JSON value.
func jsonType(raw []byte) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "an array"
	case raw[0] == '"':
		return "a string"
	case raw[0] == 't' || raw[0] == 'f':
		return "a boolean"
	case raw[0] == 'n':
		return "null"
	}
	return "a number"
}
