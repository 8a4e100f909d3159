package jsonwalk

import "bytes"

// Cursor walks the entries of one object or array. The text MUST be valid JSON, which is checked once for the whole
// document: splitting it again and again with a checking decoder costs ten times as much. Values are parts of the text,
// not copies.
type Cursor struct {
	// Value is the current entry, or the value of the current member.
	Value []byte
	// IsObject reports whether entries have names.
	IsObject bool
	// Number is the place of the value among all objects and arrays of the cursor's index, if it is one of them.
	Number int

	text      []byte
	at        int
	begun     bool
	quoted    []byte // the name before the value, with its quotes
	nameAt    int
	valueAt   int
	index     *Index // of objects and arrays; nil where their ends are searched for
	following int    // the number of the first object or array from here on
}

// NewCursor returns a cursor before the first entry of an object or array. Any other value has no entries.
func NewCursor(text []byte) Cursor { return Cursor{text: text} }

// Next moves to the first or next entry; false after the last one.
func (c *Cursor) Next() bool {
	if !c.begun {
		c.begun = true
		c.blank()
		if c.at >= len(c.text) || !IsContainer(c.text[c.at:]) {
			return false
		}
		c.IsObject = c.text[c.at] == '{'
	}
	c.at++ // the opening bracket or a comma
	c.blank()
	if c.at >= len(c.text) || c.text[c.at] == '}' || c.text[c.at] == ']' {
		return false
	}
	if c.IsObject {
		c.nameAt = c.at
		c.quoted = c.take()
		c.blank()
		c.at++ // the colon
		c.blank()
	}
	c.valueAt = c.at
	c.Value = c.take()
	c.blank()
	if c.at < len(c.text) && c.text[c.at] != ',' {
		c.at = len(c.text) // the closing bracket
	}
	return len(c.Value) > 0
}

// blank skips white space.
func (c *Cursor) blank() {
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case ' ', '\t', '\r', '\n':
			c.at++
		default:
			return
		}
	}
}

// take reads one value.
func (c *Cursor) take() []byte {
	start := c.at
	if start < len(c.text) {
		switch c.text[start] {
		case '"':
			c.at = stringEnd(c.text, start)
		case '{', '[':
			c.container()
		default:
			c.skipPlain()
		}
	}
	return c.text[start:c.at]
}

// container moves behind an object or an array.
func (c *Cursor) container() {
	if c.index == nil {
		c.at = containerEnd(c.text, c.at)
		return
	}
	c.Number = c.following
	s := c.index.spans[c.Number]
	c.at, c.following = c.at+s.size, s.next
}

// containerEnd returns the offset behind the object or array that begins at text[at]; the length of the text for one
// without an end.
func containerEnd(text []byte, at int) int {
	for depth := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			at = stringEnd(text, at) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return len(text)
}

// skipPlain moves behind a number or a literal, or over one character between values.
func (c *Cursor) skipPlain() {
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

// Name returns the decoded name of the current member.
func (c *Cursor) Name() string { return string(c.NameBytes()) }

// NameBytes returns the decoded name as a part of the text, or as a copy where it has escape sequences.
func (c *Cursor) NameBytes() []byte { return unquoted(c.quoted) }

// Offsets returns where the name of the current member and its value begin in the text. An entry of an array has no
// name.
func (c *Cursor) Offsets() (name, value int) { return c.nameAt, c.valueAt }

// IsContainer reports whether a JSON value is an object or an array. The value MUST NOT be empty.
func IsContainer(value []byte) bool { return value[0] == '{' || value[0] == '[' }

// stringEnd returns the offset behind the string that begins at the quote text[at]; the length of the text for a
// string without an end.
func stringEnd(text []byte, at int) int {
	begin := at + 1
	for at = begin; at < len(text); {
		i := bytes.IndexByte(text[at:], '"')
		if i < 0 {
			break
		}
		quote := at + i
		slashes := 0
		for quote-slashes > begin && text[quote-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return quote + 1
		}
		at = quote + 1
	}
	return len(text)
}
