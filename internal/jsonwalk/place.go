package jsonwalk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Position returns the line and the column, both from 1, of an offset. Columns count characters.
func Position(b []byte, offset int) (line, column int) {
	before := b[:min(len(b), max(offset, 0))]
	line = bytes.Count(before, []byte("\n")) + 1
	column = utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return line, column
}

// SyntaxError says what is wrong with text that is no JSON, and where: "… at line 1, column 2".
func SyntaxError(b []byte) string {
	var value json.RawMessage
	err := json.Unmarshal(b, &value)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Sprint(err)
	}
	line, column := Position(b, int(syntax.Offset)-1)
	return fmt.Sprintf("%s at line %d, column %d", err, line, column)
}

// Find returns the offset of the value that a JSON pointer names: for a member that of its name. Where the last part
// of the pointer is missing from the text, that is the offset of the value that should have it. False: the text is no
// JSON, or the pointer leads nowhere.
func Find(b []byte, pointer string) (offset int, ok bool) {
	if Scan(b).Depth > maxFindDepth || !json.Valid(b) {
		return 0, false
	}
	at := len(b) - len(bytes.TrimLeft(b, " \t\r\n"))
	value := b[at:]
	if pointer == "" {
		return at, true
	}
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	base := at // of value
	for i, token := range tokens {
		c := NewCursor(value)
		if !c.seek(strings.NewReplacer("~1", "/", "~0", "~").Replace(token)) {
			return at, i == len(tokens)-1
		}
		at = base + c.valueAt
		if c.IsObject {
			at = base + c.nameAt
		}
		base += c.valueAt
		value = c.Value
	}
	return at, true
}

// maxFindDepth keeps json.Valid from recursing too deep.
const maxFindDepth = 1000

// seek moves to the entry that a token of a pointer names: of repeated members the last one.
func (c *Cursor) seek(token string) bool {
	var found Cursor
	ok := false
	for i := 0; c.Next(); i++ {
		if c.IsObject && c.Name() == token || !c.IsObject && strconv.Itoa(i) == token {
			found, ok = *c, true
		}
	}
	if ok {
		*c = found
	}
	return ok
}

// maxToken bounds the tokens of pointers to repeated members, because a stranger chose the names.
const maxToken = 256

// Duplicates calls report with the JSON pointer of every repeated member until it returns false. The text MUST be valid
// JSON of bounded depth. The pointer is joined only when it is needed, and nothing is looked for once report returned
// false: joined on the way or for every repetition, a long name above many values would cost the square of the
// document.
func Duplicates(b []byte, report func(pointer string) bool) {
	duplicates(b, nil, report)
}

// few is the number of names up to which comparing each with each is cheaper than a map.
const few = 12

// names is a set of the names of one object.
type names struct {
	list [few][]byte
	n    int
	set  map[string]bool // once there are more than a few
}

// add reports whether the name is new.
func (s *names) add(name []byte) bool {
	for _, other := range s.list[:min(s.n, few)] {
		if bytes.Equal(other, name) {
			return false
		}
	}
	if s.n < few {
		s.list[s.n] = name
		s.n++
		return true
	}
	if s.set == nil {
		s.set = map[string]bool{}
	}
	if s.set[string(name)] {
		return false
	}
	s.set[string(name)] = true
	return true
}

// duplicates reports the repeated members below path; false when no more are wanted.
func duplicates(b []byte, path [][]byte, report func(string) bool) bool {
	var seen names
	c := NewCursor(b)
	for i := 0; c.Next(); i++ {
		container := IsContainer(c.Value)
		at := path
		switch {
		case c.IsObject:
			name := c.NameBytes()
			at = append(path, name)
			if !seen.add(name) && !report(join(at)) {
				return false
			}
		case container:
			at = append(path, strconv.AppendInt(nil, int64(i), 10))
		}
		if container && !duplicates(c.Value, at, report) {
			return false
		}
	}
	return true
}

// join returns a path as a JSON pointer with bounded tokens.
func join(path [][]byte) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteString("/" + Pointer(Cut(string(token), maxToken)))
	}
	return b.String()
}
