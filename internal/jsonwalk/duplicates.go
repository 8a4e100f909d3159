package jsonwalk

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxToken bounds the tokens of pointers to repeated members, because a stranger chose the names.
const maxToken = 256

// Duplicates calls report with the JSON pointer of every repeated member until it returns false. The text MUST be valid
// JSON of bounded depth. It is read once, and a pointer is made only when it is reported, so that long names above many
// values cost no more than others.
func Duplicates(b []byte, report func(pointer string) bool) {
	var room [usualDepth]level
	w := walk{levels: room[:0]}
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			w.push(b[i] == '{')
		case '}', ']':
			w.pop()
		case ',':
			w.next()
		case '"':
			end := stringEnd(b, i)
			if w.isName() && !w.name(b[i:end]) && !report(w.pointer()) {
				return
			}
			i = end - 1
		}
	}
}

// usualDepth is the depth up to which a walk allocates nothing.
const usualDepth = 10

// walk is the place in a document, from the outermost level to the innermost.
type walk struct {
	levels []level
	depth  int // levels in use; those above it are kept for the next object
}

// level is an object or an array that the walk is inside of.
type level struct {
	isObject bool
	awaits   bool   // the name of a member comes next
	current  []byte // the name of the current member
	index    int    // of the current entry of an array
	names    names
}

// push enters an object or an array.
func (w *walk) push(isObject bool) {
	if w.depth == len(w.levels) {
		w.levels = append(w.levels, level{})
	}
	l := &w.levels[w.depth]
	l.isObject, l.awaits, l.current, l.index = isObject, isObject, nil, 0
	l.names.n, l.names.set = 0, nil
	w.depth++
}

// pop leaves it.
func (w *walk) pop() { w.depth = max(w.depth-1, 0) }

// top returns the innermost level; nil outside of all.
func (w *walk) top() *level {
	if w.depth == 0 {
		return nil
	}
	return &w.levels[w.depth-1]
}

// next goes on to the next entry.
func (w *walk) next() {
	if l := w.top(); l != nil {
		l.awaits = l.isObject
		l.index++
	}
}

// isName reports whether the next string is the name of a member.
func (w *walk) isName() bool {
	l := w.top()
	return l != nil && l.awaits
}

// name reads the name of a member and reports whether it is new.
func (w *walk) name(quoted []byte) bool {
	l := w.top()
	l.awaits = false
	l.current = unquoted(quoted)
	return l.names.add(l.current)
}

// pointer returns the place as a JSON pointer.
func (w *walk) pointer() string {
	var b strings.Builder
	for _, l := range w.levels[:w.depth] {
		b.WriteByte('/')
		if l.isObject {
			b.WriteString(Pointer(Cut(string(l.current), maxToken)))
		} else {
			b.WriteString(strconv.Itoa(l.index))
		}
	}
	return b.String()
}

// unquoted decodes a JSON string: a part of the text, or a copy where it has escape sequences.
func unquoted(quoted []byte) []byte {
	if len(quoted) < 2 {
		return nil
	}
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return inside
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // a valid string
	return []byte(text)
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
	for _, other := range s.list[:s.n] {
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
