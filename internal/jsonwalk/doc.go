// Package jsonwalk reads JSON text in place: it walks over objects and arrays without copying them, measures depth and
// bad characters before a parser may recurse, finds repeated members, and translates between offsets, lines and JSON
// pointers (RFC 6901). Parsers of untrusted documents use it, because they keep what they do not know as written and
// report every defect with its place.
//
// A parser of hostile text first calls Scan, which needs no valid JSON, and refuses what is too deep; then it checks
// the text once with encoding/json; then it reads it with cursors, which rely on that check. Each step takes a time
// that grows with the size of the text alone, whatever its depth and its names: an Index lets cursors pass over
// objects, and Duplicates and FindAll make no pointer that nobody asked for.
//
// No function keeps or changes the text; values are parts of it. Nothing is safe for concurrent use but functions of
// the text alone.
package jsonwalk

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Type names the type of a JSON value with its article: "an object", "a number"; "nothing" for no text.
func Type(raw []byte) string {
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

// Elements opens a JSON array; nil for anything else. The elements are parts of the text.
func Elements(raw json.RawMessage) []json.RawMessage {
	if Type(raw) != "an array" {
		return nil
	}
	list := []json.RawMessage{}
	c := NewCursor(raw)
	for c.Next() {
		list = append(list, c.Value)
	}
	return list
}

// Clean makes text that Postgres and every JSON reader accept: valid UTF-8 without NUL.
func Clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// Cut shortens to at most n bytes without splitting a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Pointer escapes one token of a JSON pointer.
func Pointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
