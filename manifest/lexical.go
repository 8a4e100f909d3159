package manifest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"repute/internal/jsonwalk"
)

// maxDepth is how deep a document may nest. Registrations need five levels.
const maxDepth = 64

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
	case jsonwalk.IsWide(b):
		r.add(CodeUTF16, "", "the document is UTF-16 or UTF-32 text")
	case b[0] == '<':
		r.add(CodeHTML, "", "the document is HTML or XML")
	case jsonwalk.Scan(b).Depth > maxDepth:
		r.add(CodeTooDeep, "", "nested deeper than %d levels", maxDepth)
	case !json.Valid(b):
		r.add(CodeNotJSON, "", "%s", jsonwalk.SyntaxError(b))
	case b[0] != '{':
		r.add(CodeNotObject, "", "the document is %s, not an object", jsonwalk.Type(b))
	default:
		return true
	}
	return false
}

// text reports what is wrong with the document as text.
func (r *reader) text(b []byte) {
	lex := jsonwalk.Scan(b)
	if lex.Surrogates > 0 {
		r.add(CodeSurrogate, "", "%d half surrogate pairs", lex.Surrogates)
	}
	if lex.NULs > 0 {
		r.add(CodeNUL, "", "%d NUL characters", lex.NULs)
	}
	if !utf8.Valid(b) {
		r.add(CodeInvalidUTF8, "", "invalid UTF-8")
	}
	jsonwalk.Duplicates(b, func(pointer string) bool {
		r.add(CodeDuplicate, pointer, "repeated; the last one counts")
		return !r.full()
	})
}

// membersOf opens a JSON object; nil for anything else. A repeated name keeps its
// first place and its last value.
func membersOf(raw json.RawMessage) []member {
	if jsonwalk.Type(raw) != "an object" {
		return nil
	}
	members := []member{}
	at := map[string]int{}
	c := jsonwalk.NewCursor(raw)
	for c.Next() {
		name := c.Name()
		if i, again := at[name]; again {
			members[i].raw = c.Value
			continue
		}
		at[name] = len(members)
		members = append(members, member{name: name, raw: c.Value})
	}
	return members
}
