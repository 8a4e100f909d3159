package frontmatter

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"repute/manifest/oaf/problem"
)

// Object is an object of a document. Its methods read members; a member of another type is reported and counts as
// absent. A nil Object has no members.
type Object struct {
	doc    *document
	path   string // JSON pointer
	line   int
	keys   []string
	values map[string]*yaml.Node
	used   map[string]bool

	restricts bool // as Restricting says
}

// object opens a mapping; a repeated member is an error, and the first one counts.
func (d *document) object(n *yaml.Node, path string) *Object {
	o := &Object{doc: d, path: path, line: n.Line, values: map[string]*yaml.Node{}, used: map[string]bool{}}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := target(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			d.list.Add(problem.CodeType, d.place(path, key.Line), "a member whose name is no text")
			continue
		}
		if _, twice := o.values[key.Value]; twice {
			d.list.Add(problem.CodeDuplicate, d.place(path+"/"+pointer(key.Value), key.Line), "is repeated")
			continue
		}
		o.keys = append(o.keys, key.Value)
		o.values[key.Value] = n.Content[i+1]
	}
	return o
}

// pointer escapes a member's name for a JSON pointer.
func pointer(key string) string {
	if len(key) > 80 {
		key = key[:80]
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.ToValidUTF8(key, ""))
}

// Keys returns the names of all members in the order of the file.
func (o *Object) Keys() []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// Has reports whether the object has a member that is not null.
func (o *Object) Has(key string) bool { return o.peek(key) != nil }

// get returns a member that is not null, and marks it as known.
func (o *Object) get(key string) *yaml.Node {
	if o == nil {
		return nil
	}
	if _, ok := o.values[key]; ok {
		o.used[key] = true
	}
	return o.peek(key)
}

// peek returns a member that is not null.
func (o *Object) peek(key string) *yaml.Node {
	if o == nil {
		return nil
	}
	n, ok := o.values[key]
	if !ok {
		return nil
	}
	if n = target(n); n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return n
}

// At returns the place of a member, or of the object for a member that is absent.
func (o *Object) At(key string) problem.Place {
	if o == nil {
		return problem.Place{}
	}
	n, ok := o.values[key]
	if !ok {
		if key == "" {
			return o.doc.place(o.path, o.line)
		}
		return o.doc.place(o.path+"/"+pointer(key), o.line)
	}
	return o.doc.place(o.path+"/"+pointer(key), n.Line)
}

// Report adds a problem of a member.
func (o *Object) Report(code, key, format string, args ...any) {
	o.doc.list.Add(code, o.At(key), format, args...)
}

// Suggest is Report with a hint for this problem alone.
func (o *Object) Suggest(code, key, hint, format string, args ...any) {
	o.doc.list.Suggest(code, o.At(key), hint, format, args...)
}

// wrong reports a member of another type than the format gives it. Its value is left out.
func (o *Object) wrong(key, want string) {
	code := problem.CodeType
	if o.restricts {
		code = problem.CodeRestriction
	}
	o.Report(code, key, "is no %s", want)
}

// Restricting returns the object for reading members that restrict an agent, such as denied tools. A member of another
// type is an error there, because an agent without it may do more; a bool alone is no text and no list of texts. The
// objects in it are usual ones.
func (o *Object) Restricting() *Object {
	if o == nil {
		return nil
	}
	restricting := *o
	restricting.restricts = true
	return &restricting
}

// isText reports whether a value is taken as a text.
func (o *Object) isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !(o.restricts && n.ShortTag() == "!!bool")
}

// Text returns a text. A number or a bool is taken by its characters: published files leave out the quotes.
func (o *Object) Text(key string) string {
	n := o.get(key)
	if n == nil {
		return ""
	}
	if !o.isText(n) {
		o.wrong(key, "text")
		return ""
	}
	return n.Value
}

// CheckComment reports a text without quotes that ends at a comment, because # after a space begins one.
func (o *Object) CheckComment(keys ...string) {
	for _, key := range keys {
		if n := o.peek(key); n != nil && n.Kind == yaml.ScalarNode && n.Style == 0 && n.LineComment != "" {
			o.Report(problem.CodeComment, key, "ends before %.80q", n.LineComment)
		}
	}
}

// IsNumber reports whether a member is a number without quotes.
func (o *Object) IsNumber(key string) bool {
	n := o.peek(key)
	return n != nil && n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!float" || n.ShortTag() == "!!int")
}

// IsText reports whether a member is a scalar, whatever its type.
func (o *Object) IsText(key string) bool {
	n := o.peek(key)
	return n != nil && o.isText(n)
}

