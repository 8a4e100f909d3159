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
