package agentjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"repute"
	"repute/internal/jsonwalk"
)

// Bounds of the typed members, in bytes and entries. They keep a hostile document from growing indexes and answers.
const (
	maxShort       = 256
	maxURL         = 2 << 10
	maxText        = 4 << 10
	maxExtra       = 64 << 10 // of all unknown members and extensions together
	maxIntents     = 1000
	maxParameters  = 256
	maxEntries     = 256
	maxNetworks    = 64
	maxProblems    = 100
	maxJSONDepth   = 64
	maxQuotedValue = 80 // of a value in a message
)

// reader collects the problems of one document.
// One goroutine uses it, for one document.
type reader struct {
	strict   bool
	problems []repute.Problem
	extra    int  // bytes of unknown members kept
	plain    bool // what isPlain reports of the text
	*room
}

// room is where the members of a document's objects and arrays are stored, and the objects, so that few of them cost an
// allocation. They are more than half of what reading allocates, so rooms are used again.
// Nothing that Parse returns may point into a room, as the next document overwrites it.
type room struct {
	slab    []member
	objects []object
	names   map[string]int // intents by name
	index   jsonwalk.Index // of the document
}

// A room begins with as much as most manifests need, and one that grew larger than maxSlab is not kept.
const (
	objectsAtOnce = 32
	usualSlab     = 128
	maxSlab       = 4096
)

// rooms are those that no document uses now.
var rooms = sync.Pool{New: func() any {
	return &room{slab: make([]member, 0, usualSlab), objects: make([]object, 0, objectsAtOnce), names: map[string]int{}}
}}

// borrow gives the reader a room. giveBack MUST follow when no object of the document is used any more.
func (r *reader) borrow() { r.room = rooms.Get().(*room) }

// giveBack empties the room, so that it does not hold the document, and lets other documents use it.
func (r *reader) giveBack() {
	if used := r.room; max(cap(used.slab), used.index.Len()) <= maxSlab {
		clear(used.slab)
		clear(used.objects)
		clear(used.names)
		used.slab, used.objects = used.slab[:0], used.objects[:0]
		rooms.Put(used)
	}
	r.room = nil
}

// object is a JSON object that is being read. Its JSON pointer is made only for problems.
type object struct {
	r       *reader
	parent  *object
	token   string // of the pointer
	index   int    // in a list, -1 elsewhere
	members []member
}

// member is one name and value of an object, or an entry of an array, in the order written.
type member struct {
	name   []byte
	raw    []byte
	number int // of raw in the index
	used   bool
}

// add notes a problem at a JSON pointer. Messages quote the document, so they are cleaned as well.
func (r *reader) add(code, path, format string, args ...any) {
	switch {
	case r.full():
		return
	case len(r.problems) == maxProblems:
		code, path, format, args = CodeMore, "", "more than %d problems", []any{maxProblems}
	}
	if r.strict && code[0] != 'E' && isStrict(code) {
		code = "E" + code[1:]
	}
	r.problems = append(r.problems, repute.Problem{
		Code:     code,
		Severity: repute.SeverityOf(code),
		Path:     jsonwalk.Clean(jsonwalk.Cut(path, maxShort)),
		Message:  jsonwalk.Clean(jsonwalk.Cut(fmt.Sprintf(format, args...), maxShort)),
	})
}

// full reports whether what would be added is left out.
// The one problem beyond maxProblems is CodeMore.
func (r *reader) full() bool { return len(r.problems) > maxProblems }

// at returns the JSON pointer of a member.
func (o *object) at(name string) string { return o.path() + "/" + jsonwalk.Pointer(name) }

// path returns the object's own JSON pointer.
func (o *object) path() string {
	if o.parent == nil {
		return o.token
	}
	path := o.parent.at(o.token)
	if o.index >= 0 {
		path += "/" + strconv.Itoa(o.index)
	}
	return path
}

// split returns the first members of an object or entries of an array, at most limit, and how many there are. Those
// beyond the limit take no room: a list of two bytes per entry would otherwise grow to many times its size.
func (r *reader) split(m member, limit int) (list []member, n int) {
	begin := len(r.slab)
	c := r.index.Cursor(m.raw, m.number)
	for ; c.Next(); n++ {
		if n < limit {
			r.slab = append(r.slab, member{name: c.NameBytes(), raw: c.Value, number: c.Number})
		}
	}
	return r.slab[begin:len(r.slab):len(r.slab)], n
}