// IsBool reports whether a member is a bool without quotes.
func (o *Object) IsBool(key string) bool {
	n := o.peek(key)
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool"
}

// IsList reports whether a member is a list.
func (o *Object) IsList(key string) bool {
	n := o.peek(key)
	return n != nil && n.Kind == yaml.SequenceNode
}

// IsFlow reports whether a member, or something in it, is a list or a map in brackets.
func (o *Object) IsFlow(key string) bool {
	n := o.peek(key)
	return n != nil && flow(n)
}

// flow reports whether a value is written in braces or brackets anywhere, in which line numbers say little.
func flow(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0 {
		return true
	}
	for _, child := range n.Content {
		if flow(target(child)) {
			return true
		}
	}
	return false
}

// Texts returns a list of texts: nil for an absent member, and not nil for an empty list. One text counts as a list of
// it.
func (o *Object) Texts(key string) []string {
	n := o.get(key)
	switch {
	case n == nil:
		return nil
	case o.isText(n):
		return []string{n.Value}
	case n.Kind != yaml.SequenceNode:
		o.wrong(key, "list of texts")
		return nil
	}
	out := []string{}
	for _, child := range n.Content {
		if child = target(child); !o.isText(child) {
			o.wrong(key, "list of texts")
			continue
		}
		out = append(out, child.Value)
	}
	return out
}

// Bool returns a bool, else the default. In a restricting object the default permits something, and a member of another
// type has the opposite value.
func (o *Object) Bool(key string, otherwise bool) bool {
	n := o.get(key)
	if n == nil {
		return otherwise
	}
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	o.wrong(key, "bool: true or false")
	return otherwise != o.restricts
}

// Number returns a number. ok is false for an absent member.
func (o *Object) Number(key string) (f float64, ok bool) {
	n := o.get(key)
	if n == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		o.wrong(key, "number")
		return 0, false
	}
	return f, true
}

// Whole returns a whole number from 0 to two thousand million, 0 for an absent member.
func (o *Object) Whole(key string) int {
	const most = 2_000_000_000
	f, ok := o.Number(key)
	if !ok {
		return 0
	}
	if f < 0 || f > most || f != math.Trunc(f) {
		o.Report(problem.CodeRange, key, "is no whole number from 0 to %d", most)
		return 0
	}
	return int(f)
}

// Object returns a member that is an object; nil for an absent one.
func (o *Object) Object(key string) *Object {
	n := o.get(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		o.wrong(key, "object")
		return nil
	}
	return o.doc.object(n, o.path+"/"+pointer(key))
}

// IsObject reports whether a member is an object.
func (o *Object) IsObject(key string) bool {
	n := o.peek(key)
	return n != nil && n.Kind == yaml.MappingNode
}

// Objects returns the entries of a list of objects. An entry that is one text becomes an object with that text as the
// member short.
func (o *Object) Objects(key, short string) []*Object {
	n := o.get(key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		o.wrong(key, "list of objects")
		return nil
	}
	var out []*Object
	for i, child := range n.Content {
		path := o.path + "/" + pointer(key) + "/" + strconv.Itoa(i)
		switch child = target(child); {
		case child.Kind == yaml.MappingNode:
			out = append(out, o.doc.object(child, path))
		case child.Kind == yaml.ScalarNode && short != "":
			out = append(out, &Object{doc: o.doc, path: path, line: child.Line, keys: []string{short},
				values: map[string]*yaml.Node{short: child}, used: map[string]bool{}})
		default:
			o.wrong(key, "list of objects")
		}
	}
	return out
}

// TextMap returns an object of texts; nil for an absent one.
func (o *Object) TextMap(key string) map[string]string {
	in := o.Object(key)
	if in == nil || len(in.keys) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, k := range in.keys {
		out[k] = in.Text(k)
	}
	return out
}

// JSON returns a member as JSON; nil for an absent one.
func (o *Object) JSON(key string) json.RawMessage {
	n := o.get(key)
	if n == nil {
		return nil
	}
	return toJSON(n)
}

// Rest returns all members that no other method has asked for, as JSON; nil without.
func (o *Object) Rest() map[string]json.RawMessage {
	if o == nil {
		return nil
	}
	var out map[string]json.RawMessage
	for _, key := range o.keys {
		if o.used[key] {
			continue
		}
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[key] = toJSON(o.values[key])
	}
	return out
}

// Members returns every member as JSON; nil for an object without any.
func (o *Object) Members() map[string]json.RawMessage {
	if o == nil {
		return nil
	}
	for _, key := range o.keys {
		delete(o.used, key)
	}
	return o.Rest()
}
