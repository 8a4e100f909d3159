package repute

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// MaxJSONDepth is the largest nesting of JSON from callers: Postgres, and readers in other
// languages, fail on much less than a request can contain.
const MaxJSONDepth = 64

// CheckJSON refuses JSON that some readers cannot read: deeper than MaxJSONDepth, with NUL or half
// a surrogate pair in a text, or invalid UTF-8. The error is ErrInvalid and names the field, with
// the wrong member of an object.
func CheckJSON(field string, raw []byte) error {
	if !utf8.Valid(raw) {
		return Invalid(field, "is no UTF-8", "JSON in UTF-8")
	}
	if !json.Valid(raw) {
		return Invalid(field, "is no JSON", "any JSON value")
	}
	s := jsonScan{raw: raw, field: field}
	for s.at < len(raw) {
		if err := s.next(); err != nil {
			return err
		}
	}
	return nil
}

// jsonScan scans valid JSON once.
type jsonScan struct {
	raw    []byte
	field  string
	at     int
	depth  int
	member string // of the outermost object
}

// next reads one token. repute.ErrInvalid: the text nests too deep.
func (s *jsonScan) next() error {
	switch s.raw[s.at] {
	case '{', '[':
		if s.depth++; s.depth > MaxJSONDepth {
			return s.wrong("nests too deep", fmt.Sprintf("at most %d levels", MaxJSONDepth))
		}
	case '}', ']':
		s.depth--
	case '"':
		return s.text()
	}
	s.at++
	return nil
}

// text reads a string and, where it names a member of the outermost object, remembers it.
func (s *jsonScan) text() error {
	begin := s.at
	for s.at++; s.raw[s.at] != '"'; s.at++ {
		if s.raw[s.at] != '\\' {
			continue
		}
		if s.at++; s.raw[s.at] != 'u' {
			continue
		}
		if err := s.unit(); err != nil {
			return err
		}
	}
	s.at++
	if s.depth == 1 && bytes.HasPrefix(bytes.TrimLeft(s.raw[s.at:], " \t\r\n"), []byte(":")) {
		_ = json.Unmarshal(s.raw[begin:s.at], &s.member) // valid, or CheckJSON had ended
	}
	return nil
}

// unit reads the digits of \uXXXX, and the second half of a surrogate pair.
func (s *jsonScan) unit() error {
	first := s.digits(s.at + 1)
	s.at += 4
	switch {
	case first == 0:
		return s.wrong("has NUL in a text", `texts without \u0000`)
	case first >= 0xdc00 && first < 0xe000:
		return s.wrong("has half a surrogate pair in a text", "whole characters")
	case first < 0xd800 || first >= 0xdc00:
		return nil
	}
	if !bytes.HasPrefix(s.raw[s.at+1:], []byte(`\u`)) {
		return s.wrong("has half a surrogate pair in a text", "whole characters")
	}
	if second := s.digits(s.at + 3); second < 0xdc00 || second >= 0xe000 {
		return s.wrong("has half a surrogate pair in a text", "whole characters")
	}
	s.at += 6
	return nil
}

// digits decodes the four hex digits of an escape sequence.
func (s *jsonScan) digits(at int) uint64 {
	n, _ := strconv.ParseUint(string(s.raw[at:at+4]), 16, 16) // four hex digits: the JSON is valid
	return n
}

// wrong returns an error that names the current member.
func (s *jsonScan) wrong(reason, hint string) error {
	field := s.field
	switch {
	case s.member != "" && field != "":
		field += "." + s.member
	case s.member != "":
		field = s.member
	}
	return Invalid(fmt.Sprintf("%.100s", field), reason, hint)
}