// open makes an object of a JSON value. A repeated member keeps its places; find takes the last one.
func (r *reader) open(m member, parent *object, token string, index int) *object {
	if len(r.objects) == cap(r.objects) {
		r.objects = make([]object, 0, objectsAtOnce) // those of the old array stay where they are
	}
	members, _ := r.split(m, math.MaxInt)
	r.objects = append(r.objects, object{r: r, parent: parent, token: token, index: index, members: members})
	return &r.objects[len(r.objects)-1]
}

// find returns a member; nil when the object has none.
func (o *object) find(name string) *member {
	for i := len(o.members) - 1; i >= 0; i-- {
		if string(o.members[i].name) == name {
			return &o.members[i]
		}
	}
	return nil
}

// has reports whether the object has a member, whatever its value.
func (o *object) has(name string) bool { return o.find(name) != nil }

// get returns the value of a member, of a repeated one the last, and nil for none.
// All members of the name count as used: a repeated one is reported by lexical, once, and not as unknown too.
func (o *object) get(name string) (raw []byte) {
	for i := range o.members {
		if m := &o.members[i]; string(m.name) == name {
			m.used, raw = true, m.raw
		}
	}
	return raw
}

// typed returns the value of a member of the wanted JSON type, which jsonwalk.Type names. Any other type is a problem,
// and the member counts as absent.
func (o *object) typed(name, want string) []byte {
	raw := o.get(name)
	if raw == nil {
		return nil
	}
	if got := jsonwalk.Type(raw); got != want {
		o.r.add(CodeType, o.at(name), "%s instead of %s", got, want)
		return nil
	}
	return raw
}

// textOf decodes a string and makes it safe to store.
func textOf(raw []byte) string {
	inside := raw[1 : len(raw)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		if utf8.Valid(inside) {
			return string(inside)
		}
		return jsonwalk.Clean(string(inside))
	}
	var s string
	_ = json.Unmarshal(raw, &s) // a valid string
	return jsonwalk.Clean(s)
}

// text reads a string, cut to the limit.
func (o *object) text(name string, limit int) string {
	raw := o.typed(name, "a string")
	if raw == nil {
		return ""
	}
	s := textOf(raw)
	if len(s) > limit {
		o.r.add(CodeTooLong, o.at(name), "%d bytes, cut to %d", len(s), limit)
		s = jsonwalk.Cut(s, limit)
	}
	return s
}

// required is text for a member that must be there and not be empty.
func (o *object) required(name string, limit int) string {
	if !o.has(name) {
		o.r.add(CodeMissing, o.at(name), "no %s", name)
		return ""
	}
	s := o.text(name, limit) // reports another type
	if s == "" && o.hasType(name, "a string") {
		o.r.add(CodeMissing, o.at(name), "%s is empty", name)
	}
	return s
}

// url reads a URL or an endpoint. One that is too long is dropped: cut, it would lead elsewhere.
func (o *object) url(name string) string {
	raw := o.typed(name, "a string")
	if raw == nil {
		return ""
	}
	s := textOf(raw)
	if len(s) > maxURL {
		o.r.add(CodeTooLong, o.at(name), "%d bytes, dropped", len(s))
		return ""
	}
	return s
}

// choice reads a string that must be one of a few. A value that is none of them is a problem, and reads as absent.
func (o *object) choice(name string, allowed ...string) string {
	raw := o.typed(name, "a string")
	if raw == nil {
		return ""
	}
	for _, a := range allowed {
		if string(raw[1:len(raw)-1]) == a { // as nearly all write it
			return a
		}
	}
	s := textOf(raw)
	if slices.Contains(allowed, s) {
		return s
	}
	o.r.add(CodeEnum, o.at(name), "%.*q, allowed: %s", maxQuotedValue, s, strings.Join(allowed, ", "))
	return ""
}

// requiredChoice is choice for a member that must be there.
func (o *object) requiredChoice(name string, allowed ...string) string {
	if m := o.find(name); m == nil || string(m.raw) == `""` {
		return o.required(name, maxShort) // reports that it is missing
	}
	return o.choice(name, allowed...)
}

// flag reads a boolean.
func (o *object) flag(name string) *bool {
	raw := o.typed(name, "a boolean")
	if raw == nil {
		return nil
	}
	v := raw[0] == 't'
	return &v
}

