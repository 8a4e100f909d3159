package manifest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// cursor walks the entries of one object or array. The text must be valid JSON, which
// is checked once for the whole document: splitting it again and again with a checking
// decoder costs ten times as much. Values are parts of the text, not copies.
type cursor struct {
	text     []byte
	at       int
	begun    bool
	isObject bool
	quoted   []byte // the name before the value, with its quotes
	value    []byte
}

// next moves to the first or next entry; false after the last one, and for what is
// neither object nor array.
func (c *cursor) next() bool {
	if !c.begun {
		c.begun = true
		c.blank()
		if c.at >= len(c.text) || !holdsMore(c.text[c.at:]) {
			return false
		}
		c.isObject = c.text[c.at] == '{'
	}
	c.at++ // the opening bracket or a comma
	c.blank()
	if c.at >= len(c.text) || c.text[c.at] == '}' || c.text[c.at] == ']' {
		return false
	}
	if c.isObject {
		c.quoted = c.take()
		c.blank()
		c.at++ // the colon
		c.blank()
	}
	c.value = c.take()
	c.blank()
	if c.at < len(c.text) && c.text[c.at] != ',' {
		c.at = len(c.text) // the closing bracket
	}
	return len(c.value) > 0
}

// blank skips white space.
func (c *cursor) blank() {
	for c.at < len(c.text) && bytes.IndexByte([]byte(" \t\r\n"), c.text[c.at]) >= 0 {
		c.at++
	}
}

// take reads one value.
func (c *cursor) take() []byte {
	start, depth := c.at, 0
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case '"':
			c.skipString()
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		default:
			c.skipPlain()
		}
		if depth <= 0 {
			break
		}
	}
	return c.text[start:c.at]
}

// skipString moves behind the closing quote.
func (c *cursor) skipString() {
	for c.at++; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case '\\':
			c.at++
		case '"':
			c.at++
			return
		}
	}
	c.at = min(c.at, len(c.text))
}

// skipPlain moves behind a number or a literal, or over one character between values.
func (c *cursor) skipPlain() {
	for first := c.at; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case ',', ':', ' ', '\t', '\r', '\n':
			c.at = max(c.at, first+1)
			return
		case '"', '{', '[', '}', ']':
			return
		}
	}
}

// name returns the decoded name before the value.
func (c *cursor) name() string {
	inside := c.quoted[1 : len(c.quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	var name string
	_ = json.Unmarshal(c.quoted, &name) // a valid string
	return name
}
