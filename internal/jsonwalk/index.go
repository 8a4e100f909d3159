package jsonwalk

// Index knows where the objects and arrays of a text end, so that cursors pass over them without reading them. A
// document that is read level by level then takes a time that follows from its size, whatever its depth. The zero value
// is the index of no text.
type Index struct {
	spans []span // in the order of their beginnings
	open  int    // the innermost span whose end is not known yet, -1 for none
}

// span is an object or an array.
type span struct {
	size int // in bytes; where it begins, as long as its end is not known
	next int // the span that begins first behind it; the one that it is in, as long as its end is not known
}

// Scan makes the index of a text, in place of what the index knew, and returns what the function Scan returns.
func (x *Index) Scan(b []byte) Lexical {
	x.spans, x.open = x.spans[:0], -1
	return scan(b, x)
}

// Len returns the number of objects and arrays.
func (x *Index) Len() int { return len(x.spans) }

// Cursor returns a cursor before the first entry of an object or array, as NewCursor does. The text MUST be a value of
// the scanned text, which MUST be valid JSON, and number its Cursor.Number; that of the whole text is 0.
func (x *Index) Cursor(text []byte, number int) Cursor {
	return Cursor{text: text, index: x, following: number + 1}
}

// push notes where an object or array begins; nothing without an index.
func (x *Index) push(at int) {
	if x != nil {
		x.spans = append(x.spans, span{size: at, next: x.open})
		x.open = len(x.spans) - 1
	}
}

// pop notes where the innermost object or array ends.
func (x *Index) pop(at int) {
	if x != nil && x.open >= 0 {
		s := &x.spans[x.open]
		x.open = s.next
		s.size, s.next = at+1-s.size, len(x.spans)
	}
}