// decimal reads an amount.
func (o *object) decimal(name string) Decimal {
	raw := o.typed(name, "a number")
	if raw == nil {
		return ""
	}
	d, state := parseDecimal(raw)
	switch state {
	case numberNegative:
		o.r.add(CodeNumber, o.at(name), "%.*s is negative", maxQuotedValue, raw)
	case numberBounds:
		o.r.add(CodeNumber, o.at(name), "%.*s has too many digits", maxQuotedValue, raw)
	}
	return d
}

// requiredDecimal is decimal for a member that must be there.
func (o *object) requiredDecimal(name string) Decimal {
	if !o.has(name) {
		o.r.add(CodeMissing, o.at(name), "no %s", name)
	}
	return o.decimal(name)
}

// child opens the object under a name; nil when there is none.
func (o *object) child(name string) *object {
	if o.typed(name, "an object") == nil {
		return nil
	}
	return o.r.open(*o.find(name), o, name, -1)
}

// list opens an array; false when there is none.
func (o *object) list(name string, limit int) ([]member, bool) {
	if o.typed(name, "an array") == nil {
		return nil, false
	}
	list, n := o.r.split(*o.find(name), limit)
	if n > limit {
		o.r.add(CodeTooMany, o.at(name), "%d entries, cut to %d", n, limit)
	}
	return list, true
}

// filled is list for an array that must not be empty where it is there.
func (o *object) filled(name string, limit int) []member {
	list, ok := o.list(name, limit)
	if ok && len(list) == 0 {
		o.r.add(CodeEmptyList, o.at(name), "%s is empty", name)
	}
	return list
}

// entry opens an entry of a list; nil, and a problem, for one that is no object.
func (o *object) entry(name string, i int, e member) *object {
	if got := jsonwalk.Type(e.raw); got != "an object" {
		o.r.add(CodeType, o.at(name)+"/"+strconv.Itoa(i), "%s instead of an object", got)
		return nil
	}
	return o.r.open(e, o, name, i)
}

// length reports a text whose number of characters is outside the specification's bounds. An empty text counts as
// absent.
func (o *object) length(name, s string, least, most int) {
	if n := utf8.RuneCountInString(s); s != "" && (n < least || n > most) {
		o.r.add(CodeLength, o.at(name), "%d characters, %d to %d are wanted", n, least, most)
	}
}

// unknown reports the members that nobody read, and keeps them where a map is given.
//
// It MUST be called after all known members were read, since it goes by their mark used. Once no further problem is
// listed it goes on only where members are kept.
func (o *object) unknown(keep *map[string]json.RawMessage) {
	for i := range o.members {
		m := &o.members[i]
		if m.used {
			continue
		}
		if o.r.full() && keep == nil {
			return
		}
		switch {
		case bytes.HasPrefix(m.name, []byte("x-")):
		case bytes.HasPrefix(m.name, []byte("x_")):
			o.r.add(CodeOldPrefix, o.at(string(m.name)), "the old prefix of own data")
		default:
			o.r.add(CodeMember, o.at(string(m.name)), "not a member of this object")
		}
		if keep == nil {
			continue
		}
		if raw := o.r.kept(m.raw, o, string(m.name)); raw != nil {
			if *keep == nil {
				*keep = map[string]json.RawMessage{}
			}
			(*keep)[jsonwalk.Clean(jsonwalk.Cut(string(m.name), maxShort))] = raw
		}
	}
}

// closed reports members x-…, which every object may have but commitments.
func (o *object) closed() {
	for _, m := range o.members {
		if bytes.HasPrefix(m.name, []byte("x-")) {
			o.r.add(CodeMember, o.at(string(m.name)), "not allowed in this object; put it into an entry")
		}
	}
}

// kept returns a copy of what is kept as written, as far as there is room for it; nil without.
func (r *reader) kept(raw []byte, o *object, name string) json.RawMessage {
	size := len(name) + len(raw)
	if size > maxExtra-r.extra {
		r.add(CodeTooLong, o.at(name), "%d bytes of own data, dropped", size)
		return nil
	}
	r.extra += size
	return bytes.Clone(raw) // not to hold the whole document
}

// extensions keeps the member extensions, which belongs to vendors.
func (o *object) extensions() json.RawMessage {
	raw := o.typed("extensions", "an object")
	if raw == nil {
		return nil
	}
	return o.r.kept(raw, o, "extensions")
}
