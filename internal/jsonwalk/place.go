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
	p := FindAll(b, []string{pointer})[0]
	return p.Offset, p.Found
}

// Place is where a JSON pointer leads to, as Find tells it.
type Place struct {
	Offset int
	Found  bool
}

// FindAll is Find for many pointers. It checks the text once, and reads each object and array once for all pointers
// that lead through it.
func FindAll(b []byte, pointers []string) []Place {
	out := make([]Place, len(pointers))
	if Scan(b).Depth > maxFindDepth || !json.Valid(b) {
		return out
	}
	var root branch
	ends := make([]*branch, len(pointers))
	for i, pointer := range pointers {
		ends[i] = root.grow(pointer)
	}
	at := len(b) - len(bytes.TrimLeft(b, " \t\r\n"))
	root.Place = Place{at, true}
	root.follow(b[at:], at)
	for i, end := range ends {
		out[i] = end.Place
	}
	return out
}

// maxFindDepth keeps json.Valid from recursing too deep.
const maxFindDepth = 1000

// branch is a part of one or more pointers, with the parts that come next in them.
type branch struct {
	Place
	value []byte // nil where the text has none
	from  int    // where the value begins
	next  map[string]*branch
}

// grow adds a pointer below r, and returns the branch of its last part.
func (r *branch) grow(pointer string) *branch {
	if pointer == "" {
		return r
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if r.next == nil {
			r.next = map[string]*branch{}
		}
		if r.next[token] == nil {
			r.next[token] = &branch{}
		}
		r = r.next[token]
	}
	return r
}

// follow finds the branches below r in the value of r, which begins at an offset. Of repeated members the last one
// counts.
func (r *branch) follow(value []byte, base int) {
	if len(r.next) == 0 {
		return
	}
	c := NewCursor(value)
	var digits []byte
	for i := 0; c.Next(); i++ {
		var name []byte
		if c.IsObject {
			name = c.NameBytes()
		} else {
			digits = strconv.AppendInt(digits[:0], int64(i), 10)
			name = digits
		}
		b := r.next[string(name)]
		if b == nil {
			continue
		}
		b.value, b.from = c.Value, base+c.valueAt
		b.Place = Place{b.from, true}
		if c.IsObject {
			b.Offset = base + c.nameAt
		}
	}
	for _, b := range r.next {
		if b.value == nil {
			b.Place = r.Place // of the value that should have it
			continue
		}
		b.follow(b.value, b.from)
	}
}
